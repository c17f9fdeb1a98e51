// The first view: what stands out, the figures of the whole server, and a table of each kind.

import { accountsTable, busiestTable, fairnessTable, requestsTable, typesTable, watchersTable, webhooksTable } from './columns.js';
import { el, mark, say } from './dom.js';
import * as format from './format.js';
import { findingHref } from './links.js';
import { NO_WINDOW, levelOf, sum } from './model.js';
import { Section } from './sections.js';
import { tiles } from './tiles.js';

const TILES = [
  { title: 'Feed lag', means: 'lag', href: '#types', history: 'lag', read: lag },
  { title: 'Store', means: 'store', history: 'store', read: store },
  { title: 'Changes', means: 'changes', href: '#types', history: 'changes', read: ({ rates, state }) => ({ figure: format.rate(rates.changes), more: format.things(state.types.length, 'type') }) },
  { title: 'Watchers', means: 'watchers', href: '#watchers', history: 'watchers', read: ({ totals }) => ({ figure: format.count(totals.watchers), more: `${format.count(totals.parked)} parked`, level: totals.parked > 0 && 'warn' }) },
  { title: 'Furthest behind', means: 'furthest', href: '#watchers', history: 'furthest', read: ({ totals }) => ({ figure: format.count(totals.behindMax), more: 'events' }) },
  { title: 'Reads waiting', means: 'waiting', href: '#types', history: 'waiting', read: waiting },
  { title: 'Memory', means: 'memory', href: '#memory', history: 'memory', read: memory },
  { title: 'Queued', means: 'queued', href: '#fairness', history: 'queued', read: queued },
  { title: 'Certificate', means: 'certificate', read: certificate },
];

function lag({ state: { feed, thresholds } }) {
  return {
    figure: format.seconds(feed.lagSeconds),
    more: feed.revision == null ? 'one feed for each type' : `revision ${format.revision(feed.revision)}`,
    level: levelOf(feed.lagSeconds, thresholds.lagSeconds),
  };
}

function store({ state: { feed, thresholds } }) {
  if (feed.silentSeconds > 0) return { figure: 'silent', more: `for ${format.seconds(feed.silentSeconds)}`, level: levelOf(feed.silentSeconds, thresholds.silentSeconds) };
  return { figure: format.seconds(feed.storeSeconds), more: feed.storeRevision == null ? 'and no answer yet' : 'to answer', level: levelOf(feed.storeSeconds, thresholds.storeSeconds) };
}

function waiting({ state: { thresholds }, totals }) {
  return { figure: format.count(totals.waiting), more: `longest ${format.seconds(totals.longest)}`, level: levelOf(totals.longest, thresholds.readSeconds) };
}

function certificate({ state: { certificates: [mostUrgent] } }) {
  if (!mostUrgent) return { figure: format.UNKNOWN };
  return { figure: format.seconds(Math.max(0, mostUrgent.secondsLeft)), more: 'left', level: mostUrgent.level };
}

function memory({ state: { memory: { budgetBytes }, thresholds }, totals }) {
  const part = totals.counted / budgetBytes;
  return {
    figure: format.bytes(totals.counted),
    more: budgetBytes ? `${format.percent(part)} of ${format.bytes(budgetBytes)}` : 'no budget',
    level: budgetBytes && levelOf(part, thresholds.memoryPart),
  };
}

function queued({ totals, rates }) {
  const rejected = sum([...rates.rejected.values()]);
  return { figure: format.count(totals.queued), more: `${format.rate(rejected)} rejected`, level: rejected > 0 ? 'bad' : totals.queued > 0 && 'warn' };
}

export class Overview {
  constructor(model, redraw) {
    this.model = model;
    this.title = '';
    this.attention = el('ul', { class: 'attention', 'aria-label': 'What stands out' });
    this.tiles = tiles(TILES, 'The whole server');
    this.tiles.root.id = 'server';
    this.types = new Section({ id: 'types', title: 'Types', table: typesTable(model), filter: 'Filter types' });
    this.watchers = new Section({ id: 'watchers', title: 'Slowest watchers', table: watchersTable({ label: 'Slowest watchers', hasType: true, empty: 'No watchers.' }) });
    this.requests = new Section({ id: 'requests', title: 'Slowest requests', table: requestsTable(model) });
    this.clients = new Section({ id: 'clients', title: 'Busiest clients', table: busiestTable() });
    this.webhooks = new Section({ id: 'webhooks', title: 'Webhooks', table: webhooksTable(model) });
    this.memory = new Section({ id: 'memory', title: 'Memory', table: accountsTable(model) });
    this.fairness = new Section({ id: 'fairness', title: 'Fairness', table: fairnessTable(model) });
    this.types.filter.addEventListener('input', redraw);
    const [types, watchers, requests, clients, webhooks, memorySection, fairness] = this.sections().map(({ root }) => root);
    this.root = el('div', { class: 'view' }, el('h1', { class: 'unseen', tabindex: -1 }, 'Overview'), this.attention, this.tiles.root,
      types, watchers, requests, clients, webhooks, el('div', { class: 'pair' }, memorySection, fairness));
  }

  sections() {
    return [this.types, this.watchers, this.requests, this.clients, this.webhooks, this.memory, this.fairness];
  }

  tables() {
    return this.sections().map(({ table }) => table);
  }

  draw() {
    const { model, model: { state, totals } } = this;
    this.drawAttention(state.findings);
    for (const tile of this.tiles.tiles) tile.draw(model);
    const used = state.types.filter(isUsed);
    const unused = state.types.length - used.length;
    this.types.tell(format.things(used.length, 'type') + (unused ? `, and ${unused} without objects and watchers` : ''));
    this.types.draw(this.types.filter.value ? state.types : used, ({ type }) => type);
    this.watchers.tell(`furthest behind of ${format.count(totals.watchers)}`);
    this.watchers.draw(state.slowest);
    this.requests.tell('running, or of the last minute');
    this.requests.draw(state.requests.map(keyed(['verb', 'path', 'user', 'userAgent', 'running', 'code'])));
    this.clients.tell('of the last minute');
    this.clients.draw(state.clients.map(keyed(['others', 'verb', 'resource', 'everything', 'user', 'userAgent', 'address'])));
    this.webhooks.tell('called now, or within the last minute');
    this.webhooks.draw(state.webhooks);
    this.memory.tell(resident(state.memory));
    this.memory.draw(state.memory.accounts);
    this.fairness.draw(state.fairness);
  }

  drawAttention(found) {
    const list = found.length ? found : [{ level: 'good', text: 'Nothing stands out' }];
    while (this.attention.children.length > list.length) this.attention.lastChild.remove();
    list.forEach((finding, index) => {
      const { level, text } = finding;
      const item = this.attention.children[index] ?? this.attention.appendChild(el('li', {}, el('a')));
      mark(item, 'data-level', level);
      mark(item.firstChild, 'href', finding.about ? findingHref(finding) : null);
      say(item.firstChild, text);
    });
  }
}

// Rows of others would be of zeros alone; whoever filters finds them.
function isUsed({ objects, watchers, reads, window, ready }) {
  return objects + watchers.total + reads.waiting > 0 || (window !== NO_WINDOW && !ready);
}

function resident({ residentBytes }) {
  return residentBytes == null ? '' : `${format.bytes(residentBytes)} resident`;
}

// Returns a function that gives a row without a name one, of what tells it from others.
function keyed(names) {
  return (row) => ({ ...row, key: names.map((name) => row[name]).join('\n') });
}
