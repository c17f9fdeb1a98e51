//! The paths below `/debug`: profiles of the process and its log level, for authorized users.
//!
//! They follow `apiserver/pkg/server/routes/profiling.go` and `flags.go` of Kubernetes 1.36, and like these are served
//! unless `--profiling=false`.

mod log_level;
mod profiles;

use std::sync::Arc;

use http::{Method, Request, Response};
use ringwatch::clock::Clock;
use ringwatch_apiserver::endpoints::{RequestBody, ResponseBody};

use self::log_level::LogLevel;
use self::profiles::Profiles;
use super::process_controls::ProcessControls;

/// The path above all paths here.
pub(super) const ROOT: &str = "/debug";
/// The beginning of all paths here.
pub(super) const FOLDER: &str = "/debug/";

/// The answers to requests below `/debug`.
#[derive(Debug)]
pub(super) struct DebugPaths {
    profiles: Profiles,
    log_level: LogLevel,
}

impl DebugPaths {
    /// Returns the paths of a process; `None` if they are switched off, or the program keeps its process to itself.
    pub(super) fn new(
        profiling: bool,
        controls: Option<&Arc<dyn ProcessControls>>,
        clock: &Clock,
    ) -> Option<Self> {
        let controls = controls.filter(|_| profiling)?;
        Some(Self {
            profiles: Profiles::new(Arc::clone(controls), clock.clone()),
            log_level: LogLevel::new(Arc::clone(controls)),
        })
    }

    /// Answers a request; `None` for another path.
    pub(super) async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
    ) -> Option<Response<ResponseBody>> {
        if let Some(name) = profiles::name(path) {
            return self.profiles.answer(method, name, query).await;
        }
        self.log_level.answer(path)
    }
}

/// Takes a PUT if it is for one of these paths; else gives it back.
pub(super) async fn put(
    paths: Option<&DebugPaths>,
    request: Request<RequestBody>,
    path: &str,
) -> Result<Response<ResponseBody>, Request<RequestBody>> {
    match (paths, log_level::Flag::at(path)) {
        (Some(paths), Some(flag)) => Ok(paths.log_level.put(flag, request.into_body()).await),
        _ => Err(request),
    }
}

#[cfg(test)]
mod tests;
