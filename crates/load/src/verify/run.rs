//! The run: writers, watchers and readers at once, faults on the way, and at the end time to settle.
//!
//! ```text
//!  writers --\                      /-- checks --> violations
//!  readers ---+--> journal: history
//!  followers-/         ^
//!       phase: running | settling: no writes, lists until all watchers agree with one | over
//! ```

mod fault;
mod journal;
mod minimums;
mod objects;
mod reader;
mod reconnecting;
mod report;
mod resource;
mod roles;
mod settle;
mod simulated;
mod watcher;
mod writer;

use std::time::Duration;

use clap::Args;
use futures::future::{join, join_all, join3};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use tokio::sync::watch;

use super::checks::{CheckResult, check};
use super::history::History;
use crate::client::{Client, ClientError, ClientRequest};
use crate::context::{Context, Length};
use crate::custom_resource::CustomResource;
use crate::error::LoadError;
use crate::flags::rate;
use crate::outcome::Run;
use crate::shell_command;
use crate::time::now;
use crate::workspace::Workspace;
use fault::Fault;
use journal::Journal;
use minimums::Minimums;
use reader::ReadingClient;
use reconnecting::{ReconnectingConnection, SelectedObjects};
use resource::Resource;
use roles::Role;
pub use simulated::{HistoryVerdict, SimulatedClients};
use watcher::{Follower, RunPhase, Way};
use writer::{KnownObjects, Writer};

/// The length of a run when no flag says otherwise.
pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 1,
    duration: Duration::from_secs(30),
    warm_up: Duration::ZERO,
};
/// Maximum number of recorded events, of all watchers together. They take a gigabyte.
const EVENTS_MAX: f64 = 2e7;
/// There are at most so many objects. Every run has others than the run before.
const OBJECTS_MAX: u32 = 10_000;

/// Check the promises of the watch protocol: writers, watchers and readers write down what they are
/// told, and the whole is compared with what must hold. Each violation is shown with its history.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct VerifyFlags {
    /// Number of watchers. They are of 16 kinds, by selectors and ways to come back, and twice as many have all of
    /// these in JSON and in protobuf.
    #[arg(long, value_name = "N", default_value_t = 32,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    watchers: u32,

    /// Number of clients that write, and meet each other.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    writers: u32,

    /// Number of clients that list.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(0..=1_000))]
    readers: u32,

    /// Number of objects that are written. The fewer, the more often writers meet.
    #[arg(long, value_name = "N", default_value_t = 40,
          value_parser = clap::value_parser!(u32).range(i64::from(roles::OBJECTS_MIN)..=i64::from(OBJECTS_MAX)))]
    objects: u32,

    /// Writes a second.
    #[arg(long, value_name = "RATE", default_value = "100", value_parser = rate)]
    rate: f64,

    /// Let all watchers come back in one way.
    #[arg(long, value_name = "WAY")]
    watchers_only: Option<Way>,

    /// Write objects of a custom resource instead of secrets, such as widgets.v1.example.com. Its objects must allow
    /// a string "type", which must be among the selectable fields.
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) resource: Option<CustomResource>,

    /// Run a command while all goes on, such as "at=10s cmd=systemctl restart ringwatch". May be given
    /// more than once.
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
}

/// Runs the scenario: writers, watchers and readers at once, then the checks of what they saw.
pub(crate) async fn run(context: &Context, flags: &VerifyFlags) -> Result<Vec<Run>, LoadError> {
    let seconds = context.length.duration.as_secs_f64();
    if seconds * flags.rate * f64::from(flags.watchers) > EVENTS_MAX {
        let why =
            "so many events are too many to write down; lower --duration, --rate or --watchers";
        return Err(LoadError::WrongFlags(why.to_owned()));
    }
    let resource = match &flags.resource {
        Some(name) => Resource::custom(&context.client, name).await?,
        None => Resource::secrets(),
    };
    let mut runs = Vec::new();
    for (what, number) in context.length.names().zip(1..) {
        clear(context, &resource).await?;
        let (client, workspace) = (&context.client, &context.workspace);
        let length = context.length.duration;
        let stage = RunStage::new(client, workspace, resource.clone(), flags, length, number);
        let gauges = stage.journal.gauges();
        let (played, seen) = context.observe(&what, 0, gauges, stage.play()).await;
        let roles = stage.roles();
        let mut judged = stage.judge(played);
        judged.warnings.into_iter().for_each(|it| context.warn(it));
        let minimums = Minimums {
            seconds,
            flags,
            roles: &roles,
            encodings: resource.encodings,
        };
        let few = minimums.check(&judged.history, &judged.checked.tallies);
        judged.checked.violations.extend(few);
        runs.push(Run {
            seconds: seen.elapsed.as_secs_f64(),
            series: seen.series,
            ..report::report(&judged.history, &judged.checked, judged.trouble)
        });
    }
    Ok(runs)
}

/// Deletes the objects of the run before.
async fn clear(context: &Context, resource: &Resource) -> Result<(), LoadError> {
    let collection = resource.in_namespace(context.workspace.name());
    let answer = context
        .connect()
        .await?
        .request(ClientRequest::delete(collection))
        .await;
    let answer = answer.and_then(|answer| answer.success());
    answer.map_err(LoadError::request("delete the objects of the run before"))?;
    Ok(())
}

/// The part that all clients of a run share.
struct RunStage<'a> {
    client: &'a Client,
    flags: &'a VerifyFlags,
    duration: Duration,
    objects: KnownObjects,
    journal: Journal,
    scope: SelectedObjects,
}

/// The outcome of a run whose history is not checked yet.
struct PlayedRun {
    /// The faults that could not be injected, and the reasons why watchers have not seen everything.
    trouble: Vec<String>,
    /// The place of the list that shows the final state.
    final_read: Option<usize>,
    /// The errors of reads that failed.
    failed_reads: Vec<ClientError>,
}

/// A run with its verdict.
struct JudgedRun {
    history: History,
    checked: CheckResult,
    trouble: Vec<String>,
    /// Reasons to doubt the figures.
    warnings: Vec<String>,
}

impl<'a> RunStage<'a> {
    fn new(
        client: &'a Client,
        workspace: &Workspace,
        resource: Resource,
        flags: &'a VerifyFlags,
        duration: Duration,
        number: u32,
    ) -> Self {
        let first = number * OBJECTS_MAX;
        let keys = first..first + flags.objects;
        let objects = KnownObjects::new(resource, workspace.name(), keys.clone(), roles::GROUPS);
        Self {
            client,
            flags,
            duration,
            scope: SelectedObjects::namespace(&objects.collection),
            objects,
            journal: Journal::new(keys),
        }
    }

    /// Has all clients do their part until the time is over and all watchers have had the time to see everything.
    async fn play(&self) -> PlayedRun {
        let (phase, phases) = watch::channel(RunPhase::Running);
        let followers = self.followers(&phases);
        let followers = join_all(followers.into_iter().map(Follower::run));
        let conducting = async {
            let (mut trouble, failed_reads) = self.act().await;
            // Nobody is left to tell only if the followers have ended.
            let _ = phase.send(RunPhase::Settling);
            let settled = settle::settle(&self.journal, self.connection(), &self.scope).await;
            trouble.extend(settled.trouble);
            let _ = phase.send(RunPhase::Over);
            PlayedRun {
                trouble,
                final_read: settled.place,
                failed_reads,
            }
        };
        join(conducting, followers).await.0
    }

    /// Checks what the clients saw.
    fn judge(self, played: PlayedRun) -> JudgedRun {
        let mut history = self.journal.finish();
        history.final_read = played.final_read;
        let mut warnings = report::warnings(&history);
        if let Some(last) = played.failed_reads.last() {
            let count = played.failed_reads.len();
            warnings.push(format!("{count} reads failed, the last: {last}"));
        }
        let checked = check(&history);
        warnings.extend(report::undecided(&checked));
        JudgedRun {
            checked,
            history,
            trouble: played.trouble,
            warnings,
        }
    }

    /// Has all write and read and injects the faults, once all watch. Returns what went wrong with the faults, and the
    /// errors of reads.
    async fn act(&self) -> (Vec<String>, Vec<ClientError>) {
        if let Err(trouble) = settle::all_watch(&self.journal).await {
            return (vec![trouble], Vec::new());
        }
        let begun = now();
        let until = begun + self.duration;
        let count = f64::from(self.flags.writers);
        let pause = Duration::from_secs_f64(count / self.flags.rate);
        let writers = (0..self.flags.writers).map(|place| self.writer(place).run(pause, until));
        let selectors = roles::selectors(&self.objects.keys);
        let readers = (0..self.flags.readers).map(|_| self.reader(&selectors).run(until));
        let faults = self.flags.faults.iter().map(|fault| async move {
            tokio::time::sleep_until(begun + fault.at).await;
            shell_command::run(&fault.command).await
        });
        let all = join3(join_all(writers), join_all(readers), join_all(faults));
        let (_, failed, faults) = all.await;
        let trouble = faults.into_iter().filter_map(Result::err).collect();
        (trouble, failed.into_iter().flatten().collect())
    }

    fn connection(&self) -> ReconnectingConnection {
        ReconnectingConnection::new(self.client.clone())
    }

    fn writer(&self, place: u32) -> Writer<'_> {
        let encodings = self.objects.resource.encodings;
        Writer {
            objects: &self.objects,
            journal: &self.journal,
            connection: self.connection(),
            encoding: encodings[place as usize % encodings.len()],
            random: StdRng::from_os_rng(),
        }
    }

    fn reader<'b>(&'b self, selectors: &'b [super::history::Selector]) -> ReadingClient<'b> {
        ReadingClient {
            scope: &self.scope,
            selectors,
            encodings: self.objects.resource.encodings,
            keys: self.objects.keys.clone(),
            journal: &self.journal,
            connection: self.connection(),
            random: StdRng::from_os_rng(),
        }
    }

    fn roles(&self) -> Vec<Role> {
        roles::roles(
            self.flags.watchers as usize,
            &self.objects.keys,
            self.objects.resource.encodings,
            self.flags.watchers_only,
        )
    }

    fn followers(&self, phases: &watch::Receiver<RunPhase>) -> Vec<Follower<'_>> {
        let follower = |role: Role| Follower {
            place: self
                .journal
                .watcher(role.name.clone(), role.selector.clone()),
            plan: role.plan,
            scope: if role.is_cluster {
                SelectedObjects::cluster(&self.objects.resource, &self.objects.run)
            } else {
                self.scope.clone()
            },
            selector: role.selector,
            encoding: role.encoding,
            client: self.client.clone(),
            connection: self.connection(),
            journal: &self.journal,
            phase: phases.clone(),
            random: StdRng::from_os_rng(),
        };
        self.roles().into_iter().map(follower).collect()
    }
}
