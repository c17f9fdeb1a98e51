//! Renewals of Leases, as every kubelet makes them: each client again and again, as fast as it is answered.
//!
//! A kubelet sends the Lease of the last answer with another time. So does this: the body of each answer is the next
//! request, in which the time is overwritten, so that the client spends little beside the server.

use std::cell::RefCell;

use bytes::Bytes;
use clap::Args;
use ringwatch::codec;
use serde::Serialize;
use serde_json::{Value, json};

use super::delivery::Delivery;
use super::parameters::{FloorFlags, SizeFlags, WriteFlags};
use super::request_floor::{RequestFloor, RequestPhase};
use crate::client::{ClientError, ClientRequest, Encoding, RequestContent};
use crate::context::Context;
use crate::error::LoadError;
use crate::outcome::Run;
use crate::requests::{Answers, Clients, Pace};

/// Renewals of Leases, each client's own again and again, as fast as they are answered.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct RenewFlags {
    /// Clients that renew, each with a connection.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    writers: u32,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

/// A time has so many microseconds at least, so that all are equally long in protobuf as well.
const MICROS_LEAST: u32 = 500_000;
/// The number of times that differ.
const TIMES: u32 = 500_000;
const NANOS_PER_MICRO: u64 = 1_000;
/// The whole seconds of all times, 2030-01-01.
const SECONDS: u64 = 1_893_456_000;
const SECONDS_TEXT: &str = "2030-01-01T00:00:00";

pub(crate) async fn run(context: &Context, flags: &RenewFlags) -> Result<Vec<Run>, LoadError> {
    let nothing = WriteFlags {
        writers: 1,
        size: SizeFlags::DEFAULT,
    };
    let mut delivery = Delivery::prepare(context, &nothing).await?;
    let mut clients = Clients::connect(&context.client, flags.writers).await?;
    let floor = RequestFloor::start(context, flags.floor, flags.writers)?;
    let leases = Leases::create(context, flags.writers).await?;
    let length = context.length;
    if !length.warm_up.is_zero() {
        let pace = Pace::For(length.warm_up);
        leases
            .renew(context, &mut clients, "warming up", pace)
            .await?;
    }
    delivery.idle(length.duration).await;
    let mut runs = Vec::new();
    for what in length.names() {
        let pace = Pace::For(length.duration);
        let answers = leases.renew(context, &mut clients, &what, pace).await?;
        let (asked, seconds) = (answers.asked as f64, answers.seen.elapsed.as_secs_f64());
        let mut phases = delivery.phases();
        let phase = RequestPhase {
            what: &what,
            name: "renew",
            of: "renewal",
        };
        let make = |number| leases.renewal(number);
        floor.add(&mut phases, phase, answers, pace, make).await?;
        let mut run = phases.finish(context);
        run.higher(
            "renewals",
            "per second",
            asked / seconds.max(f64::MIN_POSITIVE),
        );
        runs.push(run);
    }
    Ok(runs)
}

/// The Leases, one for each client.
struct Leases {
    collection: String,
    encoding: Encoding,
    /// The newest body of each Lease, and the number of its time.
    newest: RefCell<Vec<(Vec<u8>, u32)>>,
}

impl Leases {
    async fn create(context: &Context, count: u32) -> Result<Self, LoadError> {
        let collection = context.workspace.leases();
        let encoding = context.flags.encoding;
        let failed = || LoadError::request("create a Lease".to_owned());
        let mut connection = context.client.connect().await?;
        let mut newest = Vec::new();
        for number in 0..count {
            let content = RequestContent {
                media_type: encoding.media_type(),
                bytes: encoded(encoding, &lease(number)).map_err(failed())?,
            };
            let request = ClientRequest::post(collection.clone(), content).accepting(encoding);
            let answer = connection.request(request).await;
            let body = answer
                .and_then(|answer| answer.success())
                .map_err(failed())?;
            newest.push((body.to_vec(), 0));
        }
        Ok(Self {
            collection,
            encoding,
            newest: RefCell::new(newest),
        })
    }

    async fn renew(
        &self,
        context: &Context,
        clients: &mut Clients,
        what: &str,
        pace: Pace,
    ) -> Result<Answers, LoadError> {
        let make = |number| self.renewal(number);
        let check = |number, bodies: &[Bytes]| self.take_answer(number, bodies);
        clients.ask(context, what, pace, make, check).await
    }

    /// Returns the place of the Lease of a request.
    fn place(&self, request: u64) -> usize {
        request as usize % self.newest.borrow().len()
    }

    /// Returns the request of this number, which gives its Lease the next time.
    fn renewal(&self, request: u64) -> ClientRequest {
        let place = self.place(request);
        let (body, time) = &mut self.newest.borrow_mut()[place];
        let next = (*time + 1) % TIMES;
        // A body without the time is sent as it is, and its answer is refused below.
        overwrite(body, &self.time(*time), &self.time(next));
        *time = next;
        let content = RequestContent {
            media_type: self.encoding.media_type(),
            bytes: Bytes::copy_from_slice(body),
        };
        let path = format!("{}/{}", self.collection, name(place as u32));
        ClientRequest::put(path, content).accepting(self.encoding)
    }

    /// Makes the answer to a request the newest body of its Lease, which must have the time of the request.
    fn take_answer(&self, request: u64, bodies: &[Bytes]) -> Result<Option<ClientRequest>, String> {
        let place = self.place(request);
        let (newest, time) = &mut self.newest.borrow_mut()[place];
        let answered = bodies.last().map(|body| body.to_vec()).unwrap_or_default();
        let renewed = position(&answered, &self.time(*time)).is_some();
        *newest = answered;
        if renewed {
            return Ok(None);
        }
        let name = name(place as u32);
        Err(format!("the answer of {name} lacks its new time"))
    }

    /// Returns a time as it is in the body of a Lease. All are equally long.
    fn time(&self, number: u32) -> Vec<u8> {
        let micros = MICROS_LEAST + number;
        match self.encoding {
            Encoding::Json => format!("{SECONDS_TEXT}.{micros}Z").into_bytes(),
            Encoding::Protobuf => {
                let mut time = Vec::new();
                codec::wire::put_number(&mut time, 1, SECONDS);
                codec::wire::put_number(&mut time, 2, u64::from(micros) * NANOS_PER_MICRO);
                time
            }
        }
    }
}

fn name(number: u32) -> String {
    format!("load-{number}")
}

fn lease(number: u32) -> Value {
    json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name(number), "ownerReferences": [{"apiVersion": "v1", "kind": "Node",
            "name": name(number), "uid": "10000000-0000-0000-0000-000000000000"}]},
        "spec": {"holderIdentity": name(number), "leaseDurationSeconds": 40,
            "renewTime": format!("{SECONDS_TEXT}.{MICROS_LEAST}Z")},
    })
}

fn encoded(encoding: Encoding, object: &Value) -> Result<Bytes, ClientError> {
    match encoding {
        Encoding::Json => Ok(object.to_string().into()),
        Encoding::Protobuf => codec::encode_value(object)
            .map(Bytes::from)
            .ok_or(ClientError::Malformed("no kind of Kubernetes")),
    }
}

fn position(body: &[u8], part: &[u8]) -> Option<usize> {
    body.windows(part.len()).position(|window| window == part)
}

/// Overwrites a part of a body with one as long, if it is there.
fn overwrite(body: &mut [u8], old: &[u8], new: &[u8]) {
    let at = position(body, old);
    if let Some(part) = at.and_then(|at| body.get_mut(at..at + new.len())) {
        part.copy_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_overwritten_in_both_encodings() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let leases = Leases {
                collection: String::new(),
                encoding,
                newest: RefCell::default(),
            };
            let mut body = encoded(encoding, &lease(3)).expect("a Lease").to_vec();
            let (first, last) = (leases.time(0), leases.time(TIMES - 1));
            overwrite(&mut body, &first, &last);
            let renewed = match encoding {
                Encoding::Json => serde_json::from_slice(&body).expect("JSON"),
                Encoding::Protobuf => codec::decode(&body, ("", "")).expect("protobuf"),
            };
            let mut expected = lease(3);
            expected["spec"]["renewTime"] = format!("{SECONDS_TEXT}.999999Z").into();
            assert_eq!(renewed["spec"], expected["spec"], "{encoding:?}");
        }
    }
}
