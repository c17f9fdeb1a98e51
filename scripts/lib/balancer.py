"""A load balancer as simple as one can be: connections go, in turn, to the servers whose /readyz says ok.

It passes bytes on and knows nothing of what is in them. A connection stays with its server until either side ends it.
It lives in a thread. Python's standard library is enough.
"""

import asyncio
import socket
import threading

from http2 import unverified_tls

# How often each server is asked, and when an answer is late.
PERIOD_SECONDS = 0.5
ANSWER_SECONDS_MAX = 2
START_SECONDS_MAX = 30
# How long one side may take to end a connection once the other has.
LINGER_SECONDS_MAX = 5
PIECE_BYTES = 1 << 16


class Balancer:
    """Listens at a port of loopback, once it is started."""

    def __init__(self, servers):
        self.servers, self.ready, self.turn, self.tasks = servers, set(), 0, set()
        self.host, self.port, self.name = '127.0.0.1', None, 'the balancer'
        # Connections that a server did not take, and those for which there was none.
        self.refused = 0
        self.loop, self.started = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.thread.start()
        if not self.started.wait(START_SECONDS_MAX):
            raise RuntimeError('the balancer does not start')

    def url(self):
        return 'https://127.0.0.1:%d' % self.port

    def end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.begin())
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.wait(tasks))
        self.listener.close()
        self.loop.close()

    async def begin(self):
        self.listener = socket.create_server((self.host, 0), backlog=128)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        for server in self.servers:
            await self.look(server)
        self.keep(self.accept())
        for server in self.servers:
            self.keep(self.keep_looking(server))
        self.started.set()

    def keep(self, work):
        """Runs something beside. asyncio itself does not keep a task that waits."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def accept(self):
        while True:
            near, _ = await self.loop.sock_accept(self.listener)
            self.keep(self.serve(near))

    async def keep_looking(self, server):
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            await self.look(server)

    async def look(self, server):
        try:
            is_ready = await asyncio.wait_for(self.answers(server), ANSWER_SECONDS_MAX)
        except (TimeoutError, OSError):
            is_ready = False
        (self.ready.add if is_ready else self.ready.discard)(server)

    async def answers(self, server):
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=unverified_tls())
        try:
            writer.write(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            return (await reader.readline()).startswith(b'HTTP/1.1 200 ')
        finally:
            writer.transport.abort()

    async def serve(self, near):
        ready = [it for it in self.servers if it in self.ready]
        self.turn += 1
        far = socket.socket()
        with near, far:
            for one in (near, far):
                one.setblocking(False)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                if not ready:
                    raise ConnectionRefusedError('no server is ready')
                server = ready[self.turn % len(ready)]
                await self.loop.sock_connect(far, (server.host, server.port))
            except OSError:
                self.refused += 1
                return
            await self.join(near, far)

    async def join(self, near, far):
        """Passes on both ways until both have ended, or one has and the other takes too long."""
        ways = [self.loop.create_task(self.pump(*it)) for it in ((near, far), (far, near))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ways, timeout=LINGER_SECONDS_MAX)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def pump(self, source, sink):
        """Passes on what one side sends until it ends. What the other does not take any more is read nevertheless, so
        that a reset does not overtake what that one has still sent."""
        is_taken = True
        try:
            while piece := await self.loop.sock_recv(source, PIECE_BYTES):
                try:
                    if is_taken:
                        await self.loop.sock_sendall(sink, piece)
                except OSError:
                    is_taken = False
        except OSError:
            # The source is reset, which is an end as well.
            pass
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # It has ended already.
            pass
