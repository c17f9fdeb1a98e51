#!/usr/bin/env python3
"""Print what a Go program that links Kubernetes' API types knows of them by reflection.

Usage: go_types.py PROGRAM... > go-types.txt (what the last program says of a field holds)

The protobuf definitions do not say which Go fields are pointers or omit their zero value, and so which empty fields are
written. A Go program does: the run-time type information of every struct holds names, types and tags. One line a field:

    package.Struct number json-name flags

number is 0 for fields that protobuf does not have, flags are letters: `p` pointer, `e` omitempty, `z` omitzero, `i`
inline. Reads 64-bit little-endian ELF files that are not position-independent.
"""

import re
import struct
import sys

KIND_MASK, POINTER, SLICE, STRUCT = 31, 22, 23, 25
TFLAG_UNCOMMON, TFLAG_EXTRA_STAR, TFLAG_NAMED = 1, 2, 4
TYPE_BYTES = 48
PACKAGE = re.compile(
    r'k8s\.io/(api/\w+/v\w+|apimachinery/pkg/(apis/meta/v\w+|runtime|util/intstr|api/resource)'
    r'|(apiextensions-apiserver|kube-aggregator)/pkg/apis/\w+/v\w+)'
)


class Program:
    """The bytes of a program by their address, and its types."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            self.bytes = file.read()
        self.sections = {}
        (table,) = struct.unpack_from('<Q', self.bytes, 40)
        size, count, names = struct.unpack_from('<HHH', self.bytes, 58)
        rows = [struct.unpack_from('<IIQQQQ', self.bytes, table + n * size) for n in range(count)]
        for name, _, _, address, offset, length in rows:
            start = rows[names][4] + name
            text = self.bytes[start : self.bytes.index(b'\0', start)].decode()
            self.sections[text] = (address, offset, length)
        self.base, self.offset, self.length = self.sections['.rodata']

    def read(self, layout, address):
        return struct.unpack_from('<' + layout, self.bytes, address - self.base + self.offset)

    def name(self, address):
        """A name and its tag."""
        at = address - self.base + self.offset
        flags, at = self.bytes[at], at + 1
        texts = []
        for present in (True, flags & 2):
            length = shift = 0
            while present:
                byte, at = self.bytes[at], at + 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            texts.append(self.bytes[at : at + length].decode('utf-8', 'replace'))
            at += length
        return texts

    def type(self, address):
        (tflag,) = self.read('B', address + 20)
        (kind,) = self.read('B', address + 23)
        (text,) = self.read('i', address + 40)
        name = self.name(self.base + text)[0]
        return kind & KIND_MASK, tflag, name[1:] if tflag & TFLAG_EXTRA_STAR else name

    def structs(self):
        """The addresses of structs that pointers, slices and fields lead to."""
        _, offset, length = self.sections['.typelink']
        links = struct.unpack_from('<%di' % (length // 4), self.bytes, offset)
        waiting, seen = [self.base + link for link in links], set()
        while waiting:
            address = waiting.pop()
            if address in seen or not self.base <= address < self.base + self.length:
                continue
            seen.add(address)
            kind = self.type(address)[0]
            if kind in (POINTER, SLICE):
                waiting += self.read('Q', address + TYPE_BYTES)
            elif kind == STRUCT:
                waiting += [field[1] for field in self.fields(address)]
                yield address

    def fields(self, address):
        at, count = self.read('QQ', address + TYPE_BYTES + 8)
        for n in range(count):
            yield self.read('QQQ', at + 24 * n)

    def package(self, address):
        """Where a named struct is defined."""
        (path,) = self.read('i', address + TYPE_BYTES + 32)
        return self.name(self.base + path)[0]


def lines(program):
    for address in program.structs():
        _, tflag, name = program.type(address)
        if not (tflag & TFLAG_NAMED and tflag & TFLAG_UNCOMMON):
            continue
        package = program.package(address)
        if not PACKAGE.fullmatch(package):
            continue
        for name_at, type_at, _ in program.fields(address):
            field, tag = program.name(name_at)
            json = re.search(r'json:"([^"]*)"', tag)
            protobuf = re.search(r'protobuf:"\w+,(\d+)', tag)
            words = (json.group(1) if json else field).split(',')
            kind = program.type(type_at)[0]
            flags = 'p' * (kind == POINTER) + 'e' * ('omitempty' in words) + 'z' * ('omitzero' in words)
            flags += 'i' * ('inline' in words or (json is not None and words[0] == ''))
            number = protobuf.group(1) if protobuf else '0'
            if number == '0' and not (words[0] == '' and 'i' in flags):
                continue
            yield '%s.%s %s' % (package, name.split('.')[-1], number), '%s %s' % (words[0] or '-', flags or '-')


if __name__ == '__main__':
    known = {}
    for program in sys.argv[1:]:
        known.update(lines(Program(program)))
    print('\n'.join('%s %s' % fact for fact in sorted(known.items())))
