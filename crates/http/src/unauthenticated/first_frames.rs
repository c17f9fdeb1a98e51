//! Frames of HTTP/2 until the client is authenticated: a header block goes on when it is whole, and one at a time.
//!
//! hyper's decoder keeps the decoded part of an incomplete header block, in which one byte can become dozens in memory.
//! So the frames of a block are held back in encoded form until the last has arrived. Then the request is
//! authenticated, and nothing more is read until that is done. All other frames pass.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ringwatch::budget::Share;
use tokio::io::{AsyncRead, ReadBuf};

use super::{ClientStanding, FIRST_HEAD_BYTES_MAX};
use crate::http2_frames::{CONTINUATION, END_HEADERS, HEADER_BYTES, HEADERS, Header};
use crate::layered_io::IoLayer;
use crate::preface::PREFACE_BYTES;

/// The most bytes of the payload of a frame: HTTP/2's default, since nothing else was agreed on.
const FRAME_BODY_BYTES_MAX: usize = 16 << 10;
/// Number of bytes that are read at a time.
const READ_BYTES: usize = 4 << 10;
/// The most held bytes that are covered by the memory that is counted for every connection.
const COVERED_BYTES: usize = 8 << 10;

/// The layer that sees the frames of HTTP/2, and the preface before them. `None` once the client is authenticated.
#[derive(Debug)]
pub(crate) struct FirstFrames(Option<Box<First>>);

#[derive(Debug)]
struct First {
    standing: ClientStanding,
    /// The bytes that have been read and not inspected.
    input: Vec<u8>,
    /// The number of following bytes that pass without inspection.
    passing: usize,
    /// The frames of a header block that is not complete.
    block: Vec<u8>,
    /// The bytes that go on to hyper.
    output: Vec<u8>,
    /// True once a request has gone on to hyper.
    request_passed: bool,
    /// The share of the memory budget that covers the held bytes.
    share: Share,
}

impl FirstFrames {
    /// Creates the layer of a connection on which the preface comes next. Its memory is counted by `share`.
    #[must_use]
    pub(crate) fn new(standing: &ClientStanding, share: Share) -> Self {
        Self(Some(Box::new(First {
            standing: standing.clone(),
            input: Vec::new(),
            passing: PREFACE_BYTES,
            block: Vec::new(),
            output: Vec::new(),
            request_passed: false,
            share,
        })))
    }
}

impl First {
    /// Passes frames on to hyper as far as allowed. Returns true if more may be read.
    ///
    /// # Errors
    /// A header block is too large, or memory is short.
    fn advance(&mut self) -> io::Result<bool> {
        if self.standing.is_authenticated() {
            self.output.append(&mut self.block);
            self.output.append(&mut self.input);
            return Ok(true);
        }
        let mut taken = 0;
        let more = loop {
            if self.request_passed && !self.standing.is_judged() {
                break false;
            }
            let rest = &self.input[taken..];
            if self.passing > 0 {
                let passes = rest.len().min(self.passing);
                self.output.extend_from_slice(&rest[..passes]);
                self.passing -= passes;
                taken += passes;
                if self.passing > 0 {
                    break true;
                }
                continue;
            }
            let Some(header) = rest.first_chunk() else {
                break true;
            };
            let header = Header::decode(*header);
            let is_of_block = matches!(header.kind, HEADERS | CONTINUATION);
            let whole = HEADER_BYTES + header.length;
            if !is_of_block && self.block.is_empty() {
                self.passing = whole;
                continue;
            }
            if header.length > FRAME_BODY_BYTES_MAX
                || self.block.len() + whole > FIRST_HEAD_BYTES_MAX
            {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some(frame) = rest.get(..whole) else {
                break true;
            };
            self.block.extend_from_slice(frame);
            taken += whole;
            // Other frames within a block are an error, which the decoder reports to the client.
            if header.has(END_HEADERS) || !is_of_block {
                self.output.append(&mut self.block);
                self.request_passed = true;
            }
        };
        self.input.drain(..taken);
        self.count()?;
        Ok(more)
    }

    /// Counts the held bytes in the memory budget.
    fn count(&mut self) -> io::Result<()> {
        let held = self.input.len() + self.block.len();
        let held = if held <= COVERED_BYTES {
            0
        } else {
            held.next_power_of_two() as u64
        };
        match held.checked_sub(self.share.bytes()) {
            Some(more) => self.share.admit(more).map_err(io::Error::other),
            None => {
                self.share.set(held);
                Ok(())
            }
        }
    }
}

impl IoLayer for FirstFrames {
    fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        mut inner: Pin<&mut T>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(first) = &mut self.0 {
            let more = first.advance()?;
            if !first.output.is_empty() {
                let fits = first.output.len().min(buffer.remaining());
                buffer.put_slice(&first.output[..fits]);
                first.output.drain(..fits);
                return Poll::Ready(Ok(()));
            }
            if first.standing.is_authenticated() {
                self.0 = None;
                break;
            }
            if !more {
                ready!(first.standing.poll_judged(context));
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(inner.as_mut().poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            first.input.extend_from_slice(read.filled());
        }
        inner.poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use ringwatch::budget::{Account, Ledger};
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::http2_frames::{DATA, SETTINGS};
    use crate::layered_io::LayeredIo;

    /// Returns a frame of a type with flags and so many bytes.
    fn frame(kind: u8, flags: u8, bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).expect("a length").to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER_BYTES + bytes, kind);
        frame
    }

    /// Returns the part of a client's bytes that goes on, and the bytes that the memory budget knows of then.
    fn going_on(sent: &[u8], standing: &ClientStanding) -> (io::Result<Vec<u8>>, u64) {
        going_on_within(sent, standing, &Ledger::unlimited())
    }

    /// Does the same within a memory budget.
    fn going_on_within(
        sent: &[u8],
        standing: &ClientStanding,
        ledger: &Ledger,
    ) -> (io::Result<Vec<u8>>, u64) {
        let share = ledger.share(Account::Connections);
        let mut io = LayeredIo::new(sent, FirstFrames::new(standing, share));
        let mut gone_on = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            // Fewer bytes than any frame has.
            let mut bytes = [0; 7];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut io).poll_read(&mut context, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                    gone_on.extend_from_slice(read.filled());
                }
                Poll::Ready(Err(error)) => return (Err(error), 0),
                _ => return (Ok(gone_on), ledger.spent(Account::Connections)),
            }
        }
    }

    const PREFACE: [u8; PREFACE_BYTES] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    #[test]
    fn a_header_block_goes_on_when_it_is_whole() {
        let standing = ClientStanding::uncounted();
        let begun = [&PREFACE[..], &frame(SETTINGS, 0, 6)].concat();
        let part = [begun.clone(), frame(HEADERS, 0, 10_000)].concat();
        let (gone_on, held) = going_on(&part, &standing);
        assert_eq!(gone_on.expect("frames"), begun);
        assert_eq!(held, 16 << 10);
        let whole = [part, frame(CONTINUATION, END_HEADERS, 5_000)].concat();
        let more = [whole.clone(), frame(DATA, 0, 100)].concat();
        let (gone_on, held) = going_on(&more, &standing);
        assert_eq!(
            gone_on.expect("frames"),
            whole,
            "the request is judged first"
        );
        assert_eq!(held, 0);
    }

    #[tokio::test]
    async fn a_request_that_waits_for_the_judgement_goes_on_with_it() {
        let standing = ClientStanding::uncounted();
        let sent = [
            &PREFACE[..],
            &frame(HEADERS, END_HEADERS, 100),
            &frame(DATA, 0, 9),
        ]
        .concat();
        let share = Ledger::unlimited().share(Account::Connections);
        let mut io = LayeredIo::new(&sent[..], FirstFrames::new(&standing, share));
        let mut head = vec![0; sent.len() - HEADER_BYTES - 9];
        io.read_exact(&mut head).await.expect("the head");
        let mut rest = vec![0; HEADER_BYTES + 9];
        // It is polled again only when it is woken.
        let mut reading: FuturesUnordered<_> = [io.read_exact(&mut rest)].into_iter().collect();
        let judging = async { standing.refuse() };
        let both = futures::future::join(reading.next(), judging);
        let clock = ringwatch::clock::Clock::real();
        let both = clock.timeout(std::time::Duration::from_secs(60), both);
        let (read, ()) = both.await.expect("a wake");
        read.expect("one").expect("the body");
        drop(reading);
        assert_eq!([head, rest].concat(), sent);
    }

    #[test]
    fn a_request_needs_no_memory_budget_and_a_large_header_block_does() {
        let ledger = Ledger::new(1 << 20);
        let mut objects = ledger.share(Account::Objects);
        objects.set(2 << 20);
        let sent = [&PREFACE[..], &frame(HEADERS, END_HEADERS, 100)].concat();
        let (gone_on, _) = going_on_within(&sent, &ClientStanding::uncounted(), &ledger);
        assert_eq!(gone_on.expect("a request"), sent);
        let sent = [&PREFACE[..], &frame(HEADERS, 0, 10_000)].concat();
        let (gone_on, _) = going_on_within(&sent, &ClientStanding::uncounted(), &ledger);
        assert!(gone_on.is_err());
    }

    #[test]
    fn what_follows_the_judgement_goes_on() {
        let standing = ClientStanding::uncounted();
        standing.refuse();
        let all = [
            &PREFACE[..],
            &frame(HEADERS, END_HEADERS, 100),
            &frame(DATA, 0, 20_000),
            &frame(HEADERS, END_HEADERS, 100),
        ];
        let (gone_on, _) = going_on(&all.concat(), &standing);
        assert_eq!(gone_on.expect("frames"), all.concat());
        standing.authenticate();
        let part = [&PREFACE[..], &frame(HEADERS, 0, 100)].concat();
        let (gone_on, _) = going_on(&part, &standing);
        assert_eq!(gone_on.expect("frames"), part);
    }

    #[test]
    fn a_header_block_without_end_ends_the_connection() {
        let standing = ClientStanding::uncounted();
        let mut sent = [&PREFACE[..], &frame(HEADERS, 0, 10_000)].concat();
        for _ in 0..FIRST_HEAD_BYTES_MAX / 10_000 {
            sent.extend(frame(CONTINUATION, 0, 10_000));
        }
        let (gone_on, _) = going_on(&sent, &standing);
        let error = gone_on.expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn frames_without_bytes_do_not_make_a_block_endless() {
        let standing = ClientStanding::uncounted();
        let mut sent = [&PREFACE[..], &frame(HEADERS, 0, 0)].concat();
        for _ in 0..FIRST_HEAD_BYTES_MAX / HEADER_BYTES {
            sent.extend(frame(CONTINUATION, 0, 0));
        }
        assert!(going_on(&sent, &standing).0.is_err());
    }
}
