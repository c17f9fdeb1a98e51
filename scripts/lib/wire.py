"""Protobuf messages without their schemas: read for comparison, and put together anew.

Python's standard library is enough.
"""

import base64

# Seconds since 1970, which the servers' clocks tell.
SECONDS_MIN, SECONDS_MAX = 1_600_000_000, 4_000_000_000
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5


def varint(data, at):
    """A number, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def encoded(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """A field: of a number, or of bytes with their length."""
    if isinstance(value, int):
        return encoded(number << 3) + encoded(value)
    return encoded(number << 3 | DELIMITED) + encoded(len(value)) + value


def message(members):
    return b''.join(field(number, value) for number, value in members)


def members(data):
    """The fields of a message, those with a length as bytes and all others as numbers; None if it is no message."""
    found, at = [], 0
    try:
        while at < len(data):
            tag, at = varint(data, at)
            kind = tag & 7
            if kind == VARINT:
                value, at = varint(data, at)
            elif kind == DELIMITED:
                length, at = varint(data, at)
                value, at = data[at : at + length], at + length
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
                value, at = int.from_bytes(data[at : at + length], 'little'), at + length
            else:
                return None
            if at > len(data) or tag < 8:
                return None
            found.append((tag >> 3, value))
    except IndexError:
        return None
    return found


def message_tree(data, own_words=lambda text: text):
    """The fields of a message: what looks like text is text, and what looks like a message is one."""
    found = []
    for number, value in members(data) or [(0, data)]:
        if isinstance(value, int):
            found.append([number, 'TIME' if SECONDS_MIN < value < SECONDS_MAX else value])
            continue
        if value.startswith(b'k8s\0'):
            found.append([number, message_tree(value[4:], own_words)])
            continue
        text = value.decode('utf-8', 'replace')
        if text.isprintable() and '\ufffd' not in text:
            found.append([number, 'NUMBER' if text.isdigit() and len(text) > 1 else own_words(text)])
        elif number and members(value):
            found.append([number, message_tree(value, own_words)])
        elif '\ufffd' not in text:
            found.append([number, own_words(text)])
        else:
            found.append([number, base64.b64encode(value).decode()])
    return found
