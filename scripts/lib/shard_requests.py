"""Shard selectors, good and bad, and the requests with them that verification/peers/compare-shards sends to two
servers.

Python's standard library is enough.
"""

import urllib.parse

UID, NAMESPACE = 'object.metadata.uid', 'object.metadata.namespace'
ZERO, HALF, END = '0x0000000000000000', '0x8000000000000000', '0x10000000000000000'
JSON, YAML = 'application/json', 'application/yaml'
TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def shard_hash(text):
    """Returns the hash of a uid or namespace: FNV-1a with 64 bits."""
    found = FNV_OFFSET
    for byte in text.encode():
        found = (found ^ byte) * FNV_PRIME % 2**64
    return found


def is_upper(text):
    """True if a uid or namespace is in the upper half of the hashes."""
    return shard_hash(text) >= int(HALF, 16)


def ranged(field=UID, start=ZERO, end=HALF):
    return "shardRange(%s, '%s', '%s')" % (field, start, end)


def query(**parameters):
    return urllib.parse.urlencode(parameters)


def shard(selector):
    return query(shardSelector=selector)


HALVES = {
    (field, upper): ranged(field, *((HALF, END) if upper else (ZERO, HALF)))
    for field in (UID, NAMESPACE)
    for upper in (False, True)
}
LOWER, UPPER = HALVES[UID, False], HALVES[UID, True]
NAMED_HALVES = {
    '%s %s' % ('upper' if upper else 'lower', field.rpartition('.')[2]): text for (field, upper), text in HALVES.items()
}
# What selects objects, and the same in other spellings.
GOOD = {
    **NAMED_HALVES,
    'both': '%s || %s' % (LOWER, UPPER),
    'both, turned': '%s||%s' % (UPPER, LOWER),
    'both, by namespace': ' || '.join(HALVES[NAMESPACE, upper] for upper in (True, False)),
    'nothing': ranged(end='0x0000000000000001'),
    'all': ranged(end=END),
    'quarters': '%s || %s' % (ranged(end='0x4000000000000000'), ranged(start='0xc000000000000000', end=END)),
    'overlapping': '%s || %s' % (LOWER, ranged(start='0x4000000000000000', end='0xc000000000000000')),
    'the same twice': '%s || %s' % (LOWER, LOWER),
    'blanks': '  %s\n' % LOWER.replace(', ', ' ,\t'),
    'brackets': '((%s)) || (%s)' % (LOWER, UPPER),
    'double quotes': LOWER.replace("'", '"'),
    'triple quotes': LOWER.replace("'", "'''"),
    'a comment': LOWER + ' // which is all',
    'a method': 'x.' + LOWER,
    'escapes': ranged(start='\\u0030x000000000000000\\x30'),
    'raw': LOWER.replace("'0x8", "r'0x8"),
    'many': '||'.join([LOWER] * 200),
    'twice negated': '!!' + LOWER,
    'a global name': '.' + LOWER,
    'a global path': LOWER.replace('object', '.object'),
}
# What kube-apiserver refuses, and ringwatch in the same words.
BAD = (
    ' ',
    '\t\n',
    'a',
    'object',
    'object.metadata',
    'object.metadata.uid',
    'true',
    '1',
    "'a'",
    '[1, 2]',
    '[]',
    '{}',
    "{'a': 1}",
    'a.B{c: 1}',
    'B{}',
    'shardRange()',
    'shardRange(object.metadata.uid)',
    "shardRange(object.metadata.uid, '%s')" % ZERO,
    LOWER.replace(')', ", 'a')"),
    'shardrange(a, b, c)',
    'x(1)',
    'size(a)',
    'a.b(c)',
    '!' + LOWER,
    '!!!' + LOWER,
    '-' + LOWER,
    '%s && %s' % (LOWER, UPPER),
    '%s ? %s : %s' % (LOWER, LOWER, UPPER),
    '%s == %s' % (LOWER, UPPER),
    LOWER + ' || true',
    'true || ' + LOWER,
    LOWER + ' || x()',
    LOWER + ' + 1',
    '1 - 1',
    '1 * 1',
    '1 / 1',
    '1 % 1',
    '1 < 1',
    '1 <= 1',
    '1 > 1',
    '1 >= 1',
    '1 != 1',
    '1 in [1]',
    'a[0]',
    'a[0].b',
    LOWER + '[0]',
    LOWER + '.a',
    'has(a.b)',
    '[1].all(a, a)',
    'a.exists(b, b)',
    *(
        ranged(field)
        for field in (
            'object.metadata.name',
            'object.metadata.labels',
            'metadata.uid',
            'uid',
            'object',
            'object.metadata.uid.x',
            "object['metadata'].uid",
            "object.metadata['uid']",
            "'object.metadata.uid'",
            'f(x)',
            'f(x).y',
            '1',
            '[1]',
            '[1].x',
            '{}',
            '{}.x',
            'a.B{}',
            'a.B{}.c',
            '!a',
            '-a',
            '-1',
            '(object.metadata).name',
            '.object.metadata.name',
            'object.metadata.namespaces',
            'object.metadata.package',
            'a.in',
        )
    ),
    *(
        ranged(start=start)
        for start in (
            '',
            '0',
            '0x',
            '0x0',
            '0X0000000000000000',
            '0xA000000000000000',
            '0x000000000000000g',
            '0x00000000000000000',
            '0x000000000000000000',
            '0x20000000000000000',
            END,
            HALF,
            '0xffffffffffffffff',
            ' 0x0000000000000000',
            '0x00000000000000é0',
            '-0x0000000000000000',
            '0x0000 00000000000',
            '\\n',
            '0x\\t',
            '0x\\u00e9',
            '0x"',
            '0x\\U0001F600',
        )
    ),
    *(
        ranged(end=end)
        for end in (
            '',
            '8',
            '0x',
            '0x8',
            '0xff',
            '0x800000000000000G',
            '0x80000000000000000',
            '0x10000000000000001',
            '0x100000000000000000',
            ZERO,
        )
    ),
    *(
        LOWER.replace("'%s'" % ZERO, start)
        for start in (
            '0',
            '-1',
            '0u',
            '0.0',
            '-1.5',
            '1e3',
            'true',
            'null',
            "b'0x0'",
            'a',
            'a.b',
            'f()',
            '[1]',
            '{}',
            "'a' + 'b'",
            '(0)',
            '-a',
            '!true',
            '--1',
        )
    ),
    *(LOWER.replace("'%s'" % HALF, end) for end in ('8', 'x', 'null', "b'0'")),
    '%s || %s' % (LOWER, HALVES[NAMESPACE, True]),
    '%s || %s || x' % (HALVES[NAMESPACE, True], LOWER),
    '%s || %s' % (ranged('a'), ranged('b')),
)
# What kube-apiserver cannot read as an expression.
NO_EXPRESSION = (
    'shardRange(',
    'shardRange(a,)',
    'a ||',
    '|| a',
    'a b',
    "'open",
    'a.1',
    'a | b',
    'a & b',
    '#',
    'a = b',
    "'\\q'",
    'a ? b',
    '{a}',
    ')',
    '(',
    '(a',
    '[1',
    '{1:',
    'a.',
    '.',
    '..a',
    '1.',
    '1a',
    '"a',
    "'''a'",
    'a\x00b',
    'é',
    '`a`',
    'a.`b`',
    '$a',
    '@in',
    'in',
    'a in',
    'a..b',
    'a?.b',
    '[?a]',
    LOWER + ';',
    LOWER + ' ' + LOWER,
    LOWER + ' or ' + UPPER,
    LOWER + ')',
    LOWER[:-1],
    LOWER.replace("'", '’'),
    "'\n'",
    "'\\x3'",
    "'\\ud800'",
    "'\\400'",
    "'\\8'",
    "b'\\u0041'",
    'package',
    'namespace',
    'for',
    'if(a)',
    'package.a',
    'a.b(package)',
    ranged('package'),
    'a || let',
    '.void',
    'while.x',
    'as{}',
    '99999999999999999999',
    '-99999999999999999999',
    '9223372036854775808',
    '-9223372036854775808',
    '0xffffffffffffffffff',
    '99999999999999999999u',
    '1e999',
    '(' * 100 + LOWER + ')' * 100,
    '(' * 300 + LOWER + ')' * 300,
    '[' * 300,
    '!' * 300 + 'a',
    '-' * 300 + 'a',
    'a' + '.b' * 300,
    'a' + '[0]' * 300,
    '1' + '+1' * 300,
    '{' * 40,
)
# Other parameters beside a shard selector: what is wrong with both is told in kube-apiserver's order.
BESIDE = (
    'labelSelector=a%3D%3D%3Db',
    'labelSelector=a',
    'fieldSelector=a',
    'fieldSelector=spec.x%3Dy',
    'fieldSelector=metadata.name%3Da',
    'resourceVersion=x',
    'resourceVersion=0',
    'resourceVersion=-1',
    'resourceVersion=99999999999',
    'resourceVersion=99999999999&resourceVersionMatch=Exact',
    'resourceVersion=1&resourceVersionMatch=Exact',
    'resourceVersionMatch=Exact',
    'resourceVersion=1&resourceVersionMatch=x',
    'limit=x',
    'limit=-1',
    'continue=x',
    'continue=x&limit=1',
    'timeoutSeconds=x',
    'timeout=x',
    'sendInitialEvents=true',
    'sendInitialEvents=x',
    'pretty=x',
    'unknown=1',
    'allowWatchBookmarks=x',
    'continue=x&resourceVersion=1',
)
# Bodies of deletions of collections, of which nothing is deleted: the body and its type.
BODIES = (
    ('{', JSON),
    ('{"dryRun":["All"]}', 'text/plain'),
    ('{"dryRun":["All"]}', None),
    ('a: [', YAML),
    ('["dryRun"]', JSON),
    ('1', JSON),
    ('{"kind":"Other","apiVersion":"v1"}', JSON),
    ('{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"x"}', JSON),
    ('{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["x"]}', JSON),
    ('{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":"x"}', JSON),
    ('{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"preconditions":{"uid":"x"}}', JSON),
    (
        '{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"ignoreStoreReadErrorWithClusterBreakingPotential":true}',
        JSON,
    ),
    ('{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}', JSON),
)
# The same of a query.
DELETE_QUERIES = (
    'propagationPolicy=x',
    'gracePeriodSeconds=x',
    'dryRun=x',
    'orphanDependents=x',
    'orphanDependents=true&propagationPolicy=Orphan',
)
# Selectors written into the query in other ways.
SPELLINGS = (
    'shardSelector=',
    'shardSelector',
    'shardselector=x',
    'shardSelector=%s&shardSelector=x' % urllib.parse.quote(LOWER),
    'shardSelector=x&%s' % shard(LOWER),
    'shardSelector=&shardSelector=x',
    'shardSelector=%zz',
    'shardSelector=a%00',
    'shardSelector=%ff',
    'shardSelector=a;b',
    'shardSelector=' + LOWER.replace(' ', '+'),
    'shardSelector=' + LOWER.replace(' ', '%20'),
    'shardSelector=%20',
)
