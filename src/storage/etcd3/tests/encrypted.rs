//! Writes of encrypted values: what is written anew, and what is not touched.

use async_trait::async_trait;

use super::*;
use crate::meta::Object;
use crate::storage::backend::RangeRequest;
use crate::storage::encryption::{Encryption, EncryptionConfig, Transformer};
use crate::storage::etcd3::Store;
use crate::storage::{
    DeleteOptions, GetOptions, Interface, NextContent, NoCheck, Rejection, StorageError, TryUpdate,
    UpdateOptions,
};

const KEY: &str = "/configmaps/d/a";
const STORED_KEY: &str = "/registry/configmaps/d/a";

/// Two providers, of which the first encrypts.
const ONE: &str =
    "secretbox: {keys: [{name: one, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]}";
const TWO: &str =
    "secretbox: {keys: [{name: two, secret: AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=}]}";

fn transformer(providers: &[&str]) -> Transformer {
    let providers: Vec<_> = providers.iter().map(|it| format!("  - {it}\n")).collect();
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [configmaps]\n  providers:\n{}",
        providers.concat()
    );
    let config = EncryptionConfig::parse(&text, &Clock::real()).expect("a configuration");
    Encryption::new(config).transformer("configmaps", "")
}

fn store(backend: &Arc<Embedded>, providers: &[&str]) -> Store {
    Store::new(Arc::clone(backend) as _, config()).encrypted(transformer(providers))
}

/// An update that changes nothing.
struct Same;

#[async_trait]
impl TryUpdate for Same {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        assert!(existing.is_some(), "there is an object");
        Ok(NextContent {
            object: config_map("a", "x"),
            ttl: None,
        })
    }
}

async fn stored(backend: &Embedded) -> (Bytes, u64) {
    let read = backend.range(RangeRequest::key(STORED_KEY)).await;
    let kv = read.expect("a read").kvs.pop().expect("a value");
    (kv.value, kv.mod_revision)
}

/// The content may be the cache's or the store's: an operator writes all objects again before the old key is removed.
#[tokio::test]
async fn an_update_that_changes_nothing_encrypts_with_the_new_key() {
    for is_cached in [false, true] {
        let backend = backend();
        let old = store(&backend, &[ONE]);
        let created = old.create(KEY, &config_map("a", "x"), None).await;
        let created = created.expect("created");
        let options = || UpdateOptions {
            cached_existing: is_cached.then(|| Arc::clone(&created)),
            ..UpdateOptions::default()
        };
        let unchanged = old.guaranteed_update(KEY, options(), &mut Same).await;
        assert_eq!(unchanged.expect("unchanged").revision(), created.revision());
        let new = store(&backend, &[TWO, ONE]);
        let written = new.guaranteed_update(KEY, options(), &mut Same).await;
        let written = written.expect("written").revision();
        let (value, revision) = stored(&backend).await;
        assert!(
            value.starts_with(b"k8s:enc:secretbox:v1:two:"),
            "{is_cached}"
        );
        assert_eq!(revision, written);
        assert!(written > created.revision());
        let read = store(&backend, &[TWO])
            .get(KEY, GetOptions::default())
            .await;
        assert_eq!(
            read.expect("the new key is enough").stored(),
            created.stored()
        );
    }
}

/// It may be a good object, which can be read when the plugin answers again.
#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_decrypted_now_is_not_deleted_as_a_corrupt_one() {
    let kms = "kms: {apiVersion: v2, name: p, endpoint: 'unix:///nobody/listens'}";
    let encrypted = &b"k8s:enc:kms:v2:p:\x0a\x04data\x12\x011\x1a\x04seed"[..];
    let unsafely = || DeleteOptions {
        expect_decode_error: true,
        ..DeleteOptions::default()
    };
    let backend = backend();
    let store = store(&backend, &["identity: {}", kms]);
    write(&backend, STORED_KEY, encrypted).await;
    let refused = store.delete(KEY, unsafely(), &mut NoCheck).await;
    let refusal = refused.expect_err("the plugin does not answer");
    let is_internal = matches!(refusal, StorageError::Internal { .. });
    assert!(is_internal, "{refusal:?}");
    assert_eq!(stored(&backend).await.0, encrypted);
}
