//! Pods of one node each: an event concerns one watch, however many there are. Two servers, one
//! with many more watches than the other, get the same writes in turns.

use std::time::Duration;

use super::LATE_SECONDS_MAX;
use crate::clients::Clients;
use crate::figures::Series;
use crate::objects::{Kind, Objects};
use crate::protocol::Opening;
use crate::server::Server;
use crate::writer::Writer;
use crate::{Failed, Settings};

/// So many pods are written to; they run on as many nodes.
const PODS: usize = 50;
const PODS_SMALL: usize = 10;
/// So many connections write.
const CONNECTIONS: usize = 5;
/// How many events each pod gets before anything is measured.
const WARM_UP_EVENTS_EACH: u64 = 4;

/// A server with watches of nodes: the first of them have pods.
struct Nodes {
    server: Server,
    writer: Writer,
    clients: Clients,
    /// The group of the watches of nodes with pods.
    busy: usize,
    /// The group of the others, which get nothing.
    quiet: Option<usize>,
    cpu: Series,
    p99: Series,
}

impl Nodes {
    async fn start(settings: &Settings, watches: usize, pods: usize) -> Result<Self, Failed> {
        let server = Server::start(settings, None).await?;
        let api = server.api()?;
        let objects = Objects::create(&api, Kind::Pods, pods).await?;
        let writer = Writer::connect(&api, CONNECTIONS, &objects.paths, 1).await?;
        let mut clients = Clients::start()?;
        let of_nodes = |first: usize, watches| Opening {
            path: format!(
                "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D{}{{}}",
                if first == 0 { "n" } else { "quiet" }
            ),
            ..objects.watches(&api, watches)
        };
        let busy = clients.open(of_nodes(0, pods)).await?;
        let quiet = if watches > pods {
            Some(clients.open(of_nodes(pods, watches - pods)).await?)
        } else {
            None
        };
        Ok(Self {
            server,
            writer,
            clients,
            busy,
            quiet,
            cpu: Series::default(),
            p99: Series::default(),
        })
    }

    /// Processor time, less that of nothing to do for as long.
    async fn run(&mut self, each: u64, pods: usize, rate: u64) -> Result<(), Failed> {
        let events = each * pods as u64;
        let length = Duration::from_secs(1) / u32::try_from(rate)? * u32::try_from(events)?;
        let before = self.server.cpu();
        tokio::time::sleep(length).await;
        let idle = self.server.cpu() - before;
        self.clients.begin().await?;
        let before = self.server.cpu();
        self.writer.write(events, rate).await?;
        let collected = self
            .clients
            .collect(self.busy, each, LATE_SECONDS_MAX)
            .await?;
        let cpu = self.server.cpu() - before;
        if let Some(quiet) = self.quiet {
            self.clients.collect(quiet, 0, 0).await?;
        }
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let each = (cpu - idle).all.as_secs_f64() * 1e6 / events as f64;
        self.cpu.push(each);
        self.p99.push(f64::from(collected.delay.p99) / 1e3);
        Ok(())
    }
}

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let many = settings.watchers(5_000, 40);
    let pods = if settings.small() { PODS_SMALL } else { PODS };
    let rate = settings.rate(200, 100);
    let seconds = settings.seconds(20, 1);
    let runs = settings.runs(5, 1);
    let each = (rate * seconds).div_ceil(pods as u64);
    let mut few = Nodes::start(settings, pods, pods).await?;
    let mut lots = Nodes::start(settings, many, pods).await?;
    for nodes in [&mut few, &mut lots] {
        nodes.run(WARM_UP_EVENTS_EACH, pods, rate).await?;
        (nodes.cpu, nodes.p99) = Default::default();
    }
    for _ in 0..runs {
        few.run(each, pods, rate).await?;
        lots.run(each, pods, rate).await?;
    }
    println!(
        "selective: each event concerns one watch of {pods} or of {many}, {rate} events/s, \
         {runs} runs of {seconds} s, nothing lost"
    );
    for (watches, nodes) in [(pods, &few), (many, &lots)] {
        println!(
            "  {watches:>5} watches: server CPU an event, us  {}",
            nodes.cpu
        );
        println!(
            "  {watches:>5} watches: delay p99, ms            {}",
            nodes.p99
        );
    }
    println!(
        "  the second over the first              {} (goal: at most 1.05)",
        lots.cpu.over(&few.cpu)
    );
    println!(
        "  ratio of the medians                   {:.3}",
        lots.cpu.median() / few.cpu.median()
    );
    Ok(())
}
