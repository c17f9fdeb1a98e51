//! An etcd that is empty and then sends a watch whatever it is given: encoded responses, from a thread of its own, so
//! that the time of the engine's thread is that of the engine.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::{BufMut, Bytes, BytesMut};
use etcd_client::proto::{PbRangeResponse, PbResponseHeader, PbStatusResponse, PbWatchResponse};
use futures::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A version whose progress notices can be trusted.
const VERSION: &str = "3.5.21";
/// Maximum number of chunks on their way to the connection.
const CHUNKS_MAX: usize = 64;

/// A server that takes one watch.
pub struct FakeEtcd {
    address: SocketAddr,
    chunks: Arc<Mutex<Option<mpsc::Receiver<Bytes>>>>,
    /// Takes what the watch is sent: messages, each framed by [`framed`], in chunks of any size.
    pub sender: mpsc::Sender<Bytes>,
}

impl FakeEtcd {
    /// Starts it on loopback.
    pub fn start() -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        let chunks = Arc::new(Mutex::new(Some(chunks)));
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&chunks);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve(listener, served));
        });
        Self {
            address,
            chunks,
            sender,
        }
    }

    /// Returns its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns true if the watch has begun.
    pub fn is_watched(&self) -> bool {
        self.chunks.lock().unwrap().is_none()
    }
}

/// Returns a message as gRPC frames it: a byte that says it is not compressed, and its length.
pub fn framed(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(5 + len);
    bytes.put_u8(0);
    bytes.put_u32(len.try_into().unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

/// Returns the header of a response at a revision.
pub fn header(revision: i64) -> Option<PbResponseHeader> {
    Some(PbResponseHeader {
        revision,
        ..PbResponseHeader::default()
    })
}

async fn serve(listener: std::net::TcpListener, chunks: Arc<Mutex<Option<mpsc::Receiver<Bytes>>>>) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let chunks = Arc::clone(&chunks);
        let answer = service_fn(move |request| {
            let chunks = Arc::clone(&chunks);
            async move {
                let answer = answer(&request, &chunks);
                tokio::spawn(read(request));
                Ok::<_, Infallible>(answer)
            }
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
    }
}

/// Reads a request until it ends. A watch's has a message for each progress that is requested, and h2 ends a connection
/// on which thousands of small ones have come that nobody read.
async fn read(request: Request<Incoming>) {
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
}

type Body = StreamBody<futures::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

fn answer(
    request: &Request<Incoming>,
    chunks: &Mutex<Option<mpsc::Receiver<Bytes>>>,
) -> Response<Body> {
    let first = match request.uri().path().rsplit('/').next().unwrap() {
        "Status" => framed(&PbStatusResponse {
            version: VERSION.to_owned(),
            ..PbStatusResponse::default()
        }),
        "Range" => framed(&PbRangeResponse {
            header: header(1),
            ..PbRangeResponse::default()
        }),
        "Watch" => framed(&PbWatchResponse {
            header: header(1),
            created: true,
            ..PbWatchResponse::default()
        }),
        other => panic!("nobody calls {other}"),
    };
    let is_watch = request.uri().path().ends_with("/Watch");
    let chunks = is_watch.then(|| chunks.lock().unwrap().take().expect("the only watch"));
    let chunks = futures::stream::iter(chunks)
        .flat_map(|mut chunks| futures::stream::poll_fn(move |context| chunks.poll_recv(context)));
    let data = futures::stream::iter([first]).chain(chunks);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let end = futures::stream::iter([Ok(Frame::trailers(trailers))]);
    let body = data.map(|it| Ok(Frame::data(it))).chain(end).boxed();
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(StreamBody::new(body)).unwrap()
}
