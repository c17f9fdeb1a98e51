//! PriorityLevelConfigurations: how many of a level's requests are served at a time.

use std::sync::Arc;

use ringwatch_apimachinery::path::{get, text};
use serde_json::Value;

/// A PriorityLevelConfiguration object, as far as it limits requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name of the object.
    pub name: Arc<str>,
    /// The uid of the object, which responses carry in a header.
    pub uid: String,
    /// The limits of the level; `None` if it is exempt.
    pub limits: Option<Limits>,
}

/// The limits of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The level's share of all seats: `nominalConcurrencyShares`.
    pub shares: u64,
    /// The part of the level's share that others may borrow, in percent.
    pub lendable_percent: u64,
    /// The most requests of one flow that may wait; 0 if the level rejects instead.
    pub queue_length: usize,
}

impl Level {
    /// Reads a stored level.
    #[must_use]
    pub fn read(level: &Value) -> Self {
        let number = |path: &str, default| {
            let path = format!("spec.limited.{path}");
            get(level, &path).and_then(Value::as_u64).unwrap_or(default)
        };
        let queues = text(level, "spec.limited.limitResponse.type") == "Queue";
        let queue_length = number("limitResponse.queuing.queueLengthLimit", 50);
        let limits = Limits {
            shares: number("nominalConcurrencyShares", 30),
            lendable_percent: number("lendablePercent", 0).min(100),
            queue_length: usize::try_from(queue_length).unwrap_or(usize::MAX),
        };
        Self {
            name: text(level, "metadata.name").into(),
            uid: text(level, "metadata.uid").to_owned(),
            limits: (text(level, "spec.type") != "Exempt").then_some(Limits {
                queue_length: if queues { limits.queue_length } else { 0 },
                ..limits
            }),
        }
    }
}
