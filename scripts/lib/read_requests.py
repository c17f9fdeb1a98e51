"""Random lists, watches and negotiated forms of answers, for verification/peers/compare-requests.

Python's standard library is enough.
"""

import base64
import json

from answers import JSON, PROTOBUF, root
from request_steps import MERGE, YAML, Step, with_query
from small_objects import OBJECTS

SPACES = ('reads-a', 'reads-b')
GROUP = 'reads.example.com'
TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
# Resources, each with its kind, whether it has namespaces, and the fields by which it can be selected.
RESOURCES = (
    ('v1', 'configmaps', 'ConfigMap', True, ()),
    ('v1', 'pods', 'Pod', True, ('spec.nodeName', 'status.phase', 'spec.restartPolicy', 'status.podIP', 'spec.none')),
    ('v1', 'secrets', 'Secret', True, ('type',)),
    ('v1', 'services', 'Service', True, ('spec.clusterIP', 'spec.type')),
    ('v1', 'serviceaccounts', 'ServiceAccount', True, ()),
    ('v1', 'events', 'Event', True, ('type', 'reason', 'involvedObject.kind', 'involvedObject.name', 'source')),
    ('v1', 'replicationcontrollers', 'ReplicationController', True, ('status.replicas',)),
    ('v1', 'persistentvolumes', 'PersistentVolume', False, ('name',)),
    ('v1', 'nodes', 'Node', False, ('spec.unschedulable',)),
    ('v1', 'namespaces', 'Namespace', False, ('status.phase', 'name')),
    ('apps/v1', 'deployments', 'Deployment', True, ()),
    ('apps/v1', 'replicasets', 'ReplicaSet', True, ('status.replicas',)),
    ('batch/v1', 'jobs', 'Job', True, ('status.successful',)),
    ('events.k8s.io/v1', 'events', 'Event', True, ('type', 'reason', 'regarding.kind', 'involvedObject.name')),
    ('coordination.k8s.io/v1', 'leases', 'Lease', True, ()),
    ('rbac.authorization.k8s.io/v1', 'clusterroles', 'ClusterRole', False, ()),
    ('rbac.authorization.k8s.io/v1', 'roles', 'Role', True, ()),
    ('storage.k8s.io/v1', 'storageclasses', 'StorageClass', False, ()),
    ('resource.k8s.io/v1', 'resourceslices', 'ResourceSlice', False, ('spec.nodeName', 'spec.driver')),
    ('autoscaling/v1', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler', True, ()),
    ('autoscaling/v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler', True, ()),
    (GROUP + '/v1', 'widgets', 'Widget', True, ('spec.color', 'spec.size', 'spec.ready', 'spec.none')),
    (GROUP + '/v2', 'widgets', 'Widget', True, ('spec.color', 'spec.hue')),
)
SCHEMA = {
    'openAPIV3Schema': {
        'type': 'object',
        'properties': {
            'spec': {
                'type': 'object',
                'properties': {
                    'size': {'type': 'integer'},
                    'color': {'type': 'string', 'default': 'red'},
                    'ready': {'type': 'boolean'},
                    'since': {'type': 'string', 'format': 'date-time'},
                },
            },
            'status': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True},
        },
    }
}
# Of versions whose schemas are the same kube-apiserver makes one, beside which no fields can be selected.
OTHER_SCHEMA = {'openAPIV3Schema': {**SCHEMA['openAPIV3Schema'], 'description': 'another'}}
COLUMNS = [
    {'name': 'Color', 'type': 'string', 'jsonPath': '.spec.color', 'description': 'its color'},
    {'name': 'Size', 'type': 'integer', 'format': 'int32', 'jsonPath': '.spec.size', 'priority': 1},
    {'name': 'Ready', 'type': 'boolean', 'jsonPath': '.spec.ready'},
    {'name': 'Since', 'type': 'date', 'jsonPath': '.spec.since'},
    {'name': 'Labels', 'type': 'string', 'jsonPath': '.metadata.labels'},
]
DEFINITION = {
    'apiVersion': 'apiextensions.k8s.io/v1',
    'kind': 'CustomResourceDefinition',
    'metadata': {'name': 'widgets.' + GROUP},
    'spec': {
        'group': GROUP,
        'scope': 'Namespaced',
        'names': {'plural': 'widgets', 'kind': 'Widget', 'shortNames': ['wg'], 'categories': ['all']},
        'versions': [
            {
                'name': 'v1',
                'served': True,
                'storage': True,
                'schema': SCHEMA,
                'selectableFields': [{'jsonPath': '.spec.' + name} for name in ('color', 'size', 'ready')],
                'additionalPrinterColumns': COLUMNS,
                'subresources': {
                    'status': {},
                    'scale': {'specReplicasPath': '.spec.size', 'statusReplicasPath': '.status.size'},
                },
            },
            {'name': 'v2', 'served': True, 'storage': False, 'schema': OTHER_SCHEMA, 'subresources': {'status': {}}},
        ],
    },
}
NAMES = ('a', 'b', 'c', 'd', 'e', 'ab', 'b.c')
VERSIONS = (
    '0',
    '',
    '1',
    '$now.rv$',
    '$before.rv$',
    '999999999',
    'x',
    '-1',
    '1.5',
    '007',
    ' 5',
    '18446744073709551616',
    '9223372036854775808',
    '0x10',
)
MATCHES = ('Exact', 'NotOlderThan', 'exact', '', 'x', 'MostRecent')
BOOLEANS = ('true', 'false', '1', '0', '', 'x', 'TRUE', 'False', 't')
LIMITS = ('1', '2', '3', '500', '0', '-1', 'x', '', '1.0', '9223372036854775807', '9223372036854775808', ' 1', '+1')
TIMEOUTS = ('1', '2', '0', '-1', 'x', '', '1s', '1.5', '9223372036854775807')
LABELS = (
    'tier=x',
    'tier!=x',
    'tier==y',
    'tier in (x,y)',
    'tier notin (x)',
    'tier',
    '!tier',
    'tier,rank>1',
    'rank<2',
    'rank>x',
    'rank>=1',
    'tier in ()',
    'tier in x',
    'tier in (x',
    'tier IN (x)',
    'tier in (x,)',
    'tier in (,x)',
    'tier in (x y)',
    'tier=',
    'tier=x,',
    ',tier=x',
    '=x',
    '',
    ' ',
    ',',
    '(',
    '!',
    '!!tier',
    '! tier',
    '!tier=x',
    'tier = x , rank',
    'tier\nin\t(x)',
    'tier=x=y',
    'a b=c',
    'tier=a b',
    'tier=-x',
    'example.com/a/b=c',
    'Example.com/a=b',
    'x' * 64 + '=y',
    'tier=' + 'y' * 64,
    'in=in',
    'in in (in)',
    'notin',
    'tier in (x),tier notin (y),rank=1',
    'tier=ä',
    'tier>1,tier<5',
    'tier=x;rank=1',
    'exists',
    'tier exists',
)
FIELDS = (
    'metadata.name=a',
    'metadata.name!=a',
    'metadata.name==b',
    'metadata.namespace=reads-a',
    'metadata.namespace!=reads-a',
    'metadata.name=a,metadata.namespace=reads-b',
    'metadata.name=a,metadata.name=b',
    'metadata.name=a,metadata.name=a',
    'metadata.name=none',
    'metadata.name=',
    'metadata.name',
    'metadata.name=a=b',
    'metadata.name=a\\,b',
    'metadata.name=a\\=b',
    'metadata.name=a\\',
    'metadata.name=a\\x',
    'metadata.name = a',
    'metadata.name=a,',
    ',',
    '=a',
    '!=a',
    '',
    'metadata.uid=x',
    'metadata.labels.tier=x',
    'Metadata.Name=a',
    'metadata.name in (a)',
    '!metadata.name',
    'metadata.name>a',
    'metadata.name=A_b',
    'metadata.namespace=A_b',
    'spec.foo=x',
    'metadata.name=a/b',
    'metadata.name=..',
)
VALUES = ('a', '', 'Running', 'Pending', 'Opaque', 'red', 'Active', 'true', 'false', '0', '1', 'None', 'x')
FORMS = (
    JSON,
    YAML,
    PROTOBUF,
    TABLE,
    METADATA,
    METADATA_LIST,
    TABLE + ',' + JSON,
    TABLE.replace('v1', 'v1beta1', 1),
    TABLE.replace('v=v1', 'v=v2') + ',' + JSON,
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json; as=Table; v=v1; g=meta.k8s.io',
    'application/json;as=Table;v=v1',
    'application/json;as=Table;g=meta.k8s.io',
    'application/json;as=Table',
    'application/json;as=table;v=v1;g=meta.k8s.io',
    'application/json;AS=Table;V=v1;G=meta.k8s.io',
    'application/json;as=Table;v=v1;g=apps',
    'application/json;as=Other;v=v1;g=meta.k8s.io',
    'application/json;as=Status;v=v1;g=meta.k8s.io',
    'application/json;as=Pod;v=v1;g=',
    'application/json;as=;v=;g=',
    'application/json;v=v1',
    'application/json;g=meta.k8s.io',
    'application/json;as=Table;v=v1;g=meta.k8s.io;x=y',
    'application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5',
    'application/json;as="Table";v="v1";g="meta.k8s.io"',
    'application/json;as=Table;v=v1;g=meta.k8s.io;as=PartialObjectMetadata',
    TABLE.replace('json', 'yaml'),
    METADATA.replace('json', 'yaml'),
    METADATA_LIST.replace('json', 'yaml'),
    TABLE.replace(JSON, PROTOBUF),
    METADATA.replace(JSON, PROTOBUF),
    METADATA_LIST.replace(JSON, PROTOBUF),
    METADATA_LIST.replace(JSON, PROTOBUF) + ',' + METADATA_LIST,
    METADATA + ',' + METADATA_LIST + ',' + TABLE,
    METADATA.replace('v=v1', 'v=v1beta1'),
    'application/json;pretty=1',
    'application/json;pretty=0',
    'application/json;pretty=true',
    'application/yaml;pretty=1',
    'application/json;stream=watch',
    'application/json;stream=x',
    PROTOBUF + ';stream=watch',
    PROTOBUF + ';type=x',
    'application/json;charset=utf-8',
    'application/json;charset=utf-16',
    'application/json;q=0',
    'application/json;q=0.1,' + PROTOBUF + ';q=0.9',
    PROTOBUF + ';q=0.1,' + YAML,
    'application/json;q=x',
    'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json',
    'application/cbor',
    'application/cbor,application/json',
    '*/*',
    'application/*',
    'text/*',
    '*/json',
    '*',
    '',
    ' ',
    ',',
    'json',
    'application/',
    'application/json/x',
    'text/html',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'text/plain',
    'application/json-patch+json',
    'APPLICATION/JSON',
    'application/json,,',
    'application/json;',
    'application/x-yaml',
    'application/merge-patch+json,*/*;q=0.1',
)
INCLUDED = ('None', 'Metadata', 'Object', 'none', '', 'x', 'Full')


class Resource:
    """A resource whose objects are read."""

    def __init__(self, version, name, kind, namespaced, selectable):
        self.version, self.name, self.kind = version, name, kind
        self.namespaced, self.selectable, self.root = namespaced, selectable, root(version)

    def __str__(self):
        return '%s/%s' % (self.version, self.name)

    def collection(self, space):
        return '%s%s/%s' % (self.root, '/namespaces/' + space if self.namespaced and space else '', self.name)

    def content(self, at):
        """The fields of an object; those of one number are alike."""
        name = '%s/%s' % (self.version, self.kind)
        if self.kind == 'Widget':
            colors = ('red', 'green', 'blue')
            found = {'color': colors[at % 3], 'size': at, 'since': '2019-01-02T03:04:05Z'}
            return {'spec': {**found, 'ready': True} if at % 2 else found}
        found = json.loads(json.dumps(OBJECTS.get(name, OBJECTS.get(self.kind))))
        if self.kind == 'Pod':
            spec = found['spec']
            spec['automountServiceAccountToken'] = False
            if at % 2:
                spec['nodeName'] = 'a'
        if self.kind == 'Event':
            found.get('involvedObject', found.get('regarding', {}))['namespace'] = SPACES[0]
        return found

    def whole(self, name, space, labels, at=0, **metadata):
        found = self.content(at)
        if self.kind == 'Event':
            for member in ('involvedObject', 'regarding'):
                if member in found:
                    found[member]['namespace'] = space
        place = {'namespace': space} if self.namespaced else {}
        meta = {'name': name, **place, 'labels': labels, **metadata}
        return {'apiVersion': self.version, 'kind': self.kind, 'metadata': meta, **found}


READ = tuple(Resource(*it) for it in RESOURCES)


def labels_of(at):
    found = {'reads': 'yes', 'tier': 'xyz'[at % 3], 'rank': str(at)}
    return {key: value for key, value in found.items() if key != 'tier' or at % 4 != 3}


def prepared():
    """What makes the objects that are read."""
    for space in SPACES:
        yield Step('POST', '/api/v1/namespaces', {'metadata': {'name': space}})
        account = {'metadata': {'name': 'default'}}
        yield Step('POST', '/api/v1/namespaces/%s/serviceaccounts' % space, account, pause=0.3)
    yield Step('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', DEFINITION)
    for version in ('v1', 'v2'):
        yield Step('GET', root('%s/%s' % (GROUP, version)) + '/widgets', until=200)
    for resource in READ:
        if str(resource) in (
            'events.k8s.io/v1/events',
            GROUP + '/v2/widgets',
            'autoscaling/v2/horizontalpodautoscalers',
        ):
            continue
        for space in SPACES if resource.namespaced else SPACES[:1]:
            for at, name in enumerate(NAMES if space == SPACES[0] else NAMES[:2]):
                if resource.kind == 'Namespace':
                    name = 'reads-' + name.replace('.', '-') + '0'
                yield Step('POST', resource.collection(space), resource.whole(name, space, labels_of(at), at))


def place(rng, resource):
    """A collection of a resource: of a namespace, of one that is not there, or of all."""
    chance = rng.random()
    if not resource.namespaced or chance < 0.3:
        return resource.collection('')
    return resource.collection(SPACES[0] if chance < 0.75 else SPACES[1] if chance < 0.93 else 'none')


def selected(rng, resource):
    """Pairs of a query that select objects."""
    found = []
    if rng.random() < 0.5:
        found.append(('labelSelector', rng.choice(LABELS)))
    else:
        found.append(('labelSelector', 'reads=yes'))
    if rng.random() < 0.35:
        field = rng.choice(FIELDS)
        if resource.selectable and rng.random() < 0.6:
            field = rng.choice(resource.selectable) + rng.choice(('=', '!=', '==')) + rng.choice(VALUES)
            if rng.random() < 0.3:
                field += ',' + rng.choice(('metadata.name=a', 'metadata.namespace=reads-a', 'metadata.name!=b'))
        found.append(('fieldSelector', field))
    if rng.random() < 0.03:
        found.append((rng.choice(('labelSelector', 'fieldSelector')), rng.choice(('tier=x', 'metadata.name=a', ''))))
    return found


def token(rng):
    """A continuation that no server has given, in the form of kube-apiserver's."""
    content = {'v': 'meta.k8s.io/v1', 'rv': rng.choice((1, 5, 0, -1, -2, 10**9)), 'start': 'a\0'}
    change = rng.choice(
        ('none', 'v', 'no rv', 'start', 'no start', 'more', 'text', 'base64', 'padding', 'type', 'null')
    )
    if change == 'v':
        content['v'] = rng.choice(('v2', '', 'meta.k8s.io/v1alpha1'))
    if change == 'no rv':
        del content['rv']
    if change == 'start':
        content['start'] = rng.choice(('', '../x', '/a', 'reads-a/../..', 'reads-a/c\0', 'ä', 'a' * 300))
    if change == 'no start':
        del content['start']
    if change == 'more':
        content['other'] = 1
    if change == 'type':
        content['rv'] = '5'
    text = 'null' if change == 'null' else json.dumps(content)[: 10 if change == 'text' else None]
    found = base64.urlsafe_b64encode(text.encode()).decode()
    if change == 'base64':
        return rng.choice(('x', 'a.b', '!!', found + '!', found.replace('e', '+')))
    return found if change == 'padding' else found.rstrip('=')


def list_pairs(rng, resource, continuation=None):
    """The pairs of a list's query, good and bad."""
    pairs = selected(rng, resource)

    def sometimes(chance, name, values):
        if rng.random() < chance:
            pairs.append((name, rng.choice(values)))

    sometimes(0.5, 'limit', LIMITS[:3] if rng.random() < 0.7 else LIMITS)
    if continuation:
        pairs.append(('continue', continuation))
        sometimes(0.2, 'resourceVersion', VERSIONS)
    else:
        sometimes(0.5, 'resourceVersion', VERSIONS[:5] if rng.random() < 0.7 else VERSIONS)
    sometimes(0.35, 'resourceVersionMatch', MATCHES[:2] if rng.random() < 0.7 else MATCHES)
    sometimes(0.08, 'sendInitialEvents', BOOLEANS)
    sometimes(0.08, 'allowWatchBookmarks', BOOLEANS)
    sometimes(0.12, 'timeoutSeconds', TIMEOUTS)
    sometimes(0.05, 'watch', ('false', '0', '', 'False'))
    sometimes(0.05, 'pretty', BOOLEANS)
    sometimes(0.04, 'includeObject', INCLUDED)
    sometimes(0.03, 'unknown', ('1',))
    sometimes(0.02, 'limit', LIMITS)
    rng.shuffle(pairs)
    return pairs


def list_case(rng, space):
    resource = rng.choice(READ)
    path = place(rng, resource)
    accept = rng.choice(FORMS) if rng.random() < 0.15 else JSON
    # What a cache answers must not depend on how far it has come.
    yield Step('GET', with_query(resource.collection(SPACES[0]), [('limit', 1)]), keep='now', is_quiet=True)
    yield Step('GET', with_query('/api/v1/namespaces', [('limit', 1)]), keep='before', is_quiet=True)
    if rng.random() < 0.4:
        first = [*selected(rng, resource)[1:], ('labelSelector', 'reads=yes'), ('limit', rng.choice((1, 2, 3)))]
        yield Step('GET', with_query(path, first), accept=accept, keep='page')
        yield Step('GET', with_query(path, list_pairs(rng, resource, '$page.continue$')), accept=accept, keep='page')
        if rng.random() < 0.5:
            pairs = [('labelSelector', 'reads=yes'), ('continue', '$page.continue$'), ('limit', 2)]
            yield Step('GET', with_query(place(rng, resource), pairs), accept=accept)
    elif rng.random() < 0.15:
        yield Step('GET', with_query(path, list_pairs(rng, resource, token(rng))), accept=accept)
    elif rng.random() < 0.15:
        pairs = [('resourceVersion', rng.choice(VERSIONS))] if rng.random() < 0.7 else list_pairs(rng, resource)
        yield Step('GET', with_query('%s/%s' % (path, rng.choice(('a', 'none', 'a/status', 'a/b'))), pairs))
    elif rng.random() < 0.1:
        method = rng.choice(('PUT', 'PATCH', 'POST', 'HEAD', 'OPTIONS', 'TRACE', 'BOGUS', 'DELETE'))
        body = rng.choice((None, '{}'))
        target = path + rng.choice(('', '/a', '/', '//a', '/a/', '/a/b/c', '/%2F', '/a%20b', '/..', '/.'))
        if method != 'DELETE':
            yield Step(method, with_query(target, list_pairs(rng, resource)[:2]), body)
    else:
        yield Step('GET', with_query(path, list_pairs(rng, resource)), accept=accept)


def watch_case(rng, space):
    resource = rng.choice([it for it in READ if it.kind not in ('Namespace', 'Node')])
    own = space if resource.namespaced else ''
    path = resource.collection(own)
    yield Step('POST', '/api/v1/namespaces', {'metadata': {'name': space}}, is_quiet=True)
    mine = {'reads': space, 'tier': 'x', 'rank': '1'}
    prefix = '' if own else space + '-'
    if resource.kind == 'Pod':
        account = {'metadata': {'name': 'default'}}
        yield Step('POST', '/api/v1/namespaces/%s/serviceaccounts' % space, account, is_quiet=True)
    for at, name in enumerate(NAMES[:3]):
        labels = {**mine, 'tier': 'xyz'[at]}
        yield Step('POST', path, resource.whole(prefix + name, space, labels, at), keep=name, is_quiet=True)
    yield Step('GET', with_query(path, [('limit', 1)]), keep='now', is_quiet=True)
    pairs = [('timeoutSeconds', rng.choice((2, 3)))]

    def sometimes(chance, name, values):
        if rng.random() < chance:
            pairs.append((name, rng.choice(values)))

    streamed = rng.random() < 0.35
    if streamed and rng.random() < 0.8:
        pairs += [
            ('sendInitialEvents', rng.choice(('true', 'true', 'false'))),
            ('resourceVersionMatch', 'NotOlderThan'),
        ]
        sometimes(0.7, 'allowWatchBookmarks', ('true', 'true', 'false'))
        sometimes(0.5, 'resourceVersion', ('0', '', '$a.rv$', '$now.rv$', '999999999', 'x'))
    else:
        sometimes(0.7, 'resourceVersion', ('0', '$a.rv$', '$b.rv$', '$now.rv$', '1', *VERSIONS))
        sometimes(0.1, 'resourceVersionMatch', MATCHES)
        sometimes(0.1, 'sendInitialEvents', BOOLEANS)
        sometimes(0.25, 'allowWatchBookmarks', BOOLEANS)
    sometimes(0.05, 'limit', LIMITS)
    sometimes(0.05, 'continue', ('x', '', token(rng)))
    sometimes(0.05, 'includeObject', INCLUDED)
    chance = rng.random()
    labels = 'reads=' + space
    if chance < 0.35:
        labels += rng.choice((',tier=x', ',tier!=x', ',tier in (x,y)', ',!other', ',other', ',rank>1'))
    elif chance < 0.4:
        labels = rng.choice(LABELS)
    pairs.append(('labelSelector', labels if own else 'reads=' + space))
    if rng.random() < 0.25:
        field = rng.choice(('metadata.name=%sa', 'metadata.name!=%sa', 'metadata.name=%sd')) % prefix
        if resource.selectable and rng.random() < 0.6:
            field = rng.choice(resource.selectable) + rng.choice(('=', '!=')) + rng.choice(VALUES)
        pairs.append(('fieldSelector', field))
    item = '%s/%s' % (path, prefix + 'a')
    target, old = path, False
    chance = rng.random()
    if chance < 0.1:
        target = item
    elif chance < 0.2 and resource.namespaced:
        target = resource.collection('')
        pairs = [it for it in pairs if it[0] != 'labelSelector'] + [('labelSelector', 'reads=' + space)]
    elif chance < 0.3:
        old = True
        at = len(resource.root)
        target = path[:at] + '/watch' + path[at:] + rng.choice(('', '/' + prefix + 'a'))
    if not old:
        pairs.append(('watch', rng.choice(('true', '1', 'true', '', 'x')) if rng.random() < 0.2 else 'true'))
    rng.shuffle(pairs)
    changes = {
        'color': {'spec': {'color': rng.choice(('green', 'red', 'blue'))}},
        'label': {'metadata': {'labels': {'tier': rng.choice('xyz')}}},
        'other': {'metadata': {'labels': {'other': '1'}}},
        'unlabel': {'metadata': {'labels': {'reads': 'no'}}},
        'relabel': {'metadata': {'labels': {'reads': space}}},
        'note': {'metadata': {'annotations': {'n': str(rng.randrange(9))}}},
    }
    if resource.kind != 'Widget':
        del changes['color']
    writes = []
    for _ in range(rng.randrange(1, 6)):
        name = prefix + rng.choice(NAMES[:4])
        chance = rng.random()
        if chance < 0.25:
            writes.append(Step('POST', path, resource.whole(name, space, {**mine, 'tier': rng.choice('xyz')}, 1)))
        elif chance < 0.45:
            gone = with_query('%s/%s' % (path, name), [('gracePeriodSeconds', 0)])
            writes.append(Step('DELETE', gone))
        else:
            change = rng.choice(sorted(changes.items()))[1]
            writes.append(Step('PATCH', '%s/%s' % (path, name), change, MERGE))
    accept = rng.choice(FORMS) if rng.random() < 0.3 else JSON
    yield Step('GET', with_query(target, pairs), accept=accept, is_watch=True, writes=tuple(writes))
    if not own:
        yield Step('DELETE', with_query(path, [('labelSelector', 'reads=' + space)]), is_quiet=True)


def form_case(rng, space):
    """Answers in other forms."""
    resource = rng.choice(READ)
    pairs = []
    if rng.random() < 0.4:
        pairs.append(('includeObject', rng.choice(INCLUDED)))
    if rng.random() < 0.15:
        pairs.append(('pretty', rng.choice(BOOLEANS)))
    forms = [rng.choice(FORMS) if rng.random() < 0.75 else rng.choice((TABLE, METADATA, METADATA_LIST))]
    if rng.random() < 0.15:
        forms.append(rng.choice(FORMS))
    accept = ','.join(forms)
    headers = (('Accept-Encoding', 'gzip'),) if rng.random() < 0.05 else ()
    chance = rng.random()
    path = place(rng, resource)
    name = 'reads-a0' if resource.kind == 'Namespace' else rng.choice(('a', 'a', 'a', 'none'))
    item = '%s/%s' % (resource.collection(SPACES[0]), name)
    yield Step('GET', with_query(resource.collection(SPACES[0]), [('limit', 1)]), keep='now', is_quiet=True)
    if chance < 0.35:
        more = [('limit', 2)] if rng.random() < 0.3 else []
        more += [('resourceVersion', '0')] if rng.random() < 0.2 else []
        yield Step('GET', with_query(path, [('labelSelector', 'reads=yes'), *pairs, *more]), accept=accept)
    elif chance < 0.6:
        yield Step('GET', with_query(item, pairs), accept=accept, headers=headers)
    elif chance < 0.7:
        pairs += [('watch', 'true'), ('timeoutSeconds', 1), ('labelSelector', 'reads=yes'), ('resourceVersion', '0')]
        yield Step('GET', with_query(path, pairs), accept=accept, is_watch=True)
    elif chance < 0.8:
        body = resource.whole('new', SPACES[0], {'reads': 'no'})
        yield Step('POST', with_query(resource.collection(SPACES[0]), [*pairs, ('dryRun', 'All')]), body, accept=accept)
    elif chance < 0.88:
        body = {'metadata': {'annotations': {'x': 'y'}}}
        yield Step('PATCH', with_query(item, [*pairs, ('dryRun', 'All')]), body, MERGE, accept)
    elif chance < 0.95:
        yield Step('DELETE', with_query(item, [*pairs, ('dryRun', 'All')]), accept=accept)
    else:
        part = rng.choice(('status', 'scale', 'log', 'none'))
        yield Step('GET', with_query('%s/%s' % (item, part), pairs), accept=accept)


def document_paths():
    """Documents about the API, in all forms."""
    plain = (
        '/',
        '/api',
        '/apis',
        '/api/',
        '/apis/',
        '/version',
        '/version/',
        '/openapi/v2',
        '/openapi/v3',
        '/openapi/v3/api/v1',
        '/openapi',
        '/swagger.json',
        '/healthz',
        '/healthz/ping',
        '/livez',
        '/readyz',
        '/livez?verbose',
        '/readyz?exclude=ping',
        '/readyz?exclude=none',
        '/none',
        '/api/v2',
        '/apis/none',
        '/apis/apps/v9',
        '/apis/apps',
        '/.well-known/openid-configuration',
        '/openid/v1/jwks',
        '/logs',
        '/logs/',
        '/ui',
        '/metrics/none',
        '/apis/apps/v1/none',
        '/api/v1/none',
        '/api/v1/namespaces/reads-a/none',
    )
    discoveries = (
        'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
        'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
        'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer',
        'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=x',
        'application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json',
        'application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList',
        'application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
        'application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
        JSON,
        YAML,
        PROTOBUF,
        'application/cbor',
        TABLE,
        'text/html',
        '*/*',
        '',
    )
    openapis = (
        JSON,
        'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
        'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
        'application/com.github.proto-openapi.spec.v3@v1.0+protobuf',
        'application/com.github.proto-openapi.spec.v3.v1.0+protobuf',
        'application/vnd.kubernetes.protobuf',
        YAML,
        'text/plain',
        '*/*',
        'application/*',
    )
    for path in plain:
        yield path, JSON
    for path in ('/api', '/apis', '/apis/apps', '/apis/apps/v1', '/api/v1'):
        for accept in discoveries:
            yield path, accept
    for path in ('/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1', '/version'):
        for accept in openapis:
            yield path, accept
    groups = sorted({resource.version for resource in READ})
    for version in groups:
        yield root(version), JSON
        yield '/openapi/v3' + root(version), JSON
        yield '/apis/' + version.partition('/')[0], JSON


DOCUMENTS = tuple(dict.fromkeys(document_paths()))


def document_case(rng, space):
    path, accept = rng.choice(DOCUMENTS)
    method = 'GET' if rng.random() < 0.9 else rng.choice(('HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'))
    pairs = []
    if rng.random() < 0.1:
        pairs = [rng.choice((('pretty', 'true'), ('hash', 'x'), ('timeout', '5s'), ('timeout', 'x'), ('x', 'y')))]
    headers = ()
    if rng.random() < 0.1:
        headers = (rng.choice((('If-None-Match', '"x"'), ('If-None-Match', '*'), ('Range', 'bytes=0-9'))),)
    yield Step(method, with_query(path, pairs), accept=accept, headers=headers)
