// The story of one watcher: who it is, what it selects, how far it is, and the last two minutes of that.

import { selects, stateOf } from './columns.js';
import { el, mark, say } from './dom.js';
import * as format from './format.js';
import { typeHref } from './links.js';
import { describedBy } from './meanings.js';
import { Model } from './model.js';
import { ask } from './stream.js';
import { tiles } from './tiles.js';

const ASK_EVERY_MS = 1_000;
const GONE = 404;

const FACTS = [
  ['User', 'user', ({ user }) => user],
  ['Client', 'client', ({ userAgent }) => userAgent],
  ['Address', 'address', ({ address }) => address],
  ['Selects', 'selects', selects],
  ['Found by', 'kind', ({ kind }) => kind],
  ['Age', 'age', ({ ageSeconds }) => format.seconds(ageSeconds)],
];

export class WatcherView {
  constructor(model, redraw, id) {
    Object.assign(this, { model, redraw, id, title: `watcher ${id}`, watcher: null, asked: -Infinity, isAsking: false });
    // Its own last two minutes, by its own age.
    this.past = new Model();
    this.past.now = 0;
    this.tiles = tiles(this.figures(), 'Its figures');
    this.type = el('a', {});
    this.heading = el('h1', { tabindex: -1 }, `Watcher ${id}`);
    this.story = el('p', { class: 'story' }, 'Being asked for.');
    this.values = FACTS.map(([, means]) => el('dd', { tabindex: 0, ...describedBy(means) }));
    const facts = FACTS.flatMap(([title], index) => [el('dt', {}, title), this.values[index]]);
    const way = el('p', { class: 'way' }, el('a', { href: '#/' }, 'Overview'), ' / ', this.type, ' / watchers');
    this.root = el('div', { class: 'view' }, way, this.heading, this.story, this.tiles.root, el('dl', { class: 'facts' }, ...facts));
  }

  figures() {
    const of = (read) => () => (this.watcher ? read(this.watcher) : { figure: format.UNKNOWN });
    return [
      { title: 'Behind', means: 'behind', history: 'behind', read: of(({ behind, parked }) => ({ figure: format.count(behind), more: 'events', level: parked && 'warn' })) },
      { title: 'Delivered', means: 'sentRate', history: 'sent', read: of(({ sent }) => ({ figure: format.rate(this.rate), more: `${format.count(sent)} in all` })) },
      { title: 'Revision', means: 'taken', read: of((watcher) => ({ figure: format.revision(watcher.revision), more: `type at ${format.revision(this.row(watcher)?.revision)}` })) },
      { title: 'State', means: 'state', read: of((watcher) => ({ figure: this.isGone ? 'ended' : stateOf(watcher), level: watcher.parked && 'warn' })) },
    ];
  }

  tables() {
    return [];
  }

  draw() {
    this.ask();
    for (const tile of this.tiles.tiles) tile.draw({ history: (name) => this.past.history(name), now: this.past.now });
    const { watcher } = this;
    if (!watcher) {
      if (this.isGone) say(this.story, 'This watch has ended, or never was.');
      return;
    }
    say(this.type, watcher.type);
    mark(this.type, 'href', typeHref(watcher.type));
    say(this.heading, `${format.client(watcher)} watches ${watcher.type}`);
    say(this.story, this.tell(watcher));
    FACTS.forEach(([, , read], index) => say(this.values[index], read(watcher) || format.UNKNOWN));
  }

  row(watcher) {
    return this.model.state.types.find(({ type }) => type === watcher.type);
  }

  tell(watcher) {
    if (this.isGone) return `This watch has ended. When it was last seen it was ${format.seconds(watcher.ageSeconds)} old and had been sent ${format.things(watcher.sent, 'event')}.`;
    if (watcher.behind == null) return 'No watch cache serves it: it comes from the store itself.';
    const left = Math.max(0, (this.row(watcher)?.window.events ?? 0) - watcher.behind);
    if (watcher.parked) return `It overflowed its channel and reads the window: ${format.things(watcher.behind, 'event')} to examine, ${format.things(left, 'event')} before the window forgets what it has not read. Its client reads more slowly than events come.`;
    if (watcher.behind > 0) return `It has ${format.things(watcher.behind, 'event')} of the window to examine.`;
    return 'It has examined every event.';
  }

  async ask() {
    if (this.isAsking || this.isGone || performance.now() - this.asked < ASK_EVERY_MS) return;
    this.isAsking = true;
    this.asked = performance.now();
    try {
      this.take(await ask(`watchers/${encodeURIComponent(this.id)}`));
    } catch (error) {
      this.isGone = error.status === GONE;
    }
    this.isAsking = false;
    this.redraw();
  }

  take(watcher) {
    const seconds = this.watcher ? watcher.ageSeconds - this.watcher.ageSeconds : 0;
    if (seconds > 0) this.rate = (watcher.sent - this.watcher.sent) / seconds;
    this.watcher = watcher;
    this.past.now = watcher.ageSeconds;
    this.past.note('behind', watcher.behind);
    this.past.note('sent', this.rate);
  }
}
