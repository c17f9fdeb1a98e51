"""The faults behind the alerts of deploy/prometheus/rules.yaml, made for real on servers of loopback.

A fault is a context: within it something is wrong, after it the server is as before. Python's standard library is
enough.
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

MAPS = '/api/v1/namespaces/default/configmaps'
HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices'
API_SERVICE = 'v1.nowhere.example.com'
WATCH_OF_ALL = '/api/v1/configmaps?watch=true'
# Objects that a client lists again and again, and how many clients do.
LISTED_OBJECTS = 3_000
LISTERS = 3
OBJECT_BYTES = 900_000
# The watches that a user may have, of whom a second one wants more.
WATCHES_MAX = 3
# Stops of the store between which it answers.
STOP_SECONDS, GO_SECONDS = 1.4, 0.3
# For how many days a certificate of the server is valid.
CERTIFICATE_DAYS = 365
# How long a webhook may take, before its call fails.
WEBHOOK_SECONDS = 2


def config_map(name, size=1):
    return json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'x': 'x' * size}})


def run(*command):
    return subprocess.run([str(it) for it in command], check=True, capture_output=True)


def write_certificate(folder, days_left):
    """Writes server.crt and server.key: a certificate of CERTIFICATE_DAYS for 127.0.0.1, of which so many are left."""
    ends = time.time() + days_left * 86_400
    begins, ends = (time.strftime('%Y%m%d%H%M%SZ', time.gmtime(it)) for it in (ends - CERTIFICATE_DAYS * 86_400, ends))
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        at = pathlib.Path(temporary)
        (at / 'index').touch()
        (at / 'config').write_text(
            '[ca]\ndefault_ca = own\n[own]\nnew_certs_dir = %s\ndatabase = %s/index\n'
            'rand_serial = yes\ndefault_md = sha256\npolicy = any\n'
            '[any]\ncommonName = supplied\n[names]\nsubjectAltName = IP:127.0.0.1\n' % (at, at)
        )
        run(
            'openssl',
            'req',
            '-new',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-subj',
            '/CN=127.0.0.1',
            '-keyout',
            at / 'server.key',
            '-out',
            at / 'request',
        )
        # `openssl req -x509` lets a certificate begin now alone.
        run(
            'openssl',
            'ca',
            '-batch',
            '-selfsign',
            '-notext',
            '-config',
            at / 'config',
            '-extensions',
            'names',
            '-startdate',
            begins,
            '-enddate',
            ends,
            '-keyfile',
            at / 'server.key',
            '-in',
            at / 'request',
            '-out',
            at / 'server.crt',
        )
        for name in ('server.key', 'server.crt'):
            (at / name).rename(folder / name)


def ask(server, *request):
    """Sends a request; returns its status, or 0 if there is no answer."""
    try:
        return server.ask(*request)[0]
    except (OSError, http.client.HTTPException):
        return 0


@contextlib.contextmanager
def repeatedly(*actions, pause=0.2):
    """Does each action again and again, in threads that end with the context."""
    ended = threading.Event()

    def repeat(action):
        number = 0
        while not ended.wait(pause):
            action(number)
            number += 1

    threads = [threading.Thread(target=repeat, args=(it,), daemon=True) for it in actions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def writes(server):
    """Returns an action that writes a ConfigMap."""
    body = config_map('written')
    ask(server, 'POST', MAPS, body)
    return lambda number: ask(server, 'PUT', MAPS + '/written', config_map('written', 1 + number % 100))


@contextlib.contextmanager
def lists_everything(stand):
    """Clients list all ConfigMaps again and again."""
    server = stand.etcd_server
    for number in range(LISTED_OBJECTS):
        ask(server, 'POST', MAPS, config_map('listed-%d' % number))
    with repeatedly(*[lambda _: ask(server, 'GET', '/api/v1/configmaps?resourceVersion=0')] * LISTERS):
        yield
    ask(server, 'DELETE', MAPS)


@contextlib.contextmanager
def watcher_never_reads(stand):
    """A client opens a watch and does not read, while large objects change."""
    server = stand.etcd_server
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(('127.0.0.1', server.port)) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with context.wrap_socket(plain, server_hostname='127.0.0.1') as connection:
            connection.sendall(
                (
                    'GET %s HTTP/1.1\r\nHost: a\r\nUser-Agent: report/1.0\r\nAuthorization: Bearer token\r\n\r\n'
                    % WATCH_OF_ALL
                ).encode()
            )
            ask(server, 'POST', MAPS, config_map('changed'))

            def change(number):
                return ask(server, 'PUT', MAPS + '/changed', config_map('changed', 100_000 + number % 100))

            with repeatedly(*[change] * 4, pause=0.01):
                yield
    ask(server, 'DELETE', MAPS)


@contextlib.contextmanager
def store_slow(stand):
    """The store answers in between stops alone, as with a slow disk."""
    process = stand.etcd.process

    def stop(_):
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOP_SECONDS)
        process.send_signal(signal.SIGCONT)

    write = writes(stand.etcd_server)
    with repeatedly(stop, pause=GO_SECONDS), repeatedly(*[write] * 4, pause=0.05):
        yield


@contextlib.contextmanager
def killed(stand, server):
    """A process is killed, and is started again after it."""
    server.process.kill()
    server.process.wait()
    try:
        yield
    finally:
        stand.start_again(server)


@contextlib.contextmanager
def store_down(stand):
    """The store is killed, while clients write."""
    write = writes(stand.etcd_server)
    with repeatedly(*[write] * 8), killed(stand, stand.etcd):
        yield


@contextlib.contextmanager
def webhook_hangs(stand):
    """An admission webhook takes connections and never answers."""
    server = stand.etcd_server
    with socket.create_server(('127.0.0.1', 0)) as listener:
        hook = {
            'name': 'hangs.example.com',
            'admissionReviewVersions': ['v1'],
            'sideEffects': 'None',
            'timeoutSeconds': WEBHOOK_SECONDS,
            'failurePolicy': 'Fail',
            'clientConfig': {'url': 'https://127.0.0.1:%d/' % listener.getsockname()[1]},
            'rules': [
                {
                    'apiGroups': [''],
                    'apiVersions': ['v1'],
                    'operations': ['CREATE', 'UPDATE'],
                    'resources': ['configmaps'],
                }
            ],
        }
        kind = {'apiVersion': 'admissionregistration.k8s.io/v1', 'kind': 'ValidatingWebhookConfiguration'}
        write = writes(server)
        ask(server, 'POST', HOOKS, json.dumps({**kind, 'metadata': {'name': 'hangs'}, 'webhooks': [hook]}))
        try:
            with repeatedly(*[write] * 3):
                yield
        finally:
            ask(server, 'DELETE', HOOKS + '/hangs')


@contextlib.contextmanager
def client_certificate_expires(stand):
    """A client uses a certificate that is valid for a day."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(stand.folder / 'client.crt', stand.folder / 'client.key')

    def get(_):
        connection = http.client.HTTPSConnection('127.0.0.1', stand.etcd_server.port, timeout=10, context=context)
        with contextlib.closing(connection):
            connection.request('GET', '/version')
            connection.getresponse().read()

    with repeatedly(get):
        yield


@contextlib.contextmanager
def certificate_expires(stand):
    """The server's certificate is replaced by one of which a day is left."""
    write_certificate(stand.folder, 1)
    try:
        yield
    finally:
        write_certificate(stand.folder, CERTIFICATE_DAYS)


@contextlib.contextmanager
def aggregated_api_away(stand):
    """An APIService names a service that is not there."""
    server = stand.etcd_server
    ask(
        server,
        'POST',
        API_SERVICES,
        json.dumps(
            {
                'apiVersion': 'apiregistration.k8s.io/v1',
                'kind': 'APIService',
                'metadata': {'name': API_SERVICE},
                'spec': {
                    'group': 'nowhere.example.com',
                    'version': 'v1',
                    'groupPriorityMinimum': 1,
                    'versionPriority': 1,
                    'insecureSkipTLSVerify': True,
                    'service': {'namespace': 'default', 'name': 'nowhere'},
                },
            }
        ),
    )
    try:
        yield
    finally:
        ask(server, 'DELETE', API_SERVICES + '/' + API_SERVICE)


@contextlib.contextmanager
def too_many_watches(stand):
    """A user opens more watches than it may have."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    open_watches = []

    def watch():
        connection = http.client.HTTPSConnection('127.0.0.1', stand.etcd_server.port, timeout=10, context=context)
        connection.request('GET', WATCH_OF_ALL, headers={'Authorization': 'Bearer tenant'})
        open_watches.append((connection, connection.getresponse()))
        return open_watches[-1][1].status

    def more(_):
        watch()
        open_watches.pop()[0].close()

    try:
        for _ in range(WATCHES_MAX):
            watch()
        with repeatedly(more):
            yield
    finally:
        for connection, _ in open_watches:
            connection.close()


@contextlib.contextmanager
def memory_short(stand):
    """Objects take nearly the whole memory budget, and clients list."""
    server = stand.embedded_server
    for number in range(stand.budget_mib + 8):
        ask(server, 'POST', MAPS, config_map('large-%d' % number, OBJECT_BYTES))
    try:
        with repeatedly(lambda _: ask(server, 'GET', MAPS)):
            yield
    finally:
        for number in range(stand.budget_mib + 8):
            ask(server, 'DELETE', '%s/large-%d' % (MAPS, number))


@contextlib.contextmanager
def store_full(stand):
    """Objects take nearly the whole quota of the store."""
    server, number = stand.small_server, 0
    while number * OBJECT_BYTES < stand.quota_bytes * 0.82:
        ask(server, 'POST', MAPS, config_map('full-%d' % number, OBJECT_BYTES))
        number += 1
    try:
        yield
    finally:
        for deleted in range(number):
            ask(server, 'DELETE', '%s/full-%d' % (MAPS, deleted))


@contextlib.contextmanager
def server_down(stand):
    """A server is killed that has a relay in front of it."""
    with killed(stand, stand.embedded_server):
        yield


# The faults, and the alerts that must fire within each.
FAULTS = (
    (aggregated_api_away, ['ApiserverAggregatedApiUnavailable']),
    (client_certificate_expires, ['ApiserverClientCertificateExpires']),
    (certificate_expires, ['RingwatchCertificateExpires']),
    (too_many_watches, ['ApiserverTurnsAway']),
    (webhook_hangs, ['ApiserverWebhookFails', 'ApiserverWebhookSlow']),
    (watcher_never_reads, ['RingwatchWatchersBehind']),
    (lists_everything, ['ApiserverListsEverything']),
    (memory_short, ['RingwatchMemoryShort']),
    (store_full, ['RingwatchStoreFull']),
    (store_slow, ['ApiserverStoreSlow', 'ApiserverSlow']),
    (store_down, ['ApiserverErrors', 'ApiserverStoreFails', 'RingwatchFeedBehind', 'RingwatchCompactionFails']),
    (server_down, ['ApiserverDown', 'RingwatchUpstreamAway']),
)
