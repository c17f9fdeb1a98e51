//! The server is killed while clients watch and write, and comes back on the same data. Every watch
//! goes on where it was, also those that went away up to two minutes before.

use std::time::Duration;

use super::LATE_SECONDS_MAX;
use crate::api::Api;
use crate::clients::Clients;
use crate::group::now;
use crate::objects::{Kind, Objects};
use crate::protocol::{Mode, Opening};
use crate::server::Server;
use crate::writer::Writer;
use crate::{Failed, Settings};
use ringwatch_testing::etcd::Etcd;

/// So many groups go away before the restart, one after the other.
const AWAY_GROUPS: usize = 10;
/// One watch in so many belongs to such a group.
const AWAY_ONE_IN: usize = 10;
/// Writes go on for so long after the server was killed.
const AFTER_SECONDS: u64 = 5;
const AFTER_SECONDS_SMALL: u64 = 1;

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    over(settings, None).await?;
    match Etcd::start("watchers restart") {
        Some(etcd) => over(settings, Some(&etcd)).await,
        None => Ok(()),
    }
}

/// Clients that resume: most stay, some groups go away.
struct Watching {
    clients: Clients,
    stay: usize,
    away: Vec<usize>,
}

impl Watching {
    async fn start(api: &Api, objects: &Objects, stay: usize, each: usize) -> Result<Self, Failed> {
        let mut clients = Clients::start()?;
        let resuming = |watches| Opening {
            resumes: true,
            ..objects.watches(api, watches)
        };
        let stay = clients.open(resuming(stay)).await?;
        let mut away = Vec::new();
        for _ in 0..AWAY_GROUPS {
            away.push(clients.open(resuming(each)).await?);
        }
        clients.begin().await?;
        Ok(Self {
            clients,
            stay,
            away,
        })
    }

    /// One group after the other goes away, within this time.
    async fn leave(&mut self, within: Duration) -> Result<(), Failed> {
        for group in &self.away {
            self.clients.set(*group, Mode::Away).await?;
            tokio::time::sleep(within / u32::try_from(AWAY_GROUPS)?).await;
        }
        Ok(())
    }

    /// Has all come back; gives how many have.
    async fn come_back(&mut self) -> Result<usize, Failed> {
        for group in &self.away {
            self.clients.set(*group, Mode::Reads).await?;
        }
        self.clients.await_live(LATE_SECONDS_MAX).await
    }

    /// How many watches were resumed, and how many attempts were put off.
    async fn collect(&mut self, events: u64) -> Result<(u64, u64), Failed> {
        let (mut resumed, mut put_off) = (0, 0);
        for group in self.away.iter().chain([&self.stay]) {
            let collected = self
                .clients
                .collect(*group, events, LATE_SECONDS_MAX)
                .await?;
            resumed += collected.resumed;
            put_off += collected.put_off;
        }
        Ok((resumed, put_off))
    }
}

async fn over(settings: &Settings, etcd: Option<&Etcd>) -> Result<(), Failed> {
    let watches = settings.watchers(5_000, 100);
    let rate = settings.rate(5, 50);
    let seconds = settings.seconds(120, 1);
    let after = if settings.small() {
        AFTER_SECONDS_SMALL
    } else {
        AFTER_SECONDS
    };
    let events = rate * (seconds + after);
    let away_each = (watches / AWAY_ONE_IN / AWAY_GROUPS).max(1);
    let staying = watches - away_each * AWAY_GROUPS;

    let mut server = Server::start(settings, etcd).await?;
    let api = server.api()?;
    let objects = Objects::create(&api, Kind::ConfigMaps, 1).await?;
    let mut writer = Writer::connect(&api, 1, &objects.paths, 1).await?;
    writer.persists();
    let mut watching = Watching::start(&api, &objects, staying, away_each).await?;
    let writing = tokio::spawn(async move { writer.write(events, rate).await });
    watching.leave(Duration::from_secs(seconds)).await?;
    let killed = now();
    server.restart().await?;
    let serving = now() - killed;
    let live = watching.come_back().await?;
    let all_live = now() - killed;
    if live != watches {
        return Err(format!("{live} of {watches} watches came back").into());
    }
    writing.await??;
    let (resumed, put_off) = watching.collect(events).await?;
    if resumed != staying as u64 {
        return Err(format!("{resumed} of {staying} watches felt the restart").into());
    }
    println!(
        "restart over {}: {watches} watches, {} of them away for up to {seconds} s, {rate} \
         events/s, nothing lost, no 410",
        if etcd.is_some() { "etcd" } else { "embedded" },
        watches - staying
    );
    let [serving, all_live] = [serving, all_live].map(|time| time.as_secs_f64());
    println!("  killed until it serves again, s    {serving:.2}");
    println!("  killed until all watches are live  {all_live:.2}");
    println!("  attempts that were put off         {put_off}");
    Ok(())
}
