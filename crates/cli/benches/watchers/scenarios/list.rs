//! Lists of all pods, which an etcd holds in protobuf: the first one after the server has started, and those
//! after it, in protobuf and in JSON, beside a floor that writes as many bytes over TLS.

use std::time::{Duration, Instant};

use k8s_pb::api::core::v1::PodList;
use k8s_pb::apimachinery::pkg::runtime::Unknown;
use prost::Message;
use serde_json::Value;

use crate::api::{Api, Line};
use crate::child::{IS_FLOOR, Role};
use crate::figures::Series;
use crate::process::Cpu;
use crate::protocol::{FloorAnswer, FloorOrder};
use crate::server::Server;
use crate::stored::{self, COLLECTION};
use crate::{Failed, Settings};
use ringwatch_testing::etcd::Etcd;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

/// So many lists are one measurement: the kernel counts processor time in hundredths of a second.
const LISTS: u32 = 5;
const LISTS_SMALL: u32 = 1;

/// The time of a list, in milliseconds.
#[derive(Default)]
struct Cost {
    wall: Series,
    cpu: Series,
}

impl Cost {
    fn note(&mut self, wall: Duration, cpu: Cpu, lists: u32) {
        let millis = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(lists);
        self.wall.push(millis(wall));
        self.cpu.push(millis(cpu.all));
    }

    fn print(&self, name: &str) {
        println!("  {name:<22} wall {} ms, CPU {} ms", self.wall, self.cpu);
    }
}

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let Some(etcd) = Etcd::start("watchers list") else {
        return Ok(());
    };
    let pods = settings.objects(10_000, 20);
    let runs = settings.runs(5, 1);
    let lists = if settings.small() { LISTS_SMALL } else { LISTS };
    let bytes = stored::fill(&etcd, pods).await?;
    println!("lists of {pods} pods of {bytes} stored bytes, {runs} runs of {lists} lists");
    for (name, form) in [("protobuf", PROTOBUF), ("JSON", JSON)] {
        let server = Server::start(settings, Some(&etcd)).await?;
        server.ready().await?;
        let mut line = server.api()?.connect().await?;
        let (mut first, mut later, mut floor) = (Cost::default(), Cost::default(), Cost::default());
        let length = measure(&server, &mut line, form, 1, &mut first).await?;
        for _ in 0..runs {
            measure(&server, &mut line, form, lists, &mut later).await?;
            copies(&server, length, lists, &mut floor).await?;
        }
        let listed = count(&line.get_as(COLLECTION, form).await?, form)?;
        if listed != pods {
            return Err(format!("{listed} of {pods} pods").into());
        }
        println!(" {name}: {length} bytes");
        first.print("the first");
        later.print("later ones");
        floor.print("the floor");
        println!("  later over floor       {}", later.cpu.over(&floor.cpu));
    }
    Ok(())
}

/// Lists so often, and gives how long the list is.
async fn measure(
    server: &Server,
    line: &mut Line,
    form: &str,
    lists: u32,
    cost: &mut Cost,
) -> Result<usize, Failed> {
    let (start, before) = (Instant::now(), server.cpu());
    let mut length = 0;
    for _ in 0..lists {
        length = line.length(COLLECTION, form).await?;
    }
    cost.note(start.elapsed(), server.cpu() - before, lists);
    Ok(length)
}

/// Has the floor write as many bytes so often.
async fn copies(server: &Server, bytes: usize, lists: u32, cost: &mut Cost) -> Result<(), Failed> {
    let mut role: Role<FloorOrder, FloorAnswer> = Role::start(IS_FLOOR)?;
    let (mut wall, mut cpu) = (Duration::ZERO, Cpu::default());
    for _ in 0..lists {
        let (certificate, key) = server.identity()?;
        let connections = 1;
        let open = FloorOrder::Open {
            certificate,
            key,
            connections,
        };
        let address = match role.ask(&open).await? {
            FloorAnswer::Listening { address } => address,
            other => return Err(format!("the floor: {other:?}").into()),
        };
        let authority = server.api()?.authority;
        let reads = tokio::spawn(async move {
            let mut line = Api { address, authority }.connect().await?;
            line.length(COLLECTION, JSON).await
        });
        done(role.answer().await?)?;
        let (start, before) = (Instant::now(), role.cpu());
        done(role.ask(&FloorOrder::Copy { bytes }).await?)?;
        let read = reads.await??;
        wall += start.elapsed();
        cpu.all += (role.cpu() - before).all;
        if read != bytes {
            return Err(format!("the floor wrote {bytes} bytes, {read} came").into());
        }
    }
    cost.note(wall, cpu, lists);
    Ok(())
}

fn done(answer: FloorAnswer) -> Result<(), Failed> {
    match answer {
        FloorAnswer::Done => Ok(()),
        other => Err(format!("the floor: {other:?}").into()),
    }
}

/// How many pods a list has.
fn count(list: &[u8], form: &str) -> Result<usize, Failed> {
    if form == JSON {
        let list: Value = serde_json::from_slice(list)?;
        return Ok(list["items"].as_array().map_or(0, Vec::len));
    }
    let message = list.strip_prefix(b"k8s\0").ok_or("not protobuf")?;
    let envelope = Unknown::decode(message)?;
    Ok(PodList::decode(envelope.raw())?.items.len())
}
