//! Tests of the provider with a plugin in this process.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::client::{Plugin, PluginError, socket_path};
use super::envelope;
use super::messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusResponse,
};
use super::{KmsProvider, OpenError};
use crate::clock::Clock;
use crate::storage::ChangeSource;
use crate::storage::backend::embedded::Embedded;
use crate::storage::encryption::{Encryption, EncryptionConfig};
use crate::storage::etcd3::Changes;
use crate::sync::{Arc, Mutex};

/// A plugin that "encrypts" by the exclusive or with a byte of the key, and notes its calls.
#[derive(Clone, Debug)]
struct Stub(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    key_id: String,
    version: String,
    healthz: String,
    is_down: bool,
    /// The code of the error with which seeds are not decrypted.
    decrypt_fails: Option<&'static str>,
    /// The time that it takes to decrypt a seed.
    decrypt_takes: Duration,
    annotation: String,
    calls: Vec<&'static str>,
}

impl Stub {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            key_id: "1".to_owned(),
            version: "v2".to_owned(),
            healthz: "ok".to_owned(),
            is_down: false,
            decrypt_fails: None,
            decrypt_takes: Duration::ZERO,
            annotation: "version.example.com".to_owned(),
            calls: Vec::new(),
        })))
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().expect("sound"));
    }

    fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().expect("sound").calls)
    }

    fn call<T>(
        &self,
        name: &'static str,
        answer: impl FnOnce(&State) -> T,
    ) -> Result<T, PluginError> {
        let mut state = self.0.lock().expect("sound");
        state.calls.push(name);
        if state.is_down {
            return Err(PluginError::new("Unavailable", "it is down"));
        }
        Ok(answer(&state))
    }
}

fn crypt(plain: &[u8], key_id: &str) -> Vec<u8> {
    let key = key_id.bytes().next().unwrap_or_default();
    plain.iter().map(|byte| byte ^ key).collect()
}

#[async_trait]
impl Plugin for Stub {
    fn call_time_max(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn status(&self) -> Result<StatusResponse, PluginError> {
        self.call("status", |state| StatusResponse {
            version: state.version.clone(),
            healthz: state.healthz.clone(),
            key_id: state.key_id.clone(),
        })
    }

    async fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, PluginError> {
        self.call("encrypt", |state| EncryptResponse {
            ciphertext: crypt(&request.plaintext, &state.key_id).into(),
            key_id: state.key_id.clone(),
            annotations: [(state.annotation.clone(), b"1".to_vec())].into(),
        })
    }

    async fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, PluginError> {
        assert_eq!(request.annotations["version.example.com"], b"1");
        let (code, time) = self.call("decrypt", |state| {
            (state.decrypt_fails, state.decrypt_takes)
        })?;
        Clock::real().sleep(time).await;
        match code {
            Some(code) => Err(PluginError::new(code, "x".repeat(10_000))),
            None => Ok(DecryptResponse {
                plaintext: crypt(&request.ciphertext, &request.key_id),
            }),
        }
    }
}

fn provider(stub: &Stub) -> KmsProvider {
    KmsProvider::new("p", Arc::new(stub.clone()), Clock::real())
}

async fn read(provider: &KmsProvider, stored: &Bytes) -> Result<(Bytes, bool), OpenError> {
    provider.fetch_seeds(vec![stored.clone()]).await;
    provider.open(stored.clone(), "/k")
}

fn sealed(provider: &KmsProvider) -> Bytes {
    provider.seal(b"plain", "/k").expect("sealed").into()
}

#[tokio::test(start_paused = true)]
async fn one_seed_serves_until_the_key_changes() {
    let stub = Stub::new();
    let one = provider(&stub);
    assert_eq!(one.prefix(), "k8s:enc:kms:v2:p:");
    one.seal(b"plain", "/k").expect_err("nothing is known yet");
    one.check().await.expect("healthy");
    assert_eq!(stub.take_calls(), ["status", "encrypt"]);
    let (first, second) = (sealed(&one), sealed(&one));
    assert_ne!(first, second);
    let [(source, _), (again, _)] =
        [&first, &second].map(|it| envelope::unwrap(it.clone()).expect("an envelope"));
    assert_eq!(source, again);
    assert_eq!(read(&one, &first).await, Ok((Bytes::from("plain"), false)));
    assert_eq!(stub.take_calls(), [""; 0], "the seed is known");

    // Another server asks the plugin once.
    let other = provider(&stub);
    for stored in [&first, &second] {
        assert_eq!(
            read(&other, stored).await,
            Ok((Bytes::from("plain"), false))
        );
    }
    assert_eq!(stub.take_calls(), ["decrypt"]);
    assert!(matches!(
        other.open(first.clone(), "/other"),
        Err(OpenError::Unreadable(_))
    ));

    stub.set(|state| state.key_id = "2".to_owned());
    one.check().await.expect("answered with the last status");
    assert_eq!(stub.take_calls(), [""; 0]);
    tokio::time::advance(Duration::from_secs(60)).await;
    one.check().await.expect("healthy");
    assert_eq!(stub.take_calls(), ["status", "encrypt"]);
    assert_eq!(read(&one, &first).await, Ok((Bytes::from("plain"), true)));
    assert_eq!(
        read(&one, &sealed(&one)).await,
        Ok((Bytes::from("plain"), false))
    );
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_dies_stops_writes_after_a_while_and_no_reads() {
    let stub = Stub::new();
    let one = provider(&stub);
    one.check().await.expect("healthy");
    let stored = sealed(&one);
    stub.set(|state| state.is_down = true);
    tokio::time::advance(Duration::from_secs(170)).await;
    let error = one.check().await.expect_err("it is down");
    assert_eq!(
        error,
        "failed to perform status section of the healthz check for KMS Provider p, error: rpc error: code = Unavailable \
         desc = it is down"
    );
    sealed(&one);
    tokio::time::advance(Duration::from_secs(11)).await;
    let error = one
        .seal(b"plain", "/k")
        .expect_err("not confirmed for long");
    assert_eq!(
        error,
        "KMS provider \"p\" cannot encrypt: its plugin has not confirmed the key for 181 seconds"
    );
    assert!(read(&one, &stored).await.is_ok());
    let unknown = provider(&stub);
    let failed = "failed to decrypt DEK, error: rpc error: code = Unavailable desc = it is down";
    assert_eq!(
        read(&unknown, &stored).await,
        Err(OpenError::Unavailable(failed.to_owned()))
    );

    stub.set(|state| state.is_down = false);
    one.check().await.expect("healthy again");
    sealed(&one);
    assert!(
        read(&unknown, &stored).await.is_err(),
        "not asked again yet"
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(read(&unknown, &stored).await.is_ok(), "asked again");
    assert_eq!(
        stub.take_calls()
            .iter()
            .filter(|it| **it == "encrypt")
            .count(),
        1
    );
}

/// Returns a value of another server, whose seed nobody else knows.
async fn of_another(stub: &Stub) -> Bytes {
    let other = provider(stub);
    other.check().await.expect("healthy");
    sealed(&other)
}

/// The plugin is asked for the key of a value that a change brought, and of no other.
#[tokio::test(start_paused = true)]
async fn a_change_is_decrypted_with_a_key_that_was_not_known() {
    let stub = Stub::new();
    let sealed = of_another(&stub).await;
    stub.take_calls();
    let provider = Arc::new(provider(&stub));
    let stored = [provider.prefix().as_bytes(), &sealed].concat();
    let config = EncryptionConfig::of_kms(provider);
    let backend = Arc::new(Embedded::in_memory(Clock::real()));
    let changes = Changes::new(backend, "");
    let changes = changes.decrypting(BTreeMap::new(), Encryption::new(config));
    let plain = changes.decrypt("/k", stored.into()).await;
    assert_eq!(plain.expect("decrypted"), "plain");
    assert_eq!(stub.take_calls(), ["decrypt"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_remembered_for_a_while() {
    let stub = Stub::new();
    let stored = [of_another(&stub).await, of_another(&stub).await];
    let one = provider(&stub);
    stub.take_calls();

    // A seed that the plugin does not decrypt.
    stub.set(|state| state.decrypt_fails = Some("InvalidArgument"));
    for _ in 0..2 {
        let Err(OpenError::Unavailable(why)) = read(&one, &stored[0]).await else {
            panic!("it was decrypted");
        };
        assert!(why.contains("code = InvalidArgument"), "{why}");
        assert!(why.len() < 600, "{} bytes", why.len());
    }
    assert_eq!(stub.take_calls(), ["decrypt"]);
    tokio::time::advance(Duration::from_secs(1)).await;
    read(&one, &stored[0]).await.expect_err("asked again");
    assert_eq!(stub.take_calls(), ["decrypt"]);

    // A plugin that does not answer in time is not asked for any seed, until it tells its status.
    stub.set(|state| state.decrypt_fails = Some("DeadlineExceeded"));
    read(&one, &stored[1]).await.expect_err("no answer");
    for it in &stored {
        read(&one, it).await.expect_err("not asked again");
    }
    one.fetch_seeds(stored.to_vec()).await;
    assert_eq!(stub.take_calls(), ["decrypt"]);
    tokio::time::advance(Duration::from_secs(10)).await;
    one.fetch_seeds(stored.to_vec()).await;
    assert_eq!(stub.take_calls(), ["decrypt"], "not more after a failure");
    stub.set(|state| state.decrypt_fails = None);
    one.check().await.expect("healthy");
    one.fetch_seeds(stored.to_vec()).await;
    for it in &stored {
        read(&one, it).await.expect("decrypted");
    }
    assert_eq!(
        stub.take_calls(),
        ["status", "encrypt", "decrypt", "decrypt"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_seed_is_asked_for_once() {
    let stub = Stub::new();
    let stored = of_another(&stub).await;
    stub.take_calls();
    let one = provider(&stub);
    let (first, second) = tokio::join!(read(&one, &stored), read(&one, &stored));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(stub.take_calls(), ["decrypt"]);
}

/// Reads a value, and gives up after a second.
async fn read_for_a_second(provider: &KmsProvider, stored: &Bytes) {
    let reading = Clock::real().timeout(Duration::from_secs(1), read(provider, stored));
    reading.await.expect_err("it takes longer");
}

#[tokio::test(start_paused = true)]
async fn a_call_outlives_the_reader_that_began_it() {
    let stub = Stub::new();
    let stored = of_another(&stub).await;
    stub.take_calls();
    stub.set(|state| state.decrypt_takes = Duration::from_secs(2));
    let one = provider(&stub);
    let ((), second) = tokio::join!(read_for_a_second(&one, &stored), read(&one, &stored));
    assert!(second.is_ok(), "{second:?}");
    assert_eq!(stub.take_calls(), ["decrypt"]);

    // Nobody is left who waits.
    let other = provider(&stub);
    let readers = async {
        read_for_a_second(&other, &stored).await;
        Clock::real().sleep(Duration::from_secs(2)).await;
        assert!(other.open(stored.clone(), "/k").is_ok(), "fetched");
        let calls = stub.take_calls();
        assert_eq!(calls.iter().filter(|it| **it == "decrypt").count(), 1);

        // A plugin that hangs is known to do so after the time of its call.
        let unknown = of_another(&stub).await;
        stub.set(|state| {
            state.decrypt_takes = Duration::from_millis(3_500);
            state.decrypt_fails = Some("DeadlineExceeded");
        });
        stub.take_calls();
        for _ in 0..3 {
            read_for_a_second(&other, &unknown).await;
        }
        Clock::real().sleep(Duration::from_secs(1)).await;
        read(&other, &unknown).await.expect_err("not asked again");
        assert_eq!(stub.take_calls(), ["decrypt"]);
    };
    tokio::select! {
        () = other.poll() => {}
        () = readers => {}
    }
}

#[tokio::test(start_paused = true)]
async fn few_seeds_are_asked_for_at_a_time() {
    let stub = Stub::new();
    let mut stored = Vec::new();
    for _ in 0..40 {
        stored.push(of_another(&stub).await);
    }
    stub.take_calls();
    let one = provider(&stub);
    stub.set(|state| state.decrypt_takes = Duration::from_secs(2));
    let all = futures::future::join_all(stored.iter().map(|it| read(&one, it)));
    let one_second = Clock::real().timeout(Duration::from_secs(1), all);
    one_second.await.expect_err("it takes longer");
    assert_eq!(stub.take_calls().len(), 16);

    // All 40 are fetched though nobody drives the calls but readers, who begin no call twice.
    let all = futures::future::join_all(stored.iter().map(|it| read(&one, it)));
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!(stub.take_calls().len(), 40 - 16);

    // One that hangs holds nobody up for longer than a call.
    let other = provider(&stub);
    stub.set(|state| {
        state.decrypt_takes = Duration::from_secs(3);
        state.decrypt_fails = Some("DeadlineExceeded");
    });
    let before = Clock::real().now();
    let all = futures::future::join_all(stored.iter().map(|it| read(&other, it)));
    assert!(all.await.iter().all(Result::is_err));
    assert_eq!(stub.take_calls().len(), 16);
    assert!(Clock::real().now() - before < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn polling_keeps_the_key_confirmed() {
    let stub = Stub::new();
    let one = Arc::new(provider(&stub));
    let polled = Arc::clone(&one);
    let poll = async move { polled.poll().await };
    let wait = async {
        Clock::real().sleep(Duration::from_secs(1_000)).await;
        sealed(&one);
    };
    tokio::select! {
        () = poll => {}
        () = wait => {}
    }
    let calls = stub.take_calls();
    assert_eq!(calls.iter().filter(|it| **it == "encrypt").count(), 1);
    assert_eq!(calls.iter().filter(|it| **it == "status").count(), 17);
}

#[tokio::test(start_paused = true)]
async fn answers_that_make_no_sense_are_not_used() {
    let long = "x".repeat(1025);
    type Change = Box<dyn FnOnce(&mut State)>;
    let changes: [(Change, &str); 5] = [
        (
            Box::new(|it| it.healthz = "sick".to_owned()),
            "got unexpected healthz status: sick",
        ),
        (
            Box::new(|it| it.version = "v3".to_owned()),
            "expected KMSv2 API version v2, got v3",
        ),
        (
            Box::new(|it| it.key_id = String::new()),
            "got invalid KMSv2 KeyID: keyID is empty",
        ),
        (
            Box::new(move |it| it.key_id = long),
            "keyID is 1025 bytes, which exceeds the max size of 1024",
        ),
        (
            Box::new(|it| it.annotation = "plain".to_owned()),
            "is not a fully qualified domain name",
        ),
    ];
    for (change, words) in changes {
        let stub = Stub::new();
        stub.set(change);
        let error = provider(&stub).check().await.expect_err(words);
        assert!(
            error.starts_with("kmsv2 Provider p is not healthy, error: "),
            "{error}"
        );
        assert!(error.contains(words), "{words}: {error}");
    }
    let stub = Stub::new();
    let one = provider(&stub);
    one.check().await.expect("healthy");
    stub.set(|state| state.version = "v2beta1".to_owned());
    tokio::time::advance(Duration::from_secs(60)).await;
    let error = one.check().await.expect_err("another version");
    assert!(error.contains("should not change"), "{error}");
}

#[test]
fn values_that_are_no_envelope_are_unreadable() {
    let stub = Stub::new();
    let one = provider(&stub);
    for stored in ["", "\u{7f}", "\u{a}\u{1}x", "\u{28}\u{2}"] {
        let opened = one.open(Bytes::from(stored), "/k");
        assert!(
            matches!(opened, Err(OpenError::Unreadable(_))),
            "{stored:?}: {opened:?}"
        );
    }
}

#[test]
fn sockets_are_named_by_urls() {
    assert_eq!(
        socket_path("unix:///var/run/kms.sock").as_deref(),
        Ok("/var/run/kms.sock")
    );
    for (url, words) in [
        ("/var/run/kms.sock", "no URL"),
        ("unix://kms.sock", "no URL"),
        (
            "http://localhost",
            "unsupported scheme \"http\" for KMS provider",
        ),
        ("unix:///@kms", "without a file"),
    ] {
        let error = socket_path(url).expect_err(url);
        assert!(error.contains(words), "{error}");
    }
}
