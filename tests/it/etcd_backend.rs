//! The etcd backend against a real etcd: what only a real one can show.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use ringwatch::clock::Clock;
use ringwatch::storage::backend::etcd::{Config, Etcd as Backend, TlsFiles};
use ringwatch::storage::backend::{
    Backend as _, BackendError, Compare, KeyRange, LeaseId, Op, RangeRequest, Txn, WatchRequest,
    WatchResponse, WatchResponses,
};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_testing::reserved_port::ReservedPort;

use crate::support::etcd::{Etcd, TlsFiles as ServerFiles};

/// The time between two requests for progress, which an etcd does not answer while a watch catches up.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);
const MEBIBYTE: usize = 1 << 20;

async fn connect(etcd: &Etcd) -> Backend {
    let config = Config::new(vec![etcd.endpoint()], TlsFiles::default());
    Backend::connect(config, Clock::real())
        .await
        .expect("a running etcd")
}

fn create(key: &str, value: impl Into<Bytes>, lease: Option<LeaseId>) -> Txn {
    Txn {
        compare: Compare::ModRevision(key.to_owned(), 0),
        then: Op::Put {
            key: key.to_owned(),
            value: value.into(),
            lease,
        },
        otherwise: Some(Op::Get {
            key: key.to_owned(),
        }),
    }
}

async fn put(backend: &Backend, key: &str, value: impl Into<Bytes>) -> u64 {
    let response = backend
        .txn(create(key, value, None))
        .await
        .expect("a write");
    assert!(response.succeeded);
    response.revision
}

fn watch_from(start_revision: u64) -> WatchRequest {
    WatchRequest {
        range: KeyRange::prefix("/t/"),
        start_revision,
        previous: true,
        progress: true,
    }
}

async fn next(responses: &mut WatchResponses) -> Result<WatchResponse, BackendError> {
    tokio::time::timeout(DEADLINE, responses.next())
        .await
        .expect("a response in time")
        .expect("a response")
}

#[tokio::test]
async fn transactions_compare_and_tell_what_they_found() {
    let Some(etcd) = Etcd::start("transactions_compare_and_tell_what_they_found") else {
        return;
    };
    let backend = connect(&etcd).await;
    assert!(backend.progress_is_trusted());
    assert!(backend.size_bytes().await.expect("a size") > 0);
    let revision = put(&backend, "/t/a", "1").await;
    let again = backend.txn(create("/t/a", "2", None)).await.expect("a try");
    assert!(!again.succeeded);
    let found = again.found.expect("the key that is in the way");
    assert_eq!((found.mod_revision, &*found.value), (revision, &b"1"[..]));
    assert_eq!((found.version, found.lease), (1, None));
    let delete = Txn {
        compare: Compare::Version("/t/a".to_owned(), 1),
        then: Op::Delete {
            key: "/t/a".to_owned(),
        },
        otherwise: None,
    };
    assert!(backend.txn(delete).await.expect("a deletion").succeeded);
    let read = RangeRequest::key("/t/a");
    assert!(
        backend
            .range(read.clone())
            .await
            .expect("a read")
            .kvs
            .is_empty()
    );
    let before = RangeRequest { revision, ..read };
    assert_eq!(backend.range(before).await.expect("a read").kvs.len(), 1);
}

#[tokio::test]
async fn large_responses_are_read_and_large_requests_refused() {
    let Some(etcd) = Etcd::start("large_responses_are_read_and_large_requests_refused") else {
        return;
    };
    let backend = connect(&etcd).await;
    let first = put(&backend, "/t/0", vec![b'x'; MEBIBYTE]).await;
    for number in 1..10 {
        put(&backend, &format!("/t/{number}"), vec![b'x'; MEBIBYTE]).await;
    }
    let all = RangeRequest::all(KeyRange::prefix("/t/"));
    let read = backend.range(all).await.expect("ten mebibytes");
    assert_eq!((read.kvs.len(), read.count, read.more), (10, 10, false));
    assert!(read.kvs.iter().all(|kv| kv.value.len() == MEBIBYTE));

    // The watch catches up in one response, which etcd cuts into fragments.
    let mut watch = backend.watch(watch_from(first)).await.expect("a watch");
    let events = next(&mut watch).await.expect("events").events;
    let revisions = events.iter().map(|event| event.kv.mod_revision);
    assert_eq!(
        revisions.collect::<Vec<_>>(),
        (first..first + 10).collect::<Vec<_>>()
    );

    let refused = backend.txn(create("/t/x", vec![b'x'; 2 * MEBIBYTE], None));
    let refused = refused.await.expect_err("too much for one request");
    assert!(matches!(refused, BackendError::TooLarge(_)), "{refused:?}");
}

#[tokio::test]
async fn history_has_two_ends() {
    let Some(etcd) = Etcd::start("history_has_two_ends") else {
        return;
    };
    let backend = connect(&etcd).await;
    let first = put(&backend, "/t/a", "1").await;
    let last = put(&backend, "/t/b", "1").await;
    backend.compact(last).await.expect("a compaction");
    let at = |revision| RangeRequest {
        revision,
        ..RangeRequest::all(KeyRange::prefix("/t/"))
    };
    assert_eq!(backend.range(at(last)).await.expect("still there").count, 2);
    assert!(matches!(
        backend.range(at(first)).await,
        Err(BackendError::Compacted { .. })
    ));
    assert!(matches!(
        backend.range(at(last + 100)).await,
        Err(BackendError::FutureRevision { .. })
    ));
    assert!(matches!(
        backend.compact(first).await,
        Err(BackendError::Compacted { .. })
    ));
    let mut watch = backend.watch(watch_from(first)).await.expect("a watch");
    assert_eq!(
        next(&mut watch).await.expect_err("too late"),
        BackendError::Compacted {
            compact_revision: last
        }
    );
    assert!(watch.next().await.is_none(), "an error is the last item");
}

#[tokio::test]
async fn progress_is_reported_on_request_and_follows_all_events() {
    let Some(etcd) = Etcd::start("progress_is_reported_on_request_and_follows_all_events") else {
        return;
    };
    let backend = connect(&etcd).await;
    let first = put(&backend, "/t/a", "1").await;
    let mut watch = backend.watch(watch_from(first + 1)).await.expect("a watch");
    let mut deaf = backend
        .watch(WatchRequest {
            progress: false,
            ..watch_from(first + 1)
        })
        .await
        .expect("another watch");
    let elsewhere = put(&backend, "/elsewhere", "1").await;
    let progress = eventually(DEADLINE, "a notice", async || {
        backend.request_progress().await.expect("a request");
        tokio::time::timeout(PROGRESS_PERIOD, next(&mut watch)).await
    });
    let progress = progress.await.expect("a notice");
    assert!(progress.events.is_empty());
    assert_eq!(progress.revision, elsewhere);
    let last = put(&backend, "/t/b", "1").await;
    let mut response = next(&mut watch).await.expect("an event");
    // Another request may have been answered as well.
    while response.events.is_empty() && response.revision == elsewhere {
        response = next(&mut watch).await.expect("an event");
    }
    for response in [response, next(&mut deaf).await.expect("an event")] {
        assert_eq!(response.events.len(), 1, "{response:?}");
        assert_eq!(response.events[0].kv.mod_revision, last);
    }
}

#[tokio::test]
async fn events_bring_what_they_replaced() {
    let Some(etcd) = Etcd::start("events_bring_what_they_replaced") else {
        return;
    };
    let backend = connect(&etcd).await;
    let first = put(&backend, "/t/a", "1").await;
    let delete = Txn {
        compare: Compare::ModRevision("/t/a".to_owned(), first),
        then: Op::Delete {
            key: "/t/a".to_owned(),
        },
        otherwise: None,
    };
    backend.txn(delete).await.expect("a deletion");
    let mut watch = backend.watch(watch_from(first)).await.expect("a watch");
    let mut events = next(&mut watch).await.expect("events").events;
    if events.len() < 2 {
        events.extend(next(&mut watch).await.expect("events").events);
    }
    assert_eq!(events[0].previous, None);
    assert_eq!(events[1].kv.mod_revision, first + 1);
    assert_eq!(events[1].previous.as_ref(), Some(&events[0].kv));
}

#[tokio::test]
async fn leases_are_granted_and_missed() {
    let Some(etcd) = Etcd::start("leases_are_granted_and_missed") else {
        return;
    };
    let backend = connect(&etcd).await;
    let lease = backend.grant_lease(3_600).await.expect("a lease");
    let written = backend.txn(create("/t/a", "1", Some(lease))).await;
    assert!(written.expect("a write").succeeded);
    let read = backend.range(RangeRequest::key("/t/a")).await;
    assert_eq!(read.expect("a read").kvs[0].lease, Some(lease));
    let unknown = Some(LeaseId(lease.0 + 1));
    let refused = backend.txn(create("/t/b", "1", unknown)).await;
    assert_eq!(refused.expect_err("no lease"), BackendError::LeaseNotFound);
}

#[tokio::test]
async fn a_restart_ends_watches_and_calls_go_on() {
    let Some(mut etcd) = Etcd::start("a_restart_ends_watches_and_calls_go_on") else {
        return;
    };
    let backend = connect(&etcd).await;
    let first = put(&backend, "/t/a", "1").await;
    let mut watch = backend.watch(watch_from(first + 1)).await.expect("a watch");
    etcd.stop();
    let broken = next(&mut watch).await.expect_err("the end");
    assert!(matches!(broken, BackendError::Unavailable(_)), "{broken:?}");
    let down = backend.range(RangeRequest::key("/t/a")).await;
    let down = down.expect_err("nobody is there");
    assert!(
        matches!(&down, BackendError::Unavailable(text) if text.contains(&etcd.endpoint())),
        "{down:?}"
    );
    etcd.restart();
    let read = backend.range(RangeRequest::key("/t/a")).await;
    assert_eq!(read.expect("a read").kvs.len(), 1);
    let mut watch = backend.watch(watch_from(first)).await.expect("a watch");
    assert_eq!(next(&mut watch).await.expect("events").events.len(), 1);
}

/// The windows of HTTP/2 are shared by all streams of a connection: with those of usual size, a few
/// watches that nobody reads would starve all others.
#[tokio::test]
async fn unread_watches_hold_up_neither_calls_nor_watches() {
    let Some(etcd) = Etcd::start("unread_watches_hold_up_neither_calls_nor_watches") else {
        return;
    };
    let backend = connect(&etcd).await;
    let mut unread = Vec::new();
    for _ in 0..40 {
        unread.push(backend.watch(watch_from(1)).await.expect("a watch"));
    }
    for number in 0..3 {
        put(&backend, &format!("/t/{number}"), vec![b'x'; MEBIBYTE]).await;
    }
    let mut read = backend.watch(watch_from(1)).await.expect("a watch");
    let mut events = 0;
    while events < 3 {
        events += next(&mut read).await.expect("events").events.len();
    }
    drop(unread);
}

#[tokio::test]
async fn an_unreachable_etcd_is_one_clear_line() {
    let port = ReservedPort::new();
    let url = format!("http://127.0.0.1:{}", port.number());
    let config = Config::new(vec![url.clone()], TlsFiles::default());
    let error = Backend::connect(config, Clock::real()).await;
    let error = error.expect_err("nobody is there").to_string();
    assert_eq!(
        error,
        format!("cannot reach etcd at {url}: Connection refused (os error 111)")
    );
}

#[tokio::test]
async fn a_dead_endpoint_is_passed_over() {
    let Some(etcd) = Etcd::start("a_dead_endpoint_is_passed_over") else {
        return;
    };
    let port = ReservedPort::new();
    let dead = format!("127.0.0.1:{}", port.number());
    let config = Config::new(vec![dead, etcd.endpoint()], TlsFiles::default());
    let backend = Backend::connect(config, Clock::real()).await;
    let backend = backend.expect("one of two");
    put(&backend, "/t/a", "1").await;
    let mut watch = backend.watch(watch_from(1)).await.expect("a watch");
    assert_eq!(next(&mut watch).await.expect("events").events.len(), 1);
    // Nobody knows the version of the dead one.
    assert!(!backend.progress_is_trusted());
}

#[tokio::test]
async fn tls_demands_the_right_authority_and_a_client_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let authority = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cert = params.self_signed(&key).expect("a certificate");
        let path = write(name, cert.pem());
        (path, Issuer::new(params, key))
    };
    let (ca, issuer) = authority("ca.pem");
    let (other_ca, _) = authority("other-ca.pem");
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let leaf = params.signed_by(&key, &issuer).expect("a certificate");
    let cert = write("leaf.pem", leaf.pem());
    let key = write("leaf-key.pem", key.serialize_pem());
    let files = ServerFiles {
        ca: ca.clone(),
        cert: cert.clone(),
        key: key.clone(),
    };
    let test = "tls_demands_the_right_authority_and_a_client_certificate";
    let Some(etcd) = Etcd::start_with(test, Some(&files), &[]) else {
        return;
    };
    let connect = async |ca, client: bool| {
        let tls = TlsFiles {
            ca: Some(ca),
            cert: client.then(|| cert.clone()),
            key: client.then(|| key.clone()),
        };
        Backend::connect(Config::new(vec![etcd.endpoint()], tls), Clock::real()).await
    };
    let backend = connect(ca.clone(), true).await.expect("both known");
    put(&backend, "/t/a", "1").await;
    let error = connect(other_ca, true)
        .await
        .expect_err("a strange authority");
    let prefix = format!("cannot reach etcd at {}: ", etcd.endpoint());
    assert!(error.to_string().starts_with(&prefix), "{error}");
    let error = connect(ca, false).await.expect_err("no client certificate");
    assert!(error.to_string().starts_with(&prefix), "{error}");
}
