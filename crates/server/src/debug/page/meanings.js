// What each figure means: shown when it is pointed at or has the focus, and read to those who listen.

import { el } from './dom.js';

const MEANINGS = {
  // The row of figures at the top.
  lag: 'How far the cache is behind the store, in time: since when the store has had a change that the cache has not applied. Watchers and fresh reads are late by at least this much.',
  store: 'How long the store took to tell its newest revision, or for how long it has neither answered nor told changes. Writes and fresh reads take at least as long.',
  certificate: 'Time until a certificate that the server shows to clients expires: of several the one that is to be replaced first. From then on clients refuse it.',
  changes: 'Changes of objects that the cache applied in the last second, over all types.',
  watchers: 'Open watches of all types. Those that are parked have overflowed their channel and read the window until they have caught up.',
  furthest: 'The most events that any watcher still has to examine. A watcher that falls out of the window must list again.',
  waiting: 'Reads that wait until the cache is as new as they demand, and how long the one that came first has waited.',
  memory: 'Bytes counted for caches, windows, encodings, lists and watchers, against the memory budget. Close to the budget encodings are dropped, windows shrink, and large lists are refused.',
  queued: 'Requests that wait for a seat of their priority level, and those that were rejected with 429 in the last second.',
  // Types.
  type: 'A resource with its group. Opens its watchers.',
  objects: 'Objects in the cache.',
  bytes: 'Bytes of the stored form of these objects.',
  window: 'Newest events kept, which watchers and watches that resume can still read.',
  spare: 'Events of the window that are older than its shortest age: they are kept while there is memory, and go first when there is not.',
  oldest: 'Age of the oldest event in the window. A watch that resumes from before it is answered with 410 and must list again.',
  rate: 'Changes applied in the last second.',
  watching: 'Open watches of clients of this type; those of the server itself are not among them. The bar has the kinds of their selectors: everything, a namespace, a name, labels, fields, shards.',
  parked: 'Watchers that overflowed their channel and read the window until they have caught up.',
  behindMax: 'The most events that a watcher of this type still has to examine.',
  readsWaiting: 'Reads that wait for the cache to become as new as they demand.',
  readsLongest: 'How long the first of the waiting reads has waited.',
  everything: 'Watchers without a selector, in all namespaces: each gets each event.',
  namespace: 'Watchers of one namespace, without a selector.',
  name: 'Watchers of one object by its name.',
  labels: 'Watchers with a label selector.',
  fields: 'Watchers with a field selector, such as spec.nodeName of kubelets.',
  shards: 'Watchers of a part of the objects, by a shard selector.',
  revision: 'The newest revision that the cache has applied.',
  // Watchers.
  watcher: 'Number of the watch since the server started. Opens its story.',
  watchedType: 'The resource that it watches.',
  client: 'User agent that the client sent. Anybody can send any.',
  user: 'The user as whom the client authenticated.',
  address: 'Address and port from which the client came.',
  selects: 'Namespace and selectors by which events are chosen for this watcher.',
  kind: 'By what the dispatcher finds this watcher: everything, namespace, name, labels, fields or shards.',
  age: 'Time since the watch began.',
  sent: 'Events and bookmarks delivered to this watcher since it began.',
  sentRate: 'Events and bookmarks delivered to this watcher in the last second.',
  taken: 'Revision of the newest event or bookmark that this watcher took.',
  behind: 'Events of the window that this watcher has not examined yet. It must not fall out of the window.',
  state: 'Current: it has examined every event. Behind: it has some to examine. Parked: it overflowed its channel and reads the window. Uncached: no watch cache serves it.',
  // Clients.
  clientWatches: 'Watches of this type that this client has open, of those listed below.',
  clientParked: 'Those of them that are parked.',
  clientBehind: 'The most events that one of them still has to examine.',
  // Requests.
  took: 'How long the request has run, or took.',
  clientAddress: 'Address from which the client came, or of the last proxy before the server.',
  times: 'Such requests of this client among those that run or took at least 100 ms; the slowest of them is shown.',
  // Busiest clients.
  clientResource: 'The resource, or how the path begins if the requests are not about one. “All” are its objects in all namespaces, without a selector; the next pages of a list are not counted as such.',
  clientRequests: 'Requests of the last minute, which may be ten seconds longer. Of watches the beginnings are counted.',
  clientFailed: 'Those of them that were refused (401, 403, 429), failed in the server (from 500 on), or had no response.',
  clientBytes: 'Bytes of the responses of the last minute, as they were sent; those of watches are not counted.',
  clientTook: 'The time that these requests took together.',
  // Webhooks.
  webhook: 'The name of the webhook in its configuration.',
  webhookTarget: 'Where it is called.',
  webhookRunning: 'Calls that have no answer yet. The requests that need them wait.',
  webhookFor: 'How long the first of these calls has waited.',
  webhookCalls: 'Calls that ended within the last minute, which may be ten seconds longer.',
  webhookFailed: 'Those of them without an answer of success.',
  webhookMean: 'How long these calls took on average.',
  webhookLongest: 'How long the longest of them took.',
  verb: 'What the request asks for, in Kubernetes’ words.',
  path: 'The path of the request.',
  outcome: 'Running, or the HTTP status of the response.',
  // Memory.
  account: 'A kind of memory for which bytes are counted.',
  accountBytes: 'Bytes counted for it now.',
  accountShare: 'Its part of the budget, or of all that is counted if there is no budget.',
  resident: 'Memory that the process has in RAM, as the kernel counts it: all accounts, and what is not counted by any.',
  // Fairness.
  level: 'A PriorityLevelConfiguration.',
  seats: 'Seats that the level has by its configuration: most requests take one, large lists several.',
  executing: 'Requests of the level that run now.',
  seatsTaken: 'Seats taken by the requests that run now. The bar has their part of the level’s seats.',
  queuedHere: 'Requests that wait for a seat.',
  rejected: 'Requests rejected with 429 since the server started.',
  rejectedRate: 'Requests rejected with 429 in the last second.',
};

// Returns the text of a meaning.
export function meaning(name) {
  return MEANINGS[name];
}

// Returns the attributes by which an element refers to a meaning, which it puts into the page when it is first wanted.
export function describedBy(name) {
  const id = `means-${name}`;
  if (!document.getElementById(id)) {
    document.getElementById('meanings').append(el('p', { id }, MEANINGS[name]));
  }
  return { 'aria-describedby': id };
}
