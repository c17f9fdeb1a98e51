//! The process in a container of the stand-in kubelet: it reads its standard input to the end, answers, and ends. It is
//! reached over WebSockets or over SPDY, as kubelets are.

use std::io;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::spdy::{Frame, Spdy};

const WEB_SOCKET: &str = "v5.channel.k8s.io";
const SPDY: &str = "v4.channel.k8s.io";
// The channels of a WebSocket; the last says that another is closed.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const CLOSE: u8 = 255;

/// The output of a process.
struct Said {
    out: Vec<u8>,
    err: Vec<u8>,
    status: Value,
}

/// Runs what a kubelet was asked to run.
fn run(target: &str, input: Vec<u8>) -> Said {
    let failure = json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}});
    let success = json!({"metadata": {}, "status": "Success"});
    let (out, err, status) = match target {
        _ if target.contains("command=fail") || target.contains("command=leave") => {
            (vec![], b"it fails\n".to_vec(), failure)
        }
        _ if target.contains("command=cat") => (input, vec![], success),
        _ => (b"it runs\n".to_vec(), vec![], success),
    };
    Said { out, err, status }
}

/// Returns a header of a request.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Returns true if the client asks for WebSockets.
pub(super) fn wants_web_socket(head: &str) -> bool {
    header(head, "upgrade").is_some_and(|it| it.eq_ignore_ascii_case("websocket"))
}

/// Answers over a WebSocket.
pub(super) async fn over_web_socket(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    head: &str,
    target: &str,
) -> io::Result<()> {
    let key = header(head, "sec-websocket-key").expect("a key");
    let accepted = derive_accept_key(key.as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accepted}\r\nSec-WebSocket-Protocol: {WEB_SOCKET}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let has_input = target.contains("input=1");
    let mut input = Vec::new();
    loop {
        let Some(Ok(message)) = socket.next().await else {
            break;
        };
        // kubectl 1.29 begins to read before it has made its streams, and drops output that comes too soon. Where it
        // has no input to send, its first ping, after 5 seconds, is the first sign that it has made them.
        if message.is_ping() && !has_input {
            break;
        }
        match message.into_data().split_first() {
            Some((&STDIN, said)) => input.extend_from_slice(said),
            Some((&CLOSE, _)) => break,
            _ => {}
        }
    }
    let said = run(target, input);
    let status = said.status.to_string().into_bytes();
    for (channel, bytes) in [(STDOUT, said.out), (STDERR, said.err), (ERROR, status)] {
        if !bytes.is_empty() {
            let frame = [&[channel], bytes.as_slice()].concat();
            let sent = socket.send(Message::Binary(frame.into())).await;
            sent.map_err(io::Error::other)?;
        }
    }
    let end = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    let _ = socket.close(Some(end)).await;
    while let Some(Ok(_)) = socket.next().await {}
    Ok(())
}

/// Answers over SPDY. kubectl opens the stream for errors first, and then those that it has asked for. The command
/// `leave` ends the connection, and no stream of it.
pub(super) async fn over_spdy(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    target: &str,
) -> io::Result<()> {
    let mut spdy = Spdy::accept(stream, SPDY).await?;
    let asked = ["input=1", "output=1", "error=1"].map(|it| target.contains(it));
    let count = 1 + asked.iter().filter(|it| **it).count();
    let mut opened = Vec::new();
    while opened.len() < count {
        if let Some(Frame::Open(id)) = spdy.next().await? {
            spdy.reply(id).await?;
            opened.push(id);
        }
    }
    let mut opened = opened.into_iter();
    let errors = opened.next().expect("a stream for errors");
    let [stdin, stdout, stderr] = asked.map(|it| it.then(|| opened.next()).flatten());
    let mut input = Vec::new();
    while let Some(stdin) = stdin {
        match spdy.next().await? {
            None => return Ok(()),
            Some(Frame::Data { id, bytes, last }) if id == stdin => {
                input.extend(bytes);
                if last {
                    break;
                }
            }
            Some(_) => {}
        }
    }
    let said = run(target, input);
    let status = said.status.to_string().into_bytes();
    let leaves = target.contains("command=leave");
    for (id, bytes) in [
        (stdout, said.out),
        (stderr, said.err),
        (Some(errors), status),
    ] {
        if let Some(id) = id {
            spdy.send(id, &bytes, !leaves).await?;
        }
    }
    if leaves {
        return Ok(());
    }
    while spdy.next().await?.is_some() {}
    Ok(())
}

/// Says everything again that comes over a port. kubectl opens two streams for each connection: one for errors
/// and then one for what is said.
pub(super) async fn over_ports(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut spdy = Spdy::accept(stream, "portforward.k8s.io").await?;
    let mut errors = None;
    let mut pairs = Vec::new();
    while let Some(frame) = spdy.next().await? {
        match frame {
            Frame::Open(id) => {
                spdy.reply(id).await?;
                match errors.take() {
                    None => errors = Some(id),
                    Some(error) => pairs.push((error, id)),
                }
            }
            Frame::Data { id, bytes, last } => {
                let Some((error, _)) = pairs.iter().find(|(_, said)| *said == id) else {
                    continue;
                };
                spdy.send(id, &bytes, last).await?;
                if last {
                    spdy.send(*error, b"", true).await?;
                }
            }
        }
    }
    Ok(())
}
