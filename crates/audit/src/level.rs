//! The types of `audit.k8s.io/v1` for levels, which say how much is recorded of a request, and for the stages at which
//! it is recorded.

use serde::Serialize;

/// The amount of a request that is recorded. Each level has all that those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// The user, the object's name and the outcome.
    Metadata,
    /// The object or patch of the request as well.
    Request,
    /// The object of the response as well.
    RequestResponse,
}

impl Level {
    /// All levels, in the order in which errors name them.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    /// Returns the name that policies and events have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// A stage of a request at which an event is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Stage {
    /// The request has come, and its user is known.
    #[default]
    RequestReceived,
    /// The head of the response is sent, and its body will take longer: of watches and other long-running requests.
    ResponseStarted,
    /// The response is sent.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    /// All stages, in the order in which errors name them.
    pub const ALL: [Self; 4] = [
        Self::RequestReceived,
        Self::ResponseStarted,
        Self::ResponseComplete,
        Self::Panic,
    ];

    /// Returns the name that policies and events have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Returns true if the stage is in the set.
    #[must_use]
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Returns the stages that are in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<T: IntoIterator<Item = Stage>>(stages: T) -> Self {
        Self(
            stages
                .into_iter()
                .fold(0, |set, stage| set | 1 << stage as u8),
        )
    }
}
