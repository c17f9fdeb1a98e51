"""Requests that depend on earlier answers, and what of an answer two servers must say alike.

A case is a list of steps, which verification/peers/compare-requests carries out on two servers. What one server alone
can know, such as the version of an object that it has just made, stands in a step as `$NAME.rv$`, `$NAME.uid$` or
`$NAME.continue$`, where NAME is what an earlier step keeps. Python's standard library is enough.
"""

import json
import re
import urllib.parse
from typing import NamedTuple

from answers import JSON, MAGIC, PROTOBUF
from wire import message_tree

YAML = 'application/yaml'
MERGE, STRATEGIC = 'application/merge-patch+json', 'application/strategic-merge-patch+json'
JSON_PATCH, APPLY = 'application/json-patch+json', 'application/apply-patch+yaml'
KEPT = re.compile(r'\$(\w+)\.(rv|uid|continue)\$')
# Headers that each server has its own values of; that they are there is compared.
OWN_HEADERS = {
    'audit-id',
    'etag',
    'x-kubernetes-pf-flowschema-uid',
    'x-kubernetes-pf-prioritylevel-uid',
    'last-modified',
    'expires',
}
# Headers that say how a body is sent.
OTHER_HEADERS = {'date', 'content-length', 'transfer-encoding', 'connection'}
# What no two servers say alike, each with what it is replaced by.
OWN_WORDS = [
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'UID'),
        (r'20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z', 'TIME'),
        (r'\b10\.0\.0\.\d+', 'ADDRESS'),
        (r'\b(gen-|kube-api-access-)[a-z0-9]{5}\b', r'\1RANDOM'),
        (r'\beyJ[A-Za-z0-9_.-]{20,}', 'TOKEN'),
        (r'\n\nPossible enum values:\n.*', ' ENUM VALUES'),
        (r'(?<=\?hash=)[0-9A-F]{128}', 'HASH'),
        (r'192\.0\.2\.\d+:\d+', 'SERVER'),
        (r'\bapiserver-[a-z0-9]{26}', 'apiserver-IDENTITY'),
        (r'-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?', 'CERTIFICATE'),
        (r'(?<=in scheme ")[a-z0-9./-]*?(?=pkg/)', ''),
        (r'(ResourceVersion in (?:record|object meta)[ :]+\(?)\d+', r'\1VERSION'),
        (r'(resource ?[vV]ersion(?: in [a-z ]+)?:? \(?"?)\d+', r'\1VERSION'),
        (r'(current: |old resource version: \w+ \()\d+', r'\1VERSION'),
    )
]


class Step(NamedTuple):
    """A request. A watch is read while `writes` are sent, until it ends."""

    method: str
    path: str
    body: object = None
    content: str = JSON
    accept: str = JSON
    headers: tuple = ()
    # The name under which the version, uid and continuation of the answer are kept.
    keep: str = ''
    # True if the answer is not compared, since the step only makes what others need.
    is_quiet: bool = False
    is_watch: bool = False
    writes: tuple = ()
    # Seconds to wait before it, for what follows objects.
    pause: float = 0
    # The status that it is repeated for.
    until: int = 0


def query(*pairs):
    """A query out of pairs of names and values; a name without value is None's."""
    return '&'.join(
        name if value is None else '%s=%s' % (name, '$'.join(urllib.parse.quote(it) for it in str(value).split('$')))
        for name, value in pairs
    )


def with_query(path, pairs):
    return '%s%s%s' % (path, '&' if '?' in path else '?', query(*pairs)) if pairs else path


def filled(text, kept):
    """A text with what one server knows."""

    def value(found):
        return str(kept.get(found[1], {}).get(found[2], ''))

    return KEPT.sub(value, text)


def body_of(step, kept):
    """The bytes of a step's body."""
    body = step.body
    if body is None or isinstance(body, bytes):
        return body
    text = body if isinstance(body, str) else json.dumps(body, separators=(',', ':'))
    return filled(text, kept).encode('utf-8', 'surrogateescape')


def knowledge(content):
    """What later steps may need of an answer."""
    try:
        meta = json.loads(content)['metadata']
    except (ValueError, KeyError, TypeError):
        return {}
    return {'rv': meta.get('resourceVersion', ''), 'uid': meta.get('uid', ''), 'continue': meta.get('continue', '')}


def comparable_headers(headers):
    found = {}
    for name in sorted({it.lower() for it in headers}):
        if name in OTHER_HEADERS:
            continue
        values = headers.get_all(name)
        found[name] = 'THERE' if name in OWN_HEADERS else own_words(values[0]) if len(values) == 1 else values
    return found


def comparable(content, media):
    """The body of an answer without what is a server's own."""
    if media.startswith(PROTOBUF) or content.startswith(MAGIC):
        return {'protobuf': message_tree(content.removeprefix(MAGIC), own_words)}
    text = content.decode('utf-8', 'replace')
    try:
        return own(json.loads(text))
    except ValueError:
        return own_text(text)


def own_text(text):
    """A text, such as YAML, without what is a server's own."""
    text = re.sub(r'\b(resourceVersion|continue)("?: ?"?)[^"\s,}]+', r'\1\2OWN', text)
    return own_words(text)


def own_words(text):
    for pattern, name in OWN_WORDS:
        text = pattern.sub(name, text)
    return text


def own(value, key=''):
    """A tree without what is a server's own."""
    if isinstance(value, dict):
        if {'manager', 'operation', 'fieldsType'} <= set(value):
            value = {**value, 'time': 'TIME'} if 'time' in value else value
        # The causes say the same as the message, one at a time.
        if value.get('reason') == 'Invalid' and (value.get('details') or {}).get('causes'):
            message = re.sub(r'(?<= is invalid: ).*', 'CAUSES', value.get('message', ''), count=1, flags=re.DOTALL)
            value = {**value, 'message': message}
        return {name: own(member, name) for name, member in value.items()}
    if isinstance(value, list):
        members = [own(member, key) for member in value]
        if key == 'managedFields':
            # Entries of one second come in the order of their managers or of their times.
            members.sort(key=lambda it: [str(it.get(name)) for name in ('manager', 'operation', 'subresource')])
        if key == 'causes':
            # An error that two checks find is one cause here and two there.
            return [it for at, it in enumerate(members) if it not in members[:at]]
        if key == 'resources' and members and isinstance(members[0], dict):
            return sorted(members, key=lambda it: it.get('name') or it.get('resource') or '')
        if key in ('resourceRules', 'nonResourceRules'):
            # Rules of several bindings come in the order of a Go map.
            return sorted(members, key=lambda it: json.dumps(it, sort_keys=True))
        if key == 'cells':
            return [re.sub(r'^\d+s$', 'AGE', it) if isinstance(it, str) else it for it in members]
        return members
    if key == 'continue' and value or key == 'resourceVersion' and value and value != '0':
        return key.upper()
    if key in ('nodePort', 'healthCheckNodePort') and isinstance(value, int):
        return 'PORT'
    return own_words(value) if isinstance(value, str) else value
