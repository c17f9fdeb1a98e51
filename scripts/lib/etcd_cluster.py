"""Clusters of etcd whose members can be killed and started again, for scripts that inject faults.

Python's standard library is enough.
"""

import base64
import http.client
import json
import pathlib
import shutil
import subprocess
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
START_SECONDS_MAX = 60


def find_etcd(*folders):
    """Returns the program: of one of the folders, of .tools, or of PATH."""
    places = [folder / 'etcd' for folder in folders] + [ROOT / '.tools/bin/etcd']
    return next((str(it) for it in places if it.exists()), shutil.which('etcd'))


def until(condition, what, seconds=START_SECONDS_MAX, pause=0.1):
    """Waits until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError('waited in vain until ' + what)
        time.sleep(pause)


def text(value):
    """Encodes a key or value for etcd's gateway."""
    return base64.b64encode(value.encode()).decode()


class Member:
    """A member of a cluster. `peers` are the URLs of all members, by name; `inside` is a command that runs the
    member's."""

    def __init__(self, program, name, client, peers, folder, log, inside=(), flags=()):
        self.name, self.url, self.log, self.process = name, client, log, None
        place = urllib.parse.urlsplit(client)
        self.host, self.port = place.hostname, place.port
        cluster = ','.join('%s=%s' % it for it in peers.items())
        self.command = [
            *inside,
            program,
            '--name=' + name,
            '--data-dir=%s' % (folder / name),
            '--listen-client-urls=' + client,
            '--advertise-client-urls=' + client,
            '--listen-peer-urls=' + peers[name],
            '--initial-advertise-peer-urls=' + peers[name],
            '--initial-cluster=' + cluster,
            *flags,
        ]

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, body=None):
        """Calls etcd's gateway; returns the answer, or None if there is none."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request('POST', path, json.dumps(body or {}), {'Content-Type': 'application/json'})
            return json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()


class Cluster:
    """Members of etcd, which are started."""

    def __init__(self, members):
        self.members = members
        for member in members:
            member.start()
        self.leader()
        self.urls = ','.join(it.url for it in members)

    def leader(self):
        """Waits for the member that leads."""
        found = []
        until(lambda: found.extend(self.leaders()) or found, 'etcd has a leader')
        return found[0]

    def leaders(self):
        """Returns the members that say that they lead."""
        for member in self.members:
            status = member.ask('/v3/maintenance/status') or {}
            if status.get('leader', '0') != '0' and status['leader'] == status['header']['member_id']:
                yield member

    def ask(self, path, body=None):
        """Calls the first member that answers."""
        answers = (member.ask(path, body) for member in self.members)
        return next((it for it in answers if it is not None), {})

    def revision(self):
        return int(self.ask('/v3/kv/range', {'key': text('x')}).get('header', {}).get('revision', 0))

    def count(self, prefix):
        """Returns how many keys begin with a prefix that ends with a slash."""
        end = prefix[:-1] + chr(ord('/') + 1)
        answer = self.ask('/v3/kv/range', {'key': text(prefix), 'range_end': text(end), 'count_only': True})
        return int(answer.get('count', 0))

    def value(self, key):
        """Returns the value of a key; an empty one if there is none."""
        found = self.ask('/v3/kv/range', {'key': text(key)}).get('kvs', [])
        return base64.b64decode(found[0]['value']) if found else b''

    def end(self):
        for member in self.members:
            member.kill()
