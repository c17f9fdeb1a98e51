"""Writers and watchers who go from server to server, and what the watchers saw of the writes.

The writers count: each write puts the writer's next number into one of its ConfigMaps. Each watcher follows all of
them in one form, JSON or protobuf over HTTP/1.1 or HTTP/2, from its list on by resource versions alone. So the numbers
say what was lost, repeated or reordered.
Python's standard library is enough.
"""

import http.client
import json
import socket
import struct
import threading
import time

from answers import JSON, MAGIC, PROTOBUF, fields
from http2 import DATA, END_STREAM, GOAWAY, HEADERS, RST_STREAM, STATUS_OK, Connection, unverified_tls

FORMS = [(encoding, version) for version in (1, 2) for encoding in (JSON, PROTOBUF)]
PATH = '/api/v1/namespaces/default/configmaps'
# Several, since a write that goes on while etcd has no leader may wait seconds longer than others for its answer.
WRITERS = 3
# The objects of each writer.
OBJECTS = 2
# An answer that does not come in this time is none.
ANSWER_SECONDS_MAX = 10
# Writers wait less: a write that reaches etcd while it has no leader is answered after seven seconds, by etcd's own
# limit.
WRITTEN_SECONDS_MAX = 1
# Between attempts at a server that is away.
PAUSE_SECONDS = 0.05
# Somebody writes all the time, or a bookmark comes.
SILENCE_SECONDS_MAX = 75
# How long a watcher may take to see the last write.
SETTLE_SECONDS_MAX = 30
AWAY = (OSError, http.client.HTTPException)


class Client:
    """A connection over HTTP/1.1 to one server at a time."""

    def __init__(self, token='token', timeout=ANSWER_SECONDS_MAX):
        self.token, self.timeout, self.connection, self.server = token, timeout, None, None

    def ask(self, server, method, path, body=None, accept=JSON, media_type=JSON):
        """Asks a server; after an error nobody knows what came of it."""
        if self.server is not server:
            self.close()
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                server.host, server.port, timeout=self.timeout, context=unverified_tls()
            )
            self.server = server
        headers = {'Authorization': 'Bearer ' + self.token, 'Accept': accept, 'Content-Type': media_type}
        try:
            self.connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except AWAY:
            self.close()
            raise

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Witness(threading.Thread):
    """A thread that works until `ended` is set. `broke_off` says how it ended before."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.broke_off = threading.Event(), None

    def run(self):
        try:
            self.work()
        except Exception as error:
            self.broke_off = '%s: %s' % (type(error).__name__, error)
            # For the trace.
            raise
        if not self.ended.is_set():
            self.broke_off = 'it ended before its time'


class Writer(Witness):
    """Writes so many times a second, and goes to the next server after `stay` writes, or when its own is away. Its
    numbers are those that give its place when they are divided by the number of writers."""

    def __init__(self, place, servers, rate, stay):
        super().__init__()
        self.place, self.servers, self.rate, self.stay = place, servers, rate, stay
        self.name, self.count, self.at = 'writer %d' % place, 0, place
        # The numbers that were acknowledged, with the revision and the time of the answer, and those of an unknown
        # fate.
        self.acknowledged, self.unknown, self.refused = {}, set(), []

    def work(self):
        client, due = Client(timeout=WRITTEN_SECONDS_MAX), time.monotonic()
        while not self.ended.is_set():
            due = max(due + 1 / self.rate, time.monotonic() - 1)
            self.write(client)
            self.ended.wait(max(0, due - time.monotonic()))
        client.close()

    def write(self, client):
        self.count += 1
        if self.count % self.stay == 0:
            self.at += 1
        number, name = self.count * WRITERS + self.place, 'witnessed-%d-%d' % (self.place, self.count % OBJECTS)
        body = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'n': str(number)}}
        server = self.servers[self.at % len(self.servers)]
        try:
            code, answer = client.ask(server, 'PUT', '%s/%s' % (PATH, name), body)
            if code == 404:
                code, answer = client.ask(server, 'POST', PATH, body)
        except AWAY:
            self.unknown.add(number)
            self.at += 1
            return
        if code in (200, 201):
            version = int(json.loads(answer)['metadata']['resourceVersion'])
            self.acknowledged[number] = version, time.monotonic()
        elif code >= 500 or code == 429:
            # etcd may have done it nevertheless.
            self.unknown.add(number)
            self.at += 1
        else:
            self.refused.append('write %d is answered %d: %s' % (number, code, answer[:200]))


class Watcher(Witness):
    """Follows the writes, and goes to the next server after `stay` events, if there is such a number, or when its
    watch ends."""

    def __init__(self, form, servers, at, stay=None):
        super().__init__()
        (self.encoding, self.version), self.servers, self.at, self.stay = form, servers, at, stay
        self.name = '%s over HTTP/%s' % (
            'JSON' if self.encoding == JSON else 'protobuf',
            {1: '1.1', 2: '2'}[self.version],
        )
        self.position, self.watching = None, threading.Event()
        # The events: number, revision and time. When the last watch ended, and how long it took each time to have
        # another.
        self.seen, self.expired, self.errors, self.left = [], 0, [], None
        self.watches, self.goaways, self.takes, self.socket = 0, 0, [], None

    def work(self):
        while not self.ended.is_set():
            server = self.servers[self.at % len(self.servers)]
            try:
                if self.position is None:
                    self.position = self.listed(server)
                self.watch(server)
            except TimeoutError as error:
                if not self.ended.is_set():
                    self.errors.append('%s: no answer of %s: %s' % (self.name, server.name, error))
            except AWAY:
                self.ended.wait(PAUSE_SECONDS)
            self.at += 1

    def listed(self, server):
        client = Client()
        try:
            code, answer = client.ask(server, 'GET', PATH)
            if code != 200:
                raise ConnectionError('a list is answered %d' % code)
            return int(json.loads(answer)['metadata']['resourceVersion'])
        finally:
            client.close()

    def watch(self, server):
        path = '%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d' % (PATH, self.position)
        chunks = (self.over_http1 if self.version == 1 else self.over_http2)(server, path)
        buffer, is_open = b'', False
        upto = self.stay and len(self.seen) + self.stay
        try:
            for chunk in chunks:
                if chunk is None:
                    is_open = True
                    self.opened()
                    continue
                buffer += chunk
                event, buffer = self.take(buffer)
                while event is not None:
                    if not self.see(*event):
                        return
                    event, buffer = self.take(buffer)
                if self.ended.is_set() or upto and len(self.seen) >= upto:
                    return
        finally:
            chunks.close()
            if is_open:
                self.left = time.monotonic()

    def opened(self):
        self.watches += 1
        if self.left is not None:
            self.takes.append(time.monotonic() - self.left)
        self.left = None
        self.socket.settimeout(SILENCE_SECONDS_MAX)
        self.watching.set()

    def end(self):
        """Ends the watch, and the thread with it."""
        self.ended.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It has ended already.
            pass

    def over_http1(self, server, path):
        connection = http.client.HTTPSConnection(
            server.host, server.port, timeout=ANSWER_SECONDS_MAX, context=unverified_tls()
        )
        try:
            connection.connect()
            self.socket = connection.sock
            connection.request('GET', path, None, {'Authorization': 'Bearer token', 'Accept': self.encoding})
            answer = connection.getresponse()
            if answer.status != 200:
                self.refused(answer.read())
                return
            yield None
            while chunk := answer.read1(1 << 16):
                yield chunk
        finally:
            connection.close()

    def over_http2(self, server, path):
        connection = Connection(server.host, server.port, ANSWER_SECONDS_MAX)
        self.socket = connection.socket
        try:
            stream, is_ok = connection.get(path, authorization='Bearer token', accept=self.encoding), None
            while True:
                kind, flags, number, payload = connection.frame()
                if kind == GOAWAY:
                    self.goaways += 1
                if number != stream:
                    continue
                if kind == RST_STREAM:
                    raise ConnectionResetError('the stream is reset')
                if kind == HEADERS and is_ok is None:
                    is_ok = STATUS_OK in payload[:2]
                    if is_ok:
                        yield None
                elif kind == DATA and is_ok:
                    yield payload
                elif kind == DATA:
                    self.refused(payload)
                    return
                if flags & END_STREAM:
                    return
        finally:
            connection.close()

    def refused(self, body):
        if b'Expired' in body or b'Gone' in body:
            self.expired += 1
            self.position = None
        elif b'429' not in body and b'TooManyRequests' not in body:
            self.errors.append('%s: %r' % (self.name, body[:200]))

    def take(self, buffer):
        """Takes an event from the front of a buffer: type, number, revision."""
        if self.encoding == JSON:
            line, end, rest = buffer.partition(b'\n')
            if not end:
                return None, buffer
            event = json.loads(line)
            thing = event['object']
            version = thing['metadata'].get('resourceVersion', 0)
            return (event['type'], thing.get('data', {}).get('n'), version, line), rest
        if len(buffer) < 4 or len(buffer) < 4 + struct.unpack('>I', buffer[:4])[0]:
            return None, buffer
        size = struct.unpack('>I', buffer[:4])[0]
        content, rest = buffer[4 : 4 + size], buffer[4 + size :]
        event = dict(fields(content))
        raw = dict(fields(event[2]))[1]
        thing = dict(fields(dict(fields(raw.removeprefix(MAGIC)))[2]))
        version = dict(fields(thing.get(1, b''))).get(6, b'0')
        data = dict(fields(thing[2])).get(2) if event[1] != b'ERROR' and 2 in thing else None
        return (event[1].decode(), data and data.decode(), version if event[1] != b'ERROR' else 0, content), rest

    def see(self, kind, number, version, raw):
        """Takes an event down; returns False if the watch is over."""
        if kind == 'ERROR':
            self.refused(raw)
            return False
        self.position = int(version)
        if kind != 'BOOKMARK' and number is not None:
            self.seen.append((int(number), int(version), time.monotonic()))
        return True


class Witnesses:
    """The writers, and a watcher of each form."""

    def __init__(self, servers, rate=20, writer_stay=10, watcher_stay=None):
        self.writers = [Writer(place, servers, rate / WRITERS, writer_stay) for place in range(WRITERS)]
        self.watchers = [Watcher(form, servers, at, watcher_stay) for at, form in enumerate(FORMS)]
        self.acknowledged, self.unknown, self.problems = {}, set(), []

    def start(self):
        for watcher in self.watchers:
            watcher.start()
        for watcher in self.watchers:
            if not watcher.watching.wait(SETTLE_SECONDS_MAX):
                raise RuntimeError('%s has no watch' % watcher.name)
        for writer in self.writers:
            writer.start()

    def finish(self):
        """Ends the writers, waits until the watchers have seen all, and ends them."""
        for writer in self.writers:
            writer.ended.set()
        for writer in self.writers:
            writer.join(2 * ANSWER_SECONDS_MAX)
            self.acknowledged.update(writer.acknowledged)
            self.unknown |= writer.unknown
            self.problems += writer.refused[:3]
            if not writer.acknowledged:
                self.problems.append('%s has no acknowledged write' % writer.name)
        last, end = (
            {max(it.acknowledged, default=0) for it in self.writers} - {0},
            time.monotonic() + SETTLE_SECONDS_MAX,
        )
        while time.monotonic() < end and not all(last <= {it[0] for it in watcher.seen} for watcher in self.watchers):
            time.sleep(PAUSE_SECONDS)
        for watcher in self.watchers:
            watcher.end()
        for watcher in self.watchers:
            watcher.join(2 * ANSWER_SECONDS_MAX)
        # After the joins, so that whatever broke off is told, whenever it did.
        self.problems += [
            '%s broke off: %s' % (it.name, it.broke_off)
            for it in (*self.writers, *self.watchers)
            if it.broke_off is not None
        ]

    def counts(self):
        """Returns what must be zero: what all watchers together saw not, twice or out of order, and 410s."""
        total = dict.fromkeys(('lost', 'repeated', 'reordered', '410s'), 0)
        for watcher in self.watchers:
            numbers = [it[0] for it in watcher.seen]
            lost = set(self.acknowledged) - set(numbers)
            total['lost'] += len(lost)
            total['repeated'] += len(numbers) - len(set(numbers))
            total['reordered'] += self.reordered(watcher)
            total['410s'] += watcher.expired
            strange = [it for it in watcher.seen if it[0] in self.acknowledged and self.acknowledged[it[0]][0] != it[1]]
            if strange:
                self.problems.append(
                    '%s: %d events have other versions than their writes' % (watcher.name, len(strange))
                )
            if lost:
                self.problems.append('%s never saw %s' % (watcher.name, sorted(lost)[:10]))
            self.problems += watcher.errors[:3]
        return total

    def reordered(self, watcher):
        versions = [it[1] for it in watcher.seen]
        count = sum(one >= other for one, other in zip(versions, versions[1:]))
        for place in range(WRITERS):
            # What nobody answered may have happened later.
            numbers = [it[0] for it in watcher.seen if it[0] in self.acknowledged and it[0] % WRITERS == place]
            count += sum(one > other for one, other in zip(numbers, numbers[1:]))
        return count

    def events(self):
        return sum(len(it.seen) for it in self.watchers)

    def watches(self):
        return sum(it.watches for it in self.watchers)

    def longest_silence(self):
        """Returns the longest time between two events of a watcher, in seconds."""
        times = [[it[2] for it in watcher.seen] for watcher in self.watchers]
        return max((other - one for it in times for one, other in zip(it, it[1:])), default=0)

    def longest_move(self):
        """Returns the longest time from the end of a watch until another was live, in seconds."""
        return max((it for watcher in self.watchers for it in watcher.takes), default=0)
