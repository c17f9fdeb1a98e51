//! An HTTP/2 client that reads and writes single frames.

use super::*;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
/// The flag of SETTINGS and PING that acknowledge.
pub(super) const ACK: u8 = 1;
/// END_STREAM and END_HEADERS.
pub(super) const WHOLE_REQUEST: u8 = 5;
/// The setting of the window with which a stream begins.
const INITIAL_WINDOW_SIZE: u8 = 4;

/// A frame as it came.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

/// Encodes a frame.
pub(super) fn encode(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame");
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Encodes the header block of a request.
pub(super) fn block(path: &str) -> Vec<u8> {
    // `:method GET` and `:scheme http` by their index, the others as text.
    let mut block = vec![0x82, 0x86];
    let texts = [
        (&[0x04][..], path),
        (&[0x01], "localhost"),
        (&[0x0f, 0x08], "Bearer secret"),
    ];
    for (name, value) in texts {
        block.extend(name);
        block.push(u8::try_from(value.len()).expect("a short text"));
        block.extend(value.as_bytes());
    }
    block
}

/// A connection, whose server ends with it.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) io: DuplexStream,
    _server: JoinSet<()>,
}

impl Frames {
    /// Begins a connection with these windows for each stream, and for the connection beyond the 65,535 bytes that it
    /// has anyway.
    pub(super) async fn connect(connections: Connections, of_stream: u32, more: u32) -> Self {
        let mut frames = Self::begin(connections);
        frames.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        frames.set_window(of_stream).await;
        if more > 0 {
            frames.grant(0, more).await;
        }
        frames
    }

    /// Begins a connection on which nothing is sent yet.
    pub(super) fn begin(connections: Connections) -> Self {
        let (io, server) = tokio::io::duplex(64 << 10);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            connections.serve_http(server, Protocol::Http2).await;
        });
        Self { io, _server: tasks }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.expect("a server");
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&encode(kind, flags, stream, payload)).await;
    }

    /// Sets the window of streams.
    pub(super) async fn set_window(&mut self, bytes: u32) {
        let setting = [&[0, INITIAL_WINDOW_SIZE][..], &bytes.to_be_bytes()].concat();
        self.send(SETTINGS, 0, 0, &setting).await;
    }

    /// Lets the server send more on a stream, or on the connection, which is stream 0.
    pub(super) async fn grant(&mut self, stream: u32, bytes: u32) {
        let bytes = bytes.to_be_bytes();
        self.send(WINDOW_UPDATE, 0, stream, &bytes).await;
    }

    pub(super) async fn reset(&mut self, stream: u32) {
        const CANCEL: u32 = 8;
        let code = CANCEL.to_be_bytes();
        self.send(RST_STREAM, 0, stream, &code).await;
    }

    /// Sends a request and reads the head of its answer.
    pub(super) async fn get(&mut self, stream: u32, path: &str) {
        self.request(stream, path).await;
        let head = self.next().await;
        assert_eq!((head.kind, head.stream), (HEADERS, stream), "{head:?}");
    }

    /// Sends a request.
    pub(super) async fn request(&mut self, stream: u32, path: &str) {
        self.send(HEADERS, WHOLE_REQUEST, stream, &block(path))
            .await;
    }

    /// Reads the next frame of a stream, or of the end of the connection. Answers what is to be answered.
    pub(super) async fn next(&mut self) -> Received {
        loop {
            let frame = self.read().await.expect("a frame");
            match frame.kind {
                SETTINGS | PING if frame.flags & ACK == 0 => {
                    let payload = if frame.kind == PING {
                        &*frame.payload
                    } else {
                        &[]
                    };
                    self.send(frame.kind, ACK, 0, payload).await;
                }
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => return frame,
            }
        }
    }

    /// Reads DATA of one stream, so many bytes of them.
    pub(super) async fn data(&mut self, stream: u32, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes {
            let frame = self.next().await;
            assert_eq!((frame.kind, frame.stream), (DATA, stream), "{frame:?}");
            all.extend(frame.payload);
        }
        assert_eq!(all.len(), bytes);
        all
    }

    /// Reads DATA of one stream, so many bytes of them, and passes over the frames of others.
    pub(super) async fn data_among_others(&mut self, stream: u32, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes {
            let frame = self.next().await;
            if (frame.kind, frame.stream) == (DATA, stream) {
                all.extend(frame.payload);
            }
        }
        all
    }

    /// Reads until the server closes the connection. Returns the last frame that concerned a stream or the end.
    pub(super) async fn last(&mut self) -> Option<Received> {
        let mut last = None;
        while let Some(frame) = self.read().await {
            if ![SETTINGS, PING, WINDOW_UPDATE].contains(&frame.kind) {
                last = Some(frame);
            }
        }
        last
    }

    /// Reads a frame; `None` at the end.
    pub(super) async fn read(&mut self) -> Option<Received> {
        let at_most = Duration::from_secs(SECONDS_MAX);
        let reading = async {
            let mut header = [0; 9];
            self.io.read_exact(&mut header).await.ok()?;
            let [a, b, c, kind, flags, stream @ ..] = header;
            let length = u32::from_be_bytes([0, a, b, c]);
            let mut payload = vec![0; length as usize];
            self.io.read_exact(&mut payload).await.expect("a payload");
            Some(Received {
                kind,
                flags,
                stream: u32::from_be_bytes(stream),
                payload,
            })
        };
        tokio::time::timeout(at_most, reading)
            .await
            .expect("in time")
    }
}
