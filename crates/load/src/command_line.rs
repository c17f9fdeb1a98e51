//! The command line of `ringwatch load`: its subcommands and all flags.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::compare;
use crate::context::Length;
use crate::custom_resource::CustomResource;
use crate::flags::RunFlags;
use crate::scenario::{
    DEFAULT_LENGTH, burst, fanout, get, idle, list, renew, restart, resume, selective, slow, storm,
    write,
};
use crate::target::TargetFlags;
use crate::verify;

/// Load a Kubernetes API server, and check that every watcher gets every event once and in order.
///
/// Everything happens in a namespace of its own, which is deleted at the end. Figures are the median
/// and the range of several runs. A run that lost or repeated an event scores zero, and the exit code
/// is 1.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = true)]
pub struct LoadFlags {
    #[command(flatten)]
    pub(crate) target: TargetFlags,

    #[command(flatten)]
    pub(crate) run: RunFlags,

    #[command(subcommand)]
    pub(crate) action: Action,
}

/// The subcommand: a scenario, or the comparison or report of outcomes.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Action {
    #[command(flatten)]
    Scenario(Scenario),
    Compare(compare::CompareFlags),
    Show(compare::ShowFlags),
}

/// A scenario.
#[derive(Clone, Debug, Serialize, Subcommand)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scenario {
    Fanout(fanout::FanoutFlags),
    Burst(burst::BurstFlags),
    Idle(idle::IdleFlags),
    Write(write::WriteScenarioFlags),
    List(list::ListFlags),
    Get(get::GetFlags),
    Renew(renew::RenewFlags),
    Selective(selective::SelectiveFlags),
    Slow(slow::SlowFlags),
    Resume(resume::ResumeFlags),
    Storm(storm::StormFlags),
    Restart(restart::RestartFlags),
    Verify(verify::VerifyFlags),
}

impl Scenario {
    /// Returns its name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fanout(_) => "fanout",
            Self::Burst(_) => "burst",
            Self::Idle(_) => "idle",
            Self::Write(_) => "write",
            Self::List(_) => "list",
            Self::Get(_) => "get",
            Self::Renew(_) => "renew",
            Self::Selective(_) => "selective",
            Self::Slow(_) => "slow",
            Self::Resume(_) => "resume",
            Self::Storm(_) => "storm",
            Self::Restart(_) => "restart",
            Self::Verify(_) => "verify",
        }
    }

    /// Returns the custom resource of which it writes objects, if any.
    pub(crate) fn custom_resource(&self) -> Option<&CustomResource> {
        match self {
            Self::Verify(flags) => flags.resource.as_ref(),
            _ => None,
        }
    }

    /// Returns how long it takes when no flag says otherwise: about a minute in all.
    pub(crate) fn default_length(&self) -> Length {
        match self {
            Self::Idle(_) => idle::DEFAULT_LENGTH,
            Self::Resume(_) => resume::DEFAULT_LENGTH,
            Self::Storm(_) => storm::DEFAULT_LENGTH,
            Self::Restart(_) => restart::DEFAULT_LENGTH,
            Self::Verify(_) => verify::DEFAULT_LENGTH,
            _ => DEFAULT_LENGTH,
        }
    }
}
