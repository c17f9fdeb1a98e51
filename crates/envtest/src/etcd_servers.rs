//! The servers of `--etcd-servers` of which one may be a stand-in: asked in rounds, until one is reached.
//!
//! An etcd has several members, and serves while some of them are down. So whichever is reached first decides.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use futures::future::join_all;
use http::{Request, StatusCode, Uri};
use ringwatch::clock::Clock;
use ringwatch_http::client::{Backend, ExchangeError, fetch};
use ringwatch_http::full;
use tokio::net::lookup_host;

use super::answers::{PLACE_PATH, StorePlace};
use super::error::EnvtestError;

/// Maximum time until an etcd is reached.
const REACHABLE_SECONDS_MAX: u64 = 20;
/// Time without an etcd after which a line tells of it.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// Pause between two rounds.
const RETRY_PERIOD: Duration = Duration::from_millis(50);
/// Maximum time for an answer. A server that takes longer is asked again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A server that may be a stand-in.
#[derive(Debug)]
struct Candidate {
    url: String,
    backend: Backend,
}

/// The kind of a server, as far as its answer shows it.
#[derive(Debug)]
enum ServerKind {
    /// A stand-in, with the place that it tells.
    StandIn(StorePlace),
    /// A server that is none: an etcd.
    Other,
    /// Nobody answers, for this reason.
    Unreached(String),
}

/// Returns the first of the servers that is a stand-in, and the place that it tells; `None` if another one is reached,
/// or may be elsewhere.
///
/// # Errors
/// None is reached in time.
pub(crate) async fn stand_in(
    servers: &[String],
    clock: &Clock,
) -> Result<Option<(String, StorePlace)>, EnvtestError> {
    let candidates = join_all(servers.iter().map(|url| Candidate::new(url, clock))).await;
    let candidates: Vec<_> = candidates.into_iter().flatten().collect();
    let some_are_elsewhere = candidates.len() < servers.len();
    let begin = clock.now();
    let mut is_told = false;
    loop {
        let mut unreached = None;
        let mut is_reached = some_are_elsewhere;
        let kinds = join_all(candidates.iter().map(Candidate::ask)).await;
        for (candidate, kind) in candidates.iter().zip(kinds) {
            match kind {
                ServerKind::StandIn(place) => return Ok(Some((candidate.url.clone(), place))),
                ServerKind::Other => is_reached = true,
                ServerKind::Unreached(why) => unreached = Some((&candidate.url, why)),
            }
        }
        let Some((url, why)) = unreached.filter(|_| !is_reached) else {
            return Ok(None);
        };
        let waited = clock.now() - begin;
        if waited >= Duration::from_secs(REACHABLE_SECONDS_MAX) {
            return Err(EnvtestError::NoEtcd {
                url: url.clone(),
                why,
                seconds: REACHABLE_SECONDS_MAX,
            });
        }
        if waited >= NOTICE_DELAY && !is_told {
            tracing::warn!("waiting for etcd at {url}: {why}; for up to {REACHABLE_SECONDS_MAX} s");
            is_told = true;
        }
        clock.sleep(RETRY_PERIOD).await;
    }
}

impl Candidate {
    /// Returns the server of a URL, if a stand-in could be there: on this machine, without TLS.
    async fn new(url: &str, clock: &Clock) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16()?;
        let is_plain = uri.scheme_str() == Some("http");
        if !is_plain || !leads_here(host, port, clock).await {
            return None;
        }
        let backend = Backend {
            host: host.to_owned(),
            port,
            tls: None,
            name: host.to_owned(),
            may_be_local: true,
            connect_timeout: ANSWER_TIMEOUT,
            bytes_per_second: None,
            kept: None,
            clock: clock.clone(),
        };
        let url = url.to_owned();
        Some(Self { url, backend })
    }

    async fn ask(&self) -> ServerKind {
        let clock = &self.backend.clock;
        match clock.timeout(ANSWER_TIMEOUT, place(&self.backend)).await {
            Ok(Ok(Some(place))) => ServerKind::StandIn(place),
            Ok(Err(
                error @ (ExchangeError::Connect { .. }
                | ExchangeError::Lookup(_)
                | ExchangeError::TimedOut(_)
                | ExchangeError::Closed),
            )) => ServerKind::Unreached(error.to_string()),
            Err(_) => {
                ServerKind::Unreached(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))
            }
            // One that does not speak HTTP/1.1 may well be an etcd.
            Ok(Ok(None) | Err(_)) => ServerKind::Other,
        }
    }
}

/// Returns true if a host is this machine: each of its addresses is.
async fn leads_here(host: &str, port: u16, clock: &Clock) -> bool {
    if let Ok(address) = host.parse() {
        return is_here(address);
    }
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let found = clock.timeout(ANSWER_TIMEOUT, lookup_host((host, port)));
    let Ok(Ok(found)) = found.await else {
        return false;
    };
    let mut found = found.peekable();
    found.peek().is_some() && found.all(|it| is_here(it.ip()))
}

/// Returns true if an address is one of this machine, at which a socket can be bound.
fn is_here(address: IpAddr) -> bool {
    // A suite may name the address that etcd listens at, which leads to this machine too.
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

async fn place(backend: &Backend) -> Result<Option<StorePlace>, ExchangeError> {
    let mut request = Request::new(full(""));
    *request.uri_mut() = Uri::from_static(PLACE_PATH);
    let answer = fetch(backend, request, ANSWER_BYTES_MAX).await?;
    let is_answer = answer.status() == StatusCode::OK;
    let place = serde_json::from_slice::<StorePlace>(answer.body()).ok();
    Ok(place.filter(|it| is_answer && it.folder.is_absolute()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests {
    use ringwatch_testing::eventually::DEADLINE;
    use ringwatch_testing::reserved_port::ReservedPort;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// The time by which a test moves its clock at once.
    const STEP: Duration = Duration::from_millis(100);

    /// A server that answers a number of requests, the first ones not at all.
    struct Server {
        listener: TcpListener,
        url: String,
    }

    impl Server {
        async fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("its address"));
            Self { listener, url }
        }

        /// Answers for ever, after some connections that it keeps and is silent on.
        async fn answer(&self, silent: usize, status: &str, body: &str) {
            let mut kept = Vec::new();
            loop {
                let (mut stream, _) = self.listener.accept().await.expect("a connection");
                if kept.len() < silent {
                    kept.push(stream);
                    continue;
                }
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let mut request = [0; 1024];
                let read = stream.read(&mut request).await.expect("a request");
                assert!(read > 0);
                let written = stream.write_all(answer.as_bytes()).await;
                written.expect("an answer is sent");
            }
        }
    }

    fn manual() -> Clock {
        Clock::manual(jiff::Timestamp::UNIX_EPOCH)
    }

    /// Runs a search while the time of its clock goes by.
    async fn found(
        servers: &[String],
        clock: &Clock,
    ) -> Result<Option<(String, StorePlace)>, EnvtestError> {
        let time = async {
            loop {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                clock.advance(STEP);
            }
        };
        tokio::select! {
            found = tokio::time::timeout(DEADLINE, stand_in(servers, clock)) => found.expect("in time"),
            () = time => unreachable!("it goes on for ever"),
        }
    }

    fn told(folder: &str) -> String {
        format!(r#"{{"folder":"{folder}","unsafeNoFsync":true}}"#)
    }

    #[tokio::test]
    async fn a_member_that_is_down_does_not_matter_where_another_is_reached() {
        let down = ReservedPort::new();
        let down = format!("http://127.0.0.1:{}", down.number());
        let server = Server::new().await;
        let servers = [down, server.url.clone()];
        // The clock stands still: there is no second round.
        let clock = manual();
        tokio::select! {
            found = tokio::time::timeout(DEADLINE, stand_in(&servers, &clock)) => {
                let found = found.expect("in time").expect("an etcd");
                assert_eq!(found, None);
            }
            () = server.answer(0, "404 Not Found", "404 page not found\n") => {}
        }
        let told = told("/data");
        tokio::select! {
            found = tokio::time::timeout(DEADLINE, stand_in(&servers, &clock)) => {
                let (url, place) = found.expect("in time").expect("found").expect("a stand-in");
                assert_eq!(url, server.url);
                assert_eq!(place.folder, std::path::Path::new("/data"));
            }
            () = server.answer(0, "200 OK", &told) => {}
        }
    }

    #[tokio::test]
    async fn members_that_are_elsewhere_are_not_waited_for() {
        let down = ReservedPort::new();
        let down = format!("http://127.0.0.1:{}", down.number());
        let servers = [down, "https://192.0.2.1:2379".to_owned()];
        let clock = manual();
        let found = tokio::time::timeout(DEADLINE, stand_in(&servers, &clock)).await;
        assert_eq!(found.expect("in time").expect("may be elsewhere"), None);
    }

    #[tokio::test]
    async fn a_server_that_takes_long_is_asked_again() {
        let server = Server::new().await;
        let servers = [server.url.clone()];
        let clock = manual();
        let told = told("/data");
        tokio::select! {
            found = found(&servers, &clock) => {
                found.expect("found").expect("a stand-in");
            }
            () = server.answer(1, "200 OK", &told) => {}
        }
    }

    #[tokio::test]
    async fn the_time_is_bounded_in_which_none_is_reached() {
        let down = ReservedPort::new();
        let servers = [format!("http://127.0.0.1:{}", down.number())];
        let clock = manual();
        let begin = clock.now();
        let error = found(&servers, &clock).await.expect_err("nobody is there");
        let EnvtestError::NoEtcd { url, why, .. } = error else {
            panic!("another error: {error}");
        };
        assert_eq!(url, servers[0]);
        assert!(why.contains("connection refused"), "{why}");
        assert!(clock.now() - begin >= Duration::from_secs(REACHABLE_SECONDS_MAX));
    }

    #[tokio::test]
    async fn only_plain_servers_of_this_machine_are_asked() {
        let clock = manual();
        for (url, asked) in [
            ("http://127.0.0.1:2379", true),
            ("http://[::1]:2379", true),
            ("http://localhost:2379", true),
            ("http://LOCALHOST:2379", true),
            ("http://0.0.0.0:2379", true),
            ("https://127.0.0.1:2379", false),
            ("http://192.0.2.1:2379", false),
            ("127.0.0.1:2379", false),
        ] {
            let candidate = Candidate::new(url, &clock).await;
            assert_eq!(candidate.is_some(), asked, "{url}");
        }
    }
}
