//! A proxy that breaks promises: it stands before a real server and changes one event, or one list, of
//! many. Which one depends on nothing but how many have come.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::fault::{Chooser, Fault};
use super::lists::Lists;
use super::mangler::{Frames, Mangler};

/// An event that is held back goes out when nothing has come for so long.
const HELD_MAX: Duration = Duration::from_secs(1);

/// A running proxy. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    chooser: Arc<Chooser>,
    task: JoinHandle<()>,
}

/// The part that its connections share.
struct Upstream {
    client: kube::Client,
    fault: Fault,
    chooser: Arc<Chooser>,
    lists: Lists,
}

type Answer = UnsyncBoxBody<Bytes, Infallible>;

impl Proxy {
    /// Stands before the server of this client, and plants a fault in one of so many, the first time
    /// after `before`.
    pub(crate) async fn start(
        client: kube::Client,
        fault: Fault,
        one_of: usize,
        before: usize,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let chooser = Arc::new(Chooser::new(one_of, before));
        let lists = Lists::new(client.clone(), fault, Arc::clone(&chooser));
        let upstream = Arc::new(Upstream {
            client,
            fault,
            chooser: Arc::clone(&chooser),
            lists,
        });
        let task = tokio::spawn(serve(listener, upstream));
        Self {
            address,
            chooser,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the count of events or lists that came, which does not begin with 0, and the number of faults that were
    /// planted.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.chooser.counts()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, upstream: Arc<Upstream>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Small events must not wait for acknowledgements.
        stream.set_nodelay(true).expect("a TCP stream");
        let upstream = Arc::clone(&upstream);
        connections.spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&upstream), request));
            // Clients come and go.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Hands a request on and its answer back, changed where it is chosen.
async fn answer(
    upstream: Arc<Upstream>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, kube::Error> {
    let mut path = request.uri().path_and_query().expect("a path").to_string();
    let accept = request.headers().get(ACCEPT).cloned();
    let is_get = request.method() == Method::GET;
    let is_watch = is_get && path.contains("watch=true");
    let refused = upstream
        .fault
        .refuses(request.method(), &path, &upstream.chooser);
    if let Some(status) = refused {
        let refusal = Response::builder().status(status);
        let body = Full::new(Bytes::new()).boxed_unsync();
        return Ok(refusal.body(body).expect("an answer"));
    }
    if is_get && !is_watch && upstream.fault == Fault::IgnoredType {
        path = upstream.of_all_types(path);
    }
    let mut onward = Request::builder().method(request.method()).uri(&path);
    for name in [ACCEPT, CONTENT_TYPE] {
        if let Some(value) = request.headers().get(&name) {
            onward = onward.header(name, value);
        }
    }
    let body = request.into_body().collect().await;
    let body = body.expect("a whole request").to_bytes();
    let onward = onward.body(Body::from(body.to_vec())).expect("a request");
    let (head, body) = upstream.client.send(onward).await?.into_parts();
    let is_json = accept.is_some_and(|it| it.as_bytes() == b"application/json");
    let mut answer = Response::builder().status(head.status);
    if let Some(value) = head.headers.get(CONTENT_TYPE) {
        answer = answer.header(CONTENT_TYPE, value);
    }
    let body = if is_watch && head.status.is_success() {
        let frames = Frames::new(is_json);
        let has_initial = path.contains("sendInitialEvents");
        let fault = Some(upstream.fault).filter(|_| !has_initial);
        let fault = fault.unwrap_or(Fault::Nothing);
        let mangler = Mangler::new(fault, is_json, Arc::clone(&upstream.chooser));
        let mangled = Mangled {
            body: BodyStream::new(body),
            frames,
            mangler,
            has_ended: false,
        };
        let frames = futures::stream::unfold(mangled, Mangled::step);
        BodyExt::boxed_unsync(StreamBody::new(frames.map(|it| Ok(Frame::data(it)))))
    } else {
        let mut body = body.collect().await?.to_bytes();
        if is_get && head.status.is_success() {
            body = upstream.lists.pass(&path, is_json, body).await?;
        }
        Full::new(body).boxed_unsync()
    };
    Ok(answer.body(body).expect("an answer"))
}

impl Upstream {
    /// The same list without the selection of a type. From lists of the newest state in one page
    /// watches begin, which must not be misled.
    fn of_all_types(&self, path: String) -> String {
        const TYPE: &str = "&fieldSelector=type";
        let begins_no_watch = path.contains("&limit=") || path.contains("&resourceVersion=");
        let Some((before, rest)) = path.split_once(TYPE).filter(|_| begins_no_watch) else {
            return path;
        };
        self.chooser.is_chosen();
        self.chooser.count();
        let after = rest.split_once('&').map_or("", |(_, after)| after);
        format!("{before}&{after}")
    }
}

/// A watch whose frames go through the mangler.
struct Mangled {
    body: BodyStream<Body>,
    frames: Frames,
    mangler: Mangler,
    has_ended: bool,
}

impl Mangled {
    /// Returns the next bytes.
    async fn step(mut self) -> Option<(Bytes, Self)> {
        let mut out = BytesMut::new();
        while out.is_empty() {
            if self.has_ended {
                return None;
            }
            match tokio::time::timeout(HELD_MAX, self.body.next()).await {
                Err(_) => self.mangler.let_go(&mut out),
                Ok(Some(Ok(frame))) => {
                    self.frames.push(&frame.into_data().unwrap_or_default());
                    while let Some(frame) = self.frames.next() {
                        self.mangler.pass(&frame, &mut out);
                    }
                    self.has_ended = self.mangler.has_ended();
                }
                Ok(_) => {
                    self.mangler.let_go(&mut out);
                    self.has_ended = true;
                }
            }
        }
        Some((out.freeze(), self))
    }
}
