//! The channels of the messages by which a client's WebSocket carries the streams of a command.
//!
//! The first byte of a message is its channel. Messages come in pieces, and are cut anywhere.

use bytes::{Buf, Bytes};

pub(super) const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const STATUS: u8 = 3;
pub(super) const RESIZE: u8 = 4;
/// The channel on which the client says that it has closed another.
const CLOSED: u8 = 255;

/// The streams of the kubelet to which the messages of a client go.
#[derive(Debug)]
pub(super) struct Inputs {
    /// The number of the stream of SPDY; `None` if nobody has asked for it, or the client has closed it.
    stdin: Option<u32>,
    /// As `stdin`.
    resize: Option<u32>,
    /// The message of which there is more to come.
    message: Option<Message>,
}

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// Data on a channel.
    Data(u8),
    /// The channel that is closed, once it is known.
    Close(Option<u8>),
}

/// Bytes for a stream of the kubelet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Data {
    /// The number of the stream.
    pub(super) stream: u32,
    pub(super) bytes: Bytes,
    /// True if the stream ends here.
    pub(super) last: bool,
}

/// The error of a message that closes no channel, or something else than one. The session ends with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedMessage;

impl Inputs {
    /// Returns the streams with these numbers.
    pub(super) fn new(stdin: Option<u32>, resize: Option<u32>) -> Self {
        Self {
            stdin,
            resize,
            message: None,
        }
    }

    /// Takes the next piece of a message, and returns what the kubelet is to get; `None` for nothing.
    ///
    /// Follows `Conn.handle` of `streaming/pkg/httpstream/wsstream/conn.go`, Kubernetes 1.36.
    ///
    /// # Errors
    /// [`MalformedMessage`] for a message that does not close exactly one channel, although it says so.
    pub(super) fn take(
        &mut self,
        mut bytes: Bytes,
        last_of_message: bool,
    ) -> Result<Option<Data>, MalformedMessage> {
        let message = match self.message.take() {
            Some(message) => message,
            None if bytes.is_empty() => return Ok(None),
            None => match bytes.get_u8() {
                CLOSED => Message::Close(None),
                channel => Message::Data(channel),
            },
        };
        match message {
            Message::Data(channel) => {
                self.message = (!last_of_message).then_some(message);
                Ok(self.data(channel, bytes))
            }
            Message::Close(channel) => {
                let channel = match (channel, &*bytes) {
                    (channel, []) => channel,
                    (None, &[channel]) => Some(channel),
                    _ => return Err(MalformedMessage),
                };
                if last_of_message {
                    return self.close(channel.ok_or(MalformedMessage)?);
                }
                self.message = Some(Message::Close(channel));
                Ok(None)
            }
        }
    }

    fn data(&mut self, channel: u8, bytes: Bytes) -> Option<Data> {
        let stream = *self.stream(channel)?;
        let stream = stream.filter(|_| !bytes.is_empty())?;
        Some(Data {
            stream,
            bytes,
            last: false,
        })
    }

    /// Closes a channel; one that is closed already stays so.
    fn close(&mut self, channel: u8) -> Result<Option<Data>, MalformedMessage> {
        if channel > RESIZE {
            return Err(MalformedMessage);
        }
        let stream = self.stream(channel).and_then(Option::take);
        Ok(stream.map(|stream| Data {
            stream,
            bytes: Bytes::new(),
            last: true,
        }))
    }

    /// Returns the stream of a channel; `None` for channels on which clients have nothing to say.
    fn stream(&mut self, channel: u8) -> Option<&mut Option<u32>> {
        match channel {
            STDIN => Some(&mut self.stdin),
            RESIZE => Some(&mut self.resize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: bool = true;
    const GOES_ON: bool = false;

    fn data(stream: u32, bytes: &'static [u8]) -> Option<Data> {
        Some(Data {
            stream,
            bytes: Bytes::from_static(bytes),
            last: false,
        })
    }

    fn end(stream: u32) -> Option<Data> {
        Some(Data {
            stream,
            bytes: Bytes::new(),
            last: true,
        })
    }

    /// Takes pieces, and checks what becomes of each.
    /// A piece, whether it is the last one of its message, and what is made of it.
    type Piece = (&'static [u8], bool, Result<Option<Data>, MalformedMessage>);

    fn check(pieces: &[Piece]) {
        let mut inputs = Inputs::new(Some(3), Some(9));
        for (number, (bytes, last, expected)) in pieces.iter().enumerate() {
            let taken = inputs.take(Bytes::from_static(bytes), *last);
            assert_eq!(taken, *expected, "piece {number} of {pieces:?}");
        }
    }

    #[test]
    fn data_goes_to_the_stream_of_its_channel() {
        check(&[
            (b"", ENDS, Ok(None)),
            (b"", GOES_ON, Ok(None)),
            (&[STDIN], GOES_ON, Ok(None)),
            (b"ab", GOES_ON, Ok(data(3, b"ab"))),
            (b"\xffc", ENDS, Ok(data(3, b"\xffc"))),
            (&[RESIZE, b'{'], ENDS, Ok(data(9, b"{"))),
            (&[STDOUT, b'x'], ENDS, Ok(None)),
            (&[77, b'x'], ENDS, Ok(None)),
        ]);
        let mut without = Inputs::new(None, None);
        let taken = without.take(Bytes::from_static(b"\0x"), ENDS);
        assert_eq!(taken, Ok(None));
    }

    #[test]
    fn a_channel_is_closed_once_wherever_the_message_is_cut() {
        check(&[
            (&[CLOSED], GOES_ON, Ok(None)),
            (b"", GOES_ON, Ok(None)),
            (&[STDIN], GOES_ON, Ok(None)),
            (b"", ENDS, Ok(end(3))),
            // What comes on it later is not passed on.
            (&[STDIN, b'x'], ENDS, Ok(None)),
            (&[CLOSED, STDIN], ENDS, Ok(None)),
            (&[RESIZE, b'{'], ENDS, Ok(data(9, b"{"))),
            (&[CLOSED], GOES_ON, Ok(None)),
            (&[RESIZE], ENDS, Ok(end(9))),
            (&[RESIZE, b'{'], ENDS, Ok(None)),
            (&[CLOSED, STDOUT], ENDS, Ok(None)),
        ]);
    }

    #[test]
    fn a_message_closes_one_channel() {
        let malformed: [&[(&[u8], bool)]; 6] = [
            &[(&[CLOSED], ENDS)],
            &[(&[CLOSED], GOES_ON), (b"", ENDS)],
            &[(&[CLOSED, STDIN, RESIZE], ENDS)],
            &[(&[CLOSED, STDIN], GOES_ON), (&[RESIZE], ENDS)],
            &[(&[CLOSED], GOES_ON), (&[STDIN, RESIZE], ENDS)],
            &[(&[CLOSED, RESIZE + 1], ENDS)],
        ];
        for pieces in malformed {
            let mut inputs = Inputs::new(Some(3), Some(9));
            let taken = pieces.iter().map(|(bytes, last)| {
                let bytes = Bytes::copy_from_slice(bytes);
                inputs.take(bytes, *last)
            });
            let taken: Vec<_> = taken.collect();
            assert_eq!(taken.last(), Some(&Err(MalformedMessage)), "{pieces:?}");
        }
    }
}
