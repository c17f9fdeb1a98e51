//! A command in a container, or an attached process: its streams are channels of the client's WebSocket, and streams of
//! SPDY of the kubelet.
//!
//! ```text
//!   client: channels 0 stdin, 4 resize, 255 closed --> input ---> streams "stdin", "resize"
//!   client: channels 1 stdout, 2 stderr, 3 status <-- output <--- streams "stdout", "stderr", "error"
//! ```
//!
//! The client's WebSocket is accepted before the kubelet is called, so what fails comes as a status on channel 3. The
//! two directions do not wait for each other: who does not read holds up only those who write to him.

use std::time::Duration;
use std::{io, iter};

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use ringwatch::clock::Clock;
use ringwatch_http::client::{Backend, BackendAnswer, SwitchedConnection, Throttle, exchange};
use ringwatch_http::{Duplex, ProtocolEnd, UpgradedProtocol};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::channels::{Data, Inputs, MalformedMessage, STATUS, STDERR, STDOUT};
use super::spdy::{self, Frame};
use super::{SENT_BYTES_MAX, STALL_MAX, spdy_request, speaks_spdy, status};
use crate::websocket::{self, FromClient, Piece, ToClient};

/// The subprotocol of the WebSockets that are translated.
pub(crate) const WEB_SOCKET_PROTOCOL: &str = "v5.channel.k8s.io";
/// The protocol that is spoken in the streams of SPDY.
const SPDY_PROTOCOL: &str = "v4.channel.k8s.io";

/// Maximum number of bytes of the status of a command, or of a kubelet's refusal.
const STATUS_BYTES_MAX: usize = 64 << 10;
/// Maximum time until a kubelet has opened a stream.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// The most pings of the kubelet that may wait to be answered; others are not answered.
const PONGS_MAX: usize = 1;

/// The streams that the client asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

/// A client that wants to run something, and the kubelet that is to run it.
pub(crate) struct RemoteCommand {
    pub(crate) backend: Backend,
    /// The path that the kubelet is asked for, with its query.
    pub(crate) path_and_query: String,
    pub(crate) streams: Streams,
}

/// The failure of a command other than its own, in words for the client.
struct CommandFailure(String);

impl<E: std::error::Error> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

#[async_trait]
impl UpgradedProtocol for RemoteCommand {
    async fn run(
        self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        end: ProtocolEnd,
    ) -> io::Result<()> {
        let clock = &self.backend.clock;
        let (to_client, mut from_client) = websocket::open(client, unread, clock).await;
        let first = match self.streams {
            Streams { stdout: true, .. } => STDOUT,
            Streams { stderr: true, .. } => STDERR,
            _ => STATUS,
        };
        // An empty message shows the client that it is connected.
        send(&to_client, first, b"").await?;
        let ran = tokio::select! {
            ran = self.run_command(&to_client, &mut from_client) => ran,
            () = end => return websocket::end(clock, &to_client, &mut from_client).await,
        };
        let status = match ran {
            Ok(Some(status)) => status,
            Ok(None) => {
                // Who has closed the WebSocket hears the same; who has gone does not, which is no error.
                let _ = websocket::end(clock, &to_client, &mut from_client).await;
                return Ok(());
            }
            Err(CommandFailure(why)) => status::internal(&why),
        };
        send(&to_client, STATUS, status.to_string().as_bytes()).await?;
        websocket::end(clock, &to_client, &mut from_client).await
    }
}

impl RemoteCommand {
    /// Runs the command, and returns its status; `None` when the client has gone.
    async fn run_command(
        &self,
        to_client: &ToClient,
        from_client: &mut FromClient,
    ) -> Result<Option<Value>, CommandFailure> {
        let SwitchedConnection {
            stream,
            early,
            throttle,
        } = self.connect_in_time().await?;
        let (from_kubelet, mut to_kubelet) = tokio::io::split(stream);
        let mut from_kubelet = AsyncReadExt::chain(early.as_ref(), from_kubelet);
        let opened = StreamNumbers::open(self.streams, &mut from_kubelet, &mut to_kubelet);
        let opened = self.backend.clock.timeout(OPEN_MAX, opened).await;
        let opened =
            opened.map_err(|_| CommandFailure("timeout waiting for stream".to_owned()))??;
        let (pongs, waiting) = mpsc::channel(PONGS_MAX);
        let (clock, throttle) = (&self.backend.clock, throttle.as_ref());
        let mut input = Input {
            streams: Inputs::new(opened.stdin, opened.resize),
            throttle,
            clock,
            to_client,
            to_kubelet,
        };
        let mut output = Output {
            opened: &opened,
            throttle,
            clock,
            to_client,
            pongs,
            open: opened.outputs(),
            status: BytesMut::new(),
        };
        tokio::select! {
            status = output.run(&mut from_kubelet) => {
                let status = status::outcome(&status?).map_err(CommandFailure)?;
                Ok(Some(status))
            }
            () = input.run(from_client, waiting) => Ok(None),
            () = to_client.answer_pings() => Ok(None),
        }
    }

    /// Has the kubelet speak SPDY. One that says nothing keeps nobody waiting.
    async fn connect_in_time(&self) -> Result<SwitchedConnection, CommandFailure> {
        let connected = self.backend.clock.timeout(OPEN_MAX, self.connect()).await;
        connected.map_err(|_| CommandFailure("timeout waiting for the kubelet".to_owned()))?
    }

    async fn connect(&self) -> Result<SwitchedConnection, CommandFailure> {
        let request = spdy_request(&self.path_and_query, SPDY_PROTOCOL);
        let request = request.map_err(|_| CommandFailure("error creating request".to_owned()))?;
        let answered = exchange(&self.backend, request).await;
        match answered.map_err(|error| CommandFailure(format!("error sending request: {error}")))? {
            BackendAnswer::Switched(head, switched) if speaks_spdy(head.headers()) => Ok(switched),
            BackendAnswer::Switched(..) => {
                Err(CommandFailure("unable to upgrade connection".to_owned()))
            }
            BackendAnswer::Answered(answer) => {
                let mut body = answer.into_body();
                let mut said = BytesMut::new();
                while said.len() < STATUS_BYTES_MAX
                    && let Some(Ok(frame)) = body.frame().await
                {
                    said.extend_from_slice(&frame.into_data().unwrap_or_default());
                }
                let said = String::from_utf8_lossy(&said);
                Err(CommandFailure(format!(
                    "unable to upgrade connection: {}",
                    said.trim()
                )))
            }
        }
    }
}

/// The numbers of the streams of SPDY; `None` for those that nobody asked for.
struct StreamNumbers {
    status: u32,
    stdin: Option<u32>,
    stdout: Option<u32>,
    stderr: Option<u32>,
    resize: Option<u32>,
}

impl StreamNumbers {
    /// Opens the streams, one after the other, in the order in which kubelets expect them.
    async fn open(
        streams: Streams,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Self, CommandFailure> {
        let mut next = 1;
        let wanted = [
            (true, "error"),
            (streams.stdin, "stdin"),
            (streams.stdout, "stdout"),
            (streams.stderr && !streams.tty, "stderr"),
            (streams.tty, "resize"),
        ];
        let mut numbers = [None; 5];
        for (number, (is_wanted, name)) in numbers.iter_mut().zip(wanted) {
            if !is_wanted {
                continue;
            }
            writer
                .write_all(&spdy::open(next, "streamtype", name))
                .await?;
            writer.flush().await?;
            loop {
                match spdy::next(reader).await? {
                    Frame::Reply { stream, .. } if stream == next => break,
                    Frame::Ping(ping) => {
                        writer.write_all(&spdy::pong(ping)).await?;
                        writer.flush().await?;
                    }
                    Frame::Other => {}
                    _ => {
                        return Err(CommandFailure(format!(
                            "the kubelet did not open the stream {name}"
                        )));
                    }
                }
            }
            *number = Some(next);
            next += 2;
        }
        let [status, stdin, stdout, stderr, resize] = numbers;
        Ok(Self {
            status: status.unwrap_or_default(),
            stdin,
            stdout,
            stderr,
            resize,
        })
    }

    /// Returns the streams on which the kubelet sends something.
    fn outputs(&self) -> Vec<u32> {
        let outputs = self.stdout.into_iter().chain(self.stderr);
        iter::once(self.status).chain(outputs).collect()
    }
}

/// The way from the client to the kubelet.
struct Input<'a, W> {
    streams: Inputs,
    throttle: Option<&'a Throttle>,
    clock: &'a Clock,
    to_client: &'a ToClient,
    to_kubelet: W,
}

impl<W: AsyncWrite + Unpin> Input<'_, W> {
    /// Passes on what the client says, until it has gone, or sends a message that makes no sense. A kubelet that does
    /// not listen any more may still have the status to say, so that ends nothing.
    async fn run(&mut self, from_client: &mut FromClient, mut pongs: mpsc::Receiver<[u8; 4]>) {
        let mut listens = true;
        loop {
            let written = tokio::select! {
                Some(pong) = pongs.recv(), if listens => self.write(&spdy::pong(pong), b"").await,
                piece = from_client.next() => match piece {
                    // A message may be text as well.
                    Ok(Some(Piece::Message { bytes, last, .. })) => {
                        match self.streams.take(bytes, last) {
                            Ok(Some(data)) if listens => self.pass_on(&data).await,
                            Ok(_) => Ok(()),
                            Err(MalformedMessage) => return,
                        }
                    }
                    Ok(Some(Piece::Ping(ping))) => {
                        self.to_client.note_ping(ping);
                        Ok(())
                    }
                    Ok(None) | Err(_) => return,
                },
            };
            listens &= written.is_ok();
        }
    }

    async fn pass_on(&mut self, data: &Data) -> io::Result<()> {
        let start = self.clock.now();
        let head = spdy::data(data.stream, data.bytes.len(), data.last);
        self.write(&head, &data.bytes).await?;
        if let Some(throttle) = self.throttle {
            throttle.pause(data.bytes.len(), start).await;
        }
        Ok(())
    }

    async fn write(&mut self, head: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.to_kubelet.write_all(head).await?;
        self.to_kubelet.write_all(bytes).await?;
        self.to_kubelet.flush().await
    }
}

/// The way from the kubelet to the client.
struct Output<'a> {
    opened: &'a StreamNumbers,
    throttle: Option<&'a Throttle>,
    clock: &'a Clock,
    to_client: &'a ToClient,
    pongs: mpsc::Sender<[u8; 4]>,
    /// The streams on which there is more to come.
    open: Vec<u32>,
    /// The beginning of the command's status.
    status: BytesMut,
}

/// The end of what a kubelet sends, before all its streams have ended.
enum Broken {
    /// The kubelet has gone away.
    Gone(io::Error),
    /// It cannot be passed on.
    Failed(CommandFailure),
}

impl Output<'_> {
    /// Passes on what the command writes, and returns its status once all its streams have ended. If the kubelet goes
    /// away before, the status is what it has said until then; if it has said nothing, the command has failed.
    async fn run(
        &mut self,
        from_kubelet: &mut (impl AsyncRead + Unpin),
    ) -> Result<Bytes, CommandFailure> {
        let passed_on = self.pass_on(from_kubelet).await;
        let has_status = !self.status.is_empty() || !self.open.contains(&self.opened.status);
        match passed_on {
            Ok(()) => {}
            Err(Broken::Gone(_)) if has_status => {}
            Err(Broken::Gone(error)) => return Err(error.into()),
            Err(Broken::Failed(failed)) => return Err(failed),
        }
        Ok(std::mem::take(&mut self.status).freeze())
    }

    async fn pass_on(&mut self, from_kubelet: &mut (impl AsyncRead + Unpin)) -> Result<(), Broken> {
        while !self.open.is_empty() {
            let frame = spdy::next(from_kubelet).await;
            let ended = match frame.map_err(Broken::Gone)? {
                Frame::Data {
                    stream,
                    length,
                    last,
                } => {
                    self.data(from_kubelet, stream, length).await?;
                    last.then_some(stream)
                }
                Frame::Reply { stream, last } => last.then_some(stream),
                Frame::Reset { stream } => Some(stream),
                Frame::Ping(ping) => {
                    // The kubelet waits for none of them in particular.
                    let _ = self.pongs.try_send(ping);
                    None
                }
                Frame::GoAway | Frame::Other => None,
            };
            self.open.retain(|it| Some(*it) != ended);
        }
        Ok(())
    }

    /// Reads the bytes of a data frame, and passes them on in pieces.
    async fn data(
        &mut self,
        from_kubelet: &mut (impl AsyncRead + Unpin),
        stream: u32,
        length: usize,
    ) -> Result<(), Broken> {
        let channel = match Some(stream) {
            it if it == self.opened.stdout => Some(STDOUT),
            it if it == self.opened.stderr => Some(STDERR),
            _ => None,
        };
        let mut left = length;
        let mut buffer = vec![0; left.min(SENT_BYTES_MAX)];
        while left > 0 {
            let piece = &mut buffer[..left.min(SENT_BYTES_MAX)];
            let read = from_kubelet.read_exact(piece).await;
            read.map_err(Broken::Gone)?;
            left -= piece.len();
            let start = self.clock.now();
            if let Some(channel) = channel {
                let sent = send(self.to_client, channel, piece).await;
                sent.map_err(|error| Broken::Failed(error.into()))?;
            } else if stream == self.opened.status {
                if self.status.len() + piece.len() > STATUS_BYTES_MAX {
                    let why = "the status of the command is too long".to_owned();
                    return Err(Broken::Failed(CommandFailure(why)));
                }
                self.status.put_slice(piece);
            }
            if let Some(throttle) = self.throttle {
                throttle.pause(piece.len(), start).await;
            }
        }
        Ok(())
    }
}

async fn send(to_client: &ToClient, channel: u8, bytes: &[u8]) -> io::Result<()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(channel);
    message.put_slice(bytes);
    let message = Message::binary(message.freeze());
    to_client.send(message, STALL_MAX).await
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests {
    use futures::StreamExt;
    use jiff::Timestamp;
    use ringwatch_testing::eventually::DEADLINE;
    use tokio::net::TcpListener;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// Returns the status that a client gets from a kubelet that says this to its request, and then nothing.
    async fn status_of_silence(said: &[u8]) -> Value {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let command = RemoteCommand {
            backend: Backend {
                host: "127.0.0.1".to_owned(),
                port: listener.local_addr().expect("an address").port(),
                tls: None,
                name: String::new(),
                may_be_local: true,
                connect_timeout: Duration::from_secs(1_000),
                bytes_per_second: None,
                kept: None,
                clock: clock.clone(),
            },
            path_and_query: "/exec".to_owned(),
            streams: Streams::default(),
        };
        let (client, server) = tokio::io::duplex(64 << 10);
        let end: ProtocolEnd = Box::pin(std::future::pending());
        let ran = Box::new(command).run(Box::new(server), Bytes::new(), end);
        let kubelet = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut read = [0; 10];
            stream.read_exact(&mut read).await.expect("a request");
            stream.write_all(said).await.expect("said");
            // It has been heard when a stream is opened, by a frame whose first byte is no text.
            while !said.is_empty() && stream.read_u8().await.expect("a frame") < 0x80 {}
            let mut socket = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
            // The message that shows the client that it is connected.
            socket.next().await.expect("a message").expect("a message");
            let status = loop {
                clock.advance(OPEN_MAX);
                let next = tokio::time::timeout(Duration::from_millis(100), socket.next());
                if let Ok(message) = next.await {
                    break message.expect("a message").expect("a message").into_data();
                }
            };
            socket.close(None).await.expect("closed");
            while let Some(Ok(_)) = socket.next().await {}
            assert_eq!(status[0], STATUS);
            serde_json::from_slice(&status[1..]).expect("a status")
        };
        let both = async { tokio::join!(ran, kubelet) };
        let both = tokio::time::timeout(DEADLINE, both).await;
        let (ran, status) = both.expect("in time");
        ran.expect("ended");
        status
    }

    #[tokio::test]
    async fn a_kubelet_that_says_nothing_keeps_nobody_waiting() {
        let status = status_of_silence(b"").await;
        let message = "Internal error occurred: timeout waiting for the kubelet";
        assert_eq!(status["message"], message);
        let switched = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
            Upgrade: SPDY/3.1\r\n\r\n";
        let status = status_of_silence(switched).await;
        let message = "Internal error occurred: timeout waiting for stream";
        assert_eq!(status["message"], message);
    }
}
