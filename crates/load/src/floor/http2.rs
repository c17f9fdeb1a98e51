//! HTTP/2 as the floor speaks it: what its clients insist on before they take DATA frames.
//!
//! The clients' windows are not looked at. They are far larger than the events of a moment and the answer to a request,
//! and a client whose window is passed says so by closing its connection. The floor's own windows are so large that
//! clients never wait for them.

use std::io::{self, ErrorKind, Read, Write};

use super::{ANSWER_HEAD_BYTES_MAX, READ_BYTES, REQUEST_BODY_BYTES_MAX};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// The position of the stream's number in a frame's head.
const STREAM_AT: usize = 5;
/// The largest payload that every peer takes.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The number of the setting that says how much a stream may be sent ahead.
const INITIAL_WINDOW: u16 = 4;
/// Clients may send this much of all bodies ahead. It is given back when half of it is used.
const WINDOW_BYTES: u32 = 1 << 30;

/// The head of the answer to every watch: `:status 200`, in HPACK's table.
const WATCH_HEAD: &[u8] = &[0x88];
/// A field of HPACK that is in no table: a name of one letter, and a value of the given length.
const FIELD: [u8; 3] = [0, 1, b'x'];
/// The number of bytes that a field with an empty value takes.
const FIELD_BYTES_MIN: usize = FIELD.len() + 1;
/// The longest value whose length is one byte.
const VALUE_BYTES_MAX: usize = 126;
/// A field of HPACK's table that takes one byte, for what is less than a field.
const FIELD_OF_ONE_BYTE: u8 = 0x90;

/// Frames, of which each stream gets a copy.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// The positions of the heads.
    heads: Vec<usize>,
}

impl Frames {
    /// Adds the frames of an event.
    pub(super) fn push(&mut self, event: &[u8]) {
        for payload in event.chunks(PAYLOAD_BYTES_MAX) {
            self.push_frame(DATA, 0, payload);
        }
    }

    /// Returns the frames of an answer, which take so many bytes besides the body, or as few as they can.
    pub(super) fn of_answer(head_bytes: usize, body: &[u8]) -> Self {
        let payloads = body.chunks(PAYLOAD_BYTES_MAX);
        let least = FRAME_HEAD_BYTES * (1 + payloads.len()) + WATCH_HEAD.len();
        let filler = head_bytes.saturating_sub(least).min(ANSWER_HEAD_BYTES_MAX);
        let head = [WATCH_HEAD, &fields(filler)].concat();
        let mut frames = Self::default();
        let end = if body.is_empty() { END_STREAM } else { 0 };
        frames.push_frame(HEADERS, END_HEADERS | end, &head);
        let last = payloads.len();
        for (payload, number) in payloads.zip(1..) {
            let end = if number == last { END_STREAM } else { 0 };
            frames.push_frame(DATA, end, payload);
        }
        frames
    }

    fn push_frame(&mut self, kind: u8, flags: u8, payload: &[u8]) {
        self.heads.push(self.bytes.len());
        self.bytes.extend(head(kind, flags, 0, payload.len()));
        self.bytes.extend(payload);
    }

    /// Appends the copy of a stream.
    pub(super) fn copy_for(&self, stream: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(&self.bytes);
        for head in &self.heads {
            let at = start + head + STREAM_AT;
            out[at..at + 4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

/// Returns header fields that take so many bytes.
fn fields(bytes: usize) -> Vec<u8> {
    let mut fields = Vec::new();
    while bytes - fields.len() >= FIELD_BYTES_MIN {
        let value = (bytes - fields.len() - FIELD_BYTES_MIN).min(VALUE_BYTES_MAX);
        fields.extend(FIELD);
        fields.push(value as u8);
        fields.resize(fields.len() + value, b'.');
    }
    fields.resize(bytes, FIELD_OF_ONE_BYTE);
    fields
}

/// The client's side of a connection, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The read part of the preface, or of a frame that is not yet whole.
    unread: Vec<u8>,
    has_begun: bool,
    /// The number of bytes of the body of the request that is being read.
    body: usize,
    /// The number of bytes of bodies since the client's window was last made whole.
    used: u32,
}

impl Requests {
    /// Takes the next bytes. Adds the streams of the requests that end with them to `ended`, and what is to be
    /// written because of them to `out`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: this is no HTTP/2, or a frame or a body is too long.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        ended: &mut Vec<u32>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        if !self.has_begun {
            let begun = &self.unread[..self.unread.len().min(PREFACE.len())];
            if !PREFACE.starts_with(begun) {
                return Err(ErrorKind::InvalidData.into());
            }
            if begun.len() < PREFACE.len() {
                return Ok(());
            }
            self.has_begun = true;
            at = PREFACE.len();
            begin(out);
        }
        while let Some(read) = self.unread[at..].first_chunk::<FRAME_HEAD_BYTES>() {
            let [a, b, c, kind, flags, stream @ ..] = *read;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > PAYLOAD_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            let end = at + FRAME_HEAD_BYTES + length;
            if end > self.unread.len() {
                break;
            }
            at = end;
            match kind {
                SETTINGS if flags & ACK == 0 => out.extend(head(SETTINGS, ACK, 0, 0)),
                DATA => self.take_body(length, out)?,
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                self.body = 0;
                ended.push(u32::from_be_bytes(stream));
            }
        }
        self.unread.drain(..at);
        Ok(())
    }

    fn take_body(&mut self, bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
        self.body += bytes;
        if self.body > REQUEST_BODY_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        self.used += bytes as u32;
        if self.used > WINDOW_BYTES / 2 {
            out.extend(window_update(self.used));
            self.used = 0;
        }
        Ok(())
    }

    /// Returns true if a part of the preface, of a frame or of a body was read, and no end.
    pub(super) fn is_begun(&self) -> bool {
        !self.unread.is_empty() || self.body > 0
    }
}

/// Takes so many requests of a connection and answers each with the head of a watch. Returns their streams.
pub(super) fn take_streams(
    mut connection: impl Read + Write,
    count: usize,
) -> io::Result<Vec<u32>> {
    let mut requests = Requests::default();
    let (mut streams, mut out, mut read) = (Vec::new(), Vec::new(), vec![0; READ_BYTES]);
    while streams.len() < count {
        let bytes = connection.read(&mut read)?;
        if bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let taken = streams.len();
        requests.take(&read[..bytes], &mut streams, &mut out)?;
        for stream in &streams[taken..] {
            out.extend(head(HEADERS, END_HEADERS, *stream, WATCH_HEAD.len()));
            out.extend(WATCH_HEAD);
        }
        connection.write_all(&out)?;
        // Nothing may wait in TLS while the client is waited for.
        connection.flush()?;
        out.clear();
    }
    Ok(streams)
}

/// Appends what the floor begins with: windows of clients that are never used up.
fn begin(out: &mut Vec<u8>) {
    let setting = [
        &INITIAL_WINDOW.to_be_bytes()[..],
        &WINDOW_BYTES.to_be_bytes(),
    ]
    .concat();
    out.extend(head(SETTINGS, 0, 0, setting.len()));
    out.extend(setting);
    out.extend(window_update(WINDOW_BYTES));
}

/// Returns the frame that lets a client send so much more over all streams.
fn window_update(bytes: u32) -> Vec<u8> {
    let payload = bytes.to_be_bytes();
    [&head(WINDOW_UPDATE, 0, 0, payload.len())[..], &payload].concat()
}

fn head(kind: u8, flags: u8, stream: u32, length: usize) -> [u8; FRAME_HEAD_BYTES] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a request of a stream with this body, in frames.
    fn request(stream: u32, body: &[u8]) -> Vec<u8> {
        let mut request = head(HEADERS, END_HEADERS, stream, 1).to_vec();
        request.push(0x82);
        request.extend(head(DATA, END_STREAM, stream, body.len()));
        request.extend(body);
        request
    }

    #[test]
    fn requests_are_read_whole_however_they_come() {
        let settings = head(SETTINGS, 0, 0, 0);
        let sent = [
            PREFACE,
            &settings,
            &request(1, b"body"),
            &request(3, b"another"),
        ];
        let sent = sent.concat();
        for step in 1..=sent.len() {
            let mut requests = Requests::default();
            let (mut ended, mut out) = (Vec::new(), Vec::new());
            for (piece, number) in sent.chunks(step).zip(1..) {
                requests.take(piece, &mut ended, &mut out).expect("HTTP/2");
                let is_end = number * step >= sent.len();
                assert_eq!(ended.contains(&3), is_end, "{step}, {number}");
            }
            assert_eq!(ended, [1, 3], "{step}");
            assert!(out.ends_with(&head(SETTINGS, ACK, 0, 0)));
            assert!(!requests.is_begun());
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let refused = |sent: &[u8]| {
            let sent = [PREFACE, sent].concat();
            let taken = Requests::default().take(&sent, &mut Vec::new(), &mut Vec::new());
            taken.err().map(|error| error.kind())
        };
        let frame = |bytes: usize| [&head(DATA, 0, 1, bytes)[..], &vec![0; bytes]].concat();
        let full = frame(PAYLOAD_BYTES_MAX).repeat(REQUEST_BODY_BYTES_MAX / PAYLOAD_BYTES_MAX);
        assert_eq!(refused(&full), None);
        let invalid = Some(ErrorKind::InvalidData);
        assert_eq!(refused(&[&full[..], &frame(1)].concat()), invalid);
        assert_eq!(refused(&frame(PAYLOAD_BYTES_MAX + 1)), invalid);
        let other = Requests::default().take(b"GET /", &mut Vec::new(), &mut Vec::new());
        assert!(other.is_err());
    }

    #[test]
    fn windows_are_made_whole_when_half_is_used() {
        let mut requests = Requests::default();
        let mut out = Vec::new();
        requests.used = WINDOW_BYTES / 2 - 1;
        requests.take_body(1, &mut out).expect("a body");
        assert_eq!(out, b"");
        requests.take_body(1, &mut out).expect("a body");
        assert_eq!(out, window_update(WINDOW_BYTES / 2 + 1));
        assert_eq!(requests.used, 0);
    }

    #[test]
    fn answers_are_as_long_as_they_are_to_be() {
        for body in [0, 1, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1] {
            let body = vec![b' '; body];
            let length = |head_bytes| Frames::of_answer(head_bytes, &body).bytes.len();
            let least = length(0) - body.len();
            for head_bytes in least..least + 300 {
                assert_eq!(length(head_bytes), head_bytes + body.len());
            }
            let most = length(usize::MAX) - body.len();
            assert_eq!(most, least + ANSWER_HEAD_BYTES_MAX);
        }
    }
}
