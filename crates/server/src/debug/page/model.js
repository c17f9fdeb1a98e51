// What the page knows: the newest state, rates made of its counters, and the last two minutes of what is drawn as a line.

import { Series } from './chart.js';

export class Model {
  constructor() {
    this.state = null;
    this.series = new Map();
    this.rates = { changes: null, types: new Map(), rejected: new Map() };
  }

  take(document) {
    const state = whole(document);
    const before = this.state;
    const seconds = before ? state.uptimeSeconds - before.uptimeSeconds : 0;
    // A server that started again counts from zero.
    if (seconds < 0) this.series.clear();
    if (seconds !== 0) this.rates = rates(seconds > 0 ? before : null, state, seconds);
    this.state = state;
    this.now = state.uptimeSeconds;
    const totals = totalsOf(state);
    this.totals = totals;
    this.note('lag', state.feed.lagSeconds);
    this.note('store', state.feed.storeSeconds);
    this.note('changes', this.rates.changes);
    this.note('watchers', totals.watchers);
    this.note('furthest', totals.behindMax);
    this.note('waiting', totals.waiting);
    this.note('memory', totals.counted);
    this.note('queued', totals.queued);
    for (const [type, rate] of this.rates.types) this.note(`type ${type}`, rate);
  }

  note(name, value) {
    this.history(name).add(this.now, value);
  }

  // Returns the last two minutes of a figure.
  history(name) {
    if (!this.series.has(name)) this.series.set(name, new Series());
    return this.series.get(name);
  }
}

// What the figures of a type are that no watch cache serves, and of the feed where each type has its own.
export const NO_WINDOW = { events: null, spare: null, capacity: null, bytes: null, oldestSeconds: null };
const NO_READS = { waiting: 0, longestSeconds: 0 };
const NO_FEED = { revision: null, storeRevision: null, lagSeconds: null, storeSeconds: null, silentSeconds: null };

// Fills in what a document says by leaving it out.
function whole(document) {
  const types = document.types.map((type) => ({ ...type, window: type.window ?? NO_WINDOW, reads: type.reads ?? NO_READS }));
  return { ...document, types, feed: document.feed ?? NO_FEED, thresholds: document.thresholds ?? {} };
}

function rates(before, state, seconds) {
  const types = per(before?.types, state.types, 'type', 'changes', seconds);
  const rejected = per(before?.fairness, state.fairness, 'level', 'rejected', seconds);
  return { changes: before && sum([...types.values()]), types, rejected };
}

// Returns by name how much a counter rose in a second; null where it was not there before.
function per(before, now, name, counter, seconds) {
  const was = new Map(before?.map((item) => [item[name], item[counter]]));
  return new Map(now.map((item) => {
    const old = was.get(item[name]);
    return [item[name], old == null || item[counter] == null ? null : Math.max(0, item[counter] - old) / seconds];
  }));
}

function totalsOf({ types, memory, fairness }) {
  const all = (from) => sum(types.map(from));
  return {
    watchers: all(({ watchers }) => watchers.total),
    parked: all(({ watchers }) => watchers.parked),
    behindMax: most(types.map(({ watchers }) => watchers.behindMax)),
    waiting: all(({ reads }) => reads.waiting),
    longest: most(types.map(({ reads }) => reads.longestSeconds)),
    counted: sum(memory.accounts.map(({ bytes }) => bytes)),
    queued: sum(fairness.map(({ waiting }) => waiting)),
  };
}

// Returns how bad a value is by a threshold of the server, if it tells one.
export function levelOf(value, threshold) {
  if (value == null || threshold == null) return null;
  if (value >= threshold.bad) return 'bad';
  return value >= threshold.warn ? 'warn' : null;
}

export function sum(numbers) {
  return numbers.reduce((total, number) => total + (number ?? 0), 0);
}

function most(numbers) {
  return numbers.reduce((max, number) => Math.max(max, number ?? 0), 0);
}
