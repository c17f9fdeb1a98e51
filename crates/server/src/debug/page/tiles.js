// Tiles: a figure with its name, a second line, and the last two minutes of it. Each is a link to where there is more.

import { Chart } from './chart.js';
import { el, mark, say } from './dom.js';
import { describedBy } from './meanings.js';

export class Tile {
  // `read(model)` returns {figure, more, level}; `history` names what is drawn as a line, if anything,
  // and `swatch` the colour of a kind of watchers.
  constructor({ title, means, href, history, swatch, read }) {
    Object.assign(this, { history, read });
    this.figure = el('span', { class: 'figure' });
    this.unit = el('span', { class: 'unit' });
    this.more = el('span', { class: 'more' });
    this.chart = history ? new Chart() : null;
    const parts = [el('span', { class: 'title' }, title), el('span', { class: 'value' }, this.figure, this.unit), this.more];
    const tag = href ? 'a' : 'div';
    this.root = el(tag, { class: swatch ? `tile swatch-${swatch}` : 'tile', href, tabindex: href ? null : 0, ...describedBy(means) }, ...parts, this.chart?.root ?? '');
  }

  draw(model) {
    const { figure, more = '', level } = this.read(model);
    // The last unit alone is set smaller: "3 h 05 m" stays as it is.
    const cut = /^(\S+)\u00a0(\S+)$/.exec(figure);
    say(this.figure, cut ? cut[1] : figure);
    say(this.unit, cut ? `\u00a0${cut[2]}` : '');
    say(this.more, more);
    mark(this.root, 'data-level', level || null);
    if (this.chart) this.chart.draw(model.history(this.history), model.now);
  }
}

export function tiles(list, label) {
  const made = list.map((tile) => new Tile(tile));
  return { tiles: made, root: el('section', { class: 'tiles', 'aria-label': label }, ...made.map(({ root }) => root)) };
}
