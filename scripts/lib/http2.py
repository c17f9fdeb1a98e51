"""As much of HTTP/2 as a client needs that watches an API server: requests without a body, their answers, GOAWAY.

Python's standard library is enough.
"""

import socket
import ssl
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
# What the other side may send before it is told that it was read, of each stream and of all.
WINDOW = 1 << 30
# The field `:status: 200` of the static table; servers send it so.
STATUS_OK = 0x88


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def text(value):
    """Encodes a string of a header block, without Huffman's code."""
    raw = value.encode()
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    length, more = bytearray([127]), len(raw) - 127
    while more >= 128:
        length.append(more & 127 | 128)
        more >>= 7
    return bytes([*length, more]) + raw


def unverified_tls(*protocols):
    # Authorities are not loaded, which takes long.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


class Connection:
    """A connection whose frames are read one after the other."""

    def __init__(self, host, port, timeout):
        plain = socket.create_connection((host, port), timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket = unverified_tls('h2').wrap_socket(plain)
        except OSError:
            plain.close()
            raise
        self.authority, self.next, self.buffer = '%s:%d' % (host, port), 1, b''
        settings = struct.pack('>HIHI', 2, 0, 4, WINDOW)
        self.socket.sendall(
            PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, struct.pack('>I', WINDOW))
        )

    def get(self, path, **headers):
        """Sends a request; returns the number of its stream."""
        stream, self.next = self.next, self.next + 2
        fields = {':method': 'GET', ':scheme': 'https', ':authority': self.authority, ':path': path, **headers}
        block = b''.join(b'\0' + text(name) + text(value) for name, value in fields.items())
        self.socket.sendall(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
        return stream

    def frame(self):
        """Returns the next frame: kind, flags, stream, payload. An end of the connection is a ConnectionError."""
        while True:
            head = self.read(9)
            kind, flags, stream = head[3], head[4], struct.unpack('>I', head[5:])[0]
            payload = self.read(int.from_bytes(head[:3], 'big'))
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0, b''))
            elif kind == PING and not flags & ACK:
                self.socket.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA and payload:
                self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack('>I', len(payload))))
                return kind, flags, stream, payload
            elif kind not in (SETTINGS, PING, WINDOW_UPDATE):
                return kind, flags, stream, payload

    def read(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError('the connection ended')
            self.buffer += more
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def close(self):
        self.socket.close()
