"""Random webhooks between requests and the store, for verification/peers/compare-requests.

A webhook answers by its path, and says in a warning what it was asked, so that the client of each server hears what
that server asks. Python's standard library and openssl are enough.
"""

import base64
import hashlib
import http.server
import json
import ssl
import subprocess
import threading
import urllib.parse

from answers import root
from request_steps import APPLY, JSON_PATCH, MERGE, Step, with_query
from write_requests import in_space

# Seconds until both servers ask new webhooks.
SEEN_SECONDS = 1.5
# A webhook that is slow takes longer than the shortest time that it may take.
TIMEOUT_SECONDS, SLOW_SECONDS = 1, 2
# What is each server's own, or written by the clock.
OWN = ('uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp', 'managedFields', 'time')
VALIDATING, MUTATING = 'validatingwebhookconfigurations', 'mutatingwebhookconfigurations'
KINDS = {VALIDATING: 'ValidatingWebhookConfiguration', MUTATING: 'MutatingWebhookConfiguration'}
REGISTRATION = '/apis/admissionregistration.k8s.io/v1/'
# What a webhook answers, by its path.
ALLOWING = ('allow', 'warn', 'audit')
REFUSING = ('deny', 'deny-plain', 'deny-code', 'deny-details')
BROKEN = (
    'other-uid',
    'no-response',
    'no-json',
    'other-version',
    'other-kind',
    'patch-type',
    'empty-type',
    'bad-patch',
    'broken-patch',
    'items',
    'no-list',
    'lines',
    'status-500',
    'text-403',
    'status-404',
    'slow',
)
PATCHING = ('label', 'remove', 'rename', 'data', 'nothing')
PATCHES = {
    'label': [{'op': 'add', 'path': '/metadata/labels', 'value': {'by': 'webhook'}}],
    'remove': [{'op': 'remove', 'path': '/metadata/labels'}],
    'rename': [{'op': 'replace', 'path': '/metadata/name', 'value': 'other'}],
    'data': [{'op': 'add', 'path': '/data', 'value': {'k': 'patched'}}],
    'nothing': [],
    'bad-patch': [{'op': 'replace', 'path': '/no/such', 'value': 1}],
    'patch-type': [{'op': 'add', 'path': '/metadata/labels', 'value': {'by': 'webhook'}}],
    'empty-type': [],
    'items': [5],
    'no-list': {'op': 'test'},
}
STATUSES = {
    'deny': {'message': 'no'},
    'deny-plain': {},
    'deny-code': {'message': 'too many', 'code': 429, 'reason': 'TooManyRequests'},
    'deny-details': {
        'message': 'no',
        'code': 422,
        'reason': 'Invalid',
        'details': {'name': 'n', 'kind': 'k', 'causes': [{'reason': 'r', 'message': 'm', 'field': 'f'}]},
    },
}


class Webhooks:
    """A server of webhooks on loopback, with a certificate of its own."""

    def __init__(self, folder):
        key, certificate = folder / 'webhook.key', folder / 'webhook.crt'
        subprocess.run(
            ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=webhook']
            + ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
            check=True,
            capture_output=True,
        )
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Webhook)
        self.server.ended = threading.Event()
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.authority = base64.b64encode(certificate.read_bytes()).decode()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def client(self, answer):
        url = 'https://127.0.0.1:%d/%s' % (self.server.server_address[1], answer)
        return {'url': url, 'caBundle': self.authority}

    def end(self):
        self.server.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def case(self, rng, space):
        """Writes in a space that webhooks look at."""
        yield from in_space(space)
        for number in range(rng.randrange(1, 3)):
            resource = rng.choice((VALIDATING, MUTATING))
            configuration = self.configuration(rng, space, resource, '%s-%d' % (space, number))
            yield Step('POST', REGISTRATION + resource, configuration, is_quiet=True)
        names = iter('pqrstuvwxyz')
        yield from (
            step._replace(pause=SEEN_SECONDS if at == 0 else 0) for at, step in enumerate(writes(rng, space, names))
        )
        for resource in KINDS:
            for number in range(2):
                yield Step('DELETE', '%s%s/%s-%d' % (REGISTRATION, resource, space, number), is_quiet=True)

    def configuration(self, rng, space, resource, name):
        hooks = [self.webhook(rng, space, resource, number) for number in range(rng.randrange(1, 3))]
        return {
            'apiVersion': 'admissionregistration.k8s.io/v1',
            'kind': KINDS[resource],
            'metadata': {'name': name},
            'webhooks': hooks,
        }

    def webhook(self, rng, space, resource, number):
        answers = ALLOWING + REFUSING + (PATCHING * 2 if resource == MUTATING else ())
        answer = rng.choice(answers if rng.random() < 0.8 else BROKEN)
        hook = {
            'name': 'w%d.example.com' % number,
            'clientConfig': self.client(answer),
            'rules': [rule(rng) for _ in range(rng.randrange(1, 3))],
            'admissionReviewVersions': ['v1'],
            'sideEffects': rng.choice(('None', 'None', 'NoneOnDryRun')),
            'failurePolicy': rng.choice(('Fail', 'Fail', 'Ignore')),
            'matchPolicy': rng.choice(('Exact', 'Equivalent')),
            'timeoutSeconds': TIMEOUT_SECONDS if answer == 'slow' else 10,
            'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': space}},
        }
        if rng.random() < 0.2:
            hook['objectSelector'] = {'matchLabels': {'a': rng.choice('bc')}}
        if rng.random() < 0.3:
            conditions = (
                'object != null',
                'has(object.metadata) && has(object.metadata.labels)',
                'request.operation == "UPDATE"',
                'request.userInfo.username == "admin" && !request.dryRun',
                'oldObject == null || oldObject.metadata.name != "q"',
                'object.nope == 1',
                'authorizer.group("").resource("pods").check("get").allowed()',
            )
            hook['matchConditions'] = [{'name': 'c', 'expression': rng.choice(conditions)}]
        if resource == MUTATING and rng.random() < 0.4:
            hook['reinvocationPolicy'] = 'IfNeeded'
        return hook


def rule(rng):
    group, versions, resources = rng.choice(
        (
            ('', ['v1'], ['configmaps']),
            ('', ['v1'], ['*']),
            ('', ['*'], ['configmaps', 'pods/*']),
            ('*', ['*'], ['*/*']),
            ('apps', ['v1'], ['deployments', 'deployments/scale']),
            ('autoscaling', ['v1'], ['horizontalpodautoscalers']),
            ('reads.example.com', ['v1'], ['widgets']),
        )
    )
    operations = rng.choice((['*'], ['CREATE'], ['CREATE', 'UPDATE'], ['DELETE'], ['UPDATE', 'CONNECT']))
    found = {'apiGroups': [group], 'apiVersions': versions, 'resources': resources, 'operations': operations}
    if rng.random() < 0.3:
        found['scope'] = rng.choice(('Namespaced', '*', 'Cluster'))
    return found


def writes(rng, space, names):
    """Writes of some objects, each a few times."""
    scaler = {'scaleTargetRef': {'kind': 'Deployment', 'name': 'd', 'apiVersion': 'apps/v1'}, 'maxReplicas': 2}
    template = {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}
    deployment = {'replicas': 1, 'selector': {'matchLabels': {'a': 'b'}}, 'template': template}
    for _ in range(rng.randrange(1, 3)):
        resource, version, kind, content = rng.choice(
            (
                ('configmaps', 'v1', 'ConfigMap', {'data': {'k': 'v'}}),
                ('configmaps', 'v1', 'ConfigMap', {'data': {'k': 'v'}}),
                ('deployments', 'apps/v1', 'Deployment', {'spec': deployment}),
                ('horizontalpodautoscalers', 'autoscaling/v2', 'HorizontalPodAutoscaler', {'spec': scaler}),
                ('widgets', 'reads.example.com/v1', 'Widget', {'spec': {'size': 1}}),
                ('widgets', 'reads.example.com/v2', 'Widget', {'spec': {'size': 1}}),
            )
        )
        name = next(names)
        path = '%s/namespaces/%s/%s' % (root(version), space, resource)
        made = {'apiVersion': version, 'kind': kind, 'metadata': {'name': name}, **content}
        if rng.random() < 0.5:
            made['metadata']['labels'] = {'a': 'b'}
        dry = [('dryRun', 'All')] if rng.random() < 0.2 else []
        yield Step('POST', with_query(path, dry + [('fieldManager', 'm')]), made)
        one = '%s/%s' % (path, name)
        for _ in range(rng.randrange(1, 4)):
            yield write(rng, one, made, dry)
        if resource == 'deployments':
            body = {'spec': {'replicas': rng.randrange(3)}}
            yield Step('PATCH', with_query(one + '/scale', dry), body, content=MERGE)
        yield Step('GET', one)
        yield Step('DELETE', with_query(one if rng.random() < 0.8 else path, dry))


def write(rng, path, made, dry):
    labelled = {'metadata': {'labels': {'x': rng.choice('yz')}}}
    how = rng.choice(('merge', 'json', 'apply', 'put'))
    if how == 'merge':
        return Step('PATCH', with_query(path, dry), labelled, content=MERGE)
    if how == 'json':
        change = [{'op': 'add', 'path': '/metadata/annotations', 'value': {'n': rng.choice('yz')}}]
        return Step('PATCH', with_query(path, dry), change, content=JSON_PATCH)
    if how == 'apply':
        body = {**made, 'metadata': {**made['metadata'], **labelled['metadata']}}
        pairs = dry + [('fieldManager', 'a'), ('force', 'true')]
        return Step('PATCH', with_query(path, pairs), body, content=APPLY)
    return Step('PUT', with_query(path, dry), {**made, 'metadata': {**made['metadata'], **labelled['metadata']}})


class Webhook(http.server.BaseHTTPRequestHandler):
    """Answers reviews of admission by the path of the URL."""

    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        length = int(self.headers.get('Content-Length', 0))
        review = json.loads(self.rfile.read(length))
        url = urllib.parse.urlparse(self.path)
        answer = url.path.strip('/')
        if answer == 'slow':
            self.server.ended.wait(SLOW_SECONDS)
        status, body = answered(answer, review['request'], url.query)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'text/plain' if answer.startswith('text-') else 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing is logged: the answers of the servers tell what was asked."""


def answered(answer, request, query):
    """The status and the body of an answer."""
    response = {'uid': request['uid'], 'allowed': answer not in STATUSES, 'warnings': [told(answer, request, query)]}
    review = {'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'response': response}
    if answer in STATUSES:
        response['status'] = STATUSES[answer]
    if answer == 'warn':
        response['warnings'] += ['', 'two\nlines', 'w' * 300]
    if answer == 'audit':
        response['auditAnnotations'] = {'k': 'v'}
    if answer in PATCHES:
        response['patchType'] = 'Merge' if answer in ('patch-type', 'empty-type') else 'JSONPatch'
        response['patch'] = base64.b64encode(json.dumps(PATCHES[answer]).encode()).decode()
    if answer in ('broken-patch', 'lines'):
        text = b'[{' if answer == 'broken-patch' else json.dumps(PATCHES['label']).encode()
        response |= {'patchType': 'JSONPatch', 'patch': base64.encodebytes(text).decode()}
    if answer == 'other-uid':
        response['uid'] = 'other'
    if answer == 'other-version':
        review['apiVersion'] = 'admission.k8s.io/v1beta1'
    if answer in ('other-kind', 'status-404'):
        review = {'apiVersion': 'v1', 'kind': 'Status', 'status': 'Failure', 'message': 'no such webhook'}
    if answer == 'text-403':
        return 403, b'go away'
    if answer == 'no-response':
        del review['response']
    if answer == 'no-json':
        return 200, b'not json'
    return {'status-500': 500, 'status-404': 404}.get(answer, 200), review


def told(answer, request, query):
    """Tells what a webhook was asked, short enough for a warning: of objects, digests of their members."""

    def kind(value):
        names = ('group', 'version', 'kind' if 'kind' in value else 'resource')
        return '/'.join(value.get(it, '') for it in names)

    def digest(value):
        return hashlib.sha256(json.dumps(cleaned(value), sort_keys=True).encode()).hexdigest()[:5]

    def digests(value):
        return ' '.join('%s:%s' % (name, digest(member)) for name, member in sorted((value or {}).items()))

    told_apart = ('uid', 'object', 'oldObject', 'kind', 'resource')
    others = {name: it for name, it in request.items() if name not in told_apart}
    parts = (
        request['operation'][:2],
        kind(request['kind']),
        kind(request['resource']),
        'rest %s' % digest(others),
        'object %s' % digests(request.get('object')),
        'old %s' % digests(request.get('oldObject')),
    )
    return '%s%s %s' % (answer, query, '; '.join(parts))


def cleaned(value):
    """A value without what is each server's own."""
    if isinstance(value, dict):
        return {name: cleaned(it) for name, it in value.items() if name not in OWN}
    return [cleaned(it) for it in value] if isinstance(value, list) else value
