"""Random quotas, limit ranges, roles and reviews of access, for verification/peers/compare-requests.

Python's standard library is enough.
"""

from answers import JSON, root
from request_steps import MERGE, STRATEGIC, YAML, Step, with_query
from write_requests import in_space

RBAC = 'rbac.authorization.k8s.io'
REVIEWS = '/apis/authorization.k8s.io/v1/'
AUTHENTICATION = '/apis/authentication.k8s.io/v1/'
# Seconds until what follows quotas, limit ranges and roles has seen them.
SEEN_SECONDS = 0.4
COUNTED = (
    'pods',
    'count/pods',
    'configmaps',
    'count/configmaps',
    'services',
    'services.nodeports',
    'services.loadbalancers',
    'secrets',
    'persistentvolumeclaims',
    'requests.storage',
    's.storageclass.storage.k8s.io/requests.storage',
    's.storageclass.storage.k8s.io/persistentvolumeclaims',
    'cpu',
    'memory',
    'requests.cpu',
    'limits.cpu',
    'requests.memory',
    'limits.memory',
    'requests.ephemeral-storage',
    'requests.example.com/gpu',
    'count/deployments.apps',
    'count/jobs.batch',
    'count/widgets.reads.example.com',
    'resourcequotas',
    'replicationcontrollers',
)
QUANTITIES = {
    'cpu': ('100m', '1', '1500m', '2', '0', '0.5'),
    'memory': ('100Mi', '1Gi', '128M', '0', '1024'),
    'ephemeral-storage': ('1Gi', '2Gi'),
    'storage': ('1Gi', '2Gi', '500Mi'),
    'example.com/gpu': ('1', '2'),
}
SCOPES = ('BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'PriorityClass', 'CrossNamespacePodAffinity')


def quantities(rng, names, chance=0.5):
    return {name: rng.choice(QUANTITIES[name]) for name in names if rng.random() < chance}


def quota(rng, name):
    hard = {}
    for counted in rng.sample(COUNTED, rng.randrange(1, 4)):
        kind = next((it for it in QUANTITIES if counted.endswith(it)), None)
        hard[counted] = rng.choice(QUANTITIES[kind]) if kind else rng.choice(('0', '1', '2', '5'))
    spec = {'hard': hard}
    if rng.random() < 0.3:
        spec['scopes'] = [rng.choice(SCOPES)]
        if rng.random() < 0.7:
            spec['hard'] = {'pods': rng.choice(('0', '1', '2'))}
    elif rng.random() < 0.15:
        operator = rng.choice(('In', 'NotIn', 'Exists', 'DoesNotExist'))
        selector = {'scopeName': 'PriorityClass', 'operator': operator}
        if operator in ('In', 'NotIn'):
            selector['values'] = rng.choice((['system-cluster-critical'], ['a', 'b']))
        spec = {'hard': {'pods': rng.choice(('0', '1'))}, 'scopeSelector': {'matchExpressions': [selector]}}
    return {'metadata': {'name': name}, 'spec': spec}


def limits(rng):
    found = []
    for kind in ('Container', 'Pod', 'PersistentVolumeClaim'):
        if rng.random() > 0.5 and kind != 'Container':
            continue
        names = ('storage',) if kind == 'PersistentVolumeClaim' else ('cpu', 'memory')
        it = {'type': kind}
        for member in ('min', 'max', *(('default', 'defaultRequest') if kind == 'Container' else ())):
            if rng.random() < 0.5:
                it[member] = quantities(rng, names)
        if kind != 'PersistentVolumeClaim' and rng.random() < 0.2:
            it['maxLimitRequestRatio'] = {'cpu': rng.choice(('1', '2', '1.5'))}
        found.append(it)
    return {'metadata': {'name': 'l'}, 'spec': {'limits': found}}


def pod(rng, name):
    containers = []
    for at in range(rng.randrange(1, 3)):
        resources = {}
        if rng.random() < 0.6:
            resources['requests'] = quantities(rng, ('cpu', 'memory', 'ephemeral-storage'))
        if rng.random() < 0.5:
            resources['limits'] = quantities(rng, ('cpu', 'memory', 'example.com/gpu'), 0.4)
        containers.append({'name': 'c%d' % at, 'image': 'i', 'resources': resources})
    spec = {'containers': containers, 'automountServiceAccountToken': False}
    if rng.random() < 0.2:
        spec['initContainers'] = [
            {'name': 'i', 'image': 'i', 'resources': {'requests': quantities(rng, ('cpu', 'memory'))}}
        ]
        if rng.random() < 0.4:
            spec['initContainers'][0]['restartPolicy'] = 'Always'
    if rng.random() < 0.2:
        spec['activeDeadlineSeconds'] = 5
    if rng.random() < 0.15:
        spec['overhead'] = {'cpu': '1'}
    if rng.random() < 0.2:
        spec['priorityClassName'] = rng.choice(('system-cluster-critical', 'none'))
    if rng.random() < 0.15:
        spec['resources'] = {'requests': quantities(rng, ('cpu', 'memory'))}
    if rng.random() < 0.15:
        term = {'topologyKey': 'k', 'labelSelector': {}, 'namespaces': ['x']}
        spec['affinity'] = {'podAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [term]}}
    return {'metadata': {'name': name}, 'spec': spec}


def claim(rng, name):
    requests = {'storage': rng.choice(QUANTITIES['storage'])}
    spec = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': requests}}
    if rng.random() < 0.4:
        spec['storageClassName'] = rng.choice(('s', ''))
    return {'metadata': {'name': name}, 'spec': spec}


def service(rng, name):
    kind = rng.choice(('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'))
    spec = {'type': kind, 'ports': [{'port': 80}]}
    if kind == 'ExternalName':
        spec = {'type': kind, 'externalName': 'x.example.com'}
    if kind == 'LoadBalancer' and rng.random() < 0.4:
        spec['allocateLoadBalancerNodePorts'] = False
    return {'metadata': {'name': name}, 'spec': spec}


def admission_case(rng, space):
    """Objects that quotas and limit ranges judge."""
    yield from in_space(space)
    core = '/api/v1/namespaces/%s/' % space
    if rng.random() < 0.75:
        for name in ('q', 'r')[: rng.randrange(1, 3)]:
            made = quota(rng, name)
            yield Step('POST', core + 'resourcequotas', made)
            if rng.random() < 0.9:
                hard = made['spec']['hard']
                status = {'hard': hard, 'used': dict.fromkeys(hard, '0')}
                yield Step('PATCH', core + 'resourcequotas/%s/status' % name, {'status': status}, MERGE, is_quiet=True)
    if rng.random() < 0.6:
        yield Step('POST', core + 'limitranges', limits(rng))
    yield Step('GET', core + 'limitranges', is_quiet=True)
    pause = SEEN_SECONDS
    for at in range(rng.randrange(2, 6)):
        name = 'abcde'[at]
        pairs = [('dryRun', 'All')] if rng.random() < 0.15 else []
        kind = rng.choice(
            (
                'pods',
                'pods',
                'pods',
                'persistentvolumeclaims',
                'services',
                'configmaps',
                'secrets',
                'deployments',
                'widgets',
                'part',
            )
        )
        if kind == 'part':
            patch = {'spec': {'containers': [{'name': 'c0', 'resources': {'requests': quantities(rng, ('cpu',), 1)}}]}}
            yield Step('PATCH', with_query(core + 'pods/a/resize', pairs), patch, STRATEGIC, pause=pause)
        else:
            body = {'pods': pod, 'persistentvolumeclaims': claim, 'services': service}.get(
                kind, lambda rng, name: {'metadata': {'name': name}}
            )(rng, name)
            place = core
            if kind == 'deployments':
                place = '/apis/apps/v1/namespaces/%s/' % space
                template = {'metadata': {'labels': {'a': 'b'}}, 'spec': pod(rng, 'x')['spec']}
                template['spec'].pop('activeDeadlineSeconds', None)
                body['spec'] = {'selector': {'matchLabels': {'a': 'b'}}, 'template': template}
            if kind == 'widgets':
                place = '/apis/reads.example.com/v1/namespaces/%s/' % space
                body.update({'apiVersion': 'reads.example.com/v1', 'kind': 'Widget'})
            yield Step('POST', with_query(place + kind, pairs), body, pause=pause)
            if kind == 'services' and rng.random() < 0.4:
                patch = {'spec': {'type': rng.choice(('NodePort', 'ClusterIP', 'LoadBalancer'))}}
                yield Step('PATCH', core + 'services/' + name, patch, MERGE)
            if kind == 'persistentvolumeclaims' and rng.random() < 0.3:
                patch = {'spec': {'resources': {'requests': {'storage': '3Gi'}}}}
                yield Step('PATCH', core + 'persistentvolumeclaims/' + name, patch, MERGE)
        pause = 0
    yield Step('GET', core + 'resourcequotas')


USERS = ('ann', 'bob', 'system:serviceaccount:%s:default', '', 'system:anonymous', 'admin', 'system:node:n')
GROUPS = (
    'devs',
    'system:masters',
    'system:authenticated',
    'system:unauthenticated',
    'system:serviceaccounts',
    'system:nodes',
)
VERBS = ('get', 'list', 'create', 'update', 'delete', '*', 'bind', 'escalate', 'impersonate', 'watch', 'GET', '')
NAMED = (
    'pods',
    'pods/log',
    'pods/*',
    '*',
    '*/log',
    'configmaps',
    'secrets',
    'nodes',
    'deployments',
    'deployments/scale',
    'none',
)


def rule(rng):
    if rng.random() < 0.12:
        urls = rng.choice((['/healthz'], ['/healthz/*'], ['*'], ['/x', '/y*']))
        return {'nonResourceURLs': urls, 'verbs': rng.sample(VERBS[:4], 2)}
    found = {
        'apiGroups': rng.choice(([''], ['apps'], ['*'], ['', 'apps'], ['x'])),
        'resources': rng.sample(NAMED, rng.randrange(1, 3)),
        'verbs': rng.sample(VERBS[:10], rng.randrange(1, 4)),
    }
    if rng.random() < 0.2:
        found['resourceNames'] = rng.choice((['a'], ['a', 'b'], ['']))
    if rng.random() < 0.05:
        found.pop(rng.choice(sorted(found)))
    return found


def subject(rng, space):
    kind = rng.choice(('User', 'Group', 'ServiceAccount', 'User', 'Other'))
    found = {'kind': kind, 'name': rng.choice(USERS[:2] if kind == 'User' else ('devs', 'default'))}
    if kind == 'ServiceAccount':
        if rng.random() < 0.85:
            found['namespace'] = space
    elif rng.random() < 0.9:
        found['apiGroup'] = RBAC
    return found


def resource_attributes(rng, space):
    found = {
        'namespace': rng.choice((space, space, '', 'x')),
        'verb': rng.choice(VERBS),
        'group': rng.choice(('', 'apps', '*', 'x')),
        'resource': rng.choice([it.split('/')[0] for it in NAMED]),
    }
    if rng.random() < 0.2:
        found['subresource'] = rng.choice(('log', 'scale', '*'))
    if rng.random() < 0.3:
        found['name'] = rng.choice(('a', 'b', 'c'))
    if rng.random() < 0.2:
        found['version'] = rng.choice(('v1', '*'))
    if rng.random() < 0.15:
        requirement = {'key': 'k', 'operator': rng.choice(('In', 'Exists', 'x')), 'values': rng.choice((['a'], []))}
        name = rng.choice(('labelSelector', 'fieldSelector'))
        found[name] = rng.choice(
            ({'requirements': [requirement]}, {'rawSelector': 'a=b'}, {'rawSelector': '(', 'requirements': []}, {})
        )
        if rng.random() < 0.3:
            found[name].update({'rawSelector': 'a=b', 'requirements': [requirement]})
    for name in sorted(found):
        if rng.random() < 0.06:
            del found[name]
    return found


def access_spec(rng, space):
    spec = {}
    if rng.random() < 0.9:
        spec['resourceAttributes'] = resource_attributes(rng, space)
    if rng.random() < 0.2:
        spec['nonResourceAttributes'] = {
            'path': rng.choice(('/healthz', '/x', '/healthz/ping', '')),
            'verb': rng.choice(VERBS),
        }
        if rng.random() < 0.8:
            spec.pop('resourceAttributes', None)
    return spec


def user_spec(rng, space):
    spec = {}
    if rng.random() < 0.85:
        user = rng.choice(USERS)
        spec['user'] = user % space if '%' in user else user
    if rng.random() < 0.5:
        spec['groups'] = rng.sample(GROUPS, rng.randrange(1, 3))
    if rng.random() < 0.1:
        spec['extra'] = rng.choice(({'k': ['v']}, {'K': []}, {}))
    if rng.random() < 0.1:
        spec['uid'] = 'u'
    return spec


def impersonation(rng, space):
    user = rng.choice(USERS)
    headers = [('Impersonate-User', user % space if '%' in user else user)]
    if rng.random() < 0.4:
        headers.append(('Impersonate-Group', rng.choice(GROUPS)))
    if rng.random() < 0.1:
        headers.append(('Impersonate-Extra-Scopes', rng.choice(('a', 'b'))))
    if rng.random() < 0.06:
        headers.append(('Impersonate-Uid', 'u'))
    if rng.random() < 0.06:
        headers = headers[1:]
    return tuple(headers)


def review_case(rng, space):
    """Roles, reviews of access under them, and what their users may do."""
    yield from in_space(space)
    roles = '%s/namespaces/%s/' % (root(RBAC + '/v1'), space)
    anywhere = root(RBAC + '/v1') + '/'
    made = []
    for at in range(rng.randrange(0, 3)):
        wide = rng.random() < 0.3
        name = '%s-%d' % (space, at) if wide else 'r%d' % at
        rules = [rule(rng) for _ in range(rng.randrange(0, 3))]
        place = anywhere + 'clusterroles' if wide else roles + 'roles'
        yield Step('POST', place, {'metadata': {'name': name}, 'rules': rules})
        kind = 'ClusterRole' if wide else 'Role'
        reference = {'kind': kind, 'name': name, 'apiGroup': RBAC}
        if rng.random() < 0.15:
            reference = rng.choice(
                (
                    {**reference, 'name': 'none'},
                    {**reference, 'kind': 'Other'},
                    {'kind': 'ClusterRole', 'name': 'view', 'apiGroup': RBAC},
                )
            )
        subjects = [subject(rng, space) for _ in range(rng.randrange(1, 3))]
        body = {'metadata': {'name': name}, 'subjects': subjects, 'roleRef': reference}
        wide_binding = wide and rng.random() < 0.5
        yield Step('POST', anywhere + 'clusterrolebindings' if wide_binding else roles + 'rolebindings', body)
        made += [place + '/' + name] * wide
        made += [anywhere + 'clusterrolebindings/' + name] * wide_binding
    pause = SEEN_SECONDS
    for _ in range(rng.randrange(2, 6)):
        yield review_step(rng, space, roles, anywhere)._replace(pause=pause)
        pause = 0
    for path in made:
        yield Step('DELETE', path, is_quiet=True)


def review_step(rng, space, roles, anywhere):
    chance = rng.random()
    headers = impersonation(rng, space) if rng.random() < 0.5 else ()
    accept = rng.choice((JSON, JSON, JSON, JSON, JSON, JSON, YAML))
    pairs = (
        [rng.choice((('dryRun', 'All'), ('pretty', 'true'), ('fieldValidation', 'Strict')))]
        if rng.random() < 0.1
        else []
    )

    def review(path, kind, spec, version='authorization.k8s.io/v1', **metadata):
        body = {'apiVersion': version, 'kind': kind, 'spec': spec}
        if metadata or rng.random() < 0.2:
            body['metadata'] = metadata or rng.choice(({}, {'name': 'x'}, {'labels': {'a': 'b'}}, {'namespace': space}))
        if rng.random() < 0.05:
            body[rng.choice(('kind', 'apiVersion', 'unknown', 'status'))] = rng.choice(('x', {}, None))
        return Step('POST', with_query(path, pairs), body, accept=accept, headers=headers)

    if chance < 0.3:
        spec = {**user_spec(rng, space), **access_spec(rng, space)}
        return review(REVIEWS + 'subjectaccessreviews', 'SubjectAccessReview', spec)
    if chance < 0.4:
        spec = {**user_spec(rng, space), **access_spec(rng, space)}
        path = REVIEWS + 'namespaces/%s/localsubjectaccessreviews' % rng.choice((space, space, 'none'))
        return review(path, 'LocalSubjectAccessReview', spec, namespace=rng.choice((space, space, 'x', '')))
    if chance < 0.5:
        return review(REVIEWS + 'selfsubjectaccessreviews', 'SelfSubjectAccessReview', access_spec(rng, space))
    if chance < 0.57:
        spec = {'namespace': rng.choice((space, space, '', 'none'))}
        return review(REVIEWS + 'selfsubjectrulesreviews', 'SelfSubjectRulesReview', spec)
    if chance < 0.62:
        return review(AUTHENTICATION + 'selfsubjectreviews', 'SelfSubjectReview', {}, 'authentication.k8s.io/v1')
    if chance < 0.68:
        spec = {
            'token': rng.choice(('token', 'x', '', 'a.b.c', 'token2')),
            'audiences': rng.choice(([], ['a'], ['https://kubernetes.default.svc'])),
        }
        return review(AUTHENTICATION + 'tokenreviews', 'TokenReview', spec, 'authentication.k8s.io/v1')
    if chance < 0.75:
        user = (('Impersonate-User', rng.choice(USERS[:2])), ('Impersonate-Group', 'devs'))
        body = {'metadata': {'name': 'new'}, 'rules': [rule(rng) for _ in range(rng.randrange(1, 3))]}
        return Step('POST', roles + 'roles', body, headers=user)
    if chance < 0.85:
        reference = {
            'kind': rng.choice(('ClusterRole', 'Role')),
            'name': rng.choice(('view', 'admin', 'r0', 'none')),
            'apiGroup': RBAC,
        }
        body = {'metadata': {'name': 'new'}, 'subjects': [subject(rng, space)], 'roleRef': reference}
        user = (('Impersonate-User', rng.choice(USERS[:2])),)
        return Step('POST', roles + 'rolebindings', body, headers=user if rng.random() < 0.6 else ())
    path = rng.choice(
        (
            '/api/v1/namespaces/%s/pods' % space,
            '/api/v1/namespaces/%s/pods/a/log' % space,
            '/api/v1/nodes',
            '/healthz',
            '/apis',
            '/x',
            '/apis/apps/v1/namespaces/%s/deployments/a/scale' % space,
            '/api/v1/namespaces/%s/configmaps/a' % space,
        )
    )
    return Step(
        rng.choice(('GET', 'GET', 'DELETE', 'PUT', 'POST')), path, headers=headers or (('Impersonate-User', 'ann'),)
    )
