//! The answers to requests for the paths below `/debug`.

use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response};
use ringwatch::clock::Clock;
use ringwatch_http::{RequestBody, ResponseBody};

use super::log_level::{self, LogLevel};
use super::page;
use super::process_controls::ProcessControls;
use super::profiles::{self, Profiles};
use super::state::DebugState;

/// The beginning of all paths here.
const FOLDER: &str = "/debug/";
/// The paths above all paths here.
pub(crate) const ROOTS: [&str; 3] = [page::PAGE, profiles::ROOT, log_level::ROOT];

/// Returns true for these paths and those below them.
pub(crate) fn is_own(path: &str) -> bool {
    let below = ROOTS.iter().find_map(|root| path.strip_prefix(root));
    below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// The answers to requests below `/debug`.
#[derive(Debug)]
pub(crate) struct DebugPaths {
    state: DebugState,
    process: Option<ProcessPaths>,
}

/// Profiles of a process and its log level.
#[derive(Debug)]
struct ProcessPaths {
    profiles: Profiles,
    log_level: LogLevel,
}

impl DebugPaths {
    /// Returns the paths of a server and its process.
    pub(crate) fn new(
        state: DebugState,
        profiling: bool,
        controls: Option<&Arc<dyn ProcessControls>>,
        clock: &Clock,
    ) -> Self {
        Self {
            state,
            process: ProcessPaths::new(profiling, controls, clock),
        }
    }

    /// Answers a request; `None` for another path.
    pub(crate) async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        if !path.starts_with(FOLDER) {
            return None;
        }
        // The page is the same for everybody. Who may read what it shows, by RBAC, is said of `get` alone.
        if let Some(answer) = page::answer(method, path, headers) {
            return Some(answer);
        }
        if method == Method::GET
            && let Some(answer) = self.state.answer(path, query).await
        {
            return Some(answer);
        }
        self.process.as_ref()?.answer(method, path, query).await
    }

    /// Takes a PUT if it is for one of these paths; else gives it back.
    pub(crate) async fn put(
        &self,
        request: Request<RequestBody>,
        path: &str,
    ) -> Result<Response<ResponseBody>, Request<RequestBody>> {
        match &self.process {
            Some(process) => process.put(request, path).await,
            None => Err(request),
        }
    }
}

impl ProcessPaths {
    /// Returns the paths of a process; `None` if they are switched off, or the program keeps its process to itself.
    fn new(
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

    async fn answer(
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

    async fn put(
        &self,
        request: Request<RequestBody>,
        path: &str,
    ) -> Result<Response<ResponseBody>, Request<RequestBody>> {
        match log_level::Flag::at(path) {
            Some(flag) => Ok(self.log_level.put(flag, request.into_body()).await),
            None => Err(request),
        }
    }
}

#[cfg(test)]
mod tests;
