//! Builds the filters before the API of a server.

use std::sync::Arc;

use ringwatch_apiserver::endpoints::Api;
use ringwatch_apiserver::filters::{Filters, Limits};
use ringwatch_authentication::Authenticator;

use super::{Assembly, Observers};
use crate::build::enabled::Enabled;
use crate::build::limits::outer_filters;
use crate::build::resources::Resources;
use crate::build::server_paths::ServerPaths;

impl Assembly<'_> {
    /// Builds the filters, with the handlers behind them.
    pub(super) fn filters(
        &self,
        (paths, api): (ServerPaths, Arc<Api>),
        observers: &Observers,
        resources: &Resources,
        enabled: &Enabled,
        (authenticator, limits): (Arc<Authenticator>, Limits),
    ) -> Arc<Filters> {
        Arc::new(Filters {
            outer: outer_filters(&self.flags.serving, &self.steps.drain),
            authenticator,
            start: enabled.hooks.before_the_api(),
            tracer: observers.tracer.clone(),
            auditor: observers.auditor.clone(),
            impersonation: resources.impersonation.clone(),
            authorizer: Arc::clone(&resources.authorizer),
            limits,
            end_of_watches: self.steps.end_of_watches.clone(),
            own: Arc::new(paths),
            api,
            clock: self.clock.clone(),
        })
    }
}
