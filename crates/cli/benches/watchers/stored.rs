//! An etcd full of pods, as kube-apiserver leaves it: in protobuf.

use etcd_client::{Client, CompactionOptions, Txn, TxnOp};
use ringwatch::codec;

use super::Failed;
use ringwatch_testing::etcd::Etcd;
use ringwatch_testing::pod::pod;

/// The path of all pods.
pub(crate) const COLLECTION: &str = "/api/v1/namespaces/shop/pods";
/// So many are written at a time: what etcd takes in one transaction.
const BATCH: usize = 100;

/// Stores so many pods. Gives how long each of them is, in bytes.
pub(crate) async fn fill(etcd: &Etcd, pods: usize) -> Result<usize, Failed> {
    let mut client = Client::connect([etcd.endpoint()], None).await?;
    let name = |index: usize| format!("web-7d4b9c6f58-{index:05}");
    let mut bytes = 0;
    for first in (0..pods).step_by(BATCH) {
        let mut puts = Vec::new();
        for index in first..(first + BATCH).min(pods) {
            let name = name(index);
            let value = codec::encode_value(&pod(&name)).ok_or("a kind without protobuf")?;
            bytes = value.len();
            puts.push(TxnOp::put(
                format!("/registry/pods/shop/{name}"),
                value,
                None,
            ));
        }
        client.txn(Txn::new().and_then(puts)).await?;
    }
    Ok(bytes)
}

/// Forgets how the pods came there, so that who starts finds nothing but them.
pub(crate) async fn forget_history(etcd: &Etcd) -> Result<(), Failed> {
    let mut client = Client::connect([etcd.endpoint()], None).await?;
    let answer = client.get("/registry", None).await?;
    let revision = answer
        .header()
        .ok_or("an answer without a revision")?
        .revision();
    let options = CompactionOptions::new().with_physical();
    client.compact(revision, Some(options)).await?;
    Ok(())
}
