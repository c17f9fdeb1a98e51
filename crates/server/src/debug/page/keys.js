// The keyboard within a table: arrows, Page Up and Down, Home and End move; Enter opens a row or sorts by a column.

export const HEAD = Symbol('head');
const ROW_OF_HEAD = -1;
const PAGE_ROWS = 12;

// Lets a table have the keyboard.
export function handleKeys(table) {
  table.grid.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey) return;
    const at = table.find(event.target);
    if (!at) return;
    if (event.key === 'Enter' && at.key !== HEAD && event.target.tagName !== 'A') {
      table.shown.get(at.key).cells[0].link?.click();
      return;
    }
    const to = moved(table, at, event);
    if (!to) return;
    event.preventDefault();
    go(table, to);
  });
  // A click or a tap makes its cell the active one too.
  table.grid.addEventListener('focusin', ({ target }) => {
    const at = table.find(target);
    if (at) table.activate(at.key, at.column);
  });
}

// Returns row and column to which a key leads; null for other keys.
function moved(table, at, { key, ctrlKey }) {
  const last = table.entries.length - 1;
  const row = at.key === HEAD ? ROW_OF_HEAD : table.places.get(at.key);
  const visible = table.heads.flatMap(({ cell }, index) => (cell.offsetParent ? [index] : []));
  const place = visible.indexOf(at.column);
  const along = (steps) => visible[Math.max(0, Math.min(visible.length - 1, place + steps))];
  const to = (target) => Math.max(ROW_OF_HEAD, Math.min(last, target));
  switch (key) {
    case 'ArrowUp': return { row: to(row - 1), column: at.column };
    case 'ArrowDown': return { row: to(row + 1), column: at.column };
    case 'PageUp': return { row: to(row - PAGE_ROWS), column: at.column };
    case 'PageDown': return { row: to(row + PAGE_ROWS), column: at.column };
    case 'ArrowLeft': return { row, column: along(-1) };
    case 'ArrowRight': return { row, column: along(1) };
    case 'Home': return ctrlKey ? { row: ROW_OF_HEAD, column: visible[0] } : { row, column: visible[0] };
    case 'End': return ctrlKey ? { row: last, column: visible.at(-1) } : { row, column: visible.at(-1) };
    default: return null;
  }
}

// Brings a row into view and gives the focus to one of its cells.
function go(table, { row, column }) {
  table.activate(row === ROW_OF_HEAD ? HEAD : table.entries[row].key, column);
  table.measure();
  const { height } = table;
  const above = table.top + row * height;
  const head = 2 * height;
  if (above < head) scrollBy(0, above - head);
  else if (above + height > innerHeight - height) scrollBy(0, above + 2 * height - innerHeight);
  table.measure();
  table.drawRows(true);
  table.markActive();
  table.activeElement()?.focus({ preventScroll: true });
}
