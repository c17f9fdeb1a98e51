//! The client's end of SPDY/3.1, as much of it as kubelets need: streams with headers, data, pings.
//!
//! Header blocks are packed with zlib and a dictionary that both sides know. Here they are written in stored blocks,
//! which any zlib unpacks, and those of the kubelet are not read: they say nothing but that a stream is open. There is
//! no flow control, since kubelets have none: who does not read is not written to.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The value of the header `Upgrade` for this protocol.
pub(super) const PROTOCOL: &str = "SPDY/3.1";

/// Maximum number of bytes of a control frame of the kubelet, whose headers are few.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// The first bits of a control frame: it is one, and of version 3.
const CONTROL: u16 = 0x8003;
/// The flag of the last frame that one side sends on a stream.
const LAST: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// The head of a zlib stream with a dictionary, and the checksum of that of SPDY/3.
const ZLIB_HEAD: [u8; 6] = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2];
/// An empty stored block, with which zlib flushes.
const ZLIB_FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// A frame of the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Bytes of a stream, which follow and must be read before the next frame.
    Data {
        stream: u32,
        length: usize,
        last: bool,
    },
    /// A stream is open.
    Reply { stream: u32, last: bool },
    /// A stream has ended.
    Reset { stream: u32 },
    /// It is to be answered by the same frame.
    Ping([u8; 4]),
    /// The kubelet ends the connection.
    GoAway,
    /// It needs no answer.
    Other,
}

/// Reads the next frame, without the bytes of data.
///
/// # Errors
/// `UnexpectedEof` at the end of the connection; `InvalidData` for what is not SPDY/3.1, or too long.
pub(super) async fn next(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let mut head = [0; 8];
    reader.read_exact(&mut head).await?;
    let [a, b, c, d, flags, long, longer, longest] = head;
    let length = u32::from_be_bytes([0, long, longer, longest]) as usize;
    let last = flags & LAST != 0;
    if a & 0x80 == 0 {
        let stream = u32::from_be_bytes([a, b, c, d]);
        return Ok(Frame::Data {
            stream,
            length,
            last,
        });
    }
    if u16::from_be_bytes([a, b]) != CONTROL {
        return Err(invalid("a frame of another version of SPDY"));
    }
    if length > CONTROL_BYTES_MAX {
        return Err(invalid("a control frame that is too long"));
    }
    let mut content = vec![0; length];
    reader.read_exact(&mut content).await?;
    let number = content.first_chunk().copied();
    let number = || number.ok_or_else(|| invalid("a control frame that is too short"));
    let stream = || number().map(|it| u32::from_be_bytes(it) & !(1 << 31));
    Ok(match u16::from_be_bytes([c, d]) {
        SYN_REPLY => Frame::Reply {
            stream: stream()?,
            last,
        },
        RST_STREAM => Frame::Reset { stream: stream()? },
        PING => Frame::Ping(number()?),
        GOAWAY => Frame::GoAway,
        _ => Frame::Other,
    })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the kubelet sent {what}"),
    )
}

/// Returns the frame that opens a stream with one header. The numbers of a client's streams are odd and rise from 1.
pub(super) fn open(stream: u32, name: &str, value: &str) -> Vec<u8> {
    let mut headers = 1_u32.to_be_bytes().to_vec();
    for text in [name, value] {
        headers.extend(length(text.len()));
        headers.extend(text.as_bytes());
    }
    let mut content = stream.to_be_bytes().to_vec();
    // No associated stream, the highest priority, no slot.
    content.extend([0; 6]);
    if stream == 1 {
        content.extend(ZLIB_HEAD);
    }
    let stored = u16::try_from(headers.len()).unwrap_or(u16::MAX);
    content.push(0);
    content.extend(stored.to_le_bytes());
    content.extend((!stored).to_le_bytes());
    content.extend(headers);
    content.extend(ZLIB_FLUSH);
    control(SYN_STREAM, &content)
}

/// Returns the answer to a ping.
pub(super) fn pong(number: [u8; 4]) -> Vec<u8> {
    control(PING, &number)
}

/// Returns what stands before the bytes of a data frame, whose length has 24 bits.
pub(super) fn data(stream: u32, bytes: usize, last: bool) -> [u8; 8] {
    let [a, b, c, d] = stream.to_be_bytes();
    let [_, long, longer, longest] = length(bytes);
    [a, b, c, d, u8::from(last) * LAST, long, longer, longest]
}

fn control(kind: u16, content: &[u8]) -> Vec<u8> {
    let [_, long, longer, longest] = length(content.len());
    let mut frame = CONTROL.to_be_bytes().to_vec();
    frame.extend(kind.to_be_bytes());
    frame.extend([0, long, longer, longest]);
    frame.extend(content);
    frame
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use flate2::{Decompress, FlushDecompress};
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Frame> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(next(&mut &*bytes))
    }

    /// zlib unpacks the headers of two streams that one connection opens.
    #[test]
    fn headers_are_what_zlib_unpacks() {
        let mut unpacker = Decompress::new(false);
        for (stream, value) in [(1, "error"), (3, "stdin")] {
            let frame = open(stream, "streamtype", value);
            assert_eq!(frame[..8], [0x80, 3, 0, 1, 0, 0, 0, frame.len() as u8 - 8]);
            assert_eq!(frame[8..12], u32::to_be_bytes(stream));
            // flate2 has no dictionaries here; the blocks refer to none.
            let packed = &frame[if stream == 1 { 18 + 6 } else { 18 }..];
            let mut headers = Vec::with_capacity(100);
            let unpacked = unpacker.decompress_vec(packed, &mut headers, FlushDecompress::Sync);
            unpacked.expect("a zlib stream");
            let expected = [
                b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05",
                value.as_bytes(),
            ]
            .concat();
            assert_eq!(headers, expected);
        }
        let [cmf, flags, ..] = ZLIB_HEAD;
        assert_eq!(u16::from_be_bytes([cmf, flags]) % 31, 0, "zlib's own check");
    }

    #[test]
    fn frames_are_told_apart() {
        let head = data(5, 70_000, true);
        let expected = Frame::Data {
            stream: 5,
            length: 70_000,
            last: true,
        };
        assert_eq!(read(&head).expect("a frame"), expected);
        assert_eq!(
            read(&pong([0, 0, 0, 9])).expect("a frame"),
            Frame::Ping([0, 0, 0, 9])
        );
        let reply = control(SYN_REPLY, &[0, 0, 0, 3, 1, 2]);
        let expected = Frame::Reply {
            stream: 3,
            last: false,
        };
        assert_eq!(read(&reply).expect("a frame"), expected);
        let reset = control(RST_STREAM, &[0, 0, 0, 3, 0, 0, 0, 1]);
        assert_eq!(read(&reset).expect("a frame"), Frame::Reset { stream: 3 });
        assert_eq!(
            read(&control(GOAWAY, &[0; 8])).expect("a frame"),
            Frame::GoAway
        );
        assert_eq!(read(&control(4, &[0; 8])).expect("a frame"), Frame::Other);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let long = [&CONTROL.to_be_bytes()[..], &[0, 2, 0, 1, 0, 1]].concat();
        for (bytes, kind) in [
            (&b""[..], io::ErrorKind::UnexpectedEof),
            (b"\x80\x03\0\x02\0\0\0\x04\0", io::ErrorKind::UnexpectedEof),
            (b"\x80\x02\0\x02\0\0\0\0", io::ErrorKind::InvalidData),
            (b"\x80\x03\0\x02\0\0\0\x02\0\0", io::ErrorKind::InvalidData),
            (&long, io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(bytes).expect_err("refused").kind(), kind, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Err(error) = read(&bytes) {
                let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData];
                prop_assert!(kinds.contains(&error.kind()), "{error}");
            }
        }

        #[test]
        fn data_is_read_as_it_was_written(
            stream in 0..(1_u32 << 31),
            length in 0..1_usize << 24,
            last in any::<bool>(),
        ) {
            let frame = read(&data(stream, length, last)).expect("a frame");
            prop_assert_eq!(frame, Frame::Data { stream, length, last });
        }
    }
}
