// What an operator should look at first: each rule names one thing that is not as it should be, and where to see it.

import * as format from './format.js';

const LAG_SECONDS = 1;
const LAG_SECONDS_BAD = 10;
// Above three quarters of the budget windows shrink, above seven eighths no list and no watch begins.
const MEMORY_PART = 3 / 4;
const MEMORY_PART_BAD = 7 / 8;
const READ_SECONDS = 1;
const READ_SECONDS_BAD = 3;
// A watcher stands out that has so many events to examine, if they are those of so many seconds.
const BEHIND_EVENTS = 100;
const BEHIND_SECONDS = 10;
const REQUEST_SECONDS = 3;
const REQUEST_SECONDS_BAD = 10;
const QUEUED = 1;
// So many of the slowest requests that one client asks for one path over and over.
const REPEATED = 5;
// Writes that take so long wait for the store or for a webhook; one alone may have had bad luck.
const WRITE_SECONDS = 0.5;
const SLOW_WRITES = 3;
const WRITES = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const SHOWN_MAX = 6;

const RULES = [notReady, lag, memory, reads, parked, behind, rejected, running, slowWrites, repeated];

// Returns what stands out, the worst first: [{level: 'warn' | 'bad', text, href}].
export function standsOut(model) {
  const found = RULES.flatMap((rule) => rule(model.state, model) ?? []);
  found.sort((a, b) => (a.level === b.level ? 0 : a.level === 'bad' ? -1 : 1));
  return found.slice(0, SHOWN_MAX);
}

const level = (value, bad) => (value >= bad ? 'bad' : 'warn');

function notReady({ types }) {
  return types.filter(({ ready }) => ready === false).map(({ type }) => ({ level: 'warn', text: `The cache of ${type} is not ready`, href: typeHref(type) }));
}

function lag({ feed: { lagSeconds, revision, storeRevision } }) {
  if (!(lagSeconds >= LAG_SECONDS)) return null;
  const behind = storeRevision > revision ? `, ${format.things(storeRevision - revision, 'revision')}` : '';
  return { level: level(lagSeconds, LAG_SECONDS_BAD), text: `The cache is ${format.seconds(lagSeconds)}${behind} behind the store`, href: '#types' };
}

function memory({ memory: { budgetBytes } }, { totals }) {
  if (!budgetBytes) return null;
  const part = totals.counted / budgetBytes;
  if (part < MEMORY_PART) return null;
  return { level: level(part, MEMORY_PART_BAD), text: `Memory is at ${format.percent(part)} of its budget`, href: '#memory' };
}

function reads({ types }) {
  return types
    .filter(({ reads: { longestSeconds } }) => longestSeconds >= READ_SECONDS)
    .sort((a, b) => b.reads.longestSeconds - a.reads.longestSeconds)
    .map(({ type, reads: { waiting, longestSeconds } }) => ({
      level: level(longestSeconds, READ_SECONDS_BAD),
      text: `${format.things(waiting, 'read')} of ${type} waiting, the first for ${format.seconds(longestSeconds)}`,
      href: typeHref(type),
    }));
}

function parked({ types }) {
  return types
    .filter(({ watchers }) => watchers.parked > 0)
    .sort((a, b) => b.watchers.behindMax - a.watchers.behindMax)
    .map(({ type, watchers, window }) => ({
      level: level(watchers.behindMax, window.events * MEMORY_PART || Infinity),
      text: `${format.things(watchers.parked, 'watcher')} of ${type} parked, the last ${format.things(watchers.behindMax, 'event')} behind`,
      href: typeHref(type),
    }));
}

function behind({ types }, { rates }) {
  return types
    .filter(({ type, watchers: { parked, behindMax } }) => !parked && behindMax >= BEHIND_EVENTS && behindMax > BEHIND_SECONDS * (rates.types.get(type) ?? 0))
    .map(({ type, watchers: { behindMax } }) => ({ level: 'warn', text: `A watcher of ${type} is ${format.things(behindMax, 'event')} behind`, href: typeHref(type) }));
}

function rejected({ fairness }, { rates }) {
  return fairness.flatMap(({ level: name, waiting, seats }) => {
    const rate = rates.rejected.get(name);
    if (rate > 0) return { level: 'bad', text: `${name} rejects ${format.rate(rate)} with 429`, href: '#fairness' };
    if (waiting >= Math.max(QUEUED, seats ?? 0)) return { level: 'warn', text: `${format.things(waiting, 'request')} queued in ${name}`, href: '#fairness' };
    return [];
  });
}

function running({ requests }) {
  const slow = requests.filter((request) => request.running && request.seconds >= REQUEST_SECONDS);
  if (!slow.length) return null;
  const worst = slow.reduce((a, b) => (a.seconds > b.seconds ? a : b));
  const more = slow.length > 1 ? `, and ${format.things(slow.length - 1, 'other')}` : '';
  return {
    level: level(worst.seconds, REQUEST_SECONDS_BAD),
    text: `${worst.verb} ${worst.path} of ${client(worst)} has run for ${format.seconds(worst.seconds)}${more}`,
    href: '#requests',
  };
}

function slowWrites({ requests }) {
  const slow = requests.filter(({ verb, seconds }) => WRITES.includes(verb) && seconds >= WRITE_SECONDS);
  if (slow.length < SLOW_WRITES) return null;
  return { level: 'warn', text: `${format.things(slow.length, 'write')} of the last minute took more than ${format.seconds(WRITE_SECONDS)}: the store or a webhook is slow`, href: '#requests' };
}

function repeated({ requests }) {
  const times = new Map();
  for (const request of requests) {
    const text = `${client(request)}: ${request.verb} ${request.path}`;
    times.set(text, (times.get(text) ?? 0) + 1);
  }
  return [...times]
    .filter(([, number]) => number >= REPEATED)
    .map(([text, number]) => ({ level: 'warn', text: `${number} of the ${requests.length} slowest requests are of ${text}`, href: '#requests' }));
}

// Returns the short name of a client: the first word of its user agent, or else its user.
export function client({ userAgent, user }) {
  return userAgent ? userAgent.split(' ')[0] : user || 'a client without a name';
}

export function typeHref(type) {
  return `#/types/${encodeURIComponent(type)}`;
}

export function watcherHref(id) {
  return `#/watchers/${encodeURIComponent(id)}`;
}
