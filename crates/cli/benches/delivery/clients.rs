//! The clients, in a process of their own: so many watchers that count what they get.
//!
//! The process is this bench's own binary, told by its environment what to be. It prints a line
//! when all watchers are there, and one whenever all of them have got a round of events, which it
//! tells by the marks in them. It ends when its standard input does.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// The variable that makes the binary a process of clients.
const ROLE: &str = "RINGWATCH_BENCH_CLIENTS";

/// The only byte of its kind in an event.
const MARK: u8 = b'~';

/// The number of streams of an HTTP/2 connection.
pub const STREAMS: usize = 100;

/// The flow control window of a stream, as in client-go, and of a connection.
const WINDOW_BYTES: u32 = 4 << 20;

/// The protocol of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Nothing; they only read.
    Silent,
    /// A watch each, over HTTP/1.1.
    Http1,
    /// Watches over HTTP/2, so many a connection.
    Http2,
}

/// A process of clients.
pub struct Clients {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Clients {
    /// Starts clients that connect to `listener`. `events` make a round.
    pub fn start(listener: &TcpListener, speech: Speech, watchers: usize, events: usize) -> Self {
        let address = listener.local_addr().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(ROLE, format!("{speech:?} {address} {watchers} {events}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits until all are there, or have got the next round.
    pub fn wait(&mut self) {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        assert!(read > 0, "the clients have gone");
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Returns true if this process is one of clients; if so, it has done its work.
pub fn ran() -> bool {
    let Ok(role) = std::env::var(ROLE) else {
        return false;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let [speech, address, watchers, events] = words.as_slice() else {
        panic!("{role}");
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let watchers: usize = watchers.parse().unwrap();
    let tally = Tally {
        watchers,
        round: watchers * events.parse::<usize>().unwrap(),
        there: Rc::default(),
        marks: Rc::default(),
    };
    let address = address.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = LocalSet::new();
    match *speech {
        "Http2" => {
            for _ in 0..watchers.div_ceil(STREAMS) {
                local.spawn_local(http2(address, watchers.min(STREAMS), tally.clone()));
            }
        }
        speech => {
            let asks = speech == "Http1";
            for _ in 0..watchers {
                local.spawn_local(http1(address, asks, tally.clone()));
            }
        }
    }
    runtime.block_on(local);
    true
}

/// The marks that have come.
#[derive(Clone)]
struct Tally {
    watchers: usize,
    /// The number of marks that make a round.
    round: usize,
    there: Rc<Cell<usize>>,
    marks: Rc<Cell<usize>>,
}

impl Tally {
    fn one_more_is_there(&self) {
        self.there.set(self.there.get() + 1);
        if self.there.get() == self.watchers {
            say_so();
        }
    }

    fn count(&self, content: &[u8]) {
        let found = content.iter().filter(|byte| **byte == MARK).count();
        let before = self.marks.get();
        self.marks.set(before + found);
        if before / self.round < (before + found) / self.round {
            say_so();
        }
    }
}

fn say_so() {
    let mut out = std::io::stdout();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

async fn http1(address: SocketAddr, asks: bool, tally: Tally) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    if asks {
        let token = super::serving::TOKEN;
        let head = format!(
            "GET {} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\r\n",
            super::WATCH
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let read = socket.read(&mut buffer).await.unwrap();
        let head = String::from_utf8_lossy(&buffer[..read]);
        assert!(
            head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
    }
    tally.one_more_is_there();
    loop {
        let read = socket.read(&mut buffer).await.unwrap();
        assert!(read > 0, "a watch has ended");
        tally.count(&buffer[..read]);
    }
}

async fn http2(address: SocketAddr, streams: usize, tally: Tally) {
    let socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .handshake(TokioIo::new(socket))
        .await
        .unwrap();
    tokio::task::spawn_local(connection);
    for _ in 0..streams {
        let (mut sender, tally) = (sender.clone(), tally.clone());
        tokio::task::spawn_local(async move {
            let request = http::Request::get(format!("http://bench{}", super::WATCH))
                .header("authorization", format!("Bearer {}", super::serving::TOKEN))
                .body(Empty::<Bytes>::new());
            let response = sender.send_request(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), 200);
            tally.one_more_is_there();
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                tally.count(&frame.unwrap().into_data().unwrap());
            }
            panic!("a watch has ended");
        });
    }
}
