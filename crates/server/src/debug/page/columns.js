// The columns of the tables: what each shows of a row, and from which width of the page on.

import * as format from './format.js';
import { client } from './format.js';
import { typeHref, watcherHref } from './links.js';
import { levelOf } from './model.js';
import { Table } from './table.js';

export const KINDS = ['everything', 'namespace', 'name', 'labels', 'fields', 'shards'];

const number = (id, title, means, value, text, more = {}) => ({
  id, title, means, value, text: (row) => text(value(row), row), number: true, width: 'minmax(4.75rem, 1fr)', ...more,
});
const words = (id, title, means, value, more = {}) => ({ id, title, means, value, text: (row) => value(row) || format.UNKNOWN, width: 'minmax(0, 2fr)', ...more });
// Zero is the usual figure in many columns: a dot lets what is not zero stand out.
const orDot = (write) => (value) => (value === 0 ? '·' : write(value));

// Returns the parts of a bar of the kinds of selectors.
export function kindParts(watchers) {
  return KINDS.map((kind) => [kind, watchers.total ? watchers[kind] / watchers.total : 0]);
}

export function windowFill({ events, capacity }) {
  return capacity ? events / capacity : 0;
}

export function typesTable(model) {
  const rateOf = ({ type }) => model.rates.types.get(type);
  return new Table({
    label: 'Types',
    key: ({ type }) => type,
    href: ({ type }) => typeHref(type),
    sort: 'rate',
    then: ({ watchers, objects }) => [watchers.total, objects ?? 0],
    empty: 'No types to show.',
    columns: [
      words('type', 'Type', 'type', ({ type }) => type.split('.', 1)[0], { width: 'minmax(7rem, 3.2fr)', rest: ({ type }) => type.slice(type.split('.', 1)[0].length) }),
      number('objects', 'Objects', 'objects', ({ objects }) => objects, orDot(format.count), { from: 2 }),
      number('bytes', 'Bytes', 'bytes', ({ bytes }) => bytes, orDot(format.bytes), { from: 3 }),
      number('rate', 'Changes', 'rate', rateOf, (rate) => (rate === 0 ? '·' : format.rate(rate)), { width: 'minmax(5.75rem, 1fr)' }),
      number('window', 'Window', 'window', ({ window }) => window.events, orDot(format.count), { from: 2, fill: ({ window }) => windowFill(window) }),
      number('spare', 'Spare', 'spare', ({ window }) => window.spare, orDot(format.count), { from: 3 }),
      number('oldest', 'Oldest', 'oldest', ({ window }) => window.oldestSeconds, format.seconds, { from: 2 }),
      number('watching', 'Watchers', 'watching', ({ watchers }) => watchers.total, orDot(format.count), { parts: ({ watchers }) => kindParts(watchers) }),
      number('parked', 'Parked', 'parked', ({ watchers }) => watchers.parked, orDot(format.count), { from: 2, level: ({ watchers }) => watchers.parked > 0 && 'warn' }),
      number('behind', 'Behind', 'behindMax', ({ watchers }) => watchers.behindMax, orDot(format.count), {
        level: ({ watchers, window }) => watchers.parked > 0 && levelOf(watchers.behindMax / (window.events || 1), model.state.thresholds.parkedPart),
      }),
      number('reads', 'Reads wait', 'readsWaiting', ({ reads }) => reads.waiting, orDot(format.count), { from: 3 }),
      number('longest', 'Longest', 'readsLongest', ({ reads }) => reads.longestSeconds, orDot(format.seconds), {
        from: 2, level: ({ reads }) => levelOf(reads.longestSeconds, model.state.thresholds.readSeconds),
      }),
    ],
  });
}

export function stateOf({ parked, behind }) {
  if (parked) return 'parked';
  if (behind == null) return 'uncached';
  return behind > 0 ? 'behind' : 'current';
}

// Returns what a watcher selects, in one line.
export function selects({ namespace, selector }) {
  return [namespace && `in ${namespace}`, selector].filter(Boolean).join(', ') || 'everything';
}

export function watchersTable({ label, hasType, empty }) {
  const type = words('type', 'Type', 'watchedType', (watcher) => watcher.type, { width: 'minmax(0, 1.4fr)', from: 2 });
  return new Table({
    label,
    key: ({ id }) => id,
    href: ({ id }) => watcherHref(id),
    sort: 'behind',
    empty,
    columns: [
      words('client', 'Client', 'watcher', client, { width: 'minmax(7rem, 2.4fr)' }),
      ...(hasType ? [type] : []),
      words('user', 'User', 'user', ({ user }) => user, { from: 3 }),
      words('selects', 'Selects', 'selects', selects, { from: 2 }),
      words('kind', 'By', 'kind', ({ kind }) => kind, { from: 3, width: 'minmax(0, 1fr)' }),
      number('age', 'Age', 'age', ({ ageSeconds }) => ageSeconds, format.seconds, { from: 2 }),
      number('sent', 'Sent', 'sent', ({ sent }) => sent, format.count, { from: 2 }),
      number('behind', 'Behind', 'behind', ({ behind }) => behind, orDot(format.count)),
      words('state', 'State', 'state', stateOf, { width: 'minmax(4.75rem, 0.9fr)', level: ({ parked }) => parked && 'warn' }),
    ],
  });
}

export function clientsTable() {
  return new Table({
    label: 'Clients',
    key: ({ name }) => name,
    sort: 'watches',
    empty: 'No clients.',
    columns: [
      words('client', 'Client', 'client', ({ name }) => name, { width: 'minmax(7rem, 3fr)' }),
      number('watches', 'Watches', 'clientWatches', ({ watches }) => watches, format.count),
      number('parked', 'Parked', 'clientParked', ({ parked }) => parked, orDot(format.count), { level: ({ parked }) => parked > 0 && 'warn' }),
      number('behind', 'Behind', 'clientBehind', ({ behind }) => behind, orDot(format.count)),
    ],
  });
}

export function requestsTable(model) {
  return new Table({
    label: 'Slowest requests',
    key: ({ key }) => key,
    sort: 'took',
    empty: 'No requests in the last minute.',
    columns: [
      words('path', 'Path', 'path', ({ path }) => path, { width: 'minmax(7rem, 3fr)' }),
      words('verb', 'Verb', 'verb', ({ verb }) => verb, { width: 'minmax(3.75rem, 0.8fr)' }),
      words('client', 'Client', 'client', client, { from: 2 }),
      words('user', 'User', 'user', ({ user }) => user, { from: 3 }),
      words('address', 'Address', 'clientAddress', ({ address }) => address, { from: 3, width: 'minmax(0, 1.2fr)' }),
      number('times', 'Times', 'times', ({ times }) => times, format.count, { from: 2 }),
      number('took', 'Took', 'took', ({ seconds }) => seconds, format.seconds, { level: ({ running, seconds }) => running && levelOf(seconds, model.state.thresholds.requestSeconds) }),
      words('outcome', 'Outcome', 'outcome', ({ running, code }) => (running ? 'running' : String(code ?? '')), {
        width: 'minmax(4.75rem, 0.9fr)', level: ({ code }) => code >= 500 && 'bad',
      }),
    ],
  });
}

export function busiestTable() {
  return new Table({
    label: 'Busiest clients',
    key: ({ key }) => key,
    sort: 'bytes',
    then: ({ requests }) => [requests],
    empty: 'No requests in the last minute.',
    columns: [
      words('client', 'Client', 'client', (row) => (row.others ? 'all others' : client(row)), { width: 'minmax(7rem, 2.4fr)' }),
      words('user', 'User', 'user', ({ user }) => user, { from: 2 }),
      words('address', 'Address', 'clientAddress', ({ address }) => address, { from: 3, width: 'minmax(0, 1.2fr)' }),
      words('verb', 'Verb', 'verb', ({ verb }) => verb, { width: 'minmax(3.75rem, 0.8fr)' }),
      words('resource', 'Resource', 'clientResource', ({ resource, everything }) => (everything ? `all ${resource}` : resource), { from: 2 }),
      number('requests', 'Requests', 'clientRequests', ({ requests }) => requests, format.count),
      number('failed', 'Failed', 'clientFailed', ({ failed }) => failed, orDot(format.count), { from: 2 }),
      number('bytes', 'Bytes', 'clientBytes', ({ bytes }) => bytes, orDot(format.bytes)),
      number('took', 'Took', 'clientTook', ({ seconds }) => seconds, format.seconds, { from: 3 }),
    ],
  });
}

export function webhooksTable(model) {
  const mean = ({ calls, seconds }) => (calls ? seconds / calls : null);
  return new Table({
    label: 'Webhooks',
    key: ({ name, target }) => `${name}\n${target}`,
    sort: 'for',
    then: ({ failed, calls }) => [failed, calls],
    empty: 'No calls in the last minute.',
    columns: [
      words('name', 'Webhook', 'webhook', ({ name }) => name, { width: 'minmax(7rem, 2.4fr)' }),
      words('target', 'Address', 'webhookTarget', ({ target }) => target, { from: 2 }),
      number('running', 'Running', 'webhookRunning', ({ running }) => running, orDot(format.count)),
      number('for', 'For', 'webhookFor', ({ runningSeconds }) => runningSeconds, orDot(format.seconds), { level: ({ runningSeconds }) => levelOf(runningSeconds, model.state.thresholds.webhookSeconds) }),
      number('calls', 'Calls', 'webhookCalls', ({ calls }) => calls, orDot(format.count), { from: 2 }),
      number('failed', 'Failed', 'webhookFailed', ({ failed }) => failed, orDot(format.count), { level: ({ failed }) => failed > 0 && 'warn' }),
      number('mean', 'Mean', 'webhookMean', mean, format.seconds, { from: 2 }),
      number('longest', 'Longest', 'webhookLongest', ({ longestSeconds }) => longestSeconds, orDot(format.seconds), { from: 3 }),
    ],
  });
}

export function accountsTable(model) {
  const of = () => model.state.memory.budgetBytes || model.totals.counted;
  const share = ({ bytes }) => (of() ? bytes / of() : 0);
  return new Table({
    label: 'Memory by account',
    key: ({ name }) => name,
    sort: 'bytes',
    empty: 'No memory is counted.',
    columns: [
      words('account', 'Account', 'account', ({ name }) => name.replaceAll('_', ' '), { width: 'minmax(7rem, 2fr)' }),
      number('bytes', 'Bytes', 'accountBytes', ({ bytes }) => bytes, format.bytes),
      number('share', 'Share', 'accountShare', share, format.percent, { fill: share }),
    ],
  });
}

export function fairnessTable(model) {
  const rateOf = ({ level }) => model.rates.rejected.get(level);
  return new Table({
    label: 'Fairness levels',
    key: ({ level }) => level,
    sort: 'executing',
    empty: 'Priority and fairness is off.',
    columns: [
      words('level', 'Level', 'level', ({ level }) => level, { width: 'minmax(7rem, 2.4fr)' }),
      number('seats', 'Seats', 'seats', ({ seats }) => seats, format.count, { from: 2 }),
      number('executing', 'Running', 'executing', ({ executing }) => executing, orDot(format.count)),
      number('taken', 'Taken', 'seatsTaken', ({ taken }) => taken, orDot(format.count), { fill: ({ taken, seats }) => (seats ? taken / seats : 0), from: 2 }),
      number('waiting', 'Waiting', 'queuedHere', ({ waiting }) => waiting, orDot(format.count), { level: ({ waiting }) => waiting > 0 && 'warn' }),
      number('rejected', 'Rejected', 'rejected', ({ rejected }) => rejected, orDot(format.count), { from: 2 }),
      number('rate', 'Rate', 'rejectedRate', rateOf, (rate) => (rate === 0 ? '·' : format.rate(rate)), { level: (row) => rateOf(row) > 0 && 'bad' }),
    ],
  });
}
