//! The limits on concurrent requests, and the outermost filters, built from flags.

use std::sync::Arc;

use ringwatch_endpoints::Metrics;
use ringwatch_filters::{Drain, InFlight, LargeWork, Limits, Outer, TransportSecurity};
use ringwatch_flowcontrol::{Fairness, UserWatches};
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_registry::object_counts::ObjectCounts;

use crate::config::flags::{LimitFlags, ServingFlags};

/// Builds the limits on requests. With priority and fairness, which has its own limits, requests in flight are only
/// counted.
pub(crate) fn request_limits(
    flags: &LimitFlags,
    fairness: Option<&Arc<Fairness>>,
    counts: &ObjectCounts,
    large_work: LargeWork,
    metrics: &Metrics,
) -> Limits {
    let most = |most| if fairness.is_some() { 0 } else { most };
    let in_flight = InFlight::new(
        most(flags.max_requests_inflight),
        most(flags.max_mutating_requests_inflight),
        flags.request_timeout,
    );
    Limits {
        in_flight,
        fairness: fairness.cloned(),
        sizes: counts.clone(),
        watches: UserWatches::new(flags.max_watches_per_user),
        running: RunningRequests::default(),
        large_work,
        request_timeout: flags.request_timeout,
        metrics: metrics.clone(),
    }
}

/// Builds the outermost filters of a server that drains so.
pub(crate) fn outer_filters(flags: &ServingFlags, drain: &Drain) -> Outer {
    Outer {
        origins: flags.cors_allowed_origins.clone(),
        transport_security: TransportSecurity::header(&flags.strict_transport_security_directives),
        goaway: flags.goaway_chance,
        drain: drain.clone(),
    }
}
