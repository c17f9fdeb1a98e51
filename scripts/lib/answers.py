"""What API servers answer, for scripts that compare the answers of two."""

import json

MAGIC = b'k8s\0'
JSON = 'application/json'
PROTOBUF = 'application/vnd.kubernetes.protobuf'


def fields(message):
    """The fields of a protobuf message: number, and content with the length before it."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        tag = varint()
        start = at
        if tag & 7 == 0:
            varint()
        elif tag & 7 == 2:
            length = varint()
            start, at = at, at + length
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, message[start:at]


def resources(server):
    """All stored resources: group and version, and what discovery says of each."""
    groups = json.loads(server.ask('GET', '/apis')[1])['groups']
    versions = ['v1'] + [version['groupVersion'] for group in groups for version in group['versions']]
    for version in versions:
        found = json.loads(server.ask('GET', root(version))[1])['resources']
        for resource in found:
            is_stored = {'get', 'list', 'watch'} <= set(resource['verbs']) and '/' not in resource['name']
            if is_stored:
                yield version, resource


def root(version):
    return ('/apis/' if '/' in version else '/api/') + version


def items(body):
    """The items of a list, in either form, without the version of the list."""
    if body.startswith(MAGIC):
        raw = dict(fields(body.removeprefix(MAGIC)))[2]
        return [content for number, content in fields(raw) if number == 2]
    return json.loads(body)['items']


def differences(theirs, ours, path=''):
    """Where two trees differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from differences(theirs.get(key), ours.get(key), path + '.' + key)
    elif theirs == ours:
        return
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for at, pair in enumerate(zip(theirs, ours)):
            yield from differences(*pair, '%s[%d]' % (path, at))
    elif isinstance(theirs, bytes) and isinstance(ours, bytes):
        at = next((at for at, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]), min(len(theirs), len(ours)))
        there = slice(max(at - 20, 0), at + 40)
        yield '%s: from byte %d on, kube-apiserver %r, ringwatch %r' % (path, at, theirs[there], ours[there])
    else:
        yield '%s: kube-apiserver %r, ringwatch %r' % (path, theirs, ours)
