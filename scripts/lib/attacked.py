"""A server of its own for scripts, and what clients send it that is as costly as its size allows.

The server is ringwatch, a relay of it, or kube-apiserver with its etcd.
"""

import http.client
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import time

from beside import start_etcd

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RINGWATCH = os.environ.get('RINGWATCH', str(ROOT / 'target/release/ringwatch'))
START_SECONDS_MAX = 60
LARGE_BYTES = 2_900_000
TOKENS = {
    'admin': 'system:masters',
    'tenant': 'tenants',
    'author': 'authors',
    'user': 'nobodies',
    'system:node:one': 'system:nodes',
    'system:node:two': 'system:nodes',
}


class Server:
    """ringwatch with its embedded store."""

    name = 'ringwatch'

    def __init__(self, folder, flags):
        self.folder = folder
        self.data = folder / 'data'
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        tokens = folder / 'tokens.csv'
        tokens.write_text(''.join(f'{name}-token,{name},{name},"{group}"\n' for name, group in TOKENS.items()))
        self.log = open(folder / 'log', 'w')
        rights = [
            '--token-auth-file',
            str(tokens),
            '--authorization-mode',
            'RBAC',
            '--disable-admission-plugins',
            'ServiceAccount',
        ]
        self.command = self.with_rights(rights, flags)
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self.start()

    def with_rights(self, rights, flags):
        return [RINGWATCH, 'serve', '--data-dir', str(self.data), '--secure-port', str(self.port), *rights, *flags]

    def start(self):
        """Starts the server, and returns after how many seconds it is ready."""
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        begun = time.monotonic()
        while True:
            try:
                if self.ask('admin', 'GET', '/readyz')[0] == 200:
                    return time.monotonic() - begun
            except OSError:
                pass
            if time.monotonic() > begun + START_SECONDS_MAX or self.process.poll() is not None:
                raise SystemExit(f'the server did not start:\n{(self.folder / "log").read_text()[-2000:]}')
            time.sleep(0.1)

    def kill(self):
        """Kills the server, as the kernel does when memory is short."""
        self.process.kill()
        self.process.wait(30)

    def connection(self):
        return http.client.HTTPSConnection('127.0.0.1', self.port, context=self.tls, timeout=70)

    def ask(
        self, user, method, path, body=None, media_type='application/json', connection=None, accept='application/json'
    ):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        headers = {'authorization': f'Bearer {user}-token', 'content-type': media_type, 'accept': accept}
        used = connection or self.connection()
        used.request(method, path, body, headers)
        answer = used.getresponse()
        content = answer.read()
        if connection is None:
            used.close()
        return answer.status, content

    def raw(self, protocols, source='127.0.0.1', tls=True):
        """A socket after the TLS handshake, or before it."""
        plain = socket.create_connection(('127.0.0.1', self.port), 10, (source, 0))
        if not tls:
            return plain
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(protocols)
        return context.wrap_socket(plain)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def status(self):
        """Resident memory in MiB, open files, threads."""
        return status(self.process)


class Relay(Server):
    """A relay in front of a server."""

    name = 'relay'

    def __init__(self, folder, upstream_port, flags):
        self.upstream_port = upstream_port
        super().__init__(folder, flags)

    def with_rights(self, rights, flags):
        kubeconfig = self.folder / 'upstream'
        kubeconfig.write_text(
            json.dumps(
                {
                    'apiVersion': 'v1',
                    'kind': 'Config',
                    'current-context': 'c',
                    'contexts': [{'name': 'c', 'context': {'cluster': 'c', 'user': 'c'}}],
                    'clusters': [{'name': 'c', 'cluster': {'server': f'http://127.0.0.1:{self.upstream_port}'}}],
                    'users': [{'name': 'c', 'user': {'token': 'admin-token'}}],
                }
            )
        )
        return [
            RINGWATCH,
            'relay',
            '--kubeconfig',
            str(kubeconfig),
            '--data-dir',
            str(self.data),
            '--secure-port',
            str(self.port),
            *flags,
        ]


class Peer(Server):
    """kube-apiserver with an etcd of its own. The memory and files are those of both."""

    name = 'kube-apiserver and etcd'

    def __init__(self, folder, binaries):
        self.binaries = binaries
        self.etcd_log = open(folder / 'etcd-log', 'w')
        self.etcd, self.store = start_etcd(binaries, folder, [], self.etcd_log)
        super().__init__(folder, [])
        self.data = folder / 'etcd'

    def with_rights(self, rights, flags):
        key = self.folder / 'key'
        subprocess.run(['openssl', 'genrsa', '-out', key, '2048'], check=True, capture_output=True)
        return [
            self.binaries / 'kube-apiserver',
            f'--secure-port={self.port}',
            f'--cert-dir={self.folder / "certificates"}',
            '--service-account-issuer=https://kubernetes.default.svc',
            f'--service-account-key-file={key}',
            f'--service-account-signing-key-file={key}',
            '--service-cluster-ip-range=10.0.0.0/24',
            f'--etcd-servers={self.store}',
            *rights,
            *flags,
        ]

    def end(self):
        super().end()
        self.etcd.end()
        self.etcd_log.close()

    def status(self):
        return tuple(map(sum, zip(status(self.process), status(self.etcd.process))))


def status(process):
    """Resident memory in MiB, open files, threads."""
    lines = pathlib.Path(f'/proc/{process.pid}/status').read_text().splitlines()
    fields = dict(line.split(':', 1) for line in lines)
    files = len(os.listdir(f'/proc/{process.pid}/fd'))
    return int(fields['VmRSS'].split()[0]) // 1024, files, int(fields['Threads'])


def repeated_fields():
    deep = '{"c":' * 115 + '{' + '"a":1,' * 100 + '"b":1}' + '}' * 115
    filler = 'x' * LARGE_BYTES
    return (
        f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"f":"{filler}"}},"unknown":{deep}}}'
    )


def maps_without_names():
    """As many maps as the largest body holds; no kind has such a field."""
    return '{"unknown":[' + ','.join(['{"":0}'] * (LARGE_BYTES // 7)) + ']}'


def repeated_keys():
    """One key of YAML, as often as the largest body holds it."""
    return 'a: 1\n' * 400_000 + 'b: ' + 'x' * (LARGE_BYTES - 2_000_010) + '\n'


def definition(plural, spec):
    return {
        'apiVersion': 'apiextensions.k8s.io/v1',
        'kind': 'CustomResourceDefinition',
        'metadata': {'name': f'{plural}.soak.example.com'},
        'spec': {
            'group': 'soak.example.com',
            'scope': 'Namespaced',
            'names': {'plural': plural, 'kind': plural.capitalize()},
            'versions': [
                {
                    'name': 'v1',
                    'served': True,
                    'storage': True,
                    'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {'spec': spec}}},
                }
            ],
        },
    }


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


HTTP2 = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0, b'')
PING = frame(6, 0, 0, b'01234567')
