"""kube-apiserver and ringwatch beside each other on one etcd, for scripts that compare them.

All runs on loopback, with processes that end with the script. Python's standard library is enough.
"""

import http.client
import os
import pathlib
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RINGWATCH = os.environ.get('RINGWATCH', str(ROOT / 'target/debug/ringwatch'))
# Some scripts run it in another folder.
RINGWATCH = os.path.abspath(shutil.which(RINGWATCH) or RINGWATCH)
START_SECONDS_MAX = 120
EPHEMERAL = pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range')
PORT_MIN = 10_000
# So many ports are tried until one is free.
PORT_TRIES_MAX = 100
GIVEN = set()


class Server:
    """A process and a connection to it."""

    def __init__(self, command, port, scheme, log, environment=None, host='127.0.0.1'):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.host, self.port, self.scheme = host, port, scheme

    def ask(self, method, path, body=None, accept='application/json', first_bytes=None, content_type=None):
        if self.scheme == 'http':
            connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        else:
            # Authorities are not loaded, which takes long.
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=60, context=tls)
        try:
            headers = {'Authorization': 'Bearer token', 'Accept': accept}
            if content_type:
                headers['Content-Type'] = content_type
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, first_bytes(answer) if first_bytes else answer.read()
        finally:
            connection.close()

    def until_ready(self, path):
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end:
            if self.process.poll() is not None:
                sys.exit('%s ended' % self.process.args[0])
            try:
                if self.ask('GET', path)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.2)
        sys.exit('%s is not ready' % self.process.args[0])

    def end(self):
        self.process.terminate()
        self.process.wait()


def free_port(address='127.0.0.1'):
    """Returns a port that was free a moment ago, another one each time.

    It is a random one below those that the kernel gives to others who bind port 0 or connect, so that it stays free.
    """
    end = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else 0
    for _ in range(PORT_TRIES_MAX):
        # Where the kernel leaves none, it chooses.
        wanted = random.randrange(PORT_MIN, end) if end > PORT_MIN else 0
        with socket.socket() as one:
            try:
                one.bind((address, wanted))
            except OSError:
                continue
            port = one.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port
    sys.exit('no free port in %d tries' % PORT_TRIES_MAX)


def start_etcd(binaries, folder, servers, log):
    """Starts an etcd, of the folder or else of .tools; adds it to `servers`, and returns it with its URL."""
    program = next((it for it in (binaries / 'etcd', ROOT / '.tools/bin/etcd') if it.exists()), shutil.which('etcd'))
    client, peer = free_port(), free_port()
    store = 'http://127.0.0.1:%d' % client
    peers = 'http://127.0.0.1:%d' % peer
    etcd = Server(
        [
            program,
            '--name=one',
            '--data-dir=%s' % (folder / 'etcd'),
            '--listen-client-urls=' + store,
            '--advertise-client-urls=' + store,
            '--listen-peer-urls=' + peers,
            '--initial-advertise-peer-urls=' + peers,
            '--initial-cluster=one=' + peers,
            '--unsafe-no-fsync',
        ],
        client,
        'http',
        log,
    )
    servers.append(etcd)
    etcd.until_ready('/health')
    return etcd, store


def start(binaries, folder, servers, log, store, *flags):
    """Starts kube-apiserver and ringwatch on an etcd with these flags; adds both to `servers`, and returns them."""
    theirs = begin_theirs(binaries, folder, servers, log, store, *flags)
    ours = begin_ours(folder, servers, log, store, *flags)
    theirs.until_ready('/readyz')
    ours.until_ready('/readyz')
    return theirs, ours


def begin_theirs(binaries, folder, servers, log, store, *flags):
    """Begins kube-apiserver on an etcd with these flags; adds it to `servers`, and returns it."""
    key = folder / 'service-accounts.key'
    if not key.exists():
        subprocess.run(['openssl', 'genrsa', '-out', key, '2048'], check=True, capture_output=True)
    port = free_port()
    has_mode = any(it.startswith('--authorization-mode=') for it in flags)
    theirs = Server(
        [
            binaries / 'kube-apiserver',
            '--secure-port=%d' % port,
            '--cert-dir=%s' % (folder / 'certificates'),
            '--service-account-issuer=https://kubernetes.default.svc',
            '--service-account-key-file=%s' % key,
            '--service-account-signing-key-file=%s' % key,
            '--service-cluster-ip-range=10.0.0.0/24',
            *([] if has_mode else ['--authorization-mode=AlwaysAllow']),
            *same_flags(folder, store),
            *flags,
        ],
        port,
        'https',
        log,
    )
    servers.append(theirs)
    return theirs


def begin_ours(folder, servers, log, store, *flags):
    """Begins ringwatch on an etcd with these flags; adds it to `servers`, and returns it."""
    port = free_port()
    ours = Server(
        [
            RINGWATCH,
            'serve',
            '--secure-port=%d' % port,
            '--data-dir=%s' % (folder / 'ringwatch'),
            *same_flags(folder, store),
            *flags,
        ],
        port,
        'https',
        log,
    )
    servers.append(ours)
    return ours


def same_flags(folder, store):
    """Returns the flags that both servers have: the store, and who may do everything."""
    tokens = folder / 'tokens.csv'
    tokens.write_text('token,admin,1,"system:masters"\n')
    return ['--etcd-servers=' + store, '--token-auth-file=%s' % tokens, '--bind-address=127.0.0.1']
