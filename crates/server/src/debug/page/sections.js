// Sections: a heading, what stands beside it, and a table.

import { el, say } from './dom.js';

export class Section {
  constructor({ id, title, table, filter }) {
    this.table = table;
    this.about = el('span', { class: 'about' });
    const heading = el('h2', { id: `${id}-title`, tabindex: -1 }, title);
    this.head = el('div', { class: 'section-head' }, heading, this.about);
    if (filter) {
      this.filter = el('input', { type: 'search', placeholder: filter, 'aria-label': filter, spellcheck: 'false', autocomplete: 'off' });
      this.filter.addEventListener('input', () => table.forgetOrder());
      this.head.append(this.filter);
    }
    this.root = el('section', { id, 'aria-labelledby': `${id}-title` }, this.head, table.root);
  }

  // Draws rows, or those that have the words of the filter in `text`.
  draw(rows, text) {
    const words = this.filter?.value.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
    this.table.draw(words.length ? rows.filter((row) => words.every((word) => text(row).toLowerCase().includes(word))) : rows);
  }

  tell(about) {
    say(this.about, about);
  }
}
