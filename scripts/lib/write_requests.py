"""Random deletions, dry runs and applies, for verification/peers/compare-requests.

Python's standard library is enough.
"""

import json

from answers import JSON, PROTOBUF
from read_requests import READ, Resource
from request_steps import APPLY, JSON_PATCH, MERGE, STRATEGIC, YAML, Step, with_query
from wire import message

UIDS = ('$it.uid$', 'x', '', '00000000-0000-0000-0000-000000000000')
DRY_RUNS = (['All'], ['All', 'All'], [], ['all'], [''], ['All', 'x'], 'All', None)
POLICIES = ('Orphan', 'Foreground', 'Background', 'orphan', '', 'x')
GRACES = (0, 1, 30, -1, 9223372036854775807, '5', 1.5, None, True)
DELETED = ('configmaps', 'pods', 'secrets', 'services', 'serviceaccounts', 'deployments', 'jobs', 'leases', 'widgets')
MANAGERS = ('one', 'two', 'three')


def resource_of(name):
    return next(it for it in READ if it.name == name)


def in_space(space):
    """The namespace of a case, in which pods can be made."""
    yield Step('POST', '/api/v1/namespaces', {'metadata': {'name': space}}, is_quiet=True)
    account = {'metadata': {'name': 'default'}}
    yield Step('POST', '/api/v1/namespaces/%s/serviceaccounts' % space, account, is_quiet=True)


def options(rng):
    """Random options of a deletion as members of a body."""
    found = {}

    def sometimes(chance, name, values):
        if rng.random() < chance:
            found[name] = rng.choice(values)

    sometimes(0.35, 'propagationPolicy', POLICIES[:3] if rng.random() < 0.7 else POLICIES)
    sometimes(0.12, 'orphanDependents', (True, False, 'true', None))
    sometimes(0.35, 'gracePeriodSeconds', GRACES[:3] if rng.random() < 0.7 else GRACES)
    sometimes(0.25, 'dryRun', DRY_RUNS[:1] if rng.random() < 0.6 else DRY_RUNS)
    if rng.random() < 0.3:
        conditions = {}
        if rng.random() < 0.6:
            conditions['uid'] = rng.choice(UIDS[:2] if rng.random() < 0.7 else UIDS)
        if rng.random() < 0.6:
            conditions['resourceVersion'] = rng.choice(('$it.rv$', '$it.rv$', '1', 'x', '', '0'))
        found['preconditions'] = conditions if rng.random() < 0.9 else rng.choice((None, {}, 'x', [], {'other': 1}))
    sometimes(0.03, 'ignoreStoreReadErrorWithClusterBreakingPotential', (True, False))
    sometimes(0.04, 'unknown', (1,))
    if rng.random() < 0.5:
        versions = ('v1', 'v1', 'meta.k8s.io/v1', 'apps/v1', 'batch/v1', 'v2', 'policy/v1', 'example.com/v1', '')
        found['apiVersion'], found['kind'] = rng.choice(versions), 'DeleteOptions'
        if rng.random() < 0.1:
            found['kind'] = rng.choice(('Other', 'Pod', ''))
    return found


def option_pairs(rng):
    pairs = []

    def sometimes(chance, name, values):
        if rng.random() < chance:
            pairs.append((name, rng.choice(values)))

    sometimes(0.3, 'propagationPolicy', POLICIES[:3] if rng.random() < 0.7 else POLICIES)
    sometimes(0.12, 'orphanDependents', ('true', 'false', '', 'x', '1'))
    sometimes(0.3, 'gracePeriodSeconds', ('0', '1', '30') if rng.random() < 0.7 else ('-1', 'x', '', '1.5', '5s'))
    sometimes(0.25, 'dryRun', ('All',) if rng.random() < 0.6 else ('all', '', 'None', 'All,All', 'x'))
    sometimes(0.03, 'dryRun', ('All', 'x'))
    sometimes(0.05, 'preconditions', ('x',))
    sometimes(0.05, 'pretty', ('true',))
    sometimes(0.05, 'fieldValidation', ('Strict', 'Warn', 'x'))
    sometimes(0.03, 'ignoreStoreReadErrorWithClusterBreakingPotential', ('true', 'false', 'x'))
    return pairs


def options_in_protobuf(found):
    """Options of a deletion as bytes of protobuf."""
    fields = []
    if isinstance(found.get('gracePeriodSeconds'), int):
        fields.append((1, found['gracePeriodSeconds'] % 2**64))
    if isinstance(found.get('preconditions'), dict):
        inner = [
            (number, str(found['preconditions'][name]).encode())
            for number, name in ((1, 'uid'), (2, 'resourceVersion'))
            if name in found['preconditions']
        ]
        fields.append((2, message(inner)))
    if 'propagationPolicy' in found:
        fields.append((4, found['propagationPolicy'].encode()))
    for it in found.get('dryRun') or []:
        fields.append((5, it.encode()))
    meta = [(1, str(found.get('apiVersion', 'v1')).encode()), (2, str(found.get('kind', 'DeleteOptions')).encode())]
    return b'k8s\0' + message([(1, message(meta)), (2, message(fields)), (3, b''), (4, b'')])


def option_body(rng):
    """A body and its content type."""
    if rng.random() < 0.35:
        return None, JSON
    found = options(rng)
    chance = rng.random()
    if chance < 0.7:
        return found, JSON
    if chance < 0.8:
        return json.dumps(found), YAML
    if chance < 0.9:
        # What a server alone knows cannot stand in bytes with lengths.
        if '$' in json.dumps(found):
            found.pop('preconditions')
        return options_in_protobuf(found), PROTOBUF
    return rng.choice(
        (
            ('', JSON),
            ('{', JSON),
            ('null', JSON),
            ('[]', JSON),
            ('"x"', JSON),
            ('{}', 'text/plain'),
            ('{}', ''),
            ('{}', 'application/merge-patch+json'),
            ('{} x', JSON),
            ('{"kind":"Status","apiVersion":"v1"}', JSON),
            (b'k8s\0', PROTOBUF),
            (b'x', PROTOBUF),
            (b'', PROTOBUF),
        )
    )


def delete_case(rng, space):
    yield from in_space(space)
    resource = resource_of(rng.choice(DELETED))
    path = resource.collection(space)
    if rng.random() < 0.25:
        yield from delete_collection_steps(rng, space, resource, path)
        return
    metadata = {}
    if rng.random() < 0.35:
        metadata['finalizers'] = rng.choice(
            (
                ['example.com/f'],
                ['foregroundDeletion'],
                ['orphan'],
                ['orphan', 'example.com/f'],
                ['foregroundDeletion', 'orphan'],
            )
        )
    at = rng.randrange(2)
    made = resource.whole('it', space, {'a': 'b'}, at, **metadata)
    if resource.kind == 'Pod':
        made['spec']['terminationGracePeriodSeconds'] = rng.choice((0, 1, 30, 5))
    yield Step('POST', path, made, keep='it')
    item = path + '/it'
    if resource.kind == 'Pod' and rng.random() < 0.4:
        phase = {'status': {'phase': rng.choice(('Running', 'Succeeded', 'Failed'))}}
        yield Step('PATCH', item + '/status', phase, MERGE)
    for _ in range(rng.randrange(1, 4)):
        body, content = option_body(rng)
        accept = rng.choice((JSON, JSON, JSON, JSON, YAML, PROTOBUF))
        yield Step('DELETE', with_query(item, option_pairs(rng)), body, content, accept)
        yield Step('GET', item)
        chance = rng.random()
        if chance < 0.15:
            patch = {'metadata': {'finalizers': rng.choice((None, ['example.com/f'], ['example.com/g'], ['orphan']))}}
            yield Step('PATCH', item, patch, MERGE)
            yield Step('GET', item)
        elif chance < 0.2:
            yield Step('PATCH', item, {'metadata': {'labels': {'x': 'y'}}}, MERGE)
        elif chance < 0.25:
            yield Step('POST', path, made)


def delete_collection_steps(rng, space, resource, path):
    for at in range(4):
        more = {'finalizers': ['example.com/f']} if rng.random() < 0.2 else {}
        labels = {'tier': 'xyz'[at % 3], 'rank': str(at)}
        yield Step('POST', path, resource.whole('abcd'[at], space, labels, at, **more), is_quiet=True)
    pairs = option_pairs(rng)

    def sometimes(chance, name, values):
        if rng.random() < chance:
            pairs.append((name, rng.choice(values)))

    sometimes(0.4, 'labelSelector', ('tier=x', 'tier!=x', 'rank>1', 'tier in (x', 'none', ''))
    sometimes(0.3, 'fieldSelector', ('metadata.name=a', 'metadata.name!=a', 'spec.x=y', 'metadata.name', ''))
    sometimes(0.3, 'limit', ('1', '2', '100', '-1', 'x'))
    sometimes(0.2, 'resourceVersion', ('0', '1', '', 'x', '999999999'))
    sometimes(0.1, 'resourceVersionMatch', ('Exact', 'NotOlderThan', 'x'))
    sometimes(0.05, 'continue', ('x', ''))
    sometimes(0.05, 'timeoutSeconds', ('1', 'x', '0'))
    sometimes(0.05, 'watch', ('true', 'false'))
    sometimes(0.05, 'sendInitialEvents', ('true', 'false'))
    sometimes(0.05, 'allowWatchBookmarks', ('true',))
    body, content = option_body(rng)
    if isinstance(body, dict) and '$' in json.dumps(body):
        body.pop('preconditions')
    yield Step('DELETE', with_query(path, pairs), body, content, rng.choice((JSON, JSON, JSON, YAML)))
    yield Step('GET', path)


WRITTEN = (
    *(it for it in READ if it.kind not in ('Namespace', 'Event') or it.version == 'v1' and it.kind == 'Event'),
    Resource('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', True, ()),
    Resource('v1', 'podtemplates', 'PodTemplate', True, ()),
    Resource('v1', 'limitranges', 'LimitRange', True, ()),
    Resource('v1', 'resourcequotas', 'ResourceQuota', True, ()),
    Resource('v1', 'endpoints', 'Endpoints', True, ()),
    Resource('apps/v1', 'statefulsets', 'StatefulSet', True, ()),
    Resource('apps/v1', 'daemonsets', 'DaemonSet', True, ()),
    Resource('apps/v1', 'controllerrevisions', 'ControllerRevision', True, ()),
    Resource('batch/v1', 'cronjobs', 'CronJob', True, ()),
    Resource('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget', True, ()),
    Resource('networking.k8s.io/v1', 'ingresses', 'Ingress', True, ()),
    Resource('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy', True, ()),
    Resource('rbac.authorization.k8s.io/v1', 'rolebindings', 'RoleBinding', True, ()),
    Resource('discovery.k8s.io/v1', 'endpointslices', 'EndpointSlice', True, ()),
    Resource('scheduling.k8s.io/v1', 'priorityclasses', 'PriorityClass', False, ()),
    Resource('storage.k8s.io/v1', 'csidrivers', 'CSIDriver', False, ()),
    Resource('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim', True, ()),
    Resource('admissionregistration.k8s.io/v1', 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy', False, ()),
)
DRY = ('All', 'All', 'All', 'All', 'all', '', 'None', 'All,All', ' All')
SCALED = ('deployments', 'replicasets', 'statefulsets', 'replicationcontrollers', 'widgets')


def write_pairs(rng):
    pairs = [('dryRun', rng.choice(DRY))]
    if rng.random() < 0.08:
        pairs.append(('dryRun', rng.choice(('All', 'x', ''))))
    if rng.random() < 0.2:
        pairs.append(('fieldManager', rng.choice(('me', '', 'a b', 'x' * 128, 'x' * 129, 'ä', '\u0001'))))
    if rng.random() < 0.25:
        pairs.append(('fieldValidation', rng.choice(('Strict', 'Warn', 'Ignore', '', 'strict', 'x'))))
    if rng.random() < 0.06:
        pairs.append(('force', rng.choice(('true', 'false', '', 'x'))))
    if rng.random() < 0.04:
        pairs.append(('pretty', 'true'))
    if rng.random() < 0.04:
        pairs.append(('timeout', rng.choice(('5s', 'x', '0s', '-1s', ''))))
    rng.shuffle(pairs)
    return pairs


def dry_run_case(rng, space):
    """Dry runs of a verb, and what they must not have done."""
    yield from in_space(space)
    resource = rng.choice(WRITTEN)
    path, name = resource.collection(space), 'it' if resource.namespaced else space
    if resource.kind == 'Widget':
        name = 'it'
    item = '%s/%s' % (path, name)
    made = resource.whole(name, space, {'a': 'b'}, 1)
    yield Step('POST', path, made, keep='it', is_quiet=True)
    for _ in range(rng.randrange(1, 4)):
        pairs = write_pairs(rng)
        accept = rng.choice((JSON, JSON, JSON, JSON, JSON, JSON, YAML, PROTOBUF))
        verb = rng.choice(('create', 'again', 'update', 'merge', 'json', 'strategic', 'apply', 'delete', 'all', 'part'))
        if verb == 'create':
            other = resource.whole('other-' + space, space, {'a': 'b'}, 2)
            if rng.random() < 0.3:
                other['metadata'] = {'generateName': 'gen-'}
            yield Step('POST', with_query(path, pairs), spoilt(rng, other), accept=accept)
        elif verb == 'again':
            yield Step('POST', with_query(path, pairs), spoilt(rng, made), accept=accept)
        elif verb == 'update':
            changed = resource.whole(name, space, {'a': rng.choice('bc')}, 1)
            if rng.random() < 0.5:
                changed['metadata']['resourceVersion'] = rng.choice(('$it.rv$', '$it.rv$', '1', 'x', ''))
            target = item if rng.random() < 0.9 else path + '/none-' + space
            yield Step('PUT', with_query(target, pairs), spoilt(rng, changed), accept=accept)
        elif verb in ('merge', 'strategic'):
            content = MERGE if verb == 'merge' else STRATEGIC
            target = item if rng.random() < 0.9 else path + '/none-' + space
            yield Step('PATCH', with_query(target, pairs), random_patch(rng), content, accept)
        elif verb == 'json':
            yield Step('PATCH', with_query(item, pairs), random_operations(rng), JSON_PATCH, accept)
        elif verb == 'apply':
            applied = resource.whole(name if rng.random() < 0.7 else 'new-' + space, space, {'a': rng.choice('bd')}, 1)
            if not any(it[0] == 'fieldManager' for it in pairs) and rng.random() < 0.9:
                pairs.append(('fieldManager', 'me'))
            target = '%s/%s' % (path, applied['metadata']['name'])
            yield Step('PATCH', with_query(target, pairs), spoilt(rng, applied), APPLY, accept)
        elif verb == 'delete':
            yield Step('DELETE', with_query(item, [*pairs, *option_pairs(rng)]), accept=accept)
        elif verb == 'all':
            selector = [('labelSelector', 'a=b'), ('fieldSelector', 'metadata.name=' + name)]
            yield Step('DELETE', with_query(path, [*selector, *[('dryRun', 'All')], *pairs]), accept=accept)
        else:
            yield from dry_parts(rng, resource, item, pairs)
        yield Step('GET', item)


def dry_parts(rng, resource, item, pairs):
    """Dry runs of a subresource."""
    if resource.name in SCALED and rng.random() < 0.5:
        scale = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'spec': {'replicas': rng.choice((0, 3, -1, 'x'))}}
        if rng.random() < 0.5:
            scale['metadata'] = {'name': 'it', **({'resourceVersion': '$it.rv$'} if rng.random() < 0.5 else {})}
        if rng.random() < 0.5:
            yield Step('PUT', with_query(item + '/scale', pairs), scale)
        else:
            yield Step('PATCH', with_query(item + '/scale', pairs), {'spec': scale['spec']}, MERGE)
        return
    if resource.kind == 'Pod' and rng.random() < 0.7:
        part = rng.choice(('eviction', 'binding', 'ephemeralcontainers', 'resize', 'log', 'exec'))
        body = {
            'eviction': {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': 'it'}},
            'binding': {'apiVersion': 'v1', 'kind': 'Binding', 'metadata': {'name': 'it'}, 'target': {'name': 'n'}},
            'ephemeralcontainers': {'spec': {'ephemeralContainers': [{'name': 'e', 'image': 'i'}]}},
            'resize': {'spec': {'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '2'}}}]}},
        }.get(part)
        if part == 'eviction' and rng.random() < 0.5:
            body['deleteOptions'] = options(rng)
        if part in ('eviction', 'binding'):
            yield Step('POST', with_query('%s/%s' % (item, part), pairs), body)
        elif body:
            yield Step('PATCH', with_query('%s/%s' % (item, part), pairs), body, STRATEGIC)
        return
    if resource.kind == 'ServiceAccount':
        body = {'spec': {'audiences': ['a'], 'expirationSeconds': rng.choice((600, 5, 10**9))}}
        yield Step('POST', with_query(item + '/token', pairs), body)
        return
    body = {'status': {'conditions': [], 'phase': 'x', 'replicas': 1}, 'metadata': {'labels': {'s': 't'}}}
    yield Step('PATCH', with_query(item + '/status', pairs), body, rng.choice((MERGE, STRATEGIC)))


def spoilt(rng, tree):
    """A tree with a change in some of its members, or as it is."""
    tree = json.loads(json.dumps(tree))
    chance = rng.random()
    if chance < 0.7:
        return tree
    member = rng.choice(
        ('apiVersion', 'kind', 'metadata', 'spec', 'data', 'unknown', 'name', 'namespace', 'labels', 'uid')
    )
    value = rng.choice((None, 'x', 5, [], {}, '', True))
    if member in ('name', 'namespace', 'labels', 'uid'):
        tree['metadata'][member] = value
    elif rng.random() < 0.4:
        tree.pop(member, None)
    else:
        tree[member] = value
    return tree


def random_patch(rng):
    return rng.choice(
        (
            {},
            {'metadata': {'labels': {'p': 'q'}}},
            {'metadata': {'labels': None}},
            {'metadata': {'labels': {'a': None}}},
            {'metadata': {'annotations': {'x': 'y' * 10}}},
            {'metadata': {'finalizers': ['example.com/f']}},
            {'metadata': {'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p', 'uid': 'u'}]}},
            {'metadata': {'resourceVersion': '1'}},
            {'metadata': {'resourceVersion': '$it.rv$', 'uid': '$it.uid$', 'labels': {'z': 'z'}}},
            {'metadata': {'uid': 'x'}},
            {'metadata': {'name': 'x'}},
            {'metadata': {'creationTimestamp': None}},
            {'metadata': {'deletionTimestamp': '2020-01-01T00:00:00Z'}},
            {'metadata': {'generation': 7}},
            {'metadata': {'managedFields': []}},
            {'metadata': {'managedFields': [{}]}},
            {'metadata': None},
            {'metadata': 'x'},
            {'kind': 'x'},
            {'apiVersion': 'x/v1'},
            {'kind': None},
            {'spec': None},
            {'spec': {}},
            {'spec': {'unknown': 1}},
            {'status': {'x': 1}},
            {'unknown': 1},
            {'$patch': 'delete'},
            {'$patch': 'replace'},
            {'metadata': {'$patch': 'x'}},
            {'metadata': {'$retainKeys': ['labels'], 'labels': {'r': 's'}}},
            {'metadata': {'$setElementOrder/finalizers': ['a/b']}},
            {'metadata': {'$deleteFromPrimitiveList/finalizers': ['a/b']}},
            '[]',
            'null',
            '"x"',
            '5',
            '',
            '{',
            '{"metadata":{"labels":{"a":"1","a":"2"}}}',
            '{"metadata":{"labels":{"a":5}}}',
            '{"metadata":{"labels":{"a":"1"}}} x',
        )
    )


def random_operations(rng):
    paths = (
        '/metadata/labels/p',
        '/metadata/labels/a',
        '/metadata/labels',
        '/metadata/annotations/x',
        '/metadata/finalizers/-',
        '/metadata/finalizers/0',
        '/metadata/name',
        '/none',
        '/spec/none/x',
        '',
        '/',
        'x',
        '/metadata/labels/a~1b',
        '/metadata/labels/a~0b',
        '/metadata/labels/a~2b',
    )
    found = []
    for _ in range(rng.randrange(4)):
        kind = rng.choice(('add', 'add', 'remove', 'replace', 'move', 'copy', 'test', 'x', ''))
        it = {'op': kind, 'path': rng.choice(paths)}
        if kind in ('add', 'replace', 'test') or rng.random() < 0.1:
            it['value'] = rng.choice(('q', 'b', None, {}, {'a': 'b'}, [], 5, ['example.com/f']))
        if kind in ('move', 'copy'):
            it['from'] = rng.choice(paths)
        if rng.random() < 0.05:
            it.pop(rng.choice(sorted(it)))
        if rng.random() < 0.05:
            it['other'] = 1
        found.append(it)
    if rng.random() < 0.08:
        return rng.choice(('{}', 'null', '[null]', '[1]', '"x"', '[', '', '[{}]', '[[]]'))
    return found


def content_of_map(rng):
    found = {}
    if rng.random() < 0.8:
        found['data'] = {name: rng.choice('12') for name in 'abc' if rng.random() < 0.6}
    if rng.random() < 0.2:
        found['immutable'] = rng.choice((True, False))
    if rng.random() < 0.2:
        found['binaryData'] = {'z': rng.choice(('AAEC', 'AA=='))}
    return found


def container(rng, name):
    found = {'name': name, 'image': rng.choice(('i', 'j'))}
    if rng.random() < 0.4:
        found['env'] = [{'name': it, 'value': rng.choice('12')} for it in 'AB' if rng.random() < 0.6]
    if rng.random() < 0.4:
        found['ports'] = [
            {'containerPort': it, **({'protocol': 'UDP'} if rng.random() < 0.2 else {})}
            for it in (80, 81)
            if rng.random() < 0.6
        ]
    if rng.random() < 0.3:
        found['resources'] = {'requests': {'cpu': rng.choice(('1', '1000m', '2'))}}
    if rng.random() < 0.2:
        found['args'] = rng.choice((['a'], ['a', 'b'], []))
    if rng.random() < 0.15:
        found['command'] = None
    return found


def content_of_deployment(rng):
    spec = {'selector': {'matchLabels': {'app': 'a'}}}
    if rng.random() < 0.5:
        spec['replicas'] = rng.choice((1, 2))
    if rng.random() < 0.3:
        spec['strategy'] = rng.choice(({'type': 'Recreate'}, {'rollingUpdate': {'maxSurge': rng.choice((1, '10%'))}}))
    containers = [container(rng, it) for it in 'cd' if rng.random() < 0.6] or [container(rng, 'c')]
    spec['template'] = {'metadata': {'labels': {'app': 'a'}}, 'spec': {'containers': containers}}
    if rng.random() < 0.3:
        spec['template']['spec']['tolerations'] = [{'key': rng.choice('kl'), 'operator': 'Exists'}]
    if rng.random() < 0.2:
        spec['template']['spec']['nodeSelector'] = {rng.choice('kl'): 'v'}
    return {'spec': spec}


def content_of_service(rng):
    ports = [
        {'name': it, 'port': at + 80, **({'targetPort': rng.choice((8080, 'web'))} if rng.random() < 0.4 else {})}
        for at, it in enumerate('pq')
        if rng.random() < 0.6
    ] or [{'name': 'p', 'port': 80}]
    spec = {'ports': ports}
    if rng.random() < 0.4:
        spec['selector'] = {rng.choice('kl'): rng.choice('vw')}
    if rng.random() < 0.2:
        spec['sessionAffinity'] = rng.choice(('ClientIP', 'None'))
    return {'spec': spec}


def content_of_widget(rng):
    spec = {}
    for name, values in (('size', (1, 2, None)), ('color', ('red', 'blue', None)), ('ready', (True, False))):
        if rng.random() < 0.5:
            spec[name] = rng.choice(values)
    if rng.random() < 0.1:
        spec['unknown'] = 1
    return {'spec': spec} if rng.random() < 0.9 else {}


def content_of_role(rng):
    return {'rules': [{'apiGroups': [''], 'resources': [rng.choice(('pods', 'nodes'))], 'verbs': ['get']}]}


def content_of_claim(rng):
    spec = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': rng.choice(('1Gi', '1024Mi'))}}}
    if rng.random() < 0.3:
        spec['storageClassName'] = rng.choice(('', 's'))
    return {'spec': spec}


def content_of_node(rng):
    spec = {}
    if rng.random() < 0.6:
        spec['taints'] = [
            {'key': it, 'effect': 'NoSchedule', **({'value': 'v'} if rng.random() < 0.5 else {})}
            for it in 'kl'
            if rng.random() < 0.6
        ]
    if rng.random() < 0.4:
        spec['unschedulable'] = rng.choice((True, False))
    return {'spec': spec}


APPLIED = (
    ('configmaps', content_of_map),
    ('deployments', content_of_deployment),
    ('services', content_of_service),
    ('widgets', content_of_widget),
    ('roles', content_of_role),
    ('persistentvolumeclaims', content_of_claim),
    ('nodes', content_of_node),
)
STATUSES = {
    'deployments': ({'replicas': 1}, {'readyReplicas': 1}, {'conditions': [{'type': 'A', 'status': 'True'}]}),
    'services': ({'loadBalancer': {'ingress': [{'ip': '1.2.3.4'}]}}, {'loadBalancer': {}}),
    'widgets': ({'size': 1}, {'a': {'b': [1]}}, {}),
    'nodes': ({'phase': 'Running'}, {'capacity': {'cpu': '1'}}),
    'persistentvolumeclaims': ({'phase': 'Bound'},),
}


def labels(rng):
    found = {}
    if rng.random() < 0.4:
        found['labels'] = {it: rng.choice('12') for it in 'xy' if rng.random() < 0.6}
    if rng.random() < 0.2:
        found['annotations'] = {it: rng.choice('12') for it in 'xy' if rng.random() < 0.6}
    if rng.random() < 0.15:
        found['finalizers'] = [it for it in ('example.com/f', 'example.com/g') if rng.random() < 0.6]
    if rng.random() < 0.1:
        reference = {'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p', 'uid': rng.choice('uv')}
        found['ownerReferences'] = [{**reference, **({'controller': True} if rng.random() < 0.3 else {})}]
    return found


def apply_case(rng, space):
    """Writes of one object by several managers."""
    yield from in_space(space)
    name, make = rng.choice(APPLIED)
    resource = next(it for it in WRITTEN if it.name == name)
    path = resource.collection(space)
    called = 'it' if resource.namespaced else space
    item = '%s/%s' % (path, called)
    place = {'namespace': space} if resource.namespaced else {}

    def whole(content):
        meta = {'name': called, **place, **labels(rng)}
        return {'apiVersion': resource.version, 'kind': resource.kind, 'metadata': meta, **content}

    if rng.random() < 0.3:
        yield Step('POST', with_query(path, [('fieldManager', rng.choice(MANAGERS))]), whole(make(rng)), keep='it')
    for _ in range(rng.randrange(2, 7)):
        pairs = [('fieldManager', rng.choice(MANAGERS))]
        if rng.random() < 0.1:
            pairs.append(('dryRun', 'All'))
        chance = rng.random()
        if chance < 0.6:
            body = whole(make(rng)) if rng.random() < 0.9 else whole({})
            if rng.random() < 0.35:
                pairs.append(('force', 'true'))
            if rng.random() < 0.06:
                body = spoilt(rng, body)
            if rng.random() < 0.04:
                body['metadata'].update(
                    rng.choice(({'uid': 'x'}, {'resourceVersion': '1'}, {'resourceVersion': '$it.rv$'}))
                )
            yield Step('PATCH', with_query(item, pairs), body, APPLY, keep='it')
        elif chance < 0.7:
            body = whole(make(rng))
            if rng.random() < 0.3:
                body['metadata']['resourceVersion'] = '$it.rv$'
            if rng.random() < 0.1:
                body['metadata']['managedFields'] = rng.choice(([], [{}], None))
            yield Step('PUT', with_query(item, pairs), body, keep='it')
        elif chance < 0.8:
            body = {**make(rng), 'metadata': labels(rng)}
            content = rng.choice((MERGE, STRATEGIC))
            yield Step('PATCH', with_query(item, pairs), body, content, keep='it')
        elif chance < 0.92 and name in STATUSES:
            body = {'status': rng.choice(STATUSES[name])}
            if rng.random() < 0.6:
                yield Step('PATCH', with_query(item + '/status', pairs), whole(body), APPLY, keep='it')
            else:
                yield Step('PATCH', with_query(item + '/status', pairs), body, MERGE, keep='it')
        elif name in SCALED and name != 'widgets':
            # kube-apiserver fails at the scale of a custom resource that is applied.
            scale = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': called}}
            scale['spec'] = {'replicas': rng.choice((1, 2, 3))}
            if rng.random() < 0.5:
                pairs.append(('force', 'true'))
            yield Step('PATCH', with_query(item + '/scale', pairs), scale, APPLY)
            yield Step('GET', item, keep='it')
        elif name == 'configmaps':
            yield Step('PATCH', with_query(item, pairs), random_operations(rng), JSON_PATCH, keep='it')
    yield Step('GET', item)
    if not resource.namespaced:
        yield Step('PATCH', item, {'metadata': {'finalizers': None}}, MERGE, is_quiet=True)
        yield Step('DELETE', item, is_quiet=True)
