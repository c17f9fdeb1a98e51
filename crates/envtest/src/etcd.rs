//! The stand-in for etcd: it answers that it is healthy and where the store is kept, until a signal ends it.
//!
//! One thread does all of it, and connections are futures that it polls, within bounds: a suite asks a few times.

use std::convert::Infallible;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::time::Duration;

use futures::StreamExt;
use futures::future::select_all;
use futures::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ringwatch::clock::Clock;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::answers::{StorePlace, answer};
use super::error::EnvtestError;
use super::etcd_flags::{EtcdFlags, ListenUrl};

/// Maximum number of connections; others wait until one ends.
const CONNECTIONS_MAX: usize = 64;
/// Maximum time for which a connection is kept. Each is for one request, so that none is held without one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// The folder of an etcd's own files in its data folder.
const MEMBER: &str = "member";
/// Pause after a connection could not be accepted, such as for want of files.
const ACCEPT_RETRY_PERIOD: Duration = Duration::from_millis(50);

/// Runs the stand-in until SIGTERM or SIGINT.
///
/// # Errors
/// The folder cannot be made, or an address not be listened at.
pub fn run(flags: &EtcdFlags) -> Result<(), EnvtestError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| system("start", source))?;
    runtime.block_on(async {
        let mut signals = [
            handler(SignalKind::terminate())?,
            handler(SignalKind::interrupt())?,
        ];
        let (place, listeners) = prepare(flags).await?;
        announce(flags, &place, &listeners);
        let clock = Clock::real();
        let [terminate, interrupt] = &mut signals;
        tokio::select! {
            () = serve(&listeners, &place, &clock) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

fn handler(kind: SignalKind) -> Result<Signal, EnvtestError> {
    signal(kind).map_err(|source| system("take over signals", source))
}

fn system(what: &'static str, source: io::Error) -> EnvtestError {
    EnvtestError::System { what, source }
}

/// Listens and then creates the data folder, for its owner alone as etcd does: one that cannot listen leaves none.
async fn prepare(flags: &EtcdFlags) -> Result<(StorePlace, Vec<TcpListener>), EnvtestError> {
    let failed = |source| EnvtestError::Folder {
        path: flags.data_dir.clone(),
        source,
    };
    let folder = std::path::absolute(&flags.data_dir).map_err(failed)?;
    if folder.join(MEMBER).symlink_metadata().is_ok() {
        let path = flags.data_dir.clone();
        return Err(EnvtestError::OfEtcd { path });
    }
    let mut listeners = Vec::new();
    for url in &flags.listen {
        listeners.push(listen(url).await?);
    }
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&folder);
    made.map_err(failed)?;
    let unsafe_no_fsync = flags.unsafe_no_fsync;
    let place = StorePlace {
        folder,
        unsafe_no_fsync,
    };
    Ok((place, listeners))
}

/// Listens at one address of the host, that of IPv4 if it has one: a name such as `localhost` is it for Go's programs.
async fn listen(url: &ListenUrl) -> Result<TcpListener, EnvtestError> {
    let failed = |source| EnvtestError::Listen {
        url: url.url.clone(),
        source,
    };
    let found = lookup_host((url.host.as_str(), url.port)).await;
    let address = preferred(found.map_err(failed)?);
    let address = address.ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
    TcpListener::bind(address).await.map_err(failed)
}

fn preferred(addresses: impl IntoIterator<Item = SocketAddr>) -> Option<SocketAddr> {
    addresses.into_iter().min_by_key(SocketAddr::is_ipv6)
}

/// Prints where the stand-in listens. An error of standard output is ignored.
fn announce(flags: &EtcdFlags, place: &StorePlace, listeners: &[TcpListener]) {
    let version = env!("CARGO_PKG_VERSION");
    let addresses = listeners.iter().filter_map(|it| it.local_addr().ok());
    let urls: Vec<_> = addresses.map(|it| format!("http://{it}")).collect();
    let mut text = format!(
        "ringwatch {version} stands in for etcd at {}\n  store           kube-apiserver keeps it in {}\n",
        urls.join(", "),
        place.folder.display()
    );
    if !flags.without_effect.is_empty() {
        let names = flags.without_effect.iter().map(|it| format!("--{it}"));
        let names: Vec<_> = names.collect();
        text.push_str(&format!("  without effect  {}\n", names.join(", ")));
    }
    let _ = write!(io::stdout(), "{text}");
}

/// Accepts connections and answers their requests, for ever.
async fn serve(listeners: &[TcpListener], place: &StorePlace, clock: &Clock) {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = accept(listeners), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, client)) => connections.push(converse(stream, client, place, clock)),
                Err(_) => clock.sleep(ACCEPT_RETRY_PERIOD).await,
            },
            Some(()) = connections.next(), if !connections.is_empty() => {}
        }
    }
}

async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    let all = listeners.iter().map(|it| Box::pin(it.accept()));
    select_all(all).await.0
}

/// Answers the request of a connection, within its time.
async fn converse(stream: TcpStream, client: SocketAddr, place: &StorePlace, clock: &Clock) {
    let is_here = (stream.local_addr()).is_ok_and(|own| is_of_this_machine(client.ip(), own.ip()));
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, is_here, place)));
    let mut builder = http1::Builder::new();
    let connection = builder
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off has nobody to be told.
    let _ = clock.timeout(CONNECTION_TIMEOUT, connection).await;
}

/// Returns true if a client is a process of this machine: it uses loopback, or the address that it has connected to.
fn is_of_this_machine(client: IpAddr, own: IpAddr) -> bool {
    let client = client.to_canonical();
    client.is_loopback() || client == own.to_canonical()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests {
    use ringwatch_testing::eventually::DEADLINE;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::EtcdCommand;

    /// Number of connections of clients that send nothing: more than two times those that are kept.
    const IDLE: usize = 2 * CONNECTIONS_MAX + 22;

    fn flags(words: &[String]) -> EtcdFlags {
        match EtcdCommand::parse(words.iter().map(Into::into)).expect("flags") {
            EtcdCommand::Run(flags) => flags,
            EtcdCommand::Print(text) => panic!("{text}"),
        }
    }

    async fn health(address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        // Without `Connection: close`, as clients that keep connections ask.
        let request = "GET /health HTTP/1.1\r\nHost: etcd\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn clients_that_send_nothing_do_not_block_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let place = StorePlace {
            folder: "/data".into(),
            unsafe_no_fsync: true,
        };
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let asked = async {
            let mut idle = Vec::new();
            for _ in 0..IDLE {
                idle.push(TcpStream::connect(address).await.expect("a connection"));
            }
            health(address).await.expect("an answer")
        };
        let time = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                clock.advance(CONNECTION_TIMEOUT / 2);
            }
        };
        let listeners = [listener];
        let answer = tokio::select! {
            answer = tokio::time::timeout(DEADLINE, asked) => answer.expect("in time"),
            () = serve(&listeners, &place, &clock) => unreachable!("it serves for ever"),
            () = time => unreachable!("it goes on for ever"),
        };
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(
            answer.to_ascii_lowercase().contains("connection: close"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn one_that_cannot_start_leaves_no_folder_and_uses_no_etcds() {
        let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", taken.local_addr().expect("its address"));
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let words = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={url}"),
        ];
        let error = prepare(&flags(&words))
            .await
            .expect_err("the port is taken");
        let said = error.to_string();
        assert!(said.contains("choose a free port"), "{said}");
        assert!(!data.exists());
        drop(taken);
        std::fs::create_dir_all(data.join(MEMBER)).expect("a folder");
        let error = prepare(&flags(&words)).await.expect_err("an etcd's");
        assert!(matches!(error, EnvtestError::OfEtcd { .. }), "{error}");
        std::fs::remove_dir(data.join(MEMBER)).expect("removed");
        prepare(&flags(&words)).await.expect("prepared");
        assert_eq!(std::fs::read_dir(&data).expect("a folder").count(), 0);
    }

    #[tokio::test]
    async fn an_error_of_an_address_says_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        // An address of documentation is none of this machine.
        let words = [
            format!("--data-dir={}", data.display()),
            "--listen-client-urls=http://192.0.2.1:0".to_owned(),
        ];
        let error = prepare(&flags(&words)).await.expect_err("not here");
        let said = error.to_string();
        assert!(said.contains("choose an address of this machine"), "{said}");
    }

    #[test]
    fn a_name_of_both_families_is_its_address_of_ipv4() {
        let addresses = ["[::1]:1", "127.0.0.1:1", "127.0.0.2:1"];
        let addresses = addresses.map(|it| it.parse().expect("an address"));
        assert_eq!(preferred(addresses), Some(addresses[1]));
        assert_eq!(preferred([addresses[0]]), Some(addresses[0]));
        assert_eq!(preferred([]), None);
    }

    #[test]
    fn clients_of_this_machine_are_known_by_their_address() {
        for (client, own, is_here) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", true),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.2", "192.0.2.1", false),
        ] {
            let [client, own] = [client, own].map(|it| it.parse().expect("an address"));
            assert_eq!(
                is_of_this_machine(client, own),
                is_here,
                "{client} at {own}"
            );
        }
    }
}
