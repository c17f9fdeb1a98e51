//! The memory of a stored pod: the server's resident bytes with an etcd full of them, less those with an empty one. A server
//! that finds them there lists them; one that finds how they came follows that, and keeps the changes for watches as well.

use std::time::Duration;

use crate::figures::Series;
use crate::server::Server;
use crate::{Failed, Settings, stored};
use ringwatch_testing::etcd::Etcd;

/// How long the server is left alone before a look: the allocator gives memory back in the background.
const SETTLE: Duration = Duration::from_secs(20);
const SETTLE_SMALL: Duration = Duration::from_millis(100);

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let pods = settings.objects(20_000, 20);
    let runs = settings.runs(3, 1);
    let Some(etcd) = Etcd::start("watchers memory") else {
        return Ok(());
    };
    let mut empty = Vec::new();
    for _ in 0..runs {
        empty.push(resident(settings, &etcd).await?);
    }
    let bytes = stored::fill(&etcd, pods).await?;
    println!("memory of {pods} pods of {bytes} stored bytes each, {runs} runs");
    told(settings, &etcd, "followed", (pods, bytes), &empty).await?;
    stored::forget_history(&etcd).await?;
    told(settings, &etcd, "listed", (pods, bytes), &empty).await
}

async fn told(
    settings: &Settings,
    etcd: &Etcd,
    name: &str,
    (pods, bytes): (usize, usize),
    empty: &[u64],
) -> Result<(), Failed> {
    let (mut each, mut ratio) = (Series::default(), Series::default());
    for before in empty {
        let full = resident(settings, etcd).await?;
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let of_one = full.saturating_sub(*before) as f64 / pods as f64;
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let stored = bytes as f64;
        each.push(of_one);
        ratio.push(of_one / stored);
    }
    println!("  {name:<9} {each} bytes each, {ratio} of what is stored (goal: at most 1.35)");
    Ok(())
}

/// The resident bytes of a new server that does nothing.
async fn resident(settings: &Settings, etcd: &Etcd) -> Result<u64, Failed> {
    let server = Server::start(settings, Some(etcd)).await?;
    server.ready().await?;
    let settle = if settings.small() {
        SETTLE_SMALL
    } else {
        SETTLE
    };
    tokio::time::sleep(settle).await;
    Ok(server.resident_bytes())
}
