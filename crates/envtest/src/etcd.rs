//! The stand-in for etcd: it answers that it is healthy and where the store is kept, until a signal ends it.
//!
//! One thread does all of it, and connections are futures that it polls, within bounds: a suite asks a few times.

use std::convert::Infallible;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use futures::future::select_all;
use futures::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ringwatch::clock::Clock;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::answers::{StorePlace, answer};
use super::error::EnvtestError;
use super::etcd_flags::{EtcdFlags, ListenUrl};

/// Maximum number of connections; others wait until one ends.
const CONNECTIONS_MAX: usize = 64;
/// Maximum time for which a connection is kept.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
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
        let place = StorePlace {
            folder: folder(flags)?,
            unsafe_no_fsync: flags.unsafe_no_fsync,
        };
        let mut listeners = Vec::new();
        for url in &flags.listen {
            listeners.push(listen(url).await?);
        }
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

/// Creates the data folder, for its owner alone as etcd does, and returns its absolute path.
fn folder(flags: &EtcdFlags) -> Result<PathBuf, EnvtestError> {
    let failed = |source| EnvtestError::Write {
        path: flags.data_dir.clone(),
        source,
    };
    let path = std::path::absolute(&flags.data_dir).map_err(failed)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.map_err(failed)?;
    Ok(path)
}

async fn listen(url: &ListenUrl) -> Result<TcpListener, EnvtestError> {
    let bound = TcpListener::bind((url.host.as_str(), url.port)).await;
    bound.map_err(|source| EnvtestError::Listen {
        url: url.url.clone(),
        source,
    })
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

/// Answers the requests of a connection, within its time.
async fn converse(stream: TcpStream, client: SocketAddr, place: &StorePlace, clock: &Clock) {
    let is_loopback = client.ip().to_canonical().is_loopback();
    let service =
        service_fn(async |request| Ok::<_, Infallible>(answer(&request, is_loopback, place)));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that breaks off has nobody to be told.
    let _ = clock.timeout(CONNECTION_TIMEOUT, connection).await;
}
