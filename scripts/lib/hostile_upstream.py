"""An upstream for relays that is a server's door, but for the answers by which it is hostile."""

import http.client
import http.server
import threading

PIECE = 65_536
MAP = b'{"metadata":{"name":"a","namespace":"default","uid":"u"},"data":{"v":"' + b'x' * 900 + b'"}},'
LIST = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":['


def endless_list():
    yield LIST
    while True:
        yield MAP * 64


def empty_maps():
    """A list of 34 million items that have nothing."""
    yield LIST
    for _ in range(340):
        yield b'{},' * 100_000
    yield b'{}]}'


def long_review():
    """A review of 10 MB, of a token that is a user's of a long name."""
    yield (
        b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1",'
        b'"status":{"authenticated":true,"user":{"username":"'
    )
    for _ in range(10):
        yield b'x' * 1_000_000
    yield b'"}}}'


# What each answers, to which paths, and how.
HOSTILITIES = {
    'an endless list': ('/api/v1/configmaps', endless_list),
    'a list of 34 million {}': ('/api/v1/configmaps', empty_maps),
    'a review of 10 MB': ('/apis/authentication.k8s.io/v1/tokenreviews', long_review),
}


class Door(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and ends each connection with its answer."""

    def do_GET(self):
        path, pieces = HOSTILITIES.get(self.server.hostility, (None, None))
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        try:
            if self.path.split('?')[0] == path and 'watch=' not in self.path:
                self.answer(200, 'application/json', pieces())
            else:
                self.pass_on(body)
        except (OSError, http.client.HTTPException):
            # One of both ends has gone.
            self.close_connection = True

    do_POST = do_GET

    def pass_on(self, body):
        connection = self.server.behind.connection()
        names = ('authorization', 'accept', 'content-type')
        connection.request(
            self.command, self.path, body, {name: self.headers[name] for name in names if self.headers[name]}
        )
        answer = connection.getresponse()
        self.answer(
            answer.status, answer.getheader('content-type', 'text/plain'), iter(lambda: answer.read1(PIECE), b'')
        )
        connection.close()

    def answer(self, status, media_type, pieces):
        self.send_response(status)
        self.send_header('content-type', media_type)
        self.send_header('connection', 'close')
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
        self.close_connection = True

    def log_message(self, *_):
        pass


class HostileUpstream(http.server.ThreadingHTTPServer):
    """The door to a server on loopback; hostile as soon as `hostility` names how."""

    daemon_threads = True

    def __init__(self, behind):
        super().__init__(('127.0.0.1', 0), Door)
        self.behind, self.hostility = behind, None
        threading.Thread(target=self.serve_forever, daemon=True).start()
