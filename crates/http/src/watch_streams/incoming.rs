//! The client's frames on their way to h2: what they say of windows and streams.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::windows::{Update, WINDOW_BYTES_MAX};
use super::{ConnectionWatches, STREAMS_MAX};
use crate::http2_frames::{
    ACK, CONTINUATION, END_HEADERS, FramePosition, HEADERS, Header, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};
use crate::preface::PREFACE_BYTES;

/// The number that stands for the whole connection in place of a stream's.
const CONNECTION: u32 = 0;
/// The payload of a WINDOW_UPDATE frame, in bytes.
const UPDATE_BYTES: usize = 4;
/// One setting in the payload of a SETTINGS frame, in bytes.
const SETTING_BYTES: usize = 6;
/// The setting of the window with which a stream begins.
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
/// Maximum length of a SETTINGS frame that h2 takes.
const SETTINGS_BYTES_MAX: usize = 16 << 10;

/// The largest buffer that is kept for the next frame.
const KEPT_BYTES_MAX: usize = 64;

/// The fate of a WINDOW_UPDATE frame of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Grant {
    /// The stream is h2's.
    Pass,
    /// The stream is a watch's.
    Withhold,
    /// The window of a watch would be larger than is allowed.
    Overflow,
}

/// The position in the client's bytes.
#[derive(Debug)]
pub(super) struct IncomingBytes {
    position: FramePosition,
    /// The number of bytes of the preface that are to come.
    preface: usize,
    /// The frame whose payload is being collected; it is passed on when it is complete.
    header: Option<Header>,
    /// The payload so far, of at most [`SETTINGS_BYTES_MAX`].
    payload: Vec<u8>,
    /// The newest stream.
    newest: u32,
    /// True if the client is within a header block, between whose frames no other may be.
    in_header_block: bool,
}

impl Default for IncomingBytes {
    fn default() -> Self {
        Self {
            position: FramePosition::default(),
            preface: PREFACE_BYTES,
            header: None,
            payload: Vec::new(),
            newest: 0,
            in_header_block: false,
        }
    }
}

impl ConnectionWatches {
    /// Takes bytes of the client and appends those that h2 is to get.
    ///
    /// # Errors
    /// The client sends SETTINGS faster than h2 acknowledges them.
    pub(crate) fn receive(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let preface = self.incoming.preface.min(bytes.len());
        self.incoming.preface -= preface;
        out.extend_from_slice(&bytes[..preface]);
        bytes = &bytes[preface..];
        while !bytes.is_empty() {
            let incoming = &mut self.incoming;
            if incoming.position.left > 0 {
                let taken = incoming.position.take_payload(bytes);
                let (payload, rest) = bytes.split_at(taken);
                bytes = rest;
                if incoming.header.is_none() {
                    out.extend_from_slice(payload);
                    continue;
                }
                incoming.payload.extend_from_slice(payload);
            } else {
                let (taken, header) = incoming.position.take_header(bytes);
                bytes = &bytes[taken..];
                let Some(header) = header else {
                    continue;
                };
                if incoming.in_header_block || !is_collected(header) {
                    out.extend_from_slice(&header.encode());
                    self.began(header);
                    continue;
                }
                incoming.header = Some(header);
            }
            if self.incoming.position.left == 0
                && let Some(header) = self.incoming.header.take()
            {
                let mut payload = std::mem::take(&mut self.incoming.payload);
                self.complete(header, &payload, out)?;
                if payload.capacity() <= KEPT_BYTES_MAX {
                    payload.clear();
                    self.incoming.payload = payload;
                }
            }
        }
        Ok(())
    }

    /// Appends a WINDOW_UPDATE frame for h2 if it is to get a part of the watches' window, and a frame may come here.
    pub(crate) fn refill(&mut self, out: &mut Vec<u8>) {
        let incoming = &self.incoming;
        let within = incoming.preface > 0
            || incoming.header.is_some()
            || incoming.in_header_block
            || !incoming.position.is_between_frames();
        if !within && let Some(increment) = self.windows.refill() {
            update(CONNECTION, increment, out);
        }
    }

    /// Notes a frame of which only the header matters.
    fn began(&mut self, header: Header) {
        if matches!(header.kind, HEADERS | CONTINUATION) {
            self.incoming.in_header_block = !header.has(END_HEADERS);
        }
        match header.kind {
            HEADERS if header.stream > self.incoming.newest => {
                self.incoming.newest = header.stream;
                if self.streams.len() < STREAMS_MAX {
                    self.streams.entry(header.stream).or_default();
                }
            }
            RST_STREAM => self.forget(header.stream),
            _ => {}
        }
    }

    /// Passes a frame on whose payload is complete, unless it concerns watches alone.
    fn complete(&mut self, header: Header, payload: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if header.kind == SETTINGS {
            let settings = payload.chunks_exact(SETTING_BYTES);
            let initial = settings.filter_map(|setting| setting.strip_prefix(&INITIAL_WINDOW_SIZE));
            let initial = initial.filter_map(|value| value.try_into().ok());
            self.windows
                .set(initial.map(u32::from_be_bytes).next_back())?;
            pass(header, payload, out);
            if self.is_any_window_too_large() {
                overflow(CONNECTION, out);
            }
            return Ok(());
        }
        let increment: [u8; UPDATE_BYTES] = payload.try_into().unwrap_or_default();
        let increment = u32::from_be_bytes(increment) & (u32::MAX >> 1);
        if increment == 0 {
            // An error, which h2 finds.
            pass(header, payload, out);
        } else if header.stream == CONNECTION {
            match self.grant(increment) {
                Update::Pass(increment) => pass(header, &increment.to_be_bytes(), out),
                Update::Withhold => {}
                Update::Overflow => overflow(header.stream, out),
            }
        } else {
            match self.grant_stream(header.stream, increment) {
                Grant::Pass => pass(header, payload, out),
                Grant::Withhold => {}
                Grant::Overflow => overflow(header.stream, out),
            }
        }
        Ok(())
    }

    /// Takes an increment of the connection's window.
    fn grant(&mut self, increment: u32) -> Update {
        let update = self.windows.grant(increment);
        if self.windows.has_room_for_watches() {
            self.handovers.open();
        }
        for number in std::mem::take(&mut self.starved) {
            let stream = self.streams.get(&number);
            if let Some(slot) = stream.and_then(|it| it.watch.as_ref()) {
                slot.lock().starved = false;
                Waker::from(Arc::clone(slot)).wake();
            }
        }
        update
    }

    /// Returns true if the newest SETTINGS frame makes the window of a watch larger than is allowed.
    fn is_any_window_too_large(&self) -> bool {
        let credit_max = WINDOW_BYTES_MAX - self.windows.newest_initial();
        let mut watches = self.streams.values().filter_map(|it| it.watch.as_ref());
        watches.any(|it| it.lock().credit > credit_max)
    }

    /// Takes an increment of a stream's window.
    fn grant_stream(&mut self, number: u32, increment: u32) -> Grant {
        let initial = self.windows.newest_initial();
        let Some(stream) = self.streams.get_mut(&number) else {
            return Grant::Pass;
        };
        let increment = i64::from(increment);
        let Some(slot) = &stream.watch else {
            stream.credit += increment;
            return Grant::Pass;
        };
        let mut state = slot.lock();
        if initial + state.credit + increment > WINDOW_BYTES_MAX {
            return Grant::Overflow;
        }
        state.credit += increment;
        let waits = state.left() > 0;
        drop(state);
        if waits {
            Waker::from(Arc::clone(slot)).wake();
        }
        Grant::Withhold
    }
}

/// Appends WINDOW_UPDATE frames for h2 by which it finds an error of the client: its own window, whatever of the
/// client's it knows, is too large after two of the largest increments.
fn overflow(stream: u32, out: &mut Vec<u8>) {
    for _ in 0..2 {
        update(stream, WINDOW_BYTES_MAX as u32, out);
    }
}

fn update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    let header = Header {
        length: UPDATE_BYTES,
        kind: WINDOW_UPDATE,
        flags: 0,
        stream,
    };
    pass(header, &increment.to_be_bytes(), out);
}

/// Returns true if the payload of a frame matters here. Frames of a wrong length are left to h2.
fn is_collected(header: Header) -> bool {
    match header.kind {
        WINDOW_UPDATE => header.length == UPDATE_BYTES,
        SETTINGS => {
            header.stream == 0
                && !header.has(ACK)
                && header.length <= SETTINGS_BYTES_MAX
                && header.length.is_multiple_of(SETTING_BYTES)
        }
        _ => false,
    }
}

fn pass(header: Header, payload: &[u8], out: &mut Vec<u8>) {
    debug_assert_eq!(header.length, payload.len(), "the length stays");
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(payload);
}
