//! Every event goes to all watches. Server and floor deliver the same bytes to as many connections,
//! in turns, and the figure is the processor time of one over that of the other.

use std::time::Duration;

use super::LATE_SECONDS_MAX;
use crate::child::{IS_FLOOR, Role};
use crate::clients::Clients;
use crate::figures::Series;
use crate::objects::{Kind, Objects};
use crate::process::Cpu;
use crate::protocol::{Collected, FloorAnswer, FloorOrder, Opening, Protocol};
use crate::server::Server;
use crate::writer::Writer;
use crate::{Failed, Settings};

/// How many events go out before anything is measured.
const WARM_UP_EVENTS: u64 = 10;

/// One side of the comparison.
#[derive(Default)]
struct Side {
    /// Microseconds of processor time for each delivery, less the idle time.
    cpu: Series,
    /// The part of it in the kernel.
    kernel: Series,
    /// Of the clients, in the same unit.
    client_cpu: Series,
    /// Milliseconds.
    p50: Series,
    p99: Series,
    /// Of a line, with its framing.
    event_bytes: u64,
}

impl Side {
    fn note(&mut self, cpu: Cpu, clients: Cpu, collected: &Collected) {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let each = |time: Duration| time.as_secs_f64() * 1e6 / collected.delivered as f64;
        self.cpu.push(each(cpu.all));
        self.kernel.push(each(cpu.kernel));
        self.client_cpu.push(each(clients.all));
        self.p50.push(f64::from(collected.delay.p50) / 1e3);
        self.p99.push(f64::from(collected.delay.p99) / 1e3);
        self.event_bytes = collected.bytes / collected.delivered;
    }

    fn print(&self, name: &str) {
        println!("  {name} CPU a delivery, us         {}", self.cpu);
        println!("  {name}   of it in the kernel        {}", self.kernel);
        println!("  {name} delay p50, ms              {}", self.p50);
        println!("  {name} delay p99, ms              {}", self.p99);
        println!("  {name} clients' CPU a delivery, us {}", self.client_cpu);
    }
}

/// The floor and its clients.
struct Floor {
    role: Role<FloorOrder, FloorAnswer>,
    clients: Clients,
    object: String,
    next: u64,
}

impl Floor {
    async fn start(server: &Server, objects: &Objects, watches: usize) -> Result<Self, Failed> {
        let mut role = Role::start(IS_FLOOR)?;
        let (certificate, key) = server.identity()?;
        let order = FloorOrder::Open {
            certificate,
            key,
            connections: watches,
        };
        let address = match role.ask(&order).await? {
            FloorAnswer::Listening { address } => address,
            other => return Err(format!("the floor: {other:?}").into()),
        };
        let mut clients = Clients::start()?;
        let opening = Opening {
            address,
            revision: 0,
            ..objects.watches(&server.api()?, watches)
        };
        clients.open(opening).await?;
        let mut floor = Self {
            role,
            clients,
            object: objects.sample.clone(),
            next: 1,
        };
        floor.done().await?;
        Ok(floor)
    }

    async fn done(&mut self) -> Result<(), Failed> {
        match self.role.answer().await? {
            FloorAnswer::Done => Ok(()),
            other => Err(format!("the floor: {other:?}").into()),
        }
    }

    /// Delivers events; gives the processor time of floor and clients.
    async fn run(&mut self, events: u64, rate: u64) -> Result<(Cpu, Cpu, Collected), Failed> {
        self.clients.begin().await?;
        let before = (self.role.cpu(), self.clients.cpu());
        let order = FloorOrder::Write {
            object: self.object.clone(),
            first_number: self.next,
            events,
            interval_micros: 1_000_000 / rate,
        };
        match self.role.ask(&order).await? {
            FloorAnswer::Done => self.next += events,
            other => {
                let clients = self.clients.collect(0, events, 0).await;
                return Err(format!("the floor: {other:?}, its clients: {clients:?}").into());
            }
        }
        let collected = self.clients.collect(0, events, LATE_SECONDS_MAX).await?;
        let after = (self.role.cpu(), self.clients.cpu());
        Ok((after.0 - before.0, after.1 - before.1, collected))
    }
}

/// The server, what writes to it, and its clients.
struct Served {
    server: Server,
    writer: Writer,
    clients: Clients,
}

impl Served {
    async fn run(&mut self, events: u64, rate: u64) -> Result<(Cpu, Cpu, Collected), Failed> {
        self.clients.begin().await?;
        let before = (self.server.cpu(), self.clients.cpu());
        self.writer.write(events, rate).await?;
        let collected = self.clients.collect(0, events, LATE_SECONDS_MAX).await?;
        let after = (self.server.cpu(), self.clients.cpu());
        Ok((after.0 - before.0, after.1 - before.1, collected))
    }

    /// The processor time of nothing to do.
    async fn idle(&self, seconds: u64) -> Cpu {
        let before = self.server.cpu();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.server.cpu() - before
    }
}

pub(super) async fn run(settings: &Settings, protocol: Protocol) -> Result<(), Failed> {
    let watches = settings.watchers(10_000, 20);
    let rate = settings.rate(5, 50);
    let seconds = settings.seconds(20, 1);
    let runs = settings.runs(5, 1);
    let events = rate * seconds;
    // Streams that share a connection share its writes, which the floor does not.
    let goal = match protocol {
        Protocol::Http1 => 1.3,
        Protocol::Http2 { .. } => 0.3,
    };

    let server = Server::start(settings, None).await?;
    let api = server.api()?;
    let objects = Objects::create(&api, Kind::ConfigMaps, 1).await?;
    let writer = Writer::connect(&api, 1, &objects.paths, 1).await?;
    let mut clients = Clients::start()?;
    let opening = objects.watches(&api, watches);
    clients
        .open(Opening {
            protocol,
            ..opening
        })
        .await?;
    let mut floor = Floor::start(&server, &objects, watches).await?;
    let mut served = Served {
        server,
        writer,
        clients,
    };
    served.run(WARM_UP_EVENTS, rate).await?;
    floor.run(WARM_UP_EVENTS, rate).await?;

    let (mut ours, mut least, mut idle) = (Side::default(), Side::default(), Series::default());
    for _ in 0..runs {
        let nothing = served.idle(seconds).await;
        idle.push(nothing.all.as_secs_f64() * 100.0 / Duration::from_secs(seconds).as_secs_f64());
        let (cpu, clients, collected) = served.run(events, rate).await?;
        ours.note(cpu - nothing, clients, &collected);
        let (cpu, clients, collected) = floor.run(events, rate).await?;
        least.note(cpu, clients, &collected);
    }
    println!(
        "fanout over {protocol:?}: {watches} watches, {} bytes an event (floor {}), {rate} events/s, \
         {runs} runs of {seconds} s, nothing lost",
        ours.event_bytes, least.event_bytes
    );
    ours.print("server");
    least.print("floor ");
    println!("  idle server, % of a core           {idle}");
    println!(
        "  server over floor                  {} (goal: at most {goal})",
        ours.cpu.over(&least.cpu)
    );
    Ok(())
}
