//! The scenarios, one file each. Each sets up its objects in the workspace, is measured in several runs, and checks that
//! everything came.

pub(crate) mod burst;
mod delivery;
pub(crate) mod fanout;
mod floor_runs;
pub(crate) mod get;
mod growth;
pub(crate) mod idle;
pub(crate) mod list;
mod parameters;
mod phases;
mod receivers;
pub(crate) mod restart;
pub(crate) mod resume;
pub(crate) mod selective;
pub(crate) mod slow;
pub(crate) mod storm;
pub(crate) mod write;

use super::context::Length;
use super::flags::Scenario;
use super::verify;

/// How long a scenario takes when nobody says otherwise: about a minute in all.
pub(crate) fn default_length(scenario: &Scenario) -> Length {
    match scenario {
        Scenario::Idle(_) => idle::DEFAULT_LENGTH,
        Scenario::Resume(_) => resume::DEFAULT_LENGTH,
        Scenario::Storm(_) => storm::DEFAULT_LENGTH,
        Scenario::Restart(_) => restart::DEFAULT_LENGTH,
        Scenario::Verify(_) => verify::DEFAULT_LENGTH,
        _ => delivery::DEFAULT_LENGTH,
    }
}
