"""A server of its own for scripts, and what clients send it that is as costly as its size allows."""
import http.client
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RINGWATCH = os.environ.get('RINGWATCH', str(ROOT / 'target/release/ringwatch'))
START_SECONDS_MAX = 60
LARGE_BYTES = 2_900_000
TOKENS = {'admin': 'system:masters', 'tenant': 'tenants', 'author': 'authors', 'user': 'nobodies', 'system:node:one': 'system:nodes',
          'system:node:two': 'system:nodes'}


class Server:
    def __init__(self, folder, flags):
        self.folder = folder
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        tokens = folder / 'tokens.csv'
        tokens.write_text(''.join(f'{name}-token,{name},{name},"{group}"\n' for name, group in TOKENS.items()))
        self.log = open(folder / 'log', 'w')
        self.command = [
            RINGWATCH, 'serve', '--data-dir', str(folder / 'data'), '--secure-port', str(self.port), '--token-auth-file', str(tokens),
            '--authorization-mode', 'RBAC', '--disable-admission-plugins', 'ServiceAccount', *flags]
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self.start()

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

    def ask(self, user, method, path, body=None, media_type='application/json', connection=None, accept='application/json'):
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
        lines = pathlib.Path(f'/proc/{self.process.pid}/status').read_text().splitlines()
        fields = dict(line.split(':', 1) for line in lines)
        files = len(os.listdir(f'/proc/{self.process.pid}/fd'))
        return int(fields['VmRSS'].split()[0]) // 1024, files, int(fields['Threads'])


def repeated_fields():
    deep = '{"c":' * 115 + '{' + '"a":1,' * 100 + '"b":1}' + '}' * 115
    filler = 'x' * LARGE_BYTES
    return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"f":"{filler}"}},"unknown":{deep}}}'


def maps_without_names():
    """As many maps as the largest body holds; no kind has such a field."""
    return '{"unknown":[' + ','.join(['{"":0}'] * (LARGE_BYTES // 7)) + ']}'


def repeated_keys():
    """One key of YAML, as often as the largest body holds it."""
    return 'a: 1\n' * 400_000 + 'b: ' + 'x' * (LARGE_BYTES - 2_000_010) + '\n'


def definition(plural, spec):
    return {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
            'metadata': {'name': f'{plural}.soak.example.com'},
            'spec': {'group': 'soak.example.com', 'scope': 'Namespaced', 'names': {'plural': plural, 'kind': plural.capitalize()},
                     'versions': [{'name': 'v1', 'served': True, 'storage': True, 'schema': {
                         'openAPIV3Schema': {'type': 'object', 'properties': {'spec': spec}}}}]}}


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


HTTP2 = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0, b'')
PING = frame(6, 0, 0, b'01234567')
