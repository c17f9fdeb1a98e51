//! A finding: a sentence, how bad it is, and where more is said about it.

use serde::{Deserialize, Serialize};

use super::thresholds::Severity;

/// Something that an operator should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The severity of the finding.
    pub level: Severity,
    /// The sentence that says it, without a full stop.
    pub text: String,
    /// The part of the state that has more about it.
    pub about: About,
}

/// The part of a state that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// A type, by its name.
    Type(String),
    /// A member of the state, by its name.
    Section(Section),
}

/// A member of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Section {
    /// The whole server: its feed, its store and its certificates.
    Server,
    /// [`super::ServerState::memory`].
    Memory,
    /// [`super::ServerState::fairness`].
    Fairness,
    /// [`super::ServerState::requests`].
    Requests,
    /// [`super::ServerState::clients`].
    Clients,
    /// [`super::ServerState::webhooks`].
    Webhooks,
}
