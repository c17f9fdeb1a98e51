//! The kubelet's end of SPDY/3.1, as much of it as kubectl uses. What streams are called is not read:
//! kubectl opens them in a known order.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A control frame of this version.
const CONTROL: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const PING: u16 = 6;
/// The flag of the last frame that one side sends on a stream.
const LAST: u8 = 1;

/// The beginning of a zlib stream without a dictionary.
const ZLIB: [u8; 2] = [0x78, 0x01];
/// A block that is stored as it is, of four bytes: no headers. An empty block behind it flushes.
const NO_HEADERS: [u8; 14] = [0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// A frame of the client.
pub(super) enum Frame {
    /// It opens a stream.
    Open(u32),
    /// It says something, perhaps for the last time.
    Data { id: u32, bytes: Vec<u8>, last: bool },
}

/// A connection.
pub(super) struct Spdy<S> {
    stream: S,
    has_replied: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Spdy<S> {
    /// Agrees to speak it, and in it the given protocol.
    pub(super) async fn accept(mut stream: S, protocol: &str) -> io::Result<Self> {
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\
             X-Stream-Protocol-Version: {protocol}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
        Ok(Self {
            stream,
            has_replied: false,
        })
    }

    /// Returns the next frame of the client; nothing once it has gone.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let mut head = [0; 8];
            match self.stream.read_exact(&mut head).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read?,
            };
            let [a, b, c, d, flags, length @ ..] = head;
            let length = u32::from_be_bytes([0, length[0], length[1], length[2]]);
            let mut bytes = vec![0; length as usize];
            self.stream.read_exact(&mut bytes).await?;
            let kind = u16::from_be_bytes([c, d]);
            if u16::from_be_bytes([a, b]) != CONTROL {
                let id = u32::from_be_bytes([a, b, c, d]);
                let last = flags & LAST != 0;
                return Ok(Some(Frame::Data { id, bytes, last }));
            }
            if kind == SYN_STREAM {
                let id = bytes
                    .first_chunk()
                    .copied()
                    .expect("the number of a stream");
                return Ok(Some(Frame::Open(u32::from_be_bytes(id))));
            }
            if kind == PING {
                self.control(PING, &bytes).await?;
            }
        }
    }

    /// Agrees to a stream.
    pub(super) async fn reply(&mut self, id: u32) -> io::Result<()> {
        let mut bytes = id.to_be_bytes().to_vec();
        if !std::mem::replace(&mut self.has_replied, true) {
            bytes.extend(ZLIB);
        }
        bytes.extend(NO_HEADERS);
        self.control(SYN_REPLY, &bytes).await
    }

    /// Says something on a stream.
    pub(super) async fn send(&mut self, id: u32, bytes: &[u8], last: bool) -> io::Result<()> {
        let mut frame = id.to_be_bytes().to_vec();
        frame.push(if last { LAST } else { 0 });
        frame.extend(length(bytes));
        frame.extend(bytes);
        self.write(&frame).await
    }

    async fn control(&mut self, kind: u16, bytes: &[u8]) -> io::Result<()> {
        let mut frame = CONTROL.to_be_bytes().to_vec();
        frame.extend(kind.to_be_bytes());
        frame.push(0);
        frame.extend(length(bytes));
        frame.extend(bytes);
        self.write(&frame).await
    }

    async fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame).await?;
        self.stream.flush().await
    }
}

/// The length of what follows, in three bytes.
fn length(bytes: &[u8]) -> [u8; 3] {
    let [_, a, b, c] = u32::try_from(bytes.len()).expect("little").to_be_bytes();
    [a, b, c]
}
