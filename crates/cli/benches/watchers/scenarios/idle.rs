//! The memory of a watch without events: the server's resident bytes before and after.

use std::time::Duration;

use super::STREAMS;
use crate::clients::Clients;
use crate::objects::{Kind, Objects};
use crate::protocol::{Opening, Protocol};
use crate::server::Server;
use crate::{Failed, Settings};

/// How long the server is left alone before and between looks: longer than the ten seconds for which its
/// allocator keeps what was freed.
const SETTLE: Duration = Duration::from_secs(12);
const SETTLE_SMALL: Duration = Duration::from_millis(100);

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let settle = if settings.small() {
        SETTLE_SMALL
    } else {
        SETTLE
    };
    let most = settings.watchers(10_000, 20);
    println!("idle watches: resident bytes of the server for each, and its processor time");
    for protocol in [Protocol::Http1, Protocol::Http2 { streams: STREAMS }] {
        for watches in [most / 5, most] {
            let server = Server::start(settings, None).await?;
            let api = server.api()?;
            let objects = Objects::create(&api, Kind::ConfigMaps, 1).await?;
            let mut clients = Clients::start()?;
            tokio::time::sleep(settle).await;
            let before = server.resident_bytes();
            let opening = objects.watches(&api, watches);
            clients
                .open(Opening {
                    protocol,
                    ..opening
                })
                .await?;
            tokio::time::sleep(settle).await;
            let each = server.resident_bytes().saturating_sub(before) / watches as u64;
            let cpu = server.cpu();
            tokio::time::sleep(settle).await;
            let idle = (server.cpu() - cpu).all.as_secs_f64() / settle.as_secs_f64() * 100.0;
            println!(
                "  {protocol:?}, {watches:>6} watches: {each:>6} bytes, {idle:.1} % of a core"
            );
        }
    }
    Ok(())
}
