// A table of any length: of a long one only the rows in view are in the page, each kept by its key, and only texts that changed are
// written. Rows lie where their place in the order says, so that another order moves rows and rewrites none.
//
// It is one stop of the Tab key. Within it the arrow keys move (`keys.js`); the heads of columns are buttons that sort.

import { el, mark } from './dom.js';
import { describedBy } from './meanings.js';
import { HEAD, handleKeys } from './keys.js';

const OVERSCAN_ROWS = 8;
// Shorter tables are in the page whole, so that they can be searched and read aloud.
const WHOLE_ROWS_MAX = 100;
const ORDER_EVERY_MS = 3_000;
const canHover = matchMedia('(hover: hover)');
// Fingers need more room than mice.
const isCoarse = matchMedia('(pointer: coarse)');
export const rowHeight = () => (isCoarse.matches ? 40 : 27);

export class Table {
  // `columns`: {id, title, means, value(row), text(row), width, from, number, level(row), fill(row), parts(row)}, where
  // `rest(row)` is
  // text of less weight after `text(row)`, and `from` the width of the page (1 phone, 2, 3 desktop) from which the column is shown. The first has the row's name.
  constructor({ label, columns, key, href, sort, descending = true, then = () => [], empty }) {
    Object.assign(this, { columns, key, href, then, empty });
    this.sort = { column: columns.find(({ id }) => id === sort), descending };
    this.rows = [];
    this.shown = new Map();
    this.active = { key: HEAD, column: 0 };
    this.heads = columns.map((column) => this.head(column));
    this.headRow = el('div', { role: 'row', class: 'row head', 'aria-rowindex': 1 }, ...this.heads.map(({ cell }) => cell));
    this.body = el('div', { role: 'rowgroup', class: 'rows' });
    this.none = el('p', { class: 'none', hidden: '' }, empty);
    this.grid = el('div', { role: 'grid', class: 'grid', 'aria-label': label, 'aria-colcount': columns.length },
      el('div', { role: 'rowgroup', class: 'heads' }, this.headRow), this.body);
    this.root = el('div', { class: 'table' }, this.grid, this.none);
    for (const size of [1, 2, 3]) {
      const widths = columns.filter(({ from }) => (from ?? 1) <= size).map(({ width }) => width);
      this.grid.style.setProperty(`--columns-${size}`, widths.join(' '));
    }
    handleKeys(this);
  }

  head(column) {
    const button = el('button', { type: 'button', tabindex: -1, ...describedBy(column.means) }, column.title);
    button.addEventListener('click', () => this.sortBy(column));
    return { cell: el('div', { role: 'columnheader', class: classes(column) }, button), focus: button };
  }

  sortBy(column) {
    const { sort } = this;
    sort.descending = sort.column === column ? !sort.descending : Boolean(column.number);
    sort.column = column;
    this.activate(HEAD, this.columns.indexOf(column));
    this.forgetOrder();
    this.draw(this.rows);
  }

  // Reads from the page what drawing needs. All tables measure before the first of them draws.
  measure() {
    this.top = this.body.getBoundingClientRect().top;
    this.height = rowHeight();
  }

  draw(rows) {
    this.rows = rows;
    this.order();
    this.headRow.style.height = `${this.height}px`;
    const height = rows.length * this.height;
    if (this.bodyHeight !== height) {
      this.bodyHeight = height;
      this.body.style.height = `${height}px`;
      this.isResized = true;
    }
    mark(this.grid, 'aria-rowcount', String(rows.length + 1));
    this.none.hidden = rows.length > 0;
    this.heads.forEach(({ cell }, index) => {
      const isSorted = this.columns[index] === this.sort.column;
      mark(cell, 'aria-sort', isSorted ? (this.sort.descending ? 'descending' : 'ascending') : null);
    });
    this.drawRows(true);
  }

  // Returns true if the table has another height since this was last asked.
  takeResized() {
    const { isResized } = this;
    this.isResized = false;
    return isResized;
  }

  // Rows that change places each second cannot be read: their order is made anew only every few seconds, and not while
  // somebody is at them. Those that came since are last until then.
  order() {
    const isHeld = this.body.matches(canHover.matches ? ':hover, :focus-within' : ':focus-within');
    const now = performance.now();
    if (this.entries?.length && (isHeld || now - this.orderedAt < ORDER_EVERY_MS)) return this.keepOrder();
    this.orderedAt = now;
    const { column, descending } = this.sort;
    const sign = descending ? -1 : 1;
    const entries = this.rows.map((row) => ({ row, key: this.key(row), value: column.value(row) ?? -Infinity }));
    // Rows of equal value keep one order, or they would dance: by the figures of `then`, the largest first, and by name.
    const rest = (a, b) => this.then(b.row).reduce((order, value, index) => order || compare(value, this.then(a.row)[index]), 0);
    entries.sort((a, b) => sign * compare(a.value, b.value) || rest(a, b) || compare(a.key, b.key));
    this.place(entries);
  }

  // Lets the next drawing order the rows anew.
  forgetOrder() {
    this.orderedAt = -Infinity;
  }

  keepOrder() {
    const entries = this.rows.map((row) => ({ row, key: this.key(row) }));
    const { places } = this;
    entries.sort((a, b) => compare(places.get(a.key) ?? Infinity, places.get(b.key) ?? Infinity));
    this.place(entries);
  }

  place(entries) {
    this.entries = entries;
    this.places = new Map(entries.map(({ key }, index) => [key, index]));
  }

  // Draws the rows in view. Their order in the page, in which they are read aloud, matters to nobody while they are scrolled:
  // a row that leaves becomes one that comes, and is not moved.
  drawRows(inOrder) {
    const { entries, height, top } = this;
    const isWhole = entries.length <= WHOLE_ROWS_MAX;
    const first = isWhole ? 0 : Math.max(0, Math.floor(-top / height) - OVERSCAN_ROWS);
    const last = isWhole ? entries.length : Math.min(entries.length, Math.ceil((innerHeight - top) / height) + OVERSCAN_ROWS);
    const indexes = [];
    for (let index = first; index < last; index += 1) indexes.push(index);
    if (this.active.key !== HEAD) {
      // The active row stays, or the keyboard would lose its place.
      const place = this.places.get(this.active.key);
      if (place === undefined) this.activate(HEAD, this.active.column);
      else if (place < first) indexes.unshift(place);
      else if (place >= last) indexes.push(place);
    }
    const wanted = new Set(indexes.map((index) => entries[index].key));
    const spare = [];
    for (const [key, line] of this.shown) {
      if (wanted.has(key)) continue;
      this.shown.delete(key);
      spare.push(line);
    }
    const lines = indexes.map((index) => {
      const { key, row } = entries[index];
      const line = this.shown.get(key) ?? spare.pop() ?? this.line();
      this.shown.set(key, line);
      this.write(line, key, row, index);
      return line.root;
    });
    for (const line of spare) line.root.remove();
    if (inOrder) arrange(this.body, lines);
    else this.body.append(...lines.filter((root) => !root.parentNode));
    this.markActive();
  }

  line() {
    const cells = this.columns.map((column, index) => {
      const cell = el('div', { role: 'gridcell', class: classes(column), tabindex: index ? -1 : null, ...describedBy(column.means) });
      const text = document.createTextNode('');
      const rest = column.rest ? document.createTextNode('') : null;
      const parts = rest ? [text, el('span', { class: 'rest' }, rest)] : [text];
      if (index || !this.href) {
        cell.append(...parts);
        mark(cell, 'tabindex', '-1');
        return { cell, text, rest, focus: cell };
      }
      const link = el('a', { tabindex: -1, ...describedBy(column.means) }, ...parts);
      cell.removeAttribute('aria-describedby');
      cell.append(link);
      return { cell, text, rest, link, focus: link };
    });
    return { root: el('div', { role: 'row', class: 'row' }, ...cells.map(({ cell }) => cell)), cells };
  }

  write(line, key, row, index) {
    line.key = key;
    if (line.index !== index || line.height !== this.height) {
      line.index = index;
      line.height = this.height;
      line.root.style.transform = `translateY(${index * this.height}px)`;
      line.root.style.height = `${this.height}px`;
      line.root.setAttribute('aria-rowindex', index + 2);
    }
    this.columns.forEach((column, place) => {
      const cell = line.cells[place];
      const text = column.text(row);
      if (cell.text.data !== text) cell.text.data = text;
      if (cell.rest && cell.rest.data !== column.rest(row)) cell.rest.data = column.rest(row);
      if (cell.link) mark(cell.link, 'href', this.href(row));
      if (column.level) mark(cell.cell, 'data-level', column.level(row) || null);
      if (column.fill) bar(cell, [['fill', column.fill(row)]]);
      if (column.parts) bar(cell, column.parts(row));
    });
  }

  // Makes a cell the one that the Tab key comes to.
  activate(key, column) {
    this.active = { key, column };
    this.markActive();
  }

  activeElement() {
    const { key, column } = this.active;
    return (key === HEAD ? this.heads : this.shown.get(key)?.cells)?.[column]?.focus;
  }

  markActive() {
    const element = this.activeElement();
    if (this.tabStop === element) return;
    this.tabStop?.setAttribute('tabindex', -1);
    element?.setAttribute('tabindex', 0);
    this.tabStop = element;
  }

  // Returns the key and column of a cell or head.
  find(element) {
    const column = this.heads.findIndex(({ cell }) => cell.contains(element));
    if (column >= 0) return { key: HEAD, column };
    for (const [key, { root, cells }] of this.shown) {
      if (root.contains(element)) return { key, column: Math.max(0, cells.findIndex(({ cell }) => cell.contains(element))) };
    }
    return null;
  }
}

function classes({ number, from = 1 }) {
  return `cell from-${from}${number ? ' number' : ''}`;
}

function compare(a, b) {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

// Draws parts of a bar, in 0..1, along the lower edge of a cell.
function bar(cell, parts) {
  if (!cell.bar) {
    cell.bar = parts.map(([name]) => el('i', { class: `part ${name}` }));
    cell.track = el('span', { class: 'track', 'aria-hidden': 'true' }, ...cell.bar);
    cell.cell.append(cell.track);
  }
  cell.track.classList.toggle('empty', parts.every(([, part]) => !part));
  parts.forEach(([, part], index) => {
    const width = `${(Math.min(1, part || 0) * 100).toFixed(1)}%`;
    if (cell.bar[index].style.width !== width) cell.bar[index].style.width = width;
  });
}

// Brings children into this order without moving the one that has the focus, which would lose it.
function arrange(parent, children) {
  const focused = children.find((child) => child.contains(document.activeElement));
  let cursor = parent.firstChild;
  for (const child of children) {
    if (child === focused) {
      while (cursor !== child) {
        const next = cursor.nextSibling;
        parent.append(cursor);
        cursor = next;
      }
    }
    if (child === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(child, cursor);
  }
}

