//! The context of all scenarios: a client, a namespace to write to, the gauges, and the length of the runs.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::client::{Client, ClientError, ClientRequest, Connection, HttpVersion, ListHead};
use super::error::LoadError;
use super::flags::RunFlags;
use super::fleet::Fleet;
use super::floor::Protocol;
use super::measure::{Gauges, Observation, Probe, observe};
use super::output::ProgressLine;
use super::payload::{ObjectKind, Payload, Stamp};
use super::workspace::Workspace;

/// The most tries to create the first object, and the pause between them: some seconds in all.
const FIRST_TRIES_MAX: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The length of a scenario: the number of its runs, how long each takes, and how long the server is loaded before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) runs: u32,
    pub(crate) duration: Duration,
    pub(crate) warm_up: Duration,
}

/// Everything that a scenario needs: the client, the flags, the namespace, the gauges of the server, and the warnings
/// so far.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) flags: RunFlags,
    pub(crate) length: Length,
    pub(crate) workspace: Workspace,
    pub(crate) probe: Probe,
    warnings: Mutex<Vec<String>>,
}

impl Length {
    /// Returns the length that the flags give, else the scenario's own.
    pub(crate) fn new(flags: &RunFlags, default: Self) -> Self {
        Self {
            runs: flags.runs.unwrap_or(default.runs),
            duration: flags.duration.unwrap_or(default.duration),
            warm_up: flags.warm_up.unwrap_or(default.warm_up),
        }
    }

    /// Returns the names of the runs.
    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        (1..=self.runs).map(move |number| format!("run {number}/{}", self.runs))
    }
}

impl Context {
    pub(crate) async fn new(
        client: Client,
        flags: RunFlags,
        length: Length,
        workspace: Workspace,
    ) -> Self {
        let probe = Probe::find(flags.pid, &client).await;
        let context = Self {
            client,
            flags,
            length,
            workspace,
            probe,
            warnings: Mutex::default(),
        };
        if matches!(context.probe, Probe::Unknown) {
            context.warn("what the server used is unknown: its /metrics do not tell; use --pid");
        }
        context
    }

    /// Notes what makes the figures doubtful; the same thing once.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        let warning = warning.into();
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.clone()
    }

    /// Starts threads for watchers of the server.
    pub(crate) fn fleet(&self) -> Result<Fleet, LoadError> {
        self.fleet_of(&self.client)
    }

    /// Starts threads for watchers that another client connects.
    pub(crate) fn fleet_of(&self, client: &Client) -> Result<Fleet, LoadError> {
        let (threads, streams) = (self.flags.threads, self.flags.streams);
        Fleet::start(client, threads as usize, streams as usize)
    }

    /// Returns how a floor is asked for so many watches, which share connections as those of the server.
    pub(crate) fn floor_protocol(&self, watchers: usize) -> Protocol {
        let streams = self.flags.streams as usize;
        match self.client.http() {
            HttpVersion::One => Protocol::Http1,
            HttpVersion::Two => Protocol::Http2 {
                streams: streams.min(watchers).max(1),
            },
        }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, LoadError> {
        Ok(self.client.connect().await?)
    }

    /// Returns the version of a collection. A watch from here gets every later event.
    pub(crate) async fn revision(&self, kind: ObjectKind) -> Result<u64, LoadError> {
        let what = format!("list {}", kind.resource());
        let path = format!("{}?limit=1", self.workspace.collection(kind));
        let encoding = self.flags.encoding;
        let request = ClientRequest::get(path).accepting(encoding);
        let answer = self.connect().await?.request(request).await;
        let list = answer
            .and_then(|answer| answer.success())
            .map_err(LoadError::request(what.clone()))?;
        let head = ListHead::read(&list, encoding);
        let head = head.ok_or_else(|| LoadError::UnexpectedAnswer {
            what,
            why: "a list without a version".to_owned(),
        })?;
        Ok(head.revision)
    }

    /// Returns objects that are so many bytes long on the wire, with all that the server adds, unless they are longer
    /// without any padding; and how long they are. One is written and read to see that.
    pub(crate) async fn payload(
        &self,
        kind: ObjectKind,
        size: u32,
    ) -> Result<(Payload, u64), LoadError> {
        let trial = Payload::new(self.flags.encoding, 0);
        let length = self
            .trial(kind, &trial)
            .await
            .map_err(LoadError::request("write an object to see how long it is"))?;
        let padding = (size as usize).saturating_sub(length);
        let payload = Payload::new(self.flags.encoding, padding);
        Ok((payload, (length + padding) as u64))
    }

    /// Returns the length of an object as it is read, after it was written twice.
    async fn trial(&self, kind: ObjectKind, payload: &Payload) -> Result<usize, ClientError> {
        let collection = self.workspace.collection(kind);
        let mut connection = self.client.connect().await?;
        let stamp = |number| Stamp {
            object: 0,
            number,
            at: 0,
        };
        let path = format!("{collection}/{}", super::payload::name(0));
        let create = payload.create(kind, &collection, stamp(0));
        for tries_left in (0..FIRST_TRIES_MAX).rev() {
            let created = connection.request(create.clone()).await?.success();
            match created {
                // A pod needs the service account that a controller is about to create.
                Err(ClientError::Refused { code: 403, .. }) if tries_left > 0 => {
                    tokio::time::sleep(FIRST_PAUSE).await;
                }
                created => {
                    created?;
                    break;
                }
            }
        }
        let update = payload.update(kind, &collection, stamp(1));
        connection.request(update).await?.success()?;
        let get = ClientRequest::get(&path).accepting(payload.encoding());
        let object = connection.request(get).await?.success()?;
        let delete = format!("{path}?gracePeriodSeconds=0");
        connection
            .request(ClientRequest::delete(delete))
            .await?
            .success()?;
        Ok(object.len())
    }

    /// Does something while the progress is shown and all is measured. `expected` is how many events
    /// or answers will come, for the progress; 0 if nobody knows.
    pub(crate) async fn observe<T>(
        &self,
        what: &str,
        expected: u64,
        gauges: &Gauges,
        doing: impl Future<Output = T>,
    ) -> (T, Observation) {
        let progress = ProgressLine::start(what, expected);
        observe(gauges, &self.probe, &progress, doing).await
    }

    /// Returns every parameter, the machine, the server and the transport. `scenario` is the enum of scenarios, which
    /// serialises as its name with its flags.
    pub(crate) fn setting(
        &self,
        scenario: &impl Serialize,
        server: &str,
    ) -> BTreeMap<String, Value> {
        let mut setting = members(&self.flags);
        let of_scenario = members(scenario).into_values().next();
        setting.extend(
            of_scenario
                .and_then(|value| match value {
                    Value::Object(members) => Some(members),
                    _ => None,
                })
                .into_iter()
                .flatten(),
        );
        let Length {
            runs,
            duration,
            warm_up,
        } = self.length;
        for (name, value) in [
            ("runs", runs.into()),
            ("duration", duration.as_secs_f64().into()),
            ("warm_up", warm_up.as_secs_f64().into()),
            ("server", server.into()),
            ("server_usage", self.probe.name().into()),
            ("transport", self.client.transport().into()),
            ("machine", machine().into()),
        ] {
            setting.insert(name.to_owned(), value);
        }
        setting
    }
}

fn members(value: &impl Serialize) -> BTreeMap<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members.into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// Returns the processors and the kernel of the machine that this runs on.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |model| {
        model.trim_start_matches([' ', '\t', ':'])
    });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} x {model}, Linux {}", kernel.trim())
}

/// Returns the server's version.
pub(crate) async fn server_version(client: &Client) -> Result<String, LoadError> {
    let mut connection = client.connect().await?;
    let answer = connection.request(ClientRequest::get("/version")).await;
    let body = answer
        .and_then(|answer| answer.success())
        .map_err(LoadError::request("ask for the server's version"))?;
    let version: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(version["gitVersion"]
        .as_str()
        .unwrap_or("unknown")
        .to_owned())
}
