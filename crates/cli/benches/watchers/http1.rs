//! A watch on a connection of its own, over TLS and HTTP/1.1.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::chunks::Lines;
use super::group::{Group, Heard, now};
use super::protocol::{Mode, Opening};
use super::server::TOKEN;

/// The receive buffer and the segment size of connections that buffer little: with the segments of loopback, 64 KiB, the
/// sender's kernel buffers megabytes.
const SMALL_BUFFER_BYTES: u32 = 4_096;
const SMALL_SEGMENT_BYTES: u32 = 1_400;
/// The head of an answer is at most this long.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a watch waits before it tries again to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The part that all connections of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) tls: Arc<ClientConfig>,
    /// Where all connections read into, one after the other.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    /// How many may be opening a connection at once.
    pub(crate) opening: Semaphore,
}

/// Why a connection ended.
enum End {
    /// The group is away.
    Away,
    /// Nothing to be done.
    Over,
    /// The watch can be resumed.
    Broken(String),
}

/// Follows one watch to its end; again and again if its group resumes.
pub(crate) async fn follow(group: Rc<Group>, index: usize, shared: Rc<Shared>) {
    loop {
        while group.mode() == Mode::Away {
            group.mode_changed.notified().await;
        }
        let opened = open(&group, index, &shared).await;
        let was_open = opened.is_ok();
        let end = match opened {
            Ok((stream, lines)) => {
                group.answered();
                let end = read(&group, index, &shared, stream, lines).await;
                group.ended();
                end
            }
            Err(end) => end,
        };
        match end {
            End::Over => return,
            End::Away => {}
            End::Broken(why) if !group.opening.resumes => return group.fault(index, &why),
            End::Broken(_) if was_open => group.resumed(),
            End::Broken(_) => {
                group.put_off();
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

type Stream = TlsStream<tokio::net::TcpStream>;

/// A new connection over TLS.
pub(crate) async fn connect(opening: &Opening, tls: &Arc<ClientConfig>) -> io::Result<Stream> {
    let socket = TcpSocket::new_v4()?;
    if opening.small_buffers {
        socket.set_recv_buffer_size(SMALL_BUFFER_BYTES)?;
        SockRef::from(&socket).set_tcp_mss(SMALL_SEGMENT_BYTES)?;
    }
    let tcp = socket.connect(opening.address).await?;
    tcp.set_nodelay(true)?;
    let name = ServerName::IpAddress(opening.address.ip().into());
    TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await
}

/// Asks for the watch and reads the head of the answer, and lines that came with it.
async fn open(group: &Group, index: usize, shared: &Shared) -> Result<(Stream, Lines), End> {
    let _turn = shared.opening.acquire().await;
    let broken = |error: io::Error| End::Broken(error.to_string());
    let opening = &group.opening;
    let mut stream = connect(opening, &shared.tls).await.map_err(broken)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\
         accept: application/json\r\n\r\n",
        group.path(index),
        opening.address
    );
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let mut head = Vec::with_capacity(1_024);
    let end = loop {
        if let Some(end) = head.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await.map_err(broken)? == 0 {
            return Err(End::Broken("no head of an answer".to_owned()));
        }
    };
    let text = String::from_utf8_lossy(&head).into_owned();
    if !text.starts_with("HTTP/1.1 200") {
        if text.starts_with("HTTP/1.1 410") {
            group.gone(index, &text);
            return Err(End::Over);
        }
        return Err(End::Broken(text));
    }
    let chunked = text
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    let mut lines = if chunked {
        Lines::chunked()
    } else {
        Lines::plain()
    };
    lines
        .read(&head[end..], |line| {
            group.take(index, line, now());
        })
        .map_err(End::Broken)?;
    Ok((stream, lines))
}

/// Reads lines until the watch ends or its group goes away.
async fn read(
    group: &Group,
    index: usize,
    shared: &Shared,
    mut stream: Stream,
    mut lines: Lines,
) -> End {
    let mut changed = pin!(group.mode_changed.notified());
    loop {
        match group.mode() {
            Mode::Reads => {}
            Mode::Away => return End::Away,
            Mode::Stalls => {
                changed.as_mut().await;
                changed.set(group.mode_changed.notified());
                continue;
            }
        }
        let step = poll_fn(|context| {
            if changed.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            let scratch = &mut *shared.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(scratch);
            let read = ready!(Pin::new(&mut stream).poll_read(context, &mut buffer));
            let step = read.map_err(|error| End::Broken(error.to_string()));
            Poll::Ready(Some(
                step.and_then(|()| take(group, index, &mut lines, buffer.filled())),
            ))
        });
        match step.await {
            None => changed.set(group.mode_changed.notified()),
            Some(Ok(())) => {}
            Some(Err(end)) => return end,
        }
    }
}

/// Takes what was read; no bytes are the end.
fn take(group: &Group, index: usize, lines: &mut Lines, bytes: &[u8]) -> Result<(), End> {
    let now = now();
    let mut heard = Heard::Event;
    let goes_on = lines
        .read(bytes, |line| {
            if heard == Heard::Event {
                heard = group.take(index, line, now);
            }
        })
        .map_err(End::Broken)?;
    if heard == Heard::End {
        return Err(End::Over);
    }
    if bytes.is_empty() || !goes_on {
        return Err(End::Broken("the watch ended".to_owned()));
    }
    Ok(())
}
