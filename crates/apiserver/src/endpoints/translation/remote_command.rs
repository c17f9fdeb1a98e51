//! A command in a container, or an attached process: its streams are channels of the client's WebSocket, and streams of
//! SPDY of the kubelet.
//!
//! ```text
//!   client: channels 0 stdin, 4 resize, 255 closed --> input ---> streams "stdin", "resize"
//!   client: channels 1 stdout, 2 stderr, 3 status <-- output <--- streams "stdout", "stderr", "error"
//! ```
//!
//! The client's WebSocket is accepted before the kubelet is called, so what fails comes as a status on channel 3. The two
//! directions do not wait for each other: who does not read holds up only those who write to him.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use ringwatch::clock::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::spdy::{self, Frame};
use super::{RECEIVED_BYTES_MAX, SENT_BYTES_MAX, STALL_MAX, spdy_request, speaks_spdy};
use crate::endpoints::relay::{Backend, Relayed, Switched, Throttle, exchange};
use crate::endpoints::tunnel::{Duplex, ProtocolEnd, Upgraded};
use crate::endpoints::websocket::{self, FromClient, ToClient};

/// The subprotocol of the WebSockets that are translated.
pub(in crate::endpoints) const WEB_SOCKET_PROTOCOL: &str = "v5.channel.k8s.io";
/// The protocol that is spoken in the streams of SPDY.
const SPDY_PROTOCOL: &str = "v4.channel.k8s.io";

/// Maximum number of bytes of the status of a command, or of a kubelet's refusal.
const STATUS_BYTES_MAX: usize = 64 << 10;
/// Maximum time until a kubelet has opened a stream.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// How many pings of the kubelet may wait to be answered; others are not answered.
const PONGS_MAX: usize = 1;

// The channels of the WebSocket.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// The channel on which the client says that it has closed another.
const CLOSED: u8 = 255;

/// The streams that the client asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::endpoints) struct Streams {
    pub(in crate::endpoints) stdin: bool,
    pub(in crate::endpoints) stdout: bool,
    pub(in crate::endpoints) stderr: bool,
    pub(in crate::endpoints) tty: bool,
}

/// A client that wants to run something, and the kubelet that is to run it.
pub(in crate::endpoints) struct RemoteCommand {
    pub(in crate::endpoints) backend: Backend,
    /// The path that the kubelet is asked for, with its query.
    pub(in crate::endpoints) path_and_query: String,
    pub(in crate::endpoints) streams: Streams,
}

/// The failure of a command other than its own, in words for the client.
struct Failed(String);

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

#[async_trait]
impl Upgraded for RemoteCommand {
    async fn run(
        self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        end: ProtocolEnd,
    ) -> io::Result<()> {
        let socket = websocket::open(client, &unread, RECEIVED_BYTES_MAX);
        let (mut to_client, mut from_client) = socket.await;
        let clock = &self.backend.clock;
        let first = match self.streams {
            Streams { stdout: true, .. } => STDOUT,
            Streams { stderr: true, .. } => STDERR,
            _ => STATUS,
        };
        // An empty message shows the client that it is connected.
        send(clock, &mut to_client, first, b"").await?;
        let ran = tokio::select! {
            ran = self.run_command(&mut to_client, &mut from_client) => ran,
            () = end => return websocket::end(clock, &mut to_client, &mut from_client).await,
        };
        let status = match ran {
            Ok(Some(status)) => status,
            Ok(None) => return Ok(()),
            Err(Failed(why)) => internal(&why),
        };
        send(clock, &mut to_client, STATUS, status.to_string().as_bytes()).await?;
        websocket::end(clock, &mut to_client, &mut from_client).await
    }
}

impl RemoteCommand {
    /// Runs the command, and returns its status; `None` when the client has gone.
    async fn run_command(
        &self,
        to_client: &mut ToClient,
        from_client: &mut FromClient,
    ) -> Result<Option<Value>, Failed> {
        let Switched {
            stream,
            early,
            throttle,
        } = self.connect_in_time().await?;
        let (from_kubelet, mut to_kubelet) = tokio::io::split(stream);
        let mut from_kubelet = early.as_ref().chain(from_kubelet);
        let opened = Opened::open(self.streams, &mut from_kubelet, &mut to_kubelet);
        let opened = self.backend.clock.timeout(OPEN_MAX, opened).await;
        let opened = opened.map_err(|_| Failed("timeout waiting for stream".to_owned()))??;
        let (pongs, waiting) = mpsc::channel(PONGS_MAX);
        let (clock, throttle) = (&self.backend.clock, throttle.as_ref());
        let mut input = Input {
            opened: &opened,
            throttle,
            clock,
            to_kubelet,
        };
        let mut output = Output {
            opened: &opened,
            throttle,
            clock,
            to_client,
            pongs,
        };
        tokio::select! {
            status = output.run(&mut from_kubelet) => Ok(Some(outcome(&status?)?)),
            () = input.run(from_client, waiting) => Ok(None),
        }
    }

    /// Has the kubelet speak SPDY. One that says nothing keeps nobody waiting.
    async fn connect_in_time(&self) -> Result<Switched, Failed> {
        let connected = self.backend.clock.timeout(OPEN_MAX, self.connect()).await;
        connected.map_err(|_| Failed("timeout waiting for the kubelet".to_owned()))?
    }

    async fn connect(&self) -> Result<Switched, Failed> {
        let request = spdy_request(&self.path_and_query, SPDY_PROTOCOL);
        let request = request.map_err(|_| Failed("error creating request".to_owned()))?;
        let answered = exchange(&self.backend, request).await;
        match answered.map_err(|error| Failed(format!("error sending request: {error}")))? {
            Relayed::Switched(head, switched) if speaks_spdy(head.headers()) => Ok(switched),
            Relayed::Switched(..) => Err(Failed("unable to upgrade connection".to_owned())),
            Relayed::Answered(answer) => {
                let mut body = answer.into_body();
                let mut said = BytesMut::new();
                while said.len() < STATUS_BYTES_MAX
                    && let Some(Ok(frame)) = body.frame().await
                {
                    said.extend_from_slice(&frame.into_data().unwrap_or_default());
                }
                let said = String::from_utf8_lossy(&said);
                Err(Failed(format!(
                    "unable to upgrade connection: {}",
                    said.trim()
                )))
            }
        }
    }
}

/// The numbers of the streams of SPDY; `None` for those that nobody asked for.
struct Opened {
    status: u32,
    stdin: Option<u32>,
    stdout: Option<u32>,
    stderr: Option<u32>,
    resize: Option<u32>,
}

impl Opened {
    /// Opens the streams, one after the other, in the order in which kubelets expect them.
    async fn open(
        streams: Streams,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Self, Failed> {
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
                        return Err(Failed(format!(
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
}

/// The way from the client to the kubelet.
struct Input<'a, W> {
    opened: &'a Opened,
    throttle: Option<&'a Throttle>,
    clock: &'a Clock,
    to_kubelet: W,
}

impl<W: AsyncWrite + Unpin> Input<'_, W> {
    /// Passes on what the client says, until it has gone. A kubelet that does not listen any more may still have the status
    /// to say, so that ends nothing.
    async fn run(&mut self, from_client: &mut FromClient, mut pongs: mpsc::Receiver<[u8; 4]>) {
        let mut listens = true;
        loop {
            let written = tokio::select! {
                Some(pong) = pongs.recv(), if listens => self.write(&spdy::pong(pong), b"").await,
                message = from_client.next() => match message {
                    Some(Ok(message)) if listens && (message.is_binary() || message.is_text()) => {
                        self.pass_on(&message.into_data()).await
                    }
                    Some(Ok(_)) => Ok(()),
                    Some(Err(_)) | None => return,
                },
            };
            listens &= written.is_ok();
        }
    }

    async fn pass_on(&mut self, message: &[u8]) -> io::Result<()> {
        let Some((&channel, bytes)) = message.split_first() else {
            return Ok(());
        };
        let (channel, last) = match (channel, bytes) {
            (CLOSED, &[closed]) => (closed, true),
            (channel, _) => (channel, false),
        };
        let stream = match channel {
            STDIN => self.opened.stdin,
            RESIZE => self.opened.resize,
            _ => None,
        };
        let bytes = if last { b"" } else { bytes };
        let Some(stream) = stream.filter(|_| last || !bytes.is_empty()) else {
            return Ok(());
        };
        let start = self.clock.now();
        self.write(&spdy::data(stream, bytes.len(), last), bytes)
            .await?;
        if let Some(throttle) = self.throttle {
            throttle.pause(bytes.len(), start).await;
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
    opened: &'a Opened,
    throttle: Option<&'a Throttle>,
    clock: &'a Clock,
    to_client: &'a mut ToClient,
    pongs: mpsc::Sender<[u8; 4]>,
}

impl Output<'_> {
    /// Passes on what the command writes, and returns its status once all its streams have ended.
    async fn run(&mut self, from_kubelet: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, Failed> {
        let opened = self.opened;
        let mut open = vec![opened.status];
        open.extend(opened.stdout.into_iter().chain(opened.stderr));
        let mut status = BytesMut::new();
        while !open.is_empty() {
            let ended = match spdy::next(from_kubelet).await? {
                Frame::Data {
                    stream,
                    length,
                    last,
                } => {
                    self.data(from_kubelet, stream, length, &mut status).await?;
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
            open.retain(|it| Some(*it) != ended);
        }
        Ok(status.freeze())
    }

    /// Reads the bytes of a data frame, and passes them on in pieces.
    async fn data(
        &mut self,
        from_kubelet: &mut (impl AsyncRead + Unpin),
        stream: u32,
        length: usize,
        status: &mut BytesMut,
    ) -> Result<(), Failed> {
        let channel = match Some(stream) {
            it if it == self.opened.stdout => Some(STDOUT),
            it if it == self.opened.stderr => Some(STDERR),
            _ => None,
        };
        let mut left = length;
        let mut buffer = vec![0; left.min(SENT_BYTES_MAX)];
        while left > 0 {
            let piece = &mut buffer[..left.min(SENT_BYTES_MAX)];
            from_kubelet.read_exact(piece).await?;
            left -= piece.len();
            let start = self.clock.now();
            if let Some(channel) = channel {
                send(self.clock, self.to_client, channel, piece).await?;
            } else if stream == self.opened.status {
                if status.len() + piece.len() > STATUS_BYTES_MAX {
                    return Err(Failed("the status of the command is too long".to_owned()));
                }
                status.put_slice(piece);
            }
            if let Some(throttle) = self.throttle {
                throttle.pause(piece.len(), start).await;
            }
        }
        Ok(())
    }
}

async fn send(
    clock: &Clock,
    to_client: &mut ToClient,
    channel: u8,
    bytes: &[u8],
) -> io::Result<()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(channel);
    message.put_slice(bytes);
    let message = Message::binary(message.freeze());
    websocket::within(STALL_MAX, clock, to_client.send(message)).await
}

/// Returns the status that the client gets for what the kubelet says of the command: `errorDecoderV4` of Kubernetes 1.36
/// (`client-go/tools/remotecommand/v4.go`) and `codeExitToStatusError`.
fn outcome(message: &[u8]) -> Result<Value, Failed> {
    let success = json!({"metadata": {}, "status": "Success"});
    if message.is_empty() {
        return Ok(success);
    }
    let wrong = |why: &str| Failed(format!("error stream protocol error: {why}"));
    let status: Value = serde_json::from_slice(message).map_err(|error| {
        let text = String::from_utf8_lossy(message);
        wrong(&format!("{error} in {text:?}"))
    })?;
    match status["status"].as_str() {
        Some("Success") => return Ok(success),
        Some("Failure") => {}
        _ => return Err(wrong("unknown error")),
    }
    if status["reason"] != "NonZeroExitCode" {
        return Err(Failed(
            status["message"].as_str().unwrap_or_default().to_owned(),
        ));
    }
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let mut causes = causes.into_iter().flatten();
    let code = causes.find(|it| it["reason"] == "ExitCode");
    let code = code.ok_or_else(|| wrong("no ExitCode cause given"))?;
    let text = code["message"].as_str().unwrap_or_default();
    let code: u8 = text
        .parse()
        .map_err(|_| wrong(&format!("invalid exit code value {text:?}")))?;
    Ok(
        json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!(
            "command terminated with non-zero exit code: command terminated with exit code {code}"
        ),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}}),
    )
}

/// Returns the status of a failure of the server or the kubelet.
fn internal(why: &str) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {why}"),
        "details": {"causes": [{"message": why}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gets_the_exit_code() {
        let said = |status: &str| match outcome(status.as_bytes()) {
            Ok(status) => format!(
                "{} {}",
                status["status"].as_str().unwrap_or_default(),
                status["details"]["causes"][0]["message"]
                    .as_str()
                    .unwrap_or_default()
            ),
            Err(Failed(why)) => why,
        };
        let exit = |code: &str| {
            let causes = json!([{"reason": "Other"}, {"reason": "ExitCode", "message": code}]);
            json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}})
                .to_string()
        };
        for (status, expected) in [
            ("", "Success "),
            (r#"{"status": "Success"}"#, "Success "),
            (&exit("3"), "Failure 3"),
            (
                &exit("300"),
                "error stream protocol error: invalid exit code value \"300\"",
            ),
            (
                r#"{"status": "Failure", "message": "no such container"}"#,
                "no such container",
            ),
            (
                r#"{"status": "Failure", "reason": "NonZeroExitCode"}"#,
                "error stream protocol error: no ExitCode cause given",
            ),
            ("[]", "error stream protocol error: unknown error"),
        ] {
            assert_eq!(said(status), expected, "{status}");
        }
        assert!(said("{").starts_with("error stream protocol error: "));
    }
}
