//! Reading a snapshot from the server that serves the store.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, AUTHORIZATION, HOST};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::maintenance::Seal;
use ringwatch_tls::target::{Target, USER_AGENT};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::StoreError;
use super::new_file::NewFile;
use super::progress::CopyLine;

/// The path of snapshots.
const SNAPSHOT: &str = "/store/snapshot";
/// Maximum time until the server answers, and between two pieces of its answer.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// The most bytes of an error that are read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Writes a snapshot of the server's store to a file. Returns its size in bytes.
///
/// # Errors
/// [`StoreError`]; an old file is still there then.
pub(crate) async fn download(
    target: &Target,
    path: &Path,
    progress: &CopyLine,
) -> Result<u64, StoreError> {
    let clock = Clock::real();
    let address = (target.host.as_str(), target.port);
    let connected = clock.timeout(SILENCE_MAX, TcpStream::connect(address));
    let stream = connected
        .await
        .map_err(|_| silent(target))?
        .map_err(|error| broken(target, &error))?;
    let Some((config, name)) = &target.tls else {
        return over(stream, target, path, progress, &clock).await;
    };
    let connector = TlsConnector::from(config.clone());
    let connecting = connector.connect(name.clone(), stream);
    let stream = clock.timeout(SILENCE_MAX, connecting).await;
    let stream = stream
        .map_err(|_| silent(target))?
        .map_err(|error| not_secured(target, &error))?;
    over(stream, target, path, progress, &clock).await
}

/// Asks over a connection, and writes the answer to a file.
async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    target: &Target,
    path: &Path,
    progress: &CopyLine,
    clock: &Clock,
) -> Result<u64, StoreError> {
    let shaking = http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = shaking.await.map_err(|error| broken(target, &error))?;
    let mut request = Request::get(SNAPSHOT)
        .header(HOST, &target.authority)
        .header(header::USER_AGENT, USER_AGENT);
    if let Some(token) = &target.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|error| broken(target, &error))?;
    let copy = async {
        let answer = clock.timeout(SILENCE_MAX, sender.send_request(request));
        let answer = answer.await.map_err(|_| silent(target))?;
        let answer = answer.map_err(|error| broken(target, &error))?;
        if answer.status() != StatusCode::OK {
            return Err(refused(target, answer, clock).await);
        }
        write(answer, target, path, progress, clock).await
    };
    // How the connection ended shows in the answer.
    let drive = async {
        let _ = connection.await;
        std::future::pending().await
    };
    tokio::select! {
        copied = copy => copied,
        never = drive => never,
    }
}

/// Writes the body of an answer to a file, which gets its name if the digest at its end is right.
async fn write(
    answer: Response<Incoming>,
    target: &Target,
    path: &Path,
    progress: &CopyLine,
    clock: &Clock,
) -> Result<u64, StoreError> {
    let mut file = NewFile::create(path)?;
    let mut body = answer.into_body();
    let (mut seal, mut size) = (Seal::default(), 0);
    loop {
        let frame = clock.timeout(SILENCE_MAX, body.frame()).await;
        let Some(frame) = frame.map_err(|_| silent(target))? else {
            break;
        };
        let frame = frame.map_err(|error| broken(target, &error))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        seal.update(&piece);
        file.write(&piece)?;
        size += piece.len() as u64;
        progress.add(piece.len());
    }
    seal.verify().map_err(|source| StoreError::Incomplete {
        server: target.authority.clone(),
        source,
    })?;
    file.replace()?;
    Ok(size)
}

/// Returns the error of an answer that is no snapshot.
async fn refused(target: &Target, answer: Response<Incoming>, clock: &Clock) -> StoreError {
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ERROR_BYTES_MAX).collect();
    let body = clock.timeout(SILENCE_MAX, body).await;
    let body = body.ok().and_then(Result::ok).map(|it| it.to_bytes());
    let text = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    let object: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let message = object.and_then(|it| Some(it.get("message")?.as_str()?.to_owned()));
    let message = message.unwrap_or(text);
    StoreError::Refused {
        server: target.authority.clone(),
        status: status.as_u16(),
        message: message.split_whitespace().collect::<Vec<_>>().join(" "),
        advice: match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "use the kubeconfig of a user who may get the path /store/snapshot, such as the one in the data directory"
            }
            StatusCode::NOT_FOUND => {
                "only a ringwatch server with the embedded store has snapshots; use etcdctl for etcd"
            }
            StatusCode::TOO_MANY_REQUESTS => "another snapshot is being read; try again later",
            _ => "look at the server's log",
        },
    }
}

fn broken(target: &Target, error: &dyn std::error::Error) -> StoreError {
    // hyper's own text leaves out the cause.
    let cause = error.source().map(|cause| format!(": {cause}"));
    StoreError::Connection {
        server: target.authority.clone(),
        why: format!("{error}{}", cause.unwrap_or_default()),
    }
}

/// Returns the error of a handshake.
fn not_secured(target: &Target, error: &io::Error) -> StoreError {
    let cause = error.get_ref().and_then(|it| it.downcast_ref());
    match cause {
        Some(rustls::Error::InvalidCertificate(why)) => StoreError::Untrusted {
            server: target.authority.clone(),
            why: why.to_string(),
        },
        _ => broken(target, error),
    }
}

fn silent(target: &Target) -> StoreError {
    StoreError::Connection {
        server: target.authority.clone(),
        why: format!("nothing came for {} seconds", SILENCE_MAX.as_secs()),
    }
}
