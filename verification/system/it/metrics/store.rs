//! The metrics of the store: its size, and the leases of objects that expire.

use super::*;
use crate::support::etcd::Etcd;

#[tokio::test]
async fn the_store_shows_its_size_and_its_quota() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = InProcessServer::builder()
        .flag("--storage-backend=embedded")
        .flag("--data-dir")
        .flag(folder.path())
        .flag("--quota-backend-bytes=123456789");
    let fixture = Fixture::start(builder).await;
    let before = fixture.scrape().await;
    let quota = before.value("etcd_server_quota_backend_bytes", &[]);
    assert!((quota - 123_456_789.0).abs() < 1e-9, "{quota}");
    for number in 0..4 {
        fixture.config_map(&format!("m{number}"), 500_000).await;
    }
    let after = fixture.scrape().await;
    let cluster = [("storage_cluster_id", "etcd-0")];
    for (family, labels) in [
        ("apiserver_storage_size_bytes", &cluster[..]),
        ("etcd_mvcc_db_total_size_in_use_in_bytes", &[]),
    ] {
        let grown = after.value(family, labels) - before.value(family, labels);
        assert!((2e6..1e7).contains(&grown), "{family} grew by {grown}");
    }
}

#[tokio::test]
async fn objects_of_a_lease_are_counted_when_the_next_one_is_granted() {
    let Some(etcd) = Etcd::start("objects_of_a_lease_are_counted_when_the_next_one_is_granted")
    else {
        return;
    };
    let builder = InProcessServer::builder()
        .flag("--storage-backend=etcd3")
        .flag(format!("--etcd-servers={}", etcd.endpoint()))
        .flag("--lease-reuse-duration-seconds=0");
    let fixture = Fixture::start(builder).await;
    let before = fixture.scrape().await;
    for name in ["first", "second", "third"] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        });
        fixture
            .create("/api/v1/namespaces/default/events", &event)
            .await;
    }
    let after = fixture.scrape().await;
    after.rose(&before, 2.0, "etcd_lease_object_counts_count", &[]);
    after.rose(&before, 2.0, "etcd_lease_object_counts_sum", &[]);
    after.rose(
        &before,
        2.0,
        "etcd_lease_object_counts_bucket",
        &[("le", "10.0")],
    );
}
