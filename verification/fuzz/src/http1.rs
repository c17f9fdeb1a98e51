//! Connections over HTTP/1.1, with watches, which are written without hyper. Whatever a client sends and however it is
//! cut, its connection ends once it has sent everything and reads; no more is answered than was asked, and nothing else
//! comes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_endpoints::{Caller, Handler, RequestInfo};
use ringwatch_filters::testing;
use ringwatch_http::{Connections, EventStream, Protocol, RequestBody, ResponseBody, full};
use ringwatch_tls::certificates::Certificates;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};

/// A connection must end within this time, on a clock that jumps when everybody waits.
const END_MAX: Duration = Duration::from_secs(600);

/// Bytes that the connection holds between client and server.
const PIPE_BYTES: usize = 1 << 10;

/// Bytes that are sent at once.
const PIECE_BYTES: usize = 61;

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(testing::certificates);

/// Answers everything: with a watch of three events where the path ends so, else with what it has read.
struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn handle(
        &self,
        request: Request<RequestBody>,
        _: Arc<RequestInfo>,
        _: Caller,
    ) -> Response<ResponseBody> {
        let is_watch = request.uri().path().ends_with("/watch");
        let read = request.into_body().collect().await;
        let length = read.map_or(0, |body| body.to_bytes().len());
        let mut answer = Response::new(full(format!("{length} bytes\n")));
        if is_watch {
            let deadline = Clock::real().now() + Duration::from_secs(60);
            answer.extensions_mut().insert(EventStream {
                deadline,
                shared: None,
            });
        }
        answer
    }
}

pub(crate) fn run(bytes: &[u8]) -> bool {
    let runtime = runtime();
    let answers = runtime.block_on(async {
        let connections: Connections =
            testing::connections(Arc::new(Echo), &Ledger::unlimited(), &CERTIFICATES);
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let (mut answers, mut requests) = tokio::io::split(client);
        let client = async {
            for piece in bytes.chunks(PIECE_BYTES) {
                if requests.write_all(piece).await.is_err() {
                    break;
                }
            }
            let _ = requests.shutdown().await;
        };
        let reading = async {
            let mut read = Vec::new();
            let _ = answers.read_to_end(&mut read).await;
            read
        };
        let served = connections.serve_http(server, Protocol::Http1);
        let all = join(served, join(client, reading));
        let ended = Clock::real().timeout(END_MAX, all).await;
        ended.expect("the connection ends").1.1
    });
    let answers = String::from_utf8_lossy(&answers);
    if answers.is_empty() {
        return false;
    }
    assert!(answers.starts_with("HTTP/1."), "{answers}");
    let (heads, blanks) = (answers.matches("HTTP/1.").count(), count_heads(bytes));
    assert!(
        heads <= 2 * (blanks + 1),
        "{heads} answers to {blanks} requests: {answers}"
    );
    answers.starts_with("HTTP/1.1 200")
}

/// Returns how many requests these bytes can be at most: each head ends with an empty line, of which hyper takes `\n`
/// alone.
fn count_heads(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}
