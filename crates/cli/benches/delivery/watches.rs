//! The server itself: watches of all pods, over HTTP without TLS.

use std::net::TcpListener;

use bytes::Bytes;
use ringwatch_http::Protocol;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::clients::{Clients, Speech};
use super::serving::{Serving, memory, pod};
use super::{EVENT_BYTES, Rounds};

/// A server and its watchers.
pub struct Watches {
    clients: Clients,
    runtime: Runtime,
    serving: Serving,
    _connections: JoinSet<()>,
    /// The pods that are written in a round.
    pods: Vec<(String, Bytes)>,
}

impl Watches {
    /// A server with so many watchers. So many events are published at a time.
    pub fn new(speech: Speech, watchers: usize, events: usize) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serving = runtime.block_on(Serving::start([]));
        let (protocol, sockets) = match speech {
            Speech::Http2 => (Protocol::Http2, watchers.div_ceil(super::clients::STREAMS)),
            Speech::Silent | Speech::Http1 => (Protocol::Http1, watchers),
        };
        let before = memory("VmRSS");
        let mut clients = Clients::start(&listener, speech, watchers, events);
        let _runs = runtime.enter();
        let mut connections = JoinSet::new();
        for _ in 0..sockets {
            let (socket, _) = listener.accept().unwrap();
            socket.set_nodelay(true).unwrap();
            socket.set_nonblocking(true).unwrap();
            let socket = tokio::net::TcpStream::from_std(socket).unwrap();
            connections.spawn_on(
                serving.server.serve_http(socket, protocol),
                runtime.handle(),
            );
        }
        clients.wait();
        let grown = memory("VmRSS").saturating_sub(before);
        println!("{speech:?}: {} bytes of memory a watch", grown / watchers);
        drop(_runs);
        Self {
            runtime,
            serving,
            _connections: connections,
            clients,
            pods: (0..events).map(|number| pod(number, EVENT_BYTES)).collect(),
        }
    }
}

impl Rounds for Watches {
    fn round(&mut self) {
        self.runtime.block_on(self.serving.put(&self.pods));
        self.clients.wait();
    }
}
