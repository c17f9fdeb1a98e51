"""A load balancer as simple as one can be: connections go, in turn, to the servers whose /readyz says ok.

It passes bytes on and knows nothing of what is in them. A connection stays with its server until either side ends it. It lives in a thread.
Python's standard library is enough.
"""
import asyncio
import threading

from http2 import unverified_tls

# How often each server is asked, and when an answer is late.
PERIOD_SECONDS = 0.5
ANSWER_SECONDS_MAX = 2
# How long one side may take to end a connection once the other has.
LINGER_SECONDS_MAX = 5
PIECE_BYTES = 1 << 16


class Balancer:
    """Listens at a port of loopback, once it is started."""

    def __init__(self, servers):
        self.servers, self.ready, self.turn, self.ways = servers, set(), 0, set()
        self.host, self.port, self.name = '127.0.0.1', None, 'the balancer'
        # Connections that a server did not take, and those for which there was none.
        self.refused = 0
        self.loop, self.started = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.thread.start()
        self.started.wait()

    def url(self):
        return 'https://127.0.0.1:%d' % self.port

    def end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.begin())
        self.loop.run_forever()
        self.listener.close()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.wait(tasks))
        self.loop.close()

    async def begin(self):
        self.listener = await asyncio.start_server(self.serve, self.host, 0)
        self.port = self.listener.sockets[0].getsockname()[1]
        for server in self.servers:
            await self.look(server)
        self.looks = [asyncio.create_task(self.keep_looking(it)) for it in self.servers]
        self.started.set()

    async def keep_looking(self, server):
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            await self.look(server)

    async def look(self, server):
        try:
            is_ready = await asyncio.wait_for(self.answers(server), ANSWER_SECONDS_MAX)
        except (OSError, asyncio.TimeoutError):
            is_ready = False
        (self.ready.add if is_ready else self.ready.discard)(server)

    async def answers(self, server):
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=unverified_tls())
        try:
            writer.write(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            return (await reader.readline()).startswith(b'HTTP/1.1 200 ')
        finally:
            writer.transport.abort()

    async def serve(self, reader, writer):
        ready = [it for it in self.servers if it in self.ready]
        self.turn += 1
        try:
            if not ready:
                raise ConnectionRefusedError('no server is ready')
            server = ready[self.turn % len(ready)]
            far_reader, far_writer = await asyncio.open_connection(server.host, server.port)
        except OSError:
            self.refused += 1
            writer.transport.abort()
            return
        ways = [asyncio.create_task(pump(reader, far_writer)), asyncio.create_task(pump(far_reader, writer))]
        # asyncio itself does not keep a task that waits.
        self.ways.update(ways)
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ways, timeout=LINGER_SECONDS_MAX)
        except asyncio.CancelledError:
            # The balancer ends.
            pass
        finally:
            writer.transport.abort()
            far_writer.transport.abort()
            self.ways.difference_update(ways)


async def pump(reader, writer):
    """Passes on what one side sends until it ends, and ends the other way then."""
    try:
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.transport.abort()
