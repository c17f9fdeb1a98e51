//! Creates, updates and deletes, and one watcher that must see every one of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::{FloorFlags, WriteFlags};
use super::receivers::all_received;
use super::request_floor::{RequestFloor, RequestPhase};
use crate::client::ClientRequest;
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::fleet::{Fleet, GroupMode, Sees, WatcherGroup};
use crate::outcome::Run;
use crate::payload::{ObjectKind, Stamp, name};
use crate::requests::{Clients, Pace};
use crate::schedule::Schedule;

/// Creates, updates and deletes at a steady rate, one phase after the other.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct WriteScenarioFlags {
    /// Writes per second.
    #[arg(long, value_name = "RATE", default_value = "100", value_parser = rate)]
    rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

/// The phases of a run: one kind of write after the other.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Update,
    Delete,
}

const VERBS: [(Verb, &str); 3] = [
    (Verb::Create, "create"),
    (Verb::Update, "update"),
    (Verb::Delete, "delete"),
];

pub(crate) async fn run(
    context: &Context,
    flags: &WriteScenarioFlags,
) -> Result<Vec<Run>, LoadError> {
    let kind = ObjectKind::ConfigMaps;
    let mut delivery = Delivery::prepare_objects(context, kind, &flags.writes, 1).await?;
    let writers = flags.writes.writers;
    let mut asking = AskingWriters {
        clients: Clients::connect(&context.client, writers).await?,
        floor: RequestFloor::start(context, flags.floor, writers)?,
        rate: flags.rate,
    };
    let length = context.length;
    let phase = length.duration / VERBS.len() as u32;
    if !length.warm_up.is_zero() {
        let phase = length.warm_up / VERBS.len() as u32;
        one_run(&mut delivery, &mut asking, WARMING_UP, phase).await?;
    }
    delivery.idle(phase).await;
    let mut runs = Vec::new();
    for (what, number) in length.names().zip(1..) {
        let numbered = NumberedRun {
            name: &what,
            number,
        };
        runs.push(one_run(&mut delivery, &mut asking, numbered, phase).await?);
    }
    Ok(runs)
}

/// The connections that write to the server, and the floor that is written to beside it.
struct AskingWriters<'a> {
    clients: Clients,
    floor: RequestFloor<'a>,
    /// Writes per second.
    rate: f64,
}

/// A run among those of one scenario.
#[derive(Clone, Copy, Debug)]
struct NumberedRun<'a> {
    name: &'a str,
    /// Its place in the order of runs, from which the numbers of its writes follow.
    number: u32,
}

/// The run whose figures are not kept.
const WARMING_UP: NumberedRun<'static> = NumberedRun {
    name: "warming up",
    number: 0,
};

async fn one_run(
    delivery: &mut Delivery<'_>,
    asking: &mut AskingWriters<'_>,
    numbered: NumberedRun<'_>,
    phase: Duration,
) -> Result<Run, LoadError> {
    let NumberedRun { name: what, number } = numbered;
    let rate = asking.rate;
    let count = Schedule::writes(rate, phase).max(1) as u32;
    // The object that is there already is the first; those of this scenario come behind it.
    let first = 1;
    delivery.begin_anew().await?;
    let mut spec = delivery.spec(1, Sees::All(first + count));
    // Each run writes every object twice.
    spec.next = 2 * number;
    let watcher = delivery.fleet.open(spec).await?;
    Fleet::gauges(&[Arc::clone(&watcher)]).clear();
    let mut phases = delivery.phases();
    for (verb, verb_name) in VERBS {
        let schedule = Schedule::steady(rate);
        let pace = Pace::Due {
            schedule,
            count: u64::from(count),
        };
        let objects = &delivery.objects;
        let make = |write: u64| {
            let (_, at) = schedule.due(write);
            let object = first + write as u32;
            let stamp = |number| Stamp { object, number, at };
            let (kind, collection) = (objects.kind, &objects.collection);
            match verb {
                Verb::Create => objects.payload.create(kind, collection, stamp(2 * number)),
                Verb::Update => objects
                    .payload
                    .update(kind, collection, stamp(2 * number + 1)),
                Verb::Delete => ClientRequest::delete(format!("{collection}/{}", name(object))),
            }
        };
        // That it took place is the watcher's to see.
        let check = |_, _: &[Bytes]| Ok(None);
        let (context, clients) = (delivery.context, &mut asking.clients);
        let answers = clients.ask(context, what, pace, make, check).await?;
        let phase = RequestPhase {
            what,
            name: verb_name,
            of: verb_name,
        };
        let floor = &asking.floor;
        floor.add(&mut phases, phase, answers, pace, make).await?;
    }
    let mut run = phases.finish(delivery.context);
    let writes = u64::from(count) * VERBS.len() as u64;
    watched(
        &mut run,
        &watcher,
        writes,
        &vec![2 * number + 2; (first + count) as usize],
    )
    .await;
    Ok(run)
}

/// Waits until the watcher has seen every write, notes what is missing, and closes it.
async fn watched(run: &mut Run, watcher: &Arc<WatcherGroup>, writes: u64, next: &[u32]) {
    all_received(&[Arc::clone(watcher)], writes).await;
    run.expected += writes;
    run.received += watcher.received();
    // The object that is there already was not written to.
    run.faults.extend(watcher.take_faults_from(1, next));
    watcher.set_mode(GroupMode::Away).await;
}
