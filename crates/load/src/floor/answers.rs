//! Answers to requests, by what the server has beneath its own code: TLS over sockets of tokio, a task for each
//! connection. Nothing is looked at but where a request ends.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::{CLIENT_MAX, Protocol, READ_BYTES, RecordedAnswers, http1, http2};
use crate::measure::thread_cpu;

/// A connection that asks.
pub(super) type AskingConnection = TlsStream<TcpStream>;

/// Answers as they are written, which each connection gets in turn.
pub(super) enum WrittenAnswers {
    Http1(Vec<Vec<u8>>),
    Http2(Vec<http2::Frames>),
}

impl WrittenAnswers {
    pub(super) fn new(protocol: Protocol, recorded: &RecordedAnswers) -> Self {
        let RecordedAnswers { bodies, head_bytes } = recorded;
        let bodies = bodies.iter();
        match protocol {
            Protocol::Http1 => {
                Self::Http1(bodies.map(|it| http1::answer(*head_bytes, it)).collect())
            }
            Protocol::Http2 { .. } => {
                let frames = bodies.map(|it| http2::Frames::of_answer(*head_bytes, it));
                Self::Http2(frames.collect())
            }
        }
    }
}

/// Answers the requests of these connections until all are closed. Returns the processor time of it.
///
/// # Errors
/// A connection broke, or nobody asked for as long as a client is waited for.
pub(super) async fn answer_all(
    connections: Vec<AskingConnection>,
    answers: WrittenAnswers,
) -> io::Result<Duration> {
    let before = thread_cpu();
    let (answers, asked) = (Arc::new(answers), Arc::new(AtomicU64::new(0)));
    let mut answering = JoinSet::new();
    for connection in connections {
        let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
        answering.spawn(async move {
            match &*answers {
                WrittenAnswers::Http1(answers) => answer_http1(connection, answers, &asked).await,
                WrittenAnswers::Http2(answers) => answer_http2(connection, answers, &asked).await,
            }
        });
    }
    loop {
        // Relaxed: the number orders nothing else.
        let before = asked.load(Ordering::Relaxed);
        match tokio::time::timeout(CLIENT_MAX, answering.join_next()).await {
            Ok(None) => break,
            Ok(Some(ended)) => ended.map_err(io::Error::other)??,
            Err(_) if asked.load(Ordering::Relaxed) == before => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(_) => {}
        }
    }
    Ok(thread_cpu().saturating_sub(before))
}

async fn answer_http1(
    mut connection: AskingConnection,
    answers: &[Vec<u8>],
    asked: &AtomicU64,
) -> io::Result<()> {
    let mut request = http1::Request::default();
    let mut answers = answers.iter().cycle();
    let mut read = vec![0; READ_BYTES];
    loop {
        let bytes = read_some(&mut connection, &mut read, request.is_begun()).await?;
        if bytes == 0 {
            return Ok(());
        }
        if request.take(&read[..bytes])? {
            let answer = answers.next().ok_or(ErrorKind::InvalidInput)?;
            connection.write_all(answer).await?;
            connection.flush().await?;
            asked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn answer_http2(
    mut connection: AskingConnection,
    answers: &[http2::Frames],
    asked: &AtomicU64,
) -> io::Result<()> {
    let mut requests = http2::Requests::default();
    let mut answers = answers.iter().cycle();
    let (mut read, mut ended, mut out) = (vec![0; READ_BYTES], Vec::new(), Vec::new());
    loop {
        let bytes = read_some(&mut connection, &mut read, requests.is_begun()).await?;
        if bytes == 0 {
            return Ok(());
        }
        requests.take(&read[..bytes], &mut ended, &mut out)?;
        for stream in ended.drain(..) {
            let answer = answers.next().ok_or(ErrorKind::InvalidInput)?;
            answer.copy_for(stream, &mut out);
            asked.fetch_add(1, Ordering::Relaxed);
        }
        if !out.is_empty() {
            connection.write_all(&out).await?;
            connection.flush().await?;
            out.clear();
        }
    }
}

/// Reads what there is; nothing once the client has closed the connection, which it may not do within a request.
async fn read_some(
    connection: &mut AskingConnection,
    into: &mut [u8],
    is_begun: bool,
) -> io::Result<usize> {
    let bytes = match connection.read(into).await {
        // Not every client says that it closes.
        Err(error) if is_closed(&error) => 0,
        read => read?,
    };
    if bytes == 0 && is_begun {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Returns true if an error says that the other side has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}
