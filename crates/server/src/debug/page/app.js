// The live page of a ringwatch server: takes states from the stream and draws the view that the address names.
//
// A frame is drawn at most once per refresh of the screen, when a state came, the page was scrolled, or somebody typed.
// It first reads from the page what it needs (`measure`), then writes: the browser lays out once.

import { el, mark, say } from './dom.js';
import * as format from './format.js';
import { Model } from './model.js';
import { Overview } from './overview.js';
import { Stream } from './stream.js';
import { followPointerAndFocus } from './tip.js';
import { TypeView } from './type.js';
import { WatcherView } from './watcher.js';

const SECOND_MS = 1000;
// Figures that are older are drawn paler.
const OLD_MS = 5_000;
const find = (id) => document.getElementById(id);
const main = find('main');
const model = new Model();
const overview = new Overview(model, redraw);
let view = null;
let link = { kind: 'waiting', heard: null };
let isPaused = false;
let newest = null;
let isFrameAsked = false;
let isAllAsked = false;
let wasArrived = false;

// Asks for a frame, if none is asked for.
function redraw() {
  isAllAsked = true;
  askFrame();
}

function askFrame() {
  if (isFrameAsked) return;
  isFrameAsked = true;
  requestAnimationFrame(() => {
    isFrameAsked = false;
    const isAll = isAllAsked;
    isAllAsked = false;
    if (isAll) frame();
    else scrolled();
  });
}

// Draws the rows that came into view.
function scrolled() {
  if (!model.state || !view.root.isConnected) return;
  const tables = view.tables();
  for (const table of tables) table.measure();
  for (const table of tables) table.drawRows(false);
}

function frame() {
  drawLink();
  if (!model.state) return;
  const tables = view.tables();
  for (const table of tables) table.measure();
  const isFirst = !view.root.isConnected;
  if (isFirst) main.replaceChildren(view.root);
  view.draw();
  drawHead();
  if (isFirst) arrive();
  // Tables that grew have moved those below them: what these show is wanted of another place.
  if (tables.some((table) => table.takeResized())) askFrame();
}

function drawHead() {
  const { state } = model;
  say(find('name'), state.name);
  say(find('about'), `${state.version}, ${state.store}, up ${format.seconds(Math.floor(state.uptimeSeconds))}`);
  document.title = [view.title, state.name].filter(Boolean).join(' · ');
}

const LINK_TEXTS = { waiting: 'connecting', live: 'live', silent: 'silent', lost: 'lost' };

function drawLink() {
  const { kind, why, heard, next } = link;
  mark(find('link'), 'data-link', isPaused ? 'paused' : kind);
  say(find('link-text'), isPaused ? 'paused' : LINK_TEXTS[kind]);
  mark(main, 'data-old', heard != null && performance.now() - heard > OLD_MS ? '' : null);
  find('lost').hidden = kind === 'live' || kind === 'waiting';
  if (find('lost').hidden) return;
  const now = performance.now();
  const ago = heard == null ? 'Nothing was heard yet.' : `The figures are ${format.things(Math.round((now - heard) / SECOND_MS), 'second')} old.`;
  const then = next > now ? ` Next try in ${format.things(Math.ceil((next - now) / SECOND_MS), 'second')}.` : '';
  say(find('lost-text'), `${kind === 'silent' ? 'The server has gone silent.' : why} ${ago}`);
  say(find('lost-next'), then);
}

function take(state) {
  newest = state;
  if (isPaused) return;
  model.take(state);
  redraw();
}

find('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  mark(find('pause'), 'aria-pressed', String(isPaused));
  if (!isPaused && newest) take(newest);
  redraw();
});

// Returns the view that the address names.
function viewOf(hash) {
  const [, kind, name] = /^#\/(types|watchers)\/(.+)$/.exec(hash) ?? [];
  try {
    if (kind === 'types') return new TypeView(model, redraw, decodeURIComponent(name));
    if (kind === 'watchers') return new WatcherView(model, redraw, decodeURIComponent(name));
  } catch {
    // The name is no name: somebody changed the address.
  }
  return overview;
}

// Goes where the address says: `#/...` is a view, any other the section of that name in the view that has it.
function go() {
  const { hash } = location;
  const section = hash.startsWith('#/') ? null : hash.slice(1);
  if (section && view?.root.isConnected && find(section)) return reach(section);
  view = viewOf(hash);
  redraw();
}

// Shows a view from its top, or the section that the address names.
function arrive() {
  const section = location.hash.startsWith('#/') ? null : location.hash.slice(1);
  if (section && find(section)) return reach(section);
  scrollTo(0, 0);
  // Those who are somewhere already when the first figures come are left there.
  if (wasArrived || document.activeElement === document.body) view.root.querySelector('h1').focus({ preventScroll: true });
  wasArrived = true;
}

function reach(section) {
  find(section).scrollIntoView();
  find(`${section}-title`)?.focus({ preventScroll: true });
}

view = viewOf(location.hash);
main.replaceChildren(el('p', { class: 'none' }, 'Waiting for the first figures.'));
followPointerAndFocus();
addEventListener('hashchange', go);
addEventListener('scroll', askFrame, { passive: true });
addEventListener('resize', redraw);
const stream = new Stream(take, (now) => {
  link = now;
  redraw();
});
find('retry').addEventListener('click', () => stream.retry());
// The age of figures is told each second while none come.
setInterval(() => {
  if (link.kind !== 'live') redraw();
}, SECOND_MS);
