//! kube-apiserver by its name: `ringwatch serve` that finds out if its etcd is a stand-in.

use std::net::IpAddr;
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use ringwatch::clock::Clock;
use ringwatch_http::client::{Backend, ExchangeError, fetch};
use ringwatch_http::full;
use ringwatch_server::flags::{ServeFlags, StorageBackend};

use super::answers::{PLACE_PATH, StorePlace};
use super::error::EnvtestError;

/// Maximum time until an etcd is reached.
const REACHABLE_SECONDS_MAX: u64 = 20;
/// Pause between two attempts to reach it.
const RETRY_PERIOD: Duration = Duration::from_millis(50);
/// Maximum time for an answer; a server that takes longer is no stand-in.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The name of the server's folder in that of the stand-in, where etcd has `member`.
const FOLDER: &str = "ringwatch";

/// Has the server keep its store in the folder of its etcd, if that is a stand-in. Without one, and without a data
/// directory of the flags, the certificates that it makes go to that of `--cert-dir`, which suites remove.
///
/// # Errors
/// No etcd answers, or a stand-in is one server of several.
pub fn keep_store_at_etcd(flags: &mut ServeFlags, has_data_dir: bool) -> Result<(), EnvtestError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| EnvtestError::System {
        what: "start",
        source,
    })?;
    let servers = &flags.etcd.etcd_servers;
    let Some((url, place)) = runtime.block_on(stand_in(servers, &Clock::real()))? else {
        if let Some(folder) = flags.tls.cert_dir.clone().filter(|_| !has_data_dir) {
            flags.data_dir = folder;
        }
        return Ok(());
    };
    if servers.len() > 1 {
        return Err(EnvtestError::OneOfSeveral { url });
    }
    if has_data_dir {
        return Err(EnvtestError::SecondFolder { url });
    }
    flags.etcd.etcd_servers.clear();
    flags.etcd.unsafe_no_fsync = place.unsafe_no_fsync;
    flags.storage_backend = Some(StorageBackend::Embedded);
    flags.data_dir = place.folder.join(FOLDER);
    Ok(())
}

/// Returns the first of the servers that is a stand-in, and the place that it tells.
async fn stand_in(
    servers: &[String],
    clock: &Clock,
) -> Result<Option<(String, StorePlace)>, EnvtestError> {
    for url in servers {
        let Some(backend) = backend(url, clock) else {
            continue;
        };
        if let Some(place) = ask_until_reached(&backend, url).await? {
            return Ok(Some((url.clone(), place)));
        }
    }
    Ok(None)
}

/// Returns the server of a URL, if a stand-in could be there: on this machine, without TLS.
fn backend(url: &str, clock: &Clock) -> Option<Backend> {
    let url: Uri = url.parse().ok()?;
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']');
    let is_here = match host.parse::<IpAddr>() {
        // A suite may name the address that etcd listens at, which leads to this machine too.
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost",
    };
    let is_plain = url.scheme_str() == Some("http");
    (is_here && is_plain).then_some(Backend {
        host: host.to_owned(),
        port: url.port_u16()?,
        tls: None,
        name: host.to_owned(),
        may_be_local: true,
        connect_timeout: ANSWER_TIMEOUT,
        bytes_per_second: None,
        kept: None,
        clock: clock.clone(),
    })
}

/// Asks a server until somebody listens there, within a bounded time; `None` if it is no stand-in.
async fn ask_until_reached(
    backend: &Backend,
    url: &str,
) -> Result<Option<StorePlace>, EnvtestError> {
    let clock = &backend.clock;
    let deadline = clock.now() + Duration::from_secs(REACHABLE_SECONDS_MAX);
    loop {
        let error = match clock.timeout(ANSWER_TIMEOUT, ask(backend)).await {
            Ok(Err(error @ (ExchangeError::Connect { .. } | ExchangeError::Lookup(_)))) => error,
            // A server that does not speak HTTP/1.1, or is silent, may well be an etcd.
            Ok(Err(_)) | Err(_) => return Ok(None),
            Ok(Ok(place)) => return Ok(place),
        };
        if clock.now() >= deadline {
            return Err(EnvtestError::NoEtcd {
                url: url.to_owned(),
                why: error.to_string(),
                seconds: REACHABLE_SECONDS_MAX,
            });
        }
        clock.sleep(RETRY_PERIOD).await;
    }
}

async fn ask(backend: &Backend) -> Result<Option<StorePlace>, ExchangeError> {
    let mut request = Request::new(full(""));
    *request.uri_mut() = Uri::from_static(PLACE_PATH);
    let answer = fetch(backend, request, ANSWER_BYTES_MAX).await?;
    let is_answer = answer.status() == StatusCode::OK;
    let place = serde_json::from_slice::<StorePlace>(answer.body()).ok();
    Ok(place.filter(|it| is_answer && it.folder.is_absolute()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_servers_of_this_machine_are_asked() {
        let clock = Clock::real();
        for (url, asked) in [
            ("http://127.0.0.1:2379", true),
            ("http://[::1]:2379", true),
            ("http://localhost:2379", true),
            ("http://0.0.0.0:2379", true),
            ("https://127.0.0.1:2379", false),
            ("http://192.0.2.1:2379", false),
            ("http://etcd.example:2379", false),
            ("127.0.0.1:2379", false),
        ] {
            assert_eq!(backend(url, &clock).is_some(), asked, "{url}");
        }
    }
}
