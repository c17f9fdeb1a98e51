//! Reads of one object: from the watch cache as it is, and consistent ones.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::{FloorFlags, WriteFlags};
use super::request_floor::{RequestFloor, RequestPhase};
use crate::client::ClientRequest;
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::outcome::Run;
use crate::payload::{Stamp, name};
use crate::requests::{Clients, Pace};
use crate::schedule::Schedule;

/// Reads of one object: any version (resourceVersion=0), and the newest.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct GetFlags {
    /// Reads per second.
    #[arg(long, value_name = "RATE", default_value = "500", value_parser = rate)]
    rate: f64,

    /// Connections that read.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

/// The kinds of reads that are measured: the name in figures, and the query.
const KINDS: [(&str, &str); 2] = [("rv=0", "?resourceVersion=0"), ("consistent", "")];

pub(crate) async fn run(context: &Context, flags: &GetFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare(context, &flags.writes).await?;
    let mut clients = Clients::connect(&context.client, flags.clients).await?;
    let floor = RequestFloor::start(context, flags.floor, flags.clients)?;
    let length = context.length;
    let phase = length.duration / KINDS.len() as u32;
    if !length.warm_up.is_zero() {
        let phase = length.warm_up / 2;
        one_run(
            &delivery,
            &mut clients,
            &floor,
            flags.rate,
            "warming up",
            phase,
        )
        .await?;
    }
    delivery.idle(phase).await;
    let mut runs = Vec::new();
    for what in length.names() {
        let run = one_run(&delivery, &mut clients, &floor, flags.rate, &what, phase);
        runs.push(run.await?);
    }
    Ok(runs)
}

async fn one_run(
    delivery: &Delivery<'_>,
    clients: &mut Clients,
    floor: &RequestFloor<'_>,
    rate: f64,
    what: &str,
    phase: Duration,
) -> Result<Run, LoadError> {
    let objects = &delivery.objects;
    let encoding = objects.payload.encoding();
    let mut phases = delivery.phases();
    for (kind, query) in KINDS {
        let object = |number: u64| (number % u64::from(objects.count)) as u32;
        let make = |number| {
            let path = format!("{}/{}{query}", objects.collection, name(object(number)));
            ClientRequest::get(path).accepting(encoding)
        };
        // Nothing is written meanwhile, so every read must give the version of the creation.
        let check = |number, bodies: &[Bytes]| {
            let read = bodies.last().and_then(|body| Stamp::find(body));
            let read = read.map(|stamp| (stamp.object, stamp.number));
            let wanted = Some((object(number), 0));
            if read == wanted {
                Ok(None)
            } else {
                Err(format!("got {read:?} for {wanted:?}"))
            }
        };
        let pace = Pace::Due {
            schedule: Schedule::steady(rate),
            count: Schedule::writes(rate, phase),
        };
        let context = delivery.context;
        let answers = clients.ask(context, what, pace, make, check).await?;
        let phase = RequestPhase {
            what,
            name: &format!("get {kind}"),
            of: "get",
        };
        floor.add(&mut phases, phase, answers, pace, make).await?;
    }
    Ok(phases.finish(delivery.context))
}
