#!/usr/bin/env python3
"""Print the OpenAPI schemas of Kubernetes' built-in types, one a line.

Usage: make.py DEFINITIONS TABLES FACTS > schemas.txt

DEFINITIONS is the JSON schema of a release as the package kubernetes-validate has it: Kubernetes' published
definitions, changed so that null is allowed everywhere. TABLES is src/codec/tables.txt, which knows the Go types: what
Go cannot leave out has a default in OpenAPI v3. FACTS has what neither says. A line is

    NAME GROUP/VERSION/KIND[,...] SCHEMA

with `-` where a type is no kind, the names sorted and the schemas as OpenAPI v3 has them.
"""

import json
import sys

REFERENCE = '#/components/schemas/'
ZEROES = {'string': '', 'integer': 0, 'number': 0, 'boolean': False}
INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'
# Types that are a struct in Go and something else in JSON, with what that is.
ONE_OF = {'io.k8s.apimachinery.pkg.api.resource.Quantity': ('string', 'number'), INT_OR_STRING: ('integer', 'string')}


def published(node, name=''):
    """A schema as Kubernetes publishes it: without what was added for validation."""
    if isinstance(node, list):
        return [published(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {}
    for key, value in node.items():
        if key == 'properties':
            schema[key] = {name: published(value, name) for name, value in value.items()}
        elif key == '$ref':
            schema['$ref'] = REFERENCE + value.rsplit('/', 1)[1]
        elif key == 'type' and isinstance(value, list):
            schema['type'] = next(kind for kind in value if kind != 'null')
        elif key == 'enum' and name in ('apiVersion', 'kind'):
            continue
        else:
            schema[key] = published(value)
    return schema


class Tables:
    """What Go says of the fields of messages."""

    def __init__(self, path):
        self.messages, package = {}, ''
        for line in open(path, encoding='utf-8'):
            words = line.split()
            if words[0] == 'package':
                package = words[1]
            elif words[0] == 'message':
                fields = self.messages[package + '.' + words[1]] = []
            elif words[0] != '#':
                flags = words[3] if len(words) > 3 and '=' not in words[3] else ''
                kind = package + words[2] if words[2].startswith('.') else words[2]
                fields.append((words[1], kind, flags))

    def flags(self, definition, field):
        """The flags of a field, also of one that JSON merges into its message; None if it is not known."""
        message = definition.removeprefix('io.k8s.').replace('-', '_')
        return self._flags(message, field)

    def _flags(self, message, field):
        for name, kind, flags in self.messages.get(message, ()):
            if 'i' in flags:
                found = self._flags(kind, field)
                if found is not None:
                    return found
            elif name == field:
                return flags
        return None


class Defaults:
    """Writes what a value is when it is not said."""

    def __init__(self, definitions, tables, known):
        self.definitions, self.tables, self.known = definitions, tables, known

    def of_definition(self, name, schema):
        for field, member in schema.get('properties', {}).items():
            flags = self.tables.flags(name, field)
            if flags is None:
                required = field in schema.get('required', ())
                flags = '' if required else 'pe'
            default = self.known.get((name, field), self.zero(member, flags))
            if default is not None:
                member['default'] = default

    def zero(self, schema, flags):
        """What Go has for a field of nothing, if it cannot leave it out."""
        if 'p' in flags:
            return None
        if '$ref' in schema:
            is_struct = 'properties' in self.definitions[schema['$ref'].removeprefix(REFERENCE)]
            return {} if is_struct else None
        is_text_of_bytes = schema.get('format') == 'byte'
        return None if 'e' in flags or is_text_of_bytes else ZEROES.get(schema.get('type'))


def wrapped(node):
    """OpenAPI v3 forbids words beside a reference, so that it becomes one of all of."""
    if isinstance(node, list):
        return [wrapped(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: wrapped(value) for key, value in node.items()}
    if isinstance(node.get('$ref'), str) and len(node) > 1:
        node['allOf'] = [{'$ref': node.pop('$ref')}]
    return node


def read_facts(path):
    """The lines of facts.txt."""
    facts = {'enum': {}, 'default': {}}
    for line in open(path, encoding='utf-8'):
        if not line.startswith('#'):
            name, field, what, value = line.split(maxsplit=3)
            facts[what][name, field] = json.loads(value)
    return facts


def main():
    definitions_path, tables_path, facts_path = sys.argv[1:]
    with open(definitions_path, encoding='utf-8') as file:
        definitions = published(json.load(file)['$defs'])
    facts = read_facts(facts_path)
    for (name, field), values in facts['enum'].items():
        member = definitions[name]['properties'][field]
        inner = member.get('items') or member.get('additionalProperties') or member
        inner['enum'] = values
    defaults = Defaults(definitions, Tables(tables_path), facts['default'])
    for name, schema in sorted(definitions.items()):
        if name in ONE_OF:
            schema.pop('type', None)
            schema['oneOf'] = [{'type': kind} for kind in ONE_OF[name]]
        if name == INT_OR_STRING:
            schema['format'] = 'int-or-string'
        defaults.of_definition(name, schema)
        kinds = ','.join(
            '%(group)s/%(version)s/%(kind)s' % it for it in schema.get('x-kubernetes-group-version-kind', ())
        )
        text = json.dumps(wrapped(schema), ensure_ascii=False, separators=(',', ':'), sort_keys=True)
        print(name, kinds or '-', text)


if __name__ == '__main__':
    main()
