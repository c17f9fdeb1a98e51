//! What is measured, one file a scenario. Each sets up what it needs in the workspace, is measured
//! in several runs, and checks that everything came.

mod delivery;
pub(crate) mod fanout;

use super::context::Length;
use super::flags::Scenario;

/// How long a scenario takes when nobody says otherwise: less than a minute in all.
pub(crate) fn default_length(scenario: &Scenario) -> Length {
    match scenario {
        Scenario::Fanout(_) => delivery::DEFAULT_LENGTH,
    }
}
