//! Runs a scenario from the command line to its outcome. Whatever happens in between, a failure, ctrl-C or the time
//! limit, the namespace is deleted.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::client::Client;
use super::command_line::{Action, LoadFlags, Scenario};
use super::compare;
use super::context::{Context, Length, server_version};
use super::error::LoadError;
use super::outcome::{Run, ScenarioReport};
use super::scenario::{
    burst, fanout, get, idle, list, renew, restart, resume, selective, slow, storm, write,
};
use super::show;
use super::target::LoadTarget;
use super::time::timestamp;
use super::verify;
use super::workspace::Workspace;

/// Runs a scenario, or finds what was saved of earlier ones, and prints the outcome. Says whether it
/// passed.
///
/// # Errors
/// One line that says what is wrong and what to do.
pub fn run(flags: &LoadFlags) -> Result<bool, LoadError> {
    match &flags.action {
        Action::Scenario(scenario) => {
            show::check(&flags.run)?;
            raise_limit_of_open_files();
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(system("start"))?;
            let outcome = runtime.block_on(load(flags, scenario))?;
            show::outcome(&outcome, &flags.run)?;
            Ok(outcome.has_passed())
        }
        Action::Show(saved) => {
            let outcome = compare::read(&saved.outcome)?.outcome;
            show::outcome(&outcome, &flags.run)?;
            Ok(outcome.has_passed())
        }
        Action::Compare(saved) => {
            let comparison = saved.compare()?;
            show::comparison(&comparison, &flags.run)?;
            Ok(comparison.have_both_passed())
        }
    }
}

async fn load(flags: &LoadFlags, scenario: &Scenario) -> Result<ScenarioReport, LoadError> {
    let mut interruptions = Interruptions::new()?;
    let (target, others) = LoadTarget::find(&flags.target).await?;
    let client = Client::of_cluster(target, others, flags.run.http)?;
    let workspace = Workspace::new(flags.run.namespace.as_deref());
    let mut workspace = workspace.with_custom(scenario.custom_resource().cloned());
    let limit = flags.run.time_limit;
    let outcome = {
        let loading = tokio::time::timeout(
            limit,
            in_workspace(flags, scenario, &client, &mut workspace),
        );
        tokio::select! {
            outcome = loading => outcome.unwrap_or(Err(LoadError::TimeLimit(limit))),
            () = interruptions.next() => Err(LoadError::Interrupted),
        }
    };
    if workspace.may_exist() {
        let deleted = tokio::select! {
            deleted = workspace.delete(&client) => deleted,
            () = interruptions.next() => Err(LoadError::NotCleanedUp(workspace.name().to_owned())),
        };
        // What went wrong first matters more, but what is left behind must be known.
        return match (outcome, deleted) {
            (outcome, Ok(())) => outcome,
            (Ok(_), Err(error)) => Err(error),
            (Err(first), Err(second)) => {
                Err(LoadError::Both(first.to_string(), second.to_string()))
            }
        };
    }
    outcome
}

async fn in_workspace(
    flags: &LoadFlags,
    scenario: &Scenario,
    client: &Client,
    workspace: &mut Workspace,
) -> Result<ScenarioReport, LoadError> {
    let started = timestamp();
    let server = server_version(client).await?;
    workspace.create(&mut client.connect().await?).await?;
    let length = Length::new(&flags.run, scenario.default_length());
    let run_flags = flags.run.clone();
    let context = Context::new(client.clone(), run_flags, length, workspace.clone()).await;
    let runs = measure(&context, scenario).await?;
    let setting = context.setting(scenario, &server);
    let name = scenario.name();
    Ok(ScenarioReport::new(
        name,
        started,
        setting,
        runs,
        context.warnings(),
    ))
}

async fn measure(context: &Context, scenario: &Scenario) -> Result<Vec<Run>, LoadError> {
    match scenario {
        Scenario::Fanout(flags) => fanout::run(context, flags).await,
        Scenario::Burst(flags) => burst::run(context, flags).await,
        Scenario::Idle(flags) => idle::run(context, flags).await,
        Scenario::Write(flags) => write::run(context, flags).await,
        Scenario::List(flags) => list::run(context, flags).await,
        Scenario::Get(flags) => get::run(context, flags).await,
        Scenario::Renew(flags) => renew::run(context, flags).await,
        Scenario::Selective(flags) => selective::run(context, flags).await,
        Scenario::Slow(flags) => slow::run(context, flags).await,
        Scenario::Resume(flags) => resume::run(context, flags).await,
        Scenario::Storm(flags) => storm::run(context, flags).await,
        Scenario::Restart(flags) => restart::run(context, flags).await,
        Scenario::Verify(flags) => verify::run(context, flags).await,
    }
}

/// Raises the limit of open files to the hard one, since every watcher is an open file. If that fails, an error says
/// so later.
fn raise_limit_of_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> LoadError {
    move |error| LoadError::System { what, error }
}

/// Ctrl-C, and what else ends programs.
struct Interruptions([Signal; 3]);

impl Interruptions {
    fn new() -> Result<Self, LoadError> {
        let listen = |kind| signal(kind).map_err(system("listen to signals"));
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
