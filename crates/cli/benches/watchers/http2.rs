//! Watches that share a connection over HTTP/2.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use tokio::task::spawn_local;

use super::chunks::Lines;
use super::group::{Group, Heard, now};
use super::http1::connect;
use super::server::TOKEN;

/// A stream may be sent this much ahead, as client-go allows.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// A connection may be sent this much ahead.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

/// Follows the watches of a range on one connection, to their end, which is a fault.
pub(crate) async fn follow(
    group: Rc<Group>,
    indexes: std::ops::Range<usize>,
    tls: Arc<ClientConfig>,
) {
    let connecting = async {
        let stream = connect(&group.opening, &tls).await?;
        http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake::<_, Empty<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)
    };
    let (sender, connection) = match connecting.await {
        Ok(connected) => connected,
        Err(error) => return group.fault(indexes.start, &error.to_string()),
    };
    for index in indexes {
        let (group, mut sender) = (Rc::clone(&group), sender.clone());
        spawn_local(async move {
            let request = Request::get(format!(
                "https://{}{}",
                group.opening.address,
                group.path(index)
            ))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("accept", "application/json");
            let request = request.body(Empty::new()).expect("a request");
            let answer = async {
                sender.ready().await?;
                sender.send_request(request).await
            };
            match answer.await {
                Ok(answer) if answer.status().is_success() => {
                    group.answered();
                    let why = read(&group, index, answer.into_body()).await;
                    group.ended();
                    group.fault(index, &why);
                }
                Ok(answer) => group.fault(index, &answer.status().to_string()),
                Err(error) => group.fault(index, &error.to_string()),
            }
        });
    }
    // Its end shows in the streams.
    let _ = connection.await;
}

/// Reads lines until the watch ends; says why it did.
async fn read(group: &Group, index: usize, mut body: Incoming) -> String {
    let mut lines = Lines::plain();
    loop {
        let data = match body.frame().await {
            None => return "the watch ended".to_owned(),
            Some(Err(error)) => return error.to_string(),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let now = now();
        let mut heard = Heard::Event;
        let read = lines.read(&data, |line| heard = group.take(index, line, now));
        if let Err(why) = read {
            return why;
        }
        if heard == Heard::End {
            return "the watch ended with an error".to_owned();
        }
    }
}
