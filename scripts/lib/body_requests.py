"""Random bodies of requests in JSON, YAML and protobuf, good and bad, for verification/peers/compare-requests.

Python's standard library is enough.
"""

import json

from answers import JSON, MAGIC, PROTOBUF
from read_requests import SPACES
from request_steps import APPLY, JSON_PATCH, MERGE, STRATEGIC, YAML, Step, with_query
from wire import encoded, field, members, message
from write_requests import WRITTEN, in_space, resource_of

# Fields of metadata that a server fills in: uid, creationTimestamp and managedFields.
FILLED_IN = (5, 8, 17)
# Values of a map of texts in YAML, and of a number.
SCALARS = (
    'x',
    '"x"',
    "'x'",
    "'it''s'",
    '"\\x41\\u00e4\\n"',
    '"\\q"',
    "'a\n\n  b'",
    '"a\n  b"',
    'a\n  b',
    '|\n   a\n    b\n',
    '|-\n   a\n',
    '>+\n   a\n   b\n\n',
    '|2\n    a\n',
    '5',
    '"5"',
    '!!str 5',
    '!!int "5"',
    '!!binary aGk=',
    '!!binary "!"',
    '!other x',
    '0x1F',
    '017',
    '0o17',
    '0b11',
    '1_000',
    '1e3',
    '1.0',
    '.5',
    '5.',
    '+5',
    '-0',
    '.inf',
    '-.Inf',
    '.nan',
    '1e400',
    '190:20:30',
    '99999999999999999999',
    '9223372036854775808',
    'yes',
    'No',
    'on',
    'OFF',
    'y',
    'n',
    'Y',
    'true',
    'True',
    'TRUE',
    'tRUE',
    '~',
    'null',
    'NULL',
    '',
    '2001-01-01',
    '2001-01-01T00:00:00Z',
    '2001-1-1 0:0:0',
    '[a, b]',
    '{a: b}',
    '{a: b',
    '[a',
    '&x y',
    '*x',
    '&x [*x]',
    '@x',
    '`x',
    '%x',
    'a: b',
    'a:b',
    'a #b',
    'a#b',
    '- a',
    '? a',
    '-',
    '?',
    ':',
    'x\t',
    '\tx',
    '"\t"',
    '"a',
    "'a",
    '\u00e4',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\0"',
    '\u0001',
    '\u0085',
    '\u2028',
    '\ufeffx',
    '<<',
    '=',
    '!',
    '!!null x',
    '!!null ""',
    '!!bool yes',
    '!!float 5',
    '!!map {}',
    '!!seq []',
    '!!str',
    '!!str {a: b}',
    '!!timestamp 2001-01-01',
    '!<tag:yaml.org,2002:str> 5',
    '!!set {a}',
    '!!omap [a: b]',
)
KEYS = (
    'k',
    '"k"',
    '1',
    '1.5',
    'true',
    'yes',
    'null',
    '~',
    '0x1F',
    '2001-01-01',
    '? k\n ',
    '? [a]\n ',
    '&k k',
    '*k',
    '!!str 1',
    '"a b"',
    'k ',
    '',
    '<<',
    '"<<"',
    '-k',
    "'k'",
    '1e3',
    '.inf',
    '=',
)
WHOLES = (
    '',
    '\n',
    '---\n',
    '# nothing\n',
    '...\n',
    'x\n',
    '- a\n',
    '[]\n',
    '{}\n',
    '~\n',
    '5\n',
    '"x"\n',
    '%YAML 1.1\n---\n{}\n',
    '%YAML 1.2\n---\n{}\n',
    '%TAG ! x:\n---\n{}\n',
    '\ufeff{}\n',
    '{"a": 1,}\n',
    '{a}\n',
    '[a: b]\n',
    '{a: }\n',
    'a:\n- b\n',
    'a:\n  - b\n c\n',
    'a: b\n c: d\n',
    ' a: b\nc: d\n',
    'a: b\n\tc: d\n',
    '\ta: b\n',
    'a: b: c\n',
    'a: |x\n',
    '--- a\n--- b\n',
    '&a {}\n',
    '*a\n',
    '<<: {a: b}\n',
    '<<: [{a: b}, {a: c}]\n',
    '<<: x\n',
    'a: &a {b: *a}\n',
)
NUMBERS = (
    '1',
    '1.0',
    '1e0',
    '1.5',
    '"1"',
    'true',
    'null',
    '-1',
    '9223372036854775808',
    '1e400',
    '01',
    '+1',
    '0x1',
    '-0',
)
TYPES = (
    JSON,
    YAML,
    PROTOBUF,
    MERGE,
    STRATEGIC,
    JSON_PATCH,
    APPLY,
    'application/json; charset=utf-8',
    'application/json;charset=utf-16',
    'application/json;x',
    'application/json;',
    'application/json; x="y',
    'APPLICATION/JSON',
    'Application/Yaml',
    'text/json',
    'text/plain',
    'text/yaml',
    'application/x-yaml',
    'application/yaml;x=y',
    'application/vnd.kubernetes.protobuf;type=x',
    'application/vnd.kubernetes.protobuf;stream=watch',
    'application/json;stream=watch',
    'application/json, application/yaml',
    'application/cbor',
    'application/apply-patch+cbor',
    'application/apply-patch+json',
    'application/merge-patch+json; charset=utf-8',
    'application/json-patch+json;x=y',
    'application',
    '/',
    ';',
    '*/*',
    'application/*',
    '',
    ' ',
    'x',
)
VALIDATIONS = (None, None, 'Strict', 'Warn', 'Ignore')


def protobuf_questions():
    """What a server answers in protobuf, as far as it can be sent back: resources, and the steps that ask."""
    for resource in WRITTEN:
        body = resource.whole('it', SPACES[0], {'a': 'b'}, 1)
        path = with_query(resource.collection(SPACES[0]), [('dryRun', 'All')])
        if '.example.com' not in resource.version:
            yield resource, Step('POST', path, body, accept=PROTOBUF)


def sendable(content):
    """An object in protobuf, as a message without what its server has filled in: type and fields; or None."""
    if not content.startswith(MAGIC):
        return None
    unknown = dict(members(content.removeprefix(MAGIC)))
    object_fields = members(unknown[2])
    meta = [it for it in members(object_fields[0][1]) if it[0] not in FILLED_IN]
    return unknown[1], [(1, message(meta)), *object_fields[1:]]


class Bodies:
    """The area of bodies, with objects in protobuf."""

    def __init__(self, objects):
        self.objects = objects

    def case(self, rng, space):
        yield from in_space(space)
        chance = rng.random()
        if chance < 0.35 and self.objects:
            yield from self.protobuf(rng, space)
        elif chance < 0.7:
            yield from yaml_steps(rng, space)
        elif chance < 0.9:
            yield from json_steps(rng, space)
        else:
            yield from type_steps(rng, space)

    def protobuf(self, rng, space):
        resource = rng.choice(sorted(self.objects, key=str))
        kind, fields = self.objects[resource]
        fields = [(1, with_space(fields[0][1], space) if resource.namespaced else fields[0][1]), *fields[1:]]
        chance = rng.random()
        raw = message(fields)
        if chance < 0.75:
            for _ in range(rng.randrange(1, 3)):
                raw = bent(rng, raw)
            envelope = [(1, kind), (2, raw), (3, b''), (4, b'')]
            body = MAGIC + message(envelope)
        else:
            body = bent_envelope(rng, kind, raw)
        pairs = [('dryRun', 'All')]
        validation = rng.choice(VALIDATIONS)
        if validation:
            pairs.append(('fieldValidation', validation))
        path = with_query(resource.collection(space), pairs)
        accept = rng.choice((JSON, JSON, JSON, PROTOBUF, YAML))
        content = PROTOBUF if rng.random() < 0.93 else rng.choice(TYPES)
        if rng.random() < 0.3:
            # The object is called `it` in what the library has.
            yield Step('POST', resource.collection(space), resource.whole('it', space, {'a': 'b'}, 1), is_quiet=True)
            path = with_query(resource.collection(space) + '/it', pairs)
            yield Step('PUT', path, body, content, accept)
            if not resource.namespaced:
                yield Step('DELETE', resource.collection(space) + '/it', is_quiet=True)
        else:
            yield Step('POST', path, body, content, accept)


def with_space(meta, space):
    return message([(number, space.encode() if number == 3 else value) for number, value in members(meta)])


def bent(rng, raw, depth=0):
    """A message with a change somewhere in it."""
    found = members(raw)
    if found is None or depth > 6:
        return bent_bytes(rng, raw)
    inner = [at for at, (_, value) in enumerate(found) if isinstance(value, bytes) and value and members(value)]
    if inner and rng.random() < 0.7:
        at = rng.choice(inner)
        found[at] = (found[at][0], bent(rng, found[at][1], depth + 1))
        return message(found)
    change = rng.choice(
        (
            'unknown',
            'unknown text',
            'unknown message',
            'unknown fixed',
            'unknown group',
            'end group',
            'twice',
            'twice first',
            'reversed',
            'without',
            'empty',
            'number',
            'text',
            'cut',
            'zero',
            'large number',
            'long tag',
            'bad kind',
            'utf8',
            'long',
            'negative',
        )
    )
    if not found:
        return field(rng.choice((1, 2, 99)), b'x')
    at = rng.randrange(len(found))
    number, value = found[at]
    if change == 'unknown':
        return raw + field(rng.choice((15, 99, 536870911)), rng.choice((0, 1, 2**64 - 1)))
    if change == 'unknown text':
        return field(99, b'x') + raw
    if change == 'unknown message':
        return raw + field(99, field(1, b'x') + field(2, 5))
    if change == 'unknown fixed':
        return raw + rng.choice((encoded(99 << 3 | 1) + b'12345678', encoded(99 << 3 | 5) + b'1234'))
    if change == 'unknown group':
        return raw + encoded(99 << 3 | 3) + field(1, 5) + encoded(99 << 3 | 4)
    if change == 'end group':
        return raw + encoded(rng.choice((1, 99)) << 3 | 4)
    if change == 'twice':
        found.append((number, value))
    elif change == 'twice first':
        found.insert(0, (number, b'x' if isinstance(value, bytes) else 7))
    elif change == 'reversed':
        found.reverse()
    elif change == 'without':
        del found[at]
    elif change == 'empty':
        found[at] = (number, b'')
    elif change == 'number':
        found[at] = (number, rng.choice((0, 1, 2**31, 2**63, 2**64 - 1)))
    elif change == 'text':
        found[at] = (number, rng.choice((b'x', b'A_b', b'\xff\xfe', b'-', b'x' * 300)))
    elif change == 'cut':
        return raw[: rng.randrange(len(raw))]
    elif change == 'zero':
        return raw + b'\0\0'
    elif change == 'large number':
        return raw + encoded((2**29) << 3) + b'\1'
    elif change == 'long tag':
        return raw + b'\xf8\x86\x80\x80\x80\x80\x80\x80\x80\0\1'
    elif change == 'bad kind':
        return raw + encoded(99 << 3 | rng.choice((6, 7))) + b'\1'
    elif change == 'utf8':
        found[at] = (number, b'a\xffb')
    elif change == 'long':
        return raw + encoded(99 << 3 | 2) + encoded(rng.choice((1000, 2**31, 2**63, 2**64 - 1))) + b'x'
    elif change == 'negative':
        return raw + encoded(99 << 3) + b'\xff' * 9 + rng.choice((b'\1', b'\2', b'\x7f', b'\xff\1'))
    return message(found)


def bent_bytes(rng, raw):
    if not raw:
        return b'\1'
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]


def bent_envelope(rng, kind, raw):
    """An object whose envelope is not as it should be."""
    version, name = (value.decode() for _, value in members(kind))

    def whole(kind=kind, raw=raw, more=()):
        return MAGIC + message([(1, kind), (2, raw), *more])

    def typed(version, name):
        return message([(1, version.encode()), (2, name.encode())])

    return rng.choice(
        (
            lambda: whole(),
            lambda: whole(more=[(3, b'gzip')]),
            lambda: whole(more=[(4, b'application/json')]),
            lambda: whole(more=[(4, PROTOBUF.encode())]),
            lambda: whole(more=[(99, b'x')]),
            lambda: whole(more=[(2, raw)]),
            lambda: whole(more=[(2, b'')]),
            lambda: whole(more=[(1, typed('', 'Other'))]),
            lambda: whole(typed(version, 'Other')),
            lambda: whole(typed('', '')),
            lambda: whole(typed(version, '')),
            lambda: whole(typed('', name)),
            lambda: whole(typed('example.com/v1', name)),
            lambda: whole(typed('a/b/c', name)),
            lambda: whole(b''),
            lambda: whole(kind + b'\xff'),
            lambda: whole(typed(version, 'DeleteOptions')),
            lambda: MAGIC + message([(2, raw)]),
            lambda: MAGIC + message([(1, kind)]),
            lambda: MAGIC + message([(2, raw), (1, kind)]),
            lambda: MAGIC,
            lambda: MAGIC + b'\xff',
            lambda: MAGIC[:3],
            lambda: b'K8S\0' + message([(1, kind), (2, raw)]),
            lambda: message([(1, kind), (2, raw)]),
            lambda: raw,
            lambda: b'',
            lambda: whole()[:-3],
            lambda: whole() + b'\0',
            lambda: whole() + whole(),
            lambda: whole(raw=bent_bytes(rng, raw)),
            lambda: b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"it"}}',
        )
    )()


def validated(rng):
    validation = rng.choice(VALIDATIONS)
    return [('dryRun', 'All'), *([('fieldValidation', validation)] if validation else [])]


def yaml_steps(rng, space):
    """YAML of every sort, as the data of a map, as numbers, keys and as the whole."""
    chance = rng.random()
    resource = resource_of(rng.choice(('configmaps', 'configmaps', 'widgets', 'deployments')))
    head = 'apiVersion: %s\nkind: %s\nmetadata:\n  name: it\n' % (resource.version, resource.kind)
    if chance < 0.12:
        text = rng.choice(WHOLES)
    elif chance < 0.2:
        text = head.replace('name: it', 'name: ' + rng.choice(SCALARS))
    elif chance < 0.27:
        text = head + rng.choice(
            ('metadata: {}\n', 'kind: X\n', 'x: y\nx: z\n', '---\n{}\n', '...\nx\n', '---\n', '  x: y\n')
        )
    elif resource.kind == 'ConfigMap':
        pairs = [
            (rng.choice(KEYS) if rng.random() < 0.3 else 'k%d' % at, rng.choice(SCALARS))
            for at in range(rng.randrange(1, 3))
        ]
        name = rng.choice(('data', 'data', 'data', 'binaryData', 'immutable', 'labels'))
        if name == 'labels':
            text = head + '  labels:\n' + ''.join('    %s: %s\n' % it for it in pairs)
        elif name == 'immutable':
            text = head + 'immutable: %s\n' % pairs[0][1]
        else:
            text = head + name + ':\n' + ''.join('  %s: %s\n' % it for it in pairs)
    elif resource.kind == 'Widget':
        name = rng.choice(('size', 'color', 'ready', 'other'))
        text = head + 'spec:\n  %s: %s\nstatus:\n  a: %s\n' % (name, rng.choice(SCALARS), rng.choice(SCALARS))
    else:
        value = rng.choice(SCALARS)
        text = head + 'spec:\n  replicas: %s\n  paused: %s\n  selector: &s\n    matchLabels: {app: a}\n' % (
            value,
            rng.choice(SCALARS),
        )
        text += '  template:\n    metadata: {labels: {app: a}}\n    spec: {containers: [{name: c, image: i}]}\n'
    if rng.random() < 0.05:
        text = text.replace('\n', rng.choice(('\r\n', '\r', '\n\n', '\n#\n')))
    if rng.random() < 0.03:
        text = text[: rng.randrange(len(text) + 1)]
    path = with_query(resource.collection(space), validated(rng))
    if rng.random() < 0.25:
        target = with_query(resource.collection(space) + '/it', [*validated(rng), ('fieldManager', 'me')])
        yield Step('PATCH', target, text, APPLY)
    else:
        yield Step('POST', path, text, YAML, rng.choice((JSON, JSON, YAML)))


def json_text(rng, resource, space):
    """A body in JSON that is not quite as it should be."""
    tree = resource.whole('it', space, {'a': 'b'}, 1)
    text = json.dumps(tree)

    def replaced(old, new):
        return text.replace(old, new, 1)

    number = rng.choice(NUMBERS)
    return rng.choice(
        (
            lambda: text,
            lambda: text + rng.choice((' ', '\n', 'x', '{}', ' {}', ',', '\0', '}', '//x', '\ufeff')),
            lambda: rng.choice(('\ufeff', ' ', '\n', 'x', '\0', '//x\n', '/**/')) + text,
            lambda: text[: rng.randrange(len(text))],
            lambda: replaced('"metadata"', '"Metadata"'),
            lambda: replaced('"kind"', '"KIND"'),
            lambda: replaced('"apiVersion"', '"apiversion"'),
            lambda: replaced('"name"', '"Name"'),
            lambda: replaced('{', '{"metadata":{"labels":{"c":"d"}},'),
            lambda: replaced('{', '{"kind":"Other",'),
            lambda: replaced('{', '{"unknown":1,"unknown":2,'),
            lambda: replaced('"labels": {', '"labels": {"a":"1","a":"2",'),
            lambda: replaced('"labels": {', '"labels": {"c":5,'),
            lambda: replaced('"labels": {', '"labels": {"c":null,'),
            lambda: replaced('"labels": {', '"labels": {"\\u0063":"x","c":"y",'),
            lambda: replaced('"labels": {', '"annotations": {"c":"\\ud83d"},"labels": {'),
            lambda: replaced('"labels": {', '"annotations": {"c":"\\ud83d\\ude00 \\u0000 \\u2028"},"labels": {'),
            lambda: replaced('"labels": {', '"annotations": {"c":"a\udcffb"},"labels": {'),
            lambda: replaced('"labels": {', '"annotations": {"c":"a\tb"},"labels": {'),
            lambda: replaced('"labels": {', '"annotations": {"c":"\\q"},"labels": {'),
            lambda: replaced('"labels": {', '"annotations": {"c":"<&>\\/"},"labels": {'),
            lambda: replaced('"labels": {', '"generation": %s,"labels": {' % number),
            lambda: replaced('"labels": {', '"deletionGracePeriodSeconds": %s,"labels": {' % number),
            lambda: replaced(
                '"labels": {',
                '"creationTimestamp": %s,"labels": {'
                % rng.choice(
                    (
                        '"2020-01-01T00:00:00Z"',
                        '"x"',
                        '""',
                        'null',
                        '5',
                        '"2020-01-01"',
                        '"2020-01-01T00:00:00+02:00"',
                        '{}',
                    )
                ),
            ),
            lambda: replaced(
                '"labels": {',
                '"ownerReferences": %s,"labels": {'
                % rng.choice(
                    (
                        '{}',
                        '[{}]',
                        '[null]',
                        'null',
                        '[{"kind":"P","name":"n","uid":"u","apiVersion":"v1","x":1}]',
                        '"x"',
                    )
                ),
            ),
            lambda: replaced(
                '"labels": {',
                '"finalizers": %s,"labels": {'
                % rng.choice(('["a"]', '[null]', '[5]', '"x"', '[""]', '["a/b","a/b"]', '{}', 'null')),
            ),
            lambda: replaced(
                '"labels": {',
                '"managedFields": %s,"labels": {'
                % rng.choice(
                    (
                        '[]',
                        '[{}]',
                        '[null]',
                        '{}',
                        'null',
                        '[{"manager":"m","operation":"Apply","apiVersion":"v1"}]',
                        '[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]',
                        '[{"fieldsV1":"x"}]',
                        '[{"fieldsType":"x"}]',
                        '[{"operation":"x"}]',
                    )
                ),
            ),
            lambda: replaced(
                '"labels": {', '"resourceVersion": %s,"labels": {' % rng.choice(('5', '"5"', '"0"', '""', 'null'))
            ),
            lambda: replaced('"labels": {', '"selfLink": "x","clusterName": "y","labels": {'),
            lambda: json.dumps({**tree, 'spec': None}),
            lambda: json.dumps({**tree, 'spec': 'x'}),
            lambda: json.dumps({**tree, 'spec': []}),
            lambda: json.dumps({**tree, 'data': {'a': None, 'b': 'c'}}),
            lambda: json.dumps({**tree, 'data': {'a': {'b': 'c'}}}),
            lambda: json.dumps({**tree, 'data': ['x']}),
            lambda: json.dumps(
                {**tree, 'binaryData': {'a': rng.choice(('!', 'YQ', 'YQ==', 'YQ==\n', '_-8=', '', ' YQ==', 5))}}
            ),
            lambda: json.dumps({**tree, 'immutable': rng.choice(('true', 1, 0, None, [], ''))}),
            lambda: json.dumps({**tree, 'status': rng.choice(('x', 5, [], {'x': 1}, None))}),
            lambda: '{' + '"a":{' * rng.choice((10, 100, 9999, 10001)) + '}' * 10001,
            lambda: '[' * rng.choice((10, 9999, 10001)),
            lambda: '{"apiVersion":"v1","kind":"List","items":[%s]}' % text,
            lambda: rng.choice(
                ('null', '[]', '5', '"x"', 'true', '', ' ', '{}', 'NaN', "{'a':1}", '{a:1}', '{"a":1,}', '{"a" 1}')
            ),
            lambda: text.encode('utf-16'),
            lambda: text.encode('utf-32'),
            lambda: b'\xff' + text.encode(),
        )
    )()


def json_steps(rng, space):
    resource = resource_of(
        rng.choice(('configmaps', 'configmaps', 'widgets', 'deployments', 'pods', 'services', 'secrets'))
    )
    text = json_text(rng, resource, space)
    path = resource.collection(space)
    if rng.random() < 0.25:
        yield Step('POST', path, resource.whole('it', space, {'a': 'b'}, 1), is_quiet=True)
        yield Step('PUT', with_query(path + '/it', validated(rng)), text)
    else:
        yield Step('POST', with_query(path, validated(rng)), text, rng.choice((JSON, JSON, JSON, JSON, YAML)))


def type_steps(rng, space):
    """Bodies under other content types."""
    resource = resource_of(rng.choice(('configmaps', 'widgets', 'deployments')))
    path = resource.collection(space)
    made = resource.whole('it', space, {'a': 'b'}, 1)
    content = rng.choice(TYPES)
    if rng.random() < 0.5:
        yield Step('POST', with_query(path, validated(rng)), made, content, rng.choice((JSON, JSON, YAML, PROTOBUF)))
        return
    yield Step('POST', path, made, is_quiet=True)
    body = rng.choice((made, {'metadata': {'labels': {'c': 'd'}}}, '[]', '', 'a: b', b'k8s\0'))
    pairs = [*validated(rng), ('fieldManager', 'me')]
    yield Step(rng.choice(('PATCH', 'PATCH', 'PUT')), with_query(path + '/it', pairs), body, content)
