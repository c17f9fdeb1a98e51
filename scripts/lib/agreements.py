"""What the servers of a fleet must agree on, as functions that go from one to the other and say what they have seen.

Each takes a fleet: `replicas`, `etcd` and `events`. It returns what it has shown, or raises a Disagreement.
Python's standard library is enough.
"""

import concurrent.futures
import json
import time

from answers import JSON, MAGIC, PROTOBUF, fields
from etcd_cluster import until
from http2 import DATA, GOAWAY, Connection
from witnesses import ANSWER_SECONDS_MAX, AWAY, Client, Witnesses

CORE = '/api/v1/namespaces/default'
LISTED = 200
PAGE = 15
# So many watches of each watcher, one after the other, and the time for all of them.
WATCHES = 20
MOVES_SECONDS_MAX = 60
SERVICES = 30
RENEWALS = 30
# How soon a server must do as another was told.
EFFECTIVE_SECONDS_MAX = 10
LOOK_SECONDS = 0.01
# At the highest chance of GOAWAY, 0.02, so many requests without one are a chance in 10^17.
REQUESTS_MAX = 2000
# Endpoints that servers do not agree on would be written every ten seconds.
STILL_SECONDS = 22


class Disagreement(Exception):
    """The servers of a fleet do not agree."""


def ask(server, method, path, body=None, expected=(200, 201), **options):
    """Asks a server once over a connection of its own. Returns the answer, decoded if it is JSON."""
    client = Client(options.pop('token', 'token'))
    try:
        code, answer = client.ask(server, method, path, body, **options)
    finally:
        client.close()
    if code not in expected:
        raise Disagreement(
            '%s answers %s %s with %d: %s' % (server.name, method, path, code, answer[:300].decode(errors='replace'))
        )
    return json.loads(answer) if answer[:1] == b'{' else answer


def code_of(server, method, path, body=None, token='token'):
    client = Client(token)
    try:
        return client.ask(server, method, path, body)[0]
    finally:
        client.close()


def demand(condition, what, *values):
    if not condition:
        raise Disagreement(what % values if values else what)


def turns(servers):
    """Gives the servers one after the other, for ever."""
    while True:
        yield from servers


def config_map(name, **labels):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name, 'labels': labels}}


def page_of(answer):
    """Returns the revision, the token and the names of a page, in either form."""
    if not isinstance(answer, bytes):
        head = answer['metadata']
        return head['resourceVersion'], head.get('continue', ''), [it['metadata']['name'] for it in answer['items']]
    whole = list(fields(dict(fields(answer.removeprefix(MAGIC)))[2]))
    head = dict(fields(dict(whole)[1]))
    names = [dict(fields(dict(fields(content))[1]))[1].decode() for number, content in whole if number == 2]
    return head[2].decode(), head.get(3, b'').decode(), names


def pages(fleet):
    """a list page by page, each from another server, between writes"""
    servers, shown = turns(fleet.replicas), []
    for number in range(LISTED):
        ask(next(servers), 'POST', CORE + '/configmaps', config_map('page-%04d' % number, paged='yes'))
    for accept in (JSON, PROTOBUF):
        whole = ask(fleet.replicas[0], 'GET', CORE + '/configmaps?labelSelector=paged')
        expected = sorted(it['metadata']['name'] for it in whole['items'])
        revisions, token, names, count = set(), '', [], 0
        while token or not count:
            path = '%s/configmaps?labelSelector=paged&limit=%d&continue=%s' % (CORE, PAGE, token)
            revision, token, more = page_of(ask(next(servers), 'GET', path, accept=accept))
            revisions, names, count = revisions | {revision}, names + more, count + 1
            # What comes and goes meanwhile must not be seen.
            ask(next(servers), 'DELETE', '%s/configmaps/%s' % (CORE, expected[-count]))
            ask(
                next(servers),
                'POST',
                CORE + '/configmaps',
                config_map('page-9%03d-%s' % (count, accept[-4:]), paged='yes'),
            )
        demand(names == expected, 'pages have %d names, the list %d', len(names), len(expected))
        demand(len(revisions) == 1, 'pages are of the revisions %s', revisions)
        shown.append('%d objects on %d pages of one revision' % (len(names), count))
    return '%s in JSON, %s in protobuf' % tuple(shown)


def versions(fleet):
    """what one server has acknowledged, the others show at once, under the same version and to the byte"""
    servers, reads, longest = turns(fleet.replicas), 0, 0
    for number in range(30):
        writer = next(servers)
        changed = dict(config_map('page-0000', paged='yes'), data={'n': str(number)})
        written = ask(writer, 'PUT', CORE + '/configmaps/page-0000', changed)
        version = written['metadata']['resourceVersion']
        for server in fleet.replicas:
            began = time.monotonic()
            read = ask(server, 'GET', CORE + '/configmaps/page-0000')
            not_older = 'labelSelector=paged&resourceVersion=%s&resourceVersionMatch=NotOlderThan' % version
            listed = ask(server, 'GET', '%s/configmaps?%s' % (CORE, not_older))
            longest = max(longest, time.monotonic() - began)
            found = next(it for it in listed['items'] if it['metadata']['name'] == 'page-0000')
            demand(read == written, '%s shows %s, %s has acknowledged %s', server.name, read, writer.name, written)
            demand(
                found == {key: value for key, value in written.items() if key not in ('kind', 'apiVersion')},
                '%s lists another object',
                server.name,
            )
            reads += 2
        for accept in (JSON, PROTOBUF):
            path = CORE + '/configmaps?labelSelector=paged&resourceVersion=%s&resourceVersionMatch=Exact' % version
            lists = {repr(ask(server, 'GET', path, accept=accept)) for server in fleet.replicas}
            demand(len(lists) == 1, 'the lists of revision %s differ', version)
    return (
        '%d reads right after writes elsewhere, at most %.0f ms for two; 60 lists of exact versions equal on all three'
        % (reads, longest * 1000)
    )


def watches(fleet):
    """watches begun at one server and resumed at the next by their last version, JSON and protobuf, HTTP/1.1 and
    HTTP/2"""
    witnesses = Witnesses(fleet.replicas, rate=60, writer_stay=7, watcher_stay=11)
    witnesses.start()
    try:
        until(
            lambda: all(it.watches > WATCHES for it in witnesses.watchers), 'every watcher has moved', MOVES_SECONDS_MAX
        )
    finally:
        witnesses.finish()
    counts = witnesses.counts()
    demand(not any(counts.values()) and not witnesses.problems, '%s; %s', counts, witnesses.problems)
    return (
        '%d writes, %d events, %d watches; nothing lost, repeated or reordered, no 410; %d ms at '
        'most to be live at the next'
        % (len(witnesses.acknowledged), witnesses.events(), witnesses.watches(), witnesses.longest_move() * 1000)
    )


def secrets(fleet):
    """a Secret that one server encrypts is read by the others"""
    for writer in fleet.replicas:
        name = writer.name.replace(' ', '-')
        secret = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': name}, 'stringData': {'content': name}}
        data = ask(writer, 'POST', CORE + '/secrets', secret)['data']
        for server in fleet.replicas:
            demand(
                ask(server, 'GET', CORE + '/secrets/' + name)['data'] == data, '%s reads another Secret', server.name
            )
        stored = fleet.etcd.value('/registry/secrets/default/' + name)
        demand(
            stored.startswith(b'k8s:enc:aesgcm:v1:key1:') and name.encode() not in stored, 'etcd has %r', stored[:40]
        )
    return '%d Secrets, read on all; none is plain in etcd' % len(fleet.replicas)


def leases(fleet):
    """a Lease renewed by turns, and a renewal from an old version refused"""
    path = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
    lease = {
        'apiVersion': 'coordination.k8s.io/v1',
        'kind': 'Lease',
        'metadata': {'name': 'fleet'},
        'spec': {'holderIdentity': 'a', 'leaseDurationSeconds': 15},
    }
    lease, servers = ask(fleet.replicas[0], 'POST', path, lease), turns(fleet.replicas)
    for number in range(RENEWALS):
        old, lease['spec']['leaseTransitions'] = json.loads(json.dumps(lease)), number
        lease = ask(next(servers), 'PUT', path + '/fleet', lease)
        code = code_of(next(servers), 'PUT', path + '/fleet', old)
        demand(code == 409, 'a renewal from an old version is answered %d', code)
    return '%d renewals, and as many refused with 409 at the next server' % RENEWALS


def services(fleet):
    """Services created on all servers at once get addresses and node ports of their own"""

    def create(number):
        service = {
            'apiVersion': 'v1',
            'kind': 'Service',
            'metadata': {'name': 'service-%d' % number},
            'spec': {'type': 'NodePort', 'selector': {'a': 'b'}, 'ports': [{'port': 80}]},
        }
        return ask(fleet.replicas[number % len(fleet.replicas)], 'POST', CORE + '/services', service)['spec']

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(SERVICES) as pool:
        specs = list(pool.map(create, range(SERVICES)))
    took = time.monotonic() - began
    ips, ports = {it['clusterIP'] for it in specs}, {it['ports'][0]['nodePort'] for it in specs}
    demand(
        len(ips) == len(ports) == SERVICES,
        'of %d Services, %d addresses and %d node ports',
        SERVICES,
        len(ips),
        len(ports),
    )
    taken = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'taken'}, 'spec': {'ports': [{'port': 80}]}}
    for number, server in enumerate(fleet.replicas):
        spec = specs[number + 1]
        port = {'port': 80, 'nodePort': spec['ports'][0]['nodePort']}
        for wanted in ({'clusterIP': spec['clusterIP']}, {'type': 'NodePort', 'ports': [port]}):
            code = code_of(server, 'POST', CORE + '/services', dict(taken, spec={**taken['spec'], **wanted}))
            demand(code == 422, '%s answers %d to a Service with what another has', server.name, code)
    # What is given up at one server can be had at another.
    ask(fleet.replicas[0], 'DELETE', CORE + '/services/service-1')
    spec = {'type': 'NodePort', 'clusterIP': specs[1]['clusterIP'], 'ports': specs[1]['ports']}
    ask(fleet.replicas[2], 'POST', CORE + '/services', dict(taken, spec=spec))
    return (
        '%d Services in %.2f s: %d addresses, %d node ports; taken ones refused on all, given up ones had elsewhere'
        % (SERVICES, took, len(ips), len(ports))
    )


def spread(servers, holds):
    """Waits until a condition holds on all servers; returns the seconds that each took."""
    began, took = time.monotonic(), {}
    while len(took) < len(servers):
        for server in servers:
            if server not in took and holds(server):
                took[server] = time.monotonic() - began
        if time.monotonic() - began > EFFECTIVE_SECONDS_MAX:
            raise Disagreement('not effective on %s' % ', '.join(it.name for it in servers if it not in took))
        time.sleep(LOOK_SECONDS)
    return 'after %.2f s on all' % max(took.values())


def policies(fleet):
    """a ValidatingAdmissionPolicy made and deleted at one server counts at the others"""
    root = '/apis/admissionregistration.k8s.io/v1/'
    rule = {'apiGroups': [''], 'apiVersions': ['v1'], 'operations': ['CREATE'], 'resources': ['configmaps']}
    same = {'apiVersion': 'admissionregistration.k8s.io/v1', 'metadata': {'name': 'fleet'}}
    policy = dict(
        same,
        kind='ValidatingAdmissionPolicy',
        spec={
            'failurePolicy': 'Fail',
            'matchConstraints': {'resourceRules': [rule]},
            'validations': [{'expression': "object.metadata.name != 'refused'"}],
        },
    )
    binding = dict(
        same, kind='ValidatingAdmissionPolicyBinding', spec={'policyName': 'fleet', 'validationActions': ['Deny']}
    )
    first, *others = fleet.replicas

    def is_refused(server):
        return code_of(server, 'POST', CORE + '/configmaps?dryRun=All', config_map('refused')) == 422

    ask(first, 'POST', root + 'validatingadmissionpolicies', policy)
    ask(first, 'POST', root + 'validatingadmissionpolicybindings', binding)
    made = spread(fleet.replicas, is_refused)
    ask(others[0], 'DELETE', root + 'validatingadmissionpolicybindings/fleet')
    deleted = spread(fleet.replicas, lambda it: not is_refused(it))
    ask(others[1], 'DELETE', root + 'validatingadmissionpolicies/fleet')
    return 'it refuses %s; deleted, it refuses no more %s' % (made, deleted)


def definitions(fleet):
    """a CustomResourceDefinition made at one server is served by the others, and its objects are the same"""
    schema = {'openAPIV3Schema': {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}
    definition = {
        'apiVersion': 'apiextensions.k8s.io/v1',
        'kind': 'CustomResourceDefinition',
        'metadata': {'name': 'ships.fleet.example.com'},
        'spec': {
            'group': 'fleet.example.com',
            'scope': 'Namespaced',
            'names': {'plural': 'ships', 'kind': 'Ship'},
            'versions': [{'name': 'v1', 'served': True, 'storage': True, 'schema': schema}],
        },
    }
    root, servers = '/apis/fleet.example.com/v1', turns(fleet.replicas)
    definitions_path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    ask(fleet.replicas[0], 'POST', definitions_path, definition)
    served = spread(fleet.replicas, lambda it: code_of(it, 'GET', root + '/ships') == 200)
    told = spread(fleet.replicas, lambda it: code_of(it, 'GET', root) == 200)
    for number in range(9):
        ship = {
            'apiVersion': 'fleet.example.com/v1',
            'kind': 'Ship',
            'metadata': {'name': 'ship-%d' % number},
            'n': number,
        }
        ask(next(servers), 'POST', root + '/namespaces/default/ships', ship)
    lists = {repr(ask(it, 'GET', root + '/ships')['items']) for it in fleet.replicas}
    demand(len(lists) == 1, 'the servers list different objects')
    code = code_of(
        fleet.replicas[1], 'POST', root + '/namespaces/default/ships', dict(ship, metadata={'name': 'wrong'}, n='x')
    )
    demand(code == 422, 'an object against the schema is answered %d', code)
    ask(fleet.replicas[1], 'DELETE', definitions_path + '/ships.fleet.example.com')
    gone = spread(fleet.replicas, lambda it: code_of(it, 'GET', root + '/ships') == 404)
    return 'served %s, in discovery %s, its objects equal; deleted, gone %s' % (served, told, gone)


def roles(fleet):
    """a ClusterRole bound at one server lets a user in at the others"""
    root = '/apis/rbac.authorization.k8s.io/v1/'
    kind = {'apiVersion': 'rbac.authorization.k8s.io/v1', 'metadata': {'name': 'fleet'}}
    demand(
        all(code_of(it, 'GET', CORE + '/configmaps', token='user-token') == 403 for it in fleet.replicas),
        'the user is let in before',
    )
    ask(
        fleet.replicas[0],
        'POST',
        root + 'clusterroles',
        dict(kind, kind='ClusterRole', rules=[{'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['list']}]),
    )
    ask(
        fleet.replicas[0],
        'POST',
        root + 'clusterrolebindings',
        dict(
            kind,
            kind='ClusterRoleBinding',
            roleRef={'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'fleet'},
            subjects=[{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'User', 'name': 'user'}],
        ),
    )
    bound = spread(fleet.replicas, lambda it: code_of(it, 'GET', CORE + '/configmaps', token='user-token') == 200)
    ask(fleet.replicas[1], 'DELETE', root + 'clusterrolebindings/fleet')
    unbound = spread(fleet.replicas, lambda it: code_of(it, 'GET', CORE + '/configmaps', token='user-token') == 403)
    return 'let in %s, refused %s' % (bound, unbound)


def tokens(fleet):
    """a service account token that one server issues is accepted by the others"""
    account = {'apiVersion': 'v1', 'kind': 'ServiceAccount', 'metadata': {'name': 'fleet'}}
    request = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': {'expirationSeconds': 3600}}
    review = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'}
    path, accepted = '/apis/authentication.k8s.io/v1/selfsubjectreviews', 0
    ask(fleet.replicas[0], 'POST', CORE + '/serviceaccounts', account)
    issued = [
        ask(it, 'POST', CORE + '/serviceaccounts/fleet/token', request)['status']['token'] for it in fleet.replicas
    ]
    for token in issued:
        for server in fleet.replicas:
            user = ask(server, 'POST', path, review, token=token)['status']['userInfo']['username']
            demand(user == 'system:serviceaccount:default:fleet', '%s takes it for %s', server.name, user)
            accepted += 1
    keys = {repr(ask(it, 'GET', '/openid/v1/jwks')) for it in fleet.replicas}
    demand(len(keys) == 1, 'the published keys differ')
    # Once its account is deleted at one server, no server takes it.
    ask(fleet.replicas[2], 'DELETE', CORE + '/serviceaccounts/fleet')
    refused = spread(fleet.replicas, lambda it: code_of(it, 'POST', path, review, token=issued[0]) == 401)
    return '%d tokens accepted on all three (%d reviews), the published keys equal; the account deleted, refused %s' % (
        len(issued),
        accepted,
        refused,
    )


def event(name):
    return {
        'apiVersion': 'v1',
        'kind': 'Event',
        'metadata': {'name': name},
        'reason': 'Shown',
        'message': 'm',
        'type': 'Normal',
        'involvedObject': {'kind': 'Pod', 'namespace': 'default', 'name': 'p'},
    }


def events(fleet):
    """events lie in an etcd of their own, and pages and watches of them go from server to server"""
    servers, path = turns(fleet.replicas), CORE + '/events'
    for number in range(12):
        ask(next(servers), 'POST', path, event('event-%02d' % number))
    there, elsewhere = fleet.events.count('/registry/events/'), fleet.etcd.count('/registry/events/')
    demand(there >= 12 and elsewhere == 0, '%d events in their etcd, %d in the other', there, elsewhere)
    token, names, revisions = '', [], set()
    while token or not names:
        page = ask(next(servers), 'GET', '%s?limit=5&continue=%s&fieldSelector=reason=Shown' % (path, token))
        revision, token, more = page_of(page)
        names, revisions = names + more, revisions | {revision}
    demand(len(names) == 12 and len(revisions) == 1, '%d events of revisions %s', len(names), revisions)
    position, seen = int(revisions.pop()), []
    for number in range(6):
        ask(next(servers), 'POST', path, event('later-%d' % number))
        query = 'watch=true&resourceVersion=%d&timeoutSeconds=1&fieldSelector=reason=Shown' % position
        watched = ask(next(servers), 'GET', '%s?%s' % (path, query))
        seen.append(watched['object']['metadata']['name'])
        position = int(watched['object']['metadata']['resourceVersion'])
    demand(seen == ['later-%d' % it for it in range(6)], 'the watches saw %s', seen)
    return (
        '%d events in their etcd and none in the other; 12 on pages of one revision; 6 watches, each '
        'resumed at the next server' % there
    )


def events_away(fleet):
    """without the etcd of events, everything else is served"""
    member = fleet.events.members[0]
    member.kill()
    try:
        for server in fleet.replicas:
            ask(server, 'PUT', CORE + '/configmaps/page-0000', config_map('page-0000', paged='yes'))
            ask(server, 'GET', CORE + '/pods')
            demand(code_of(server, 'GET', '/livez/etcd') == 200, 'the other etcd is away for %s', server.name)
    finally:
        member.start()
    began = time.monotonic()
    for server in fleet.replicas:
        name = 'after-' + server.name.replace(' ', '-')
        until(
            lambda: code_of(server, 'POST', CORE + '/events', event(name)) in (201, 409),
            '%s writes events again' % server.name,
        )
    return 'objects were written and read on all three; events again %.2f s after their etcd was started' % (
        time.monotonic() - began
    )


def endpoints(fleet):
    """the endpoints of the service `kubernetes` are the living servers, and are written only when those change"""
    expected = sorted(it.advertised for it in fleet.replicas)

    def found(server):
        subsets = ask(server, 'GET', CORE + '/endpoints/kubernetes')
        slice_ = ask(server, 'GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes')
        ips = sorted(it['ip'] for it in subsets['subsets'][0]['addresses'])
        same = sorted(it['addresses'][0] for it in slice_['endpoints'])
        return ips, same, subsets['metadata']['resourceVersion'], slice_['metadata']['resourceVersion']

    until(
        lambda: all(found(it)[0] == found(it)[1] == expected for it in fleet.replicas),
        'all three are endpoints',
        EFFECTIVE_SECONDS_MAX,
    )
    before = found(fleet.replicas[0])
    time.sleep(STILL_SECONDS)
    after = {repr(found(it)) for it in fleet.replicas}
    demand(after == {repr(before)}, 'they were %s, and are %s', before, after)
    return '%s in Endpoints and EndpointSlice on all three; not written again in %d s' % (
        ', '.join(expected),
        STILL_SECONDS,
    )


def authentication_of_extensions(fleet):
    """the ConfigMap by which extension API servers know the front has the authorities of all servers, and is not
    fought over"""
    path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication'
    found = [ask(it, 'GET', path) for it in fleet.replicas]
    demand(all(it == found[0] for it in found), 'the servers show different ones')
    # Each server has made one of its own, since none was given.
    count = found[0].get('data', {}).get('client-ca-file', '').count('BEGIN')
    demand(count == len(found), 'it has %d authorities', count)
    return 'the same on all three, with %d authorities of clients' % count


def goaway(fleet):
    """--goaway-chance ends HTTP/2 connections after a share of requests, and the watch on such a connection goes on"""
    counts = []
    for server in fleet.replicas:
        connection = Connection(server.host, server.port, ANSWER_SECONDS_MAX)
        try:
            counts.append(until_goaway(connection, server))
        except AWAY as error:
            raise Disagreement('%s: %s' % (server.name, error)) from error
        finally:
            connection.close()
    return 'GOAWAY after %s requests; each time a watch on the connection got the next event' % ', '.join(
        map(str, counts)
    )


def until_goaway(connection, server):
    """Asks over a connection until GOAWAY comes, and waits for an event on its watch. Returns how many requests it
    took."""
    version = ask(server, 'GET', CORE + '/configmaps')['metadata']['resourceVersion']
    watch = connection.get(CORE + '/configmaps?watch=true&resourceVersion=' + version, authorization='Bearer token')
    asked, is_told = 1, False
    while not is_told:
        demand(asked < REQUESTS_MAX, '%s: no GOAWAY after %d requests', server.name, asked)
        stream, asked, answered = connection.get('/version', authorization='Bearer token'), asked + 1, False
        while not answered and not is_told:
            kind, flags, number, _ = connection.frame()
            is_told = kind == GOAWAY
            answered = number == stream and bool(flags & 1) and kind in (DATA, 1)
    changed = dict(config_map('page-0000', paged='yes'), data={'n': str(time.time())})
    ask(server, 'PUT', CORE + '/configmaps/page-0000', changed)
    while True:
        kind, flags, number, payload = connection.frame()
        if number == watch and kind == DATA and b'page-0000' in payload:
            return asked
        demand(not (number == watch and flags & 1), '%s ended the watch', server.name)


AGREEMENTS = (
    pages,
    versions,
    watches,
    secrets,
    leases,
    services,
    policies,
    definitions,
    roles,
    tokens,
    events,
    events_away,
    endpoints,
    authentication_of_extensions,
    goaway,
)
