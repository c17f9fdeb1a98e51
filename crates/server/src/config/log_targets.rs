//! The targets of log lines whose number clients choose.

/// The targets of the log lines that requests of clients cause, so that clients choose how many there are.
pub const CAUSED_BY_CLIENTS: [&str; 5] = [
    ringwatch_endpoints::LOG_TARGET,
    ringwatch_filters::LOG_TARGET,
    ringwatch_authentication::LOG_TARGET,
    ringwatch_authorization::LOG_TARGET,
    ringwatch_http::LOG_TARGET,
];
