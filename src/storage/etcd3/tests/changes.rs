//! The source of changes: decryption by type, and metrics.

use std::collections::BTreeMap;

use futures::StreamExt;

use super::*;
use crate::storage::encryption::{ENCRYPTED, Encryption, EncryptionConfig, Transformer};
use crate::storage::etcd3::{Changes, RequestMetrics};
use crate::storage::{ChangeKind, ChangeSource};

/// Returns the encryption of some resources, whose plain values are not accepted.
fn encryption(resources: &str) -> Encryption {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [{resources}]\n  providers:\n  - secretbox: {{keys: [{{name: one, \
         secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}}]}}\n"
    );
    Encryption::new(EncryptionConfig::parse(&text, &Clock::real()).expect("a configuration"))
}

/// A built-in type and a custom one are encrypted, and one type is not.
struct World {
    backend: Arc<Embedded>,
    secrets: Transformer,
    widgets: Transformer,
    changes: Changes,
}

impl World {
    fn new() -> Self {
        let backend = backend();
        let secrets = encryption("secrets").transformer("secrets", "");
        let others = encryption("widgets.example.com");
        let types = BTreeMap::from([
            ("/secrets/".to_owned(), secrets.clone()),
            ("/configmaps/".to_owned(), Transformer::default()),
        ]);
        let changes = Changes::new(Arc::clone(&backend) as _, "/registry");
        Self {
            backend,
            secrets,
            widgets: others.transformer("widgets", "example.com"),
            changes: changes.decrypting(types, others),
        }
    }

    /// Writes a value, encrypted if there is a transformer, and returns the stored form.
    async fn write(&self, key: &str, transformer: Option<&Transformer>) -> Bytes {
        let full = format!("/registry{key}");
        let plain = Bytes::from(format!("plain {key}"));
        let stored = match transformer {
            Some(transformer) => transformer.seal(plain, &full).expect("encrypted"),
            None => plain,
        };
        write(&self.backend, &full, stored.clone()).await;
        stored
    }

    /// Returns the keys and values of a page.
    async fn page(&self, prefix: &str) -> Vec<(String, Bytes)> {
        let page = self
            .changes
            .page(prefix, None, 0, 100)
            .await
            .expect("a page");
        let items = page.items.into_iter();
        items.map(|it| (it.key, it.value)).collect()
    }
}

fn plain(key: &str) -> (String, Bytes) {
    (key.to_owned(), Bytes::from(format!("plain {key}")))
}

fn unreadable(key: &str) -> (String, Bytes) {
    (key.to_owned(), Bytes::from_static(ENCRYPTED))
}

#[tokio::test]
async fn values_are_decrypted_as_their_types_are_encrypted() {
    let world = World::new();
    let (secret, widget) = ("/secrets/d/a", "/example.com/widgets/d/w");
    world.write(secret, Some(&world.secrets)).await;
    world.write(widget, Some(&world.widgets)).await;
    world.write("/configmaps/d/c", None).await;
    assert_eq!(world.page("/secrets/").await, [plain(secret)]);
    assert_eq!(world.page("/example.com/").await, [plain(widget)]);
    assert_eq!(world.page("/configmaps/").await, [plain("/configmaps/d/c")]);
    let mut stream = world.changes.follow(1).await.expect("a stream");
    let mut followed = Vec::new();
    while followed.len() < 3 {
        let batch = stream.next().await.expect("a batch").expect("no error");
        for change in batch.changes {
            let ChangeKind::Put {
                value,
                created: true,
            } = change.kind
            else {
                panic!("{change:?}");
            };
            followed.push((change.key, value));
        }
    }
    let expected = [secret, widget, "/configmaps/d/c"].map(plain);
    assert_eq!(followed, expected);
}

#[tokio::test]
async fn a_value_that_cannot_be_decrypted_stands_for_itself_alone() {
    let world = World::new();
    world.write("/secrets/d/a", Some(&world.secrets)).await;
    world.write("/secrets/d/b", None).await;
    let stranger = Bytes::from_static(b"k8s:enc:secretbox:v1:two:nonsense");
    write(&world.backend, "/registry/secrets/d/c", stranger).await;
    let expected = [
        plain("/secrets/d/a"),
        unreadable("/secrets/d/b"),
        unreadable("/secrets/d/c"),
    ];
    assert_eq!(world.page("/secrets/").await, expected);
}

#[tokio::test]
async fn a_value_is_decrypted_by_its_key() {
    let world = World::new();
    let stored = world.write("/secrets/d/a", Some(&world.secrets)).await;
    let decrypted = world.changes.decrypt("/secrets/d/a", stored.clone()).await;
    assert_eq!(decrypted.expect("decrypted"), plain("/secrets/d/a").1);
    let other = world.write("/configmaps/d/c", None).await;
    let decrypted = world
        .changes
        .decrypt("/configmaps/d/c", other.clone())
        .await;
    assert_eq!(decrypted.expect("plain"), other);
}

#[tokio::test]
async fn without_encryption_plain_values_are_passed_on_and_others_are_unreadable() {
    let backend = backend();
    let changes = Changes::new(Arc::clone(&backend) as _, "/registry");
    write(&backend, "/registry/secrets/d/a", "plain").await;
    write(
        &backend,
        "/registry/secrets/d/b",
        "k8s:enc:secretbox:v1:one:x",
    )
    .await;
    let page = changes
        .page("/secrets/", None, 0, 100)
        .await
        .expect("a page");
    let mut values: Vec<Bytes> = page.items.into_iter().map(|it| it.value).collect();
    let mut stream = changes.follow(1).await.expect("a stream");
    while values.len() < 4 {
        let batch = stream.next().await.expect("a batch").expect("no error");
        for change in batch.changes {
            let ChangeKind::Put { value, .. } = change.kind else {
                panic!("{change:?}");
            };
            values.push(value);
        }
    }
    let expected = [Bytes::from_static(b"plain"), Bytes::from_static(ENCRYPTED)];
    assert_eq!(values, [&expected[..], &expected].concat());
}

#[tokio::test]
async fn pages_are_counted_by_type() {
    let mut registry = Registry::default();
    let metrics = RequestMetrics::register(&mut registry, Clock::real());
    let types = BTreeMap::from([("/secrets/".to_owned(), metrics.of_type("", "secrets"))]);
    let changes = Changes::new(backend() as _, "/registry").counted(types);
    for prefix in ["/secrets/", "/secrets/", "/configmaps/"] {
        changes.page(prefix, None, 0, 100).await.expect("a page");
    }
    assert_eq!(shown(&registry, "etcd_requests_total{"), 2.0);
}
