//! Models of `joined_io.rs` of `ringwatch-http`: a connection that streams write to, over a socket that takes
//! little at a time.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::{Arc, Mutex};
use loom::thread;
use loom_tests::io::{AsyncRead, AsyncWrite, ReadBuf};
use loom_tests::joined_io::join;
use ringwatch_explore::loom::explore;

/// The number of bytes that the socket takes before its client reads.
const ROOM: usize = 2;

/// A value that tasks share, and the tasks that wait for it to change.
#[derive(Debug)]
struct Shared<T>(Arc<Mutex<(T, Vec<Waker>)>>);

impl<T> Shared<T> {
    fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new((value, Vec::new()))))
    }

    /// Changes the value, and wakes those who wait.
    fn change(&self, change: impl FnOnce(&mut T)) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut guard.0);
        let waiting = std::mem::take(&mut guard.1);
        drop(guard);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes something out of it, or waits until it changes.
    fn poll<U>(
        &self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut T) -> Option<U>,
    ) -> Poll<U> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = take(&mut guard.0) {
            return Poll::Ready(taken);
        }
        guard.1.push(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The bytes that a socket holds.
#[derive(Debug)]
struct Socket(Shared<Vec<u8>>);

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut written = false;
        let polled = self.0.poll(context, |held| {
            let taken = data.len().min(ROOM - held.len());
            held.extend_from_slice(&data[..taken]);
            written = taken > 0;
            written.then_some(taken)
        });
        if written {
            // The client is woken.
            self.0.change(|_| {});
        }
        polled.map(Ok)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// The frames that streams have for the connection.
#[derive(Debug, Default)]
struct Frames {
    waiting: Vec<&'static [u8]>,
    /// True once the connection is to end.
    closed: bool,
}

/// A connection that writes the frames of its streams until it is closed, as hyper does.
async fn connection(frames: Shared<Frames>, mut io: impl AsyncWrite + Unpin) {
    loop {
        let take = |frames: &mut Frames| match frames.waiting.is_empty() {
            false => Some(Some(frames.waiting.remove(0))),
            true => frames.closed.then_some(None),
        };
        let Some(frame) = poll_fn(|context| frames.poll(context, take)).await else {
            return;
        };
        let written = poll_fn(|context| Pin::new(&mut io).poll_write(context, frame)).await;
        assert_eq!(written.expect("gathered"), frame.len());
    }
}

/// Serves a connection that has some frames, and has another one come meanwhile, perhaps. Returns what the client has
/// read before it closes the connection. A connection that keeps bytes back hangs, which loom reports.
fn serve(waiting: Vec<&'static [u8]>, coming: Option<&'static [u8]>) -> Vec<u8> {
    let length: usize = waiting.iter().chain(&coming).map(|it| it.len()).sum();
    let frames = Shared::new(Frames {
        waiting,
        closed: false,
    });
    let held = Shared::new(Vec::new());
    let (served, socket) = (frames.clone(), Socket(held.clone()));
    let serving = thread::spawn(move || {
        let (io, mut turns) = join(socket);
        let connection = pin!(connection(served, io));
        block_on(turns.drive(connection)).expect("nothing fails");
    });
    let stream = coming.map(|frame| {
        let frames = frames.clone();
        thread::spawn(move || frames.change(|frames| frames.waiting.push(frame)))
    });
    let mut read = Vec::new();
    while read.len() < length {
        let take = |held: &mut Vec<u8>| (!held.is_empty()).then(|| std::mem::take(held));
        read.extend(block_on(poll_fn(|context| held.poll(context, take))));
        // There is room again.
        held.change(|_| {});
    }
    frames.change(|frames| frames.closed = true);
    if let Some(stream) = stream {
        stream.join().expect("a thread ends");
    }
    serving.join().expect("a thread ends");
    read
}

#[test]
fn what_the_socket_does_not_take_at_once_follows() {
    explore(10, &["read"], |seen| {
        assert_eq!(serve(vec![b"abc"], None), b"abc");
        seen.note("read");
    });
}

#[test]
fn a_frame_that_comes_while_others_are_written_does_not_stay_behind() {
    explore(10, &["read"], |seen| {
        assert_eq!(serve(Vec::new(), Some(b"a")), b"a");
        seen.note("read");
    });
}
