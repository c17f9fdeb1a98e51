//! Reads the messages of a WebSocket's client in pieces. No message is held as a whole, so clients may send them as
//! long as they like: a process's input in one message, for example.

use std::io::{self, Cursor};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Maximum number of bytes that are read at once. The next are read when these have been passed on.
const PIECE_BYTES_MAX: usize = 32 << 10;
/// Maximum number of bytes of a control frame, of RFC 6455.
const CONTROL_BYTES_MAX: u64 = 125;

/// The messages of a client.
#[derive(Debug)]
pub(crate) struct FromClient<R> {
    reader: R,
    /// Bytes that have been read: at most [`PIECE_BYTES_MAX`] and the head of a frame.
    buffer: BytesMut,
    /// The frame of which bytes are left.
    frame: Option<Frame>,
    /// The kind of the message of which frames are left.
    message: Option<Kind>,
    /// True once the client has closed the WebSocket, or its connection.
    is_closed: bool,
}

/// A piece of what a client sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of a message, perhaps none.
    Message {
        kind: Kind,
        bytes: Bytes,
        /// True for the last piece of the message.
        last: bool,
    },
    /// It is to be answered by the same bytes.
    Ping(Bytes),
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Binary,
}

/// A data frame.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// The number of bytes that are left.
    left: u64,
    /// The mask of the next bytes.
    mask: [u8; 4],
    /// True for the last frame of a message.
    is_final: bool,
}

/// The next of the bytes that have been read.
enum Next {
    Piece(Piece),
    /// The client closes the WebSocket.
    Closed,
    /// More bytes are needed.
    Unknown,
}

impl<R: AsyncRead + Unpin> FromClient<R> {
    /// Reads the messages of a connection, of which some bytes have been read already.
    pub(super) fn new(reader: R, unread: Bytes) -> Self {
        Self {
            reader,
            buffer: unread.into(),
            frame: None,
            message: None,
            is_closed: false,
        }
    }

    /// Returns the next piece; `None` once the client has closed the WebSocket, or its connection, from then on without
    /// waiting. May be dropped while it waits.
    ///
    /// # Errors
    /// `InvalidData` for what RFC 6455 does not allow, and the errors of the connection.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Piece>> {
        while !self.is_closed {
            match self.parse()? {
                Next::Piece(piece) => return Ok(Some(piece)),
                Next::Closed => {
                    self.is_closed = true;
                    break;
                }
                Next::Unknown => {}
            }
            self.buffer.reserve(PIECE_BYTES_MAX);
            let mut bounded = (&mut self.buffer).limit(PIECE_BYTES_MAX);
            self.is_closed = self.reader.read_buf(&mut bounded).await? == 0;
        }
        Ok(None)
    }

    /// Reads and ignores what the client still sends.
    pub(crate) async fn drain(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }

    fn parse(&mut self) -> io::Result<Next> {
        loop {
            if let Some(frame) = &mut self.frame {
                if frame.left > 0 && self.buffer.is_empty() {
                    return Ok(Next::Unknown);
                }
                let (kind, bytes) = (frame.kind, frame.take(&mut self.buffer));
                let ended = frame.left == 0;
                let last = ended && frame.is_final;
                self.message = (!last).then_some(kind);
                if ended {
                    self.frame = None;
                }
                return Ok(Next::Piece(Piece::Message { kind, bytes, last }));
            }
            let mut cursor = Cursor::new(&self.buffer);
            let parsed = FrameHeader::parse(&mut cursor).map_err(|error| {
                let why = error.to_string();
                io::Error::new(io::ErrorKind::InvalidData, why)
            })?;
            let Some((header, length)) = parsed else {
                return Ok(Next::Unknown);
            };
            let head = usize::try_from(cursor.position()).unwrap_or_default();
            if header.rsv1 || header.rsv2 || header.rsv3 {
                return Err(invalid("a frame of an extension"));
            }
            let mask = header.mask.ok_or_else(|| invalid("a frame without mask"))?;
            let mut frame = Frame {
                kind: Kind::Binary,
                left: length,
                mask,
                is_final: header.is_final,
            };
            match header.opcode {
                OpCode::Data(data) => {
                    frame.kind = match (data, self.message) {
                        (Data::Continue, Some(kind)) => kind,
                        (Data::Text, None) => Kind::Text,
                        (Data::Binary, None) => Kind::Binary,
                        _ => return Err(invalid("a frame between those of another message")),
                    };
                    self.buffer.advance(head);
                    self.frame = Some(frame);
                }
                OpCode::Control(control) => {
                    if length > CONTROL_BYTES_MAX || !frame.is_final {
                        return Err(invalid("a control frame that is too long"));
                    }
                    if ((self.buffer.len() - head) as u64) < length {
                        return Ok(Next::Unknown);
                    }
                    self.buffer.advance(head);
                    let bytes = frame.take(&mut self.buffer);
                    match control {
                        Control::Close => return Ok(Next::Closed),
                        Control::Ping => return Ok(Next::Piece(Piece::Ping(bytes))),
                        _ => {}
                    }
                }
            }
        }
    }
}

impl Frame {
    /// Takes as many of its bytes as there are, without their mask.
    fn take(&mut self, buffer: &mut BytesMut) -> Bytes {
        let there = buffer.len().min(PIECE_BYTES_MAX);
        let there = usize::try_from(self.left).map_or(there, |left| left.min(there));
        let mut bytes = buffer.split_to(there);
        for (byte, mask) in bytes.iter_mut().zip(self.mask.iter().cycle()) {
            *byte ^= mask;
        }
        let turn = there % self.mask.len();
        self.mask.rotate_left(turn);
        self.left -= there as u64;
        bytes.freeze()
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the client sent {what}"),
    )
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::frame;

    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// Returns a frame as a client sends it.
    fn sent(opcode: OpCode, is_final: bool, payload: &[u8]) -> Vec<u8> {
        let header = FrameHeader {
            is_final,
            opcode,
            mask: Some(MASK),
            ..FrameHeader::default()
        };
        let frame = frame::Frame::from_payload(header, Bytes::copy_from_slice(payload));
        let mut bytes = Vec::new();
        frame.format(&mut bytes).expect("written");
        bytes
    }

    fn binary(payload: &[u8]) -> Vec<u8> {
        sent(OpCode::Data(Data::Binary), true, payload)
    }

    fn ping(payload: &[u8]) -> Vec<u8> {
        sent(OpCode::Control(Control::Ping), true, payload)
    }

    /// Reads everything, and joins the pieces of each message.
    async fn read(bytes: &[u8], unread: usize) -> io::Result<Vec<Piece>> {
        let (unread, rest) = bytes.split_at(unread);
        let mut client = FromClient::new(rest, Bytes::copy_from_slice(unread));
        let (mut pieces, mut whole) = (Vec::new(), BytesMut::new());
        while let Some(piece) = client.next().await? {
            assert!(client.buffer.len() <= PIECE_BYTES_MAX + 14);
            pieces.push(match piece {
                Piece::Message { kind, bytes, last } => {
                    assert!(bytes.len() <= PIECE_BYTES_MAX);
                    whole.extend_from_slice(&bytes);
                    if !last {
                        continue;
                    }
                    let bytes = std::mem::take(&mut whole).freeze();
                    Piece::Message { kind, bytes, last }
                }
                ping @ Piece::Ping(_) => ping,
            });
        }
        // The end stays the end, whatever has come behind it.
        assert_eq!(client.next().await?, None);
        Ok(pieces)
    }

    fn message(kind: Kind, bytes: &[u8]) -> Piece {
        Piece::Message {
            kind,
            bytes: Bytes::copy_from_slice(bytes),
            last: true,
        }
    }

    #[tokio::test]
    async fn messages_come_whole_wherever_they_are_cut() {
        let text = sent(OpCode::Data(Data::Text), false, b"te");
        let rest = sent(OpCode::Data(Data::Continue), true, b"xt");
        let empty = sent(OpCode::Data(Data::Binary), false, b"");
        let filled = sent(OpCode::Data(Data::Continue), true, b"filled");
        let frames = [
            binary(b"one"),
            binary(b""),
            text,
            ping(b"p"),
            rest,
            sent(OpCode::Control(Control::Pong), true, b"ignored"),
            empty,
            filled,
            binary(&[b'x'; 200]),
            sent(OpCode::Control(Control::Close), true, b""),
            binary(b"nobody reads this"),
        ];
        let bytes = frames.concat();
        let expected = [
            message(Kind::Binary, b"one"),
            message(Kind::Binary, b""),
            Piece::Ping(Bytes::from_static(b"p")),
            message(Kind::Text, b"text"),
            message(Kind::Binary, b"filled"),
            message(Kind::Binary, &[b'x'; 200]),
        ];
        for unread in 0..=bytes.len() {
            let pieces = read(&bytes, unread).await.expect("messages");
            assert_eq!(pieces, expected, "{unread}");
        }
    }

    #[tokio::test]
    async fn a_message_may_be_long() {
        let long: Vec<u8> = (0_u8..=250).cycle().take(5 << 20).collect();
        let bytes = [binary(&long), binary(b"next")].concat();
        let expected = [message(Kind::Binary, &long), message(Kind::Binary, b"next")];
        assert_eq!(read(&bytes, 0).await.expect("messages"), expected);
        let cut_off = read(&bytes[..1 << 20], 0).await;
        assert_eq!(cut_off.expect("no error"), []);
    }

    #[tokio::test]
    async fn what_is_not_allowed_is_an_error() {
        let mut unmasked = Vec::new();
        frame::Frame::ping("p")
            .format(&mut unmasked)
            .expect("written");
        let mut compressed = binary(b"x");
        compressed[0] |= 0x40;
        let mut reserved = binary(b"x");
        reserved[0] |= 0x0f;
        for (bytes, words) in [
            (unmasked, "without mask"),
            (compressed, "of an extension"),
            (reserved, "opcode"),
            (ping(&[0; 126]), "too long"),
            (sent(OpCode::Control(Control::Ping), false, b""), "too long"),
            (
                sent(OpCode::Data(Data::Continue), true, b""),
                "another message",
            ),
            (
                [sent(OpCode::Data(Data::Text), false, b""), binary(b"")].concat(),
                "another message",
            ),
        ] {
            let error = read(&bytes, 0).await.expect_err(words);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }
}
