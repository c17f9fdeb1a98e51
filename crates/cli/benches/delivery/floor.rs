//! The floor: the same bytes, written to each socket by a bare loop.

use std::io::{IoSlice, Write};
use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use http_body_util::BodyExt;

use super::clients::{Clients, Speech};
use super::serving::{Serving, pod};
use super::{EVENT_BYTES, Rounds, WATCH};

/// Sockets that are written to.
pub struct Floor {
    clients: Clients,
    sockets: Vec<TcpStream>,
    /// The frames that each of them gets in a round.
    frames: Vec<Bytes>,
}

impl Floor {
    /// Returns the bytes of so many events of a watch over HTTP/1.1: a chunk of the body for each.
    fn frames(events: usize) -> Vec<Bytes> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let serving = Serving::start([]).await;
            let mut body = serving.get(WATCH, "application/json").await.into_body();
            let mut frames = Vec::new();
            for number in 0..events {
                serving.put(&[pod(number, EVENT_BYTES)]).await;
                let frame = body.frame().await.unwrap().unwrap();
                let frame = frame.into_data().unwrap();
                let size = format!("{:X}\r\n", frame.len());
                frames.push([size.as_bytes(), &frame, b"\r\n"].concat().into());
            }
            frames
        })
    }

    /// Sockets of so many clients, each of which gets so many events at a time.
    pub fn new(watchers: usize, events: usize) -> Self {
        let frames = Self::frames(events);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut clients = Clients::start(&listener, Speech::Silent, watchers, events);
        let accept = || {
            let (socket, _) = listener.accept().unwrap();
            socket.set_nodelay(true).unwrap();
            socket
        };
        let sockets = (0..watchers).map(|_| accept()).collect();
        clients.wait();
        Self {
            sockets,
            frames,
            clients,
        }
    }
}

impl Rounds for Floor {
    fn round(&mut self) {
        for socket in &mut self.sockets {
            if let [frame] = &self.frames[..] {
                socket.write_all(frame).unwrap();
                continue;
            }
            let parts: Vec<_> = self.frames.iter().map(|it| IoSlice::new(it)).collect();
            let written = socket.write_vectored(&parts).unwrap();
            assert_eq!(written, self.frames.iter().map(Bytes::len).sum::<usize>());
        }
        self.clients.wait();
    }
}
