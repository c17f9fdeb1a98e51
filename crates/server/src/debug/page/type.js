// The view of one type: its figures, its clients, and its watchers, those furthest behind first.

import { KINDS, clientsTable, selects, watchersTable } from './columns.js';
import { el } from './dom.js';
import * as format from './format.js';
import { levelOf } from './model.js';
import { Section } from './sections.js';
import { ask } from './stream.js';
import { tiles } from './tiles.js';

// The server gives no more of them at a time.
const WATCHERS_MAX = 1000;
const ASK_EVERY_MS = 2_000;
const KIND_TITLES = { everything: 'Of everything', namespace: 'Of a namespace', name: 'Of one name', labels: 'By labels', fields: 'By fields', shards: 'By shards' };

export class TypeView {
  constructor(model, redraw, type) {
    Object.assign(this, { model, redraw, type, title: type, items: [], total: null, asked: -Infinity, isAsking: false });
    this.tiles = tiles(this.figures(), `Figures of ${type}`);
    this.kinds = tiles(KINDS.map((kind) => this.kind(kind)), 'Watchers by kind of selector');
    this.clients = new Section({ id: 'type-clients', title: 'Clients', table: clientsTable() });
    this.watchers = new Section({ id: 'watchers', title: 'Watchers', table: watchersTable({ label: `Watchers of ${type}`, empty: 'No watchers.' }), filter: 'Filter watchers' });
    this.watchers.filter.addEventListener('input', redraw);
    this.kinds.root.classList.add('small');
    const way = el('p', { class: 'way' }, el('a', { href: '#/' }, 'Overview'), ' / types');
    this.root = el('div', { class: 'view' }, way, el('h1', { tabindex: -1 }, type), this.tiles.root, this.kinds.root, this.clients.root, this.watchers.root);
  }

  row() {
    return this.model.state.types.find(({ type }) => type === this.type);
  }

  figures() {
    const of = (read) => () => (this.row() ? read(this.row()) : { figure: format.UNKNOWN });
    return [
      { title: 'Objects', means: 'objects', read: of(({ objects, bytes }) => ({ figure: format.count(objects), more: format.bytes(bytes) })) },
      { title: 'Changes', means: 'rate', history: `type ${this.type}`, read: of(({ changes }) => ({ figure: format.rate(this.model.rates.types.get(this.type)), more: `${format.count(changes)} in all` })) },
      { title: 'Window', means: 'window', read: of(({ window }) => ({ figure: format.count(window.events), more: `of ${format.count(window.capacity)} events` })) },
      { title: 'Spare', means: 'spare', read: of(({ window }) => ({ figure: format.count(window.spare), more: 'events' })) },
      { title: 'Oldest event', means: 'oldest', read: of(({ window }) => ({ figure: format.seconds(window.oldestSeconds), more: 'ago' })) },
      { title: 'Reads waiting', means: 'readsWaiting', read: of(({ reads }) => ({ figure: format.count(reads.waiting), more: `longest ${format.seconds(reads.longestSeconds)}`, level: levelOf(reads.longestSeconds, this.model.state.thresholds.readSeconds) })) },
      { title: 'Parked', means: 'parked', href: '#watchers', read: of(({ watchers }) => ({ figure: format.count(watchers.parked), more: `of ${format.things(watchers.total, 'watcher')}`, level: watchers.parked > 0 && 'warn' })) },
    ];
  }

  kind(kind) {
    const read = () => ({ figure: this.row() ? format.count(this.row().watchers[kind]) : format.UNKNOWN });
    return { title: KIND_TITLES[kind], means: kind, swatch: kind, read };
  }

  tables() {
    return [this.clients.table, this.watchers.table];
  }

  draw() {
    this.ask();
    for (const tile of [...this.tiles.tiles, ...this.kinds.tiles]) tile.draw(this.model);
    this.clients.draw(clientsOf(this.items));
    this.watchers.tell(this.about());
    this.watchers.draw(this.items, (watcher) => [watcher.userAgent, watcher.user, watcher.address, watcher.kind, selects(watcher)].join(' '));
  }

  about() {
    if (this.failure) return `cannot be read now: ${this.failure}`;
    if (this.total == null) return 'being asked for';
    const { length } = this.items;
    return length < this.total ? `${format.count(length)} furthest behind of ${format.count(this.total)}` : format.things(length, 'watcher');
  }

  // Asks for the watchers, unless that was done just now or is being done.
  async ask() {
    if (this.isAsking || performance.now() - this.asked < ASK_EVERY_MS) return;
    this.isAsking = true;
    this.asked = performance.now();
    try {
      const { total, items } = await ask(`watchers?type=${encodeURIComponent(this.type)}&limit=${WATCHERS_MAX}`);
      Object.assign(this, { total, items, failure: null });
    } catch (error) {
      this.failure = error.message;
    }
    this.isAsking = false;
    this.redraw();
  }
}

// Returns the clients of watchers, by user agent.
function clientsOf(watchers) {
  const clients = new Map();
  for (const watcher of watchers) {
    const name = format.client(watcher);
    const row = clients.get(name) ?? { name, watches: 0, parked: 0, behind: 0 };
    row.watches += 1;
    row.parked += watcher.parked ? 1 : 0;
    row.behind = Math.max(row.behind, watcher.behind);
    clients.set(name, row);
  }
  return [...clients.values()];
}
