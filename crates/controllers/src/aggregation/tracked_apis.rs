//! The APIs that other servers serve, what is known of each, and when it is checked next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Instant;
use ringwatch_endpoints::AggregatedApi;
use ringwatch_endpoints::AggregatedServer;
use ringwatch_resources::Availability;
use serde_json::Value;

use super::inquiry::DiscoveredApi;

/// Interval of checks of an available server, as in kube-apiserver, and the longest interval of checks of an
/// unavailable one.
const PERIOD: Duration = Duration::from_secs(30);

/// Delay until an unavailable server is checked again; it doubles with each failure.
const RETRY_PERIOD: Duration = Duration::from_millis(250);

/// Minimum time between two checks of a server, whatever changes.
const PERIOD_MIN: Duration = Duration::from_millis(100);

/// Minimum time between two checks of a server because of what its APIService tells: two servers of a cluster that find
/// different things would else write over each other's conditions as fast as they can.
const TOLD_PERIOD_MIN: Duration = Duration::from_secs(1);

/// An API, and the state of its checks.
#[derive(Debug)]
pub(super) struct TrackedApi {
    server: Arc<AggregatedServer>,
    /// The instant at which the next check is due.
    due: Instant,
    /// The instant at which the last check began; `None` before the first.
    begun: Option<Instant>,
    /// True while a check is under way.
    is_checked: bool,
    /// True if something has changed since that check began.
    has_changed: bool,
    /// Number of consecutive failed checks.
    failures: u32,
    /// The finding of the last check.
    found: Option<Availability>,
    /// The instant at which a check was last scheduled because of what the APIService tells.
    told: Option<Instant>,
}

/// All APIs by the name of their APIServices.
#[derive(Debug, Default)]
pub(super) struct TrackedApis {
    apis: BTreeMap<String, TrackedApi>,
    /// True if what clients see has changed.
    has_changed: bool,
}

impl TrackedApis {
    /// Returns true if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.apis.is_empty()
    }

    /// Keeps the APIs whose names `is_there` accepts, and forgets checks under way.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let before = self.apis.len();
        self.apis.retain(|name, _| is_there(name));
        self.has_changed |= self.apis.len() != before;
        for api in self.apis.values_mut() {
            api.is_checked = false;
        }
    }

    /// Removes an API.
    pub(super) fn remove(&mut self, name: &str) {
        self.has_changed |= self.apis.remove(name).is_some();
    }

    /// Adds or changes an API by its APIService.
    pub(super) fn define(
        &mut self,
        api: AggregatedApi,
        now: Instant,
        tls: impl FnOnce(&AggregatedApi) -> Result<Arc<rustls::ClientConfig>, String>,
    ) {
        let Some(tracked) = self.apis.get_mut(&api.name) else {
            let name = api.name.clone();
            let tracked = TrackedApi::new(AggregatedServer::new(tls(&api), api), now);
            self.apis.insert(name, tracked);
            self.has_changed = true;
            return;
        };
        if tracked.server.api == api {
            return;
        }
        self.has_changed = true;
        let same = tracked.server.api.is_reached_like(&api);
        let server = Arc::make_mut(&mut tracked.server);
        if !same {
            server.tls = tls(&api);
            server.is_stale = true;
        }
        server.api = api;
        if !same {
            tracked.check_soon(now);
        }
    }

    /// Schedules a check of an API whose APIService does not tell what the last one found, since somebody else has
    /// written its status: at once, as kube-apiserver does, but not again and again.
    pub(super) fn check_told(&mut self, name: &str, object: &Value, now: Instant) {
        let Some(tracked) = self.apis.get_mut(name) else {
            return;
        };
        let is_told = |found: &Availability| found.is_told_in(object);
        if tracked.is_checked || tracked.found.as_ref().is_none_or(is_told) {
            return;
        }
        let earliest = tracked.told.map_or(now, |told| told + TOLD_PERIOD_MIN);
        let earliest = earliest.max(now);
        if earliest < tracked.due {
            tracked.due = earliest;
            tracked.told = Some(earliest);
        }
    }

    /// Schedules a check of the APIs of a service, whose endpoints may have changed.
    pub(super) fn service_changed(&mut self, namespace: &str, name: &str, now: Instant) {
        for tracked in self.apis.values_mut() {
            let service = &tracked.server.api.service;
            if service.namespace == namespace && service.name == name {
                tracked.check_soon(now);
            }
        }
    }

    /// Returns true if the service of an API is in this namespace.
    pub(super) fn is_in(&self, namespace: &str) -> bool {
        let mut apis = self.apis.values();
        apis.any(|it| it.server.api.service.namespace == namespace)
    }

    /// Returns the APIs whose check is due and does not run, each with the time since when it is due.
    pub(super) fn due(&self, now: Instant) -> impl Iterator<Item = (&str, Instant)> {
        let waiting = self.apis.iter().filter(|(_, it)| !it.is_checked);
        let due = waiting.filter(move |(_, it)| it.due <= now);
        due.map(|(name, it)| (name.as_str(), it.due))
    }

    /// Returns the API whose check is overdue the longest, which counts as being checked from now on.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Arc<AggregatedServer>> {
        let waiting = self.apis.values_mut().filter(|it| !it.is_checked);
        let first = waiting.min_by_key(|it| it.due).filter(|it| it.due <= now)?;
        first.is_checked = true;
        first.has_changed = false;
        first.begun = Some(now);
        Some(Arc::clone(&first.server))
    }

    /// Returns when the next check is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.apis.values().filter(|it| !it.is_checked);
        waiting.map(|it| it.due).min()
    }

    /// Ends a check of an API, with what it found and what its server has, if it answers. Returns false if the API is
    /// reached elsewhere by now, so that what was found does not count.
    pub(super) fn finish(
        &mut self,
        checked: &AggregatedServer,
        found: &Availability,
        discovered: Option<DiscoveredApi>,
        now: Instant,
    ) -> bool {
        let Some(tracked) = self.apis.get_mut(&checked.api.name) else {
            return false;
        };
        tracked.is_checked = false;
        if !tracked.server.api.is_reached_like(&checked.api) {
            tracked.check_soon(now);
            return false;
        }
        tracked.found = Some(found.clone());
        tracked.failures = if discovered.is_some() {
            0
        } else {
            tracked.failures.saturating_add(1)
        };
        if tracked.has_changed {
            tracked.check_soon(now);
        } else {
            tracked.due = now + tracked.pause();
        }
        self.has_changed |= tracked.take(discovered);
        true
    }

    /// Returns all APIs if what clients see has changed since the last call.
    pub(super) fn changed(&mut self) -> Option<Vec<Arc<AggregatedServer>>> {
        let all = self.apis.values().map(|it| Arc::clone(&it.server));
        std::mem::take(&mut self.has_changed).then(|| all.collect())
    }
}

impl TrackedApi {
    fn new(server: AggregatedServer, now: Instant) -> Self {
        Self {
            server: Arc::new(server),
            due: now,
            begun: None,
            is_checked: false,
            has_changed: false,
            failures: 0,
            found: None,
            told: None,
        }
    }

    fn check_soon(&mut self, now: Instant) {
        let earliest = self.begun.map(|begun| begun + PERIOD_MIN);
        self.due = earliest.map_or(now, |earliest| earliest.max(now));
        self.has_changed = true;
        self.failures = 0;
    }

    /// Returns the time until the next check.
    fn pause(&self) -> Duration {
        match self.failures.checked_sub(1) {
            None => PERIOD,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                RETRY_PERIOD.saturating_mul(factor).min(PERIOD)
            }
        }
    }

    /// Stores a server's resources; returns true if they changed. Keeps the last ones while the server does not answer.
    fn take(&mut self, discovered: Option<DiscoveredApi>) -> bool {
        let tracked = &self.server;
        let same = match &discovered {
            None => tracked.is_stale,
            Some(discovered) => {
                !tracked.is_stale
                    && *tracked.resources == discovered.resources
                    && tracked.openapi == discovered.openapi
            }
        };
        if same {
            return false;
        }
        let server = Arc::make_mut(&mut self.server);
        server.is_stale = discovered.is_none();
        if let Some(discovered) = discovered {
            server.resources = Arc::new(discovered.resources);
            server.openapi = discovered.openapi;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::GroupVersion;
    use ringwatch_endpoints::ServiceReference;
    use serde_json::json;

    use super::*;

    fn api(port: u16) -> AggregatedApi {
        AggregatedApi {
            name: "v1.example.com".to_owned(),
            group_version: GroupVersion::new("example.com", "v1"),
            group_priority: 1,
            version_priority: 1,
            service: ServiceReference {
                namespace: "ns".to_owned(),
                name: "api".to_owned(),
                port,
            },
            ca_bundle: None,
            insecure: false,
            available: false,
        }
    }

    fn discovered() -> Option<DiscoveredApi> {
        Some(DiscoveredApi {
            resources: Vec::new(),
            openapi: Some("/openapi/v3/x".to_owned()),
        })
    }

    fn found() -> Availability {
        Availability::no("ServiceNotFound", "none".to_owned())
    }

    fn define(apis: &mut TrackedApis, api: AggregatedApi, now: Instant) {
        apis.define(api, now, |_| Err(String::new()));
    }

    /// Looks at the API, which takes no time. How long it is left alone then.
    fn look(apis: &mut TrackedApis, now: Instant, discovered: Option<DiscoveredApi>) -> Duration {
        let server = apis.begin(now).expect("due");
        assert!(apis.begin(now).is_none(), "it is looked at already");
        assert!(apis.finish(&server, &found(), discovered, now));
        apis.next_due().expect("one") - now
    }

    #[test]
    fn a_server_that_fails_is_asked_less_and_less_often() {
        let (mut apis, mut now) = (TrackedApis::default(), Clock::real().now());
        define(&mut apis, api(1), now);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let pause = look(&mut apis, now, None);
            pauses.push(pause.as_millis());
            now += pause;
        }
        let expected = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(pauses, expected);
        assert_eq!(look(&mut apis, now, discovered()), PERIOD);
        now += PERIOD;
        assert_eq!(look(&mut apis, now, None), RETRY_PERIOD);
    }

    #[test]
    fn what_changes_is_looked_at_soon_but_not_all_the_time() {
        let (mut apis, now) = (TrackedApis::default(), Clock::real().now());
        define(&mut apis, api(1), now);
        look(&mut apis, now, discovered());
        apis.service_changed("ns", "other", now);
        assert_eq!(apis.next_due(), Some(now + PERIOD));
        apis.service_changed("ns", "api", now);
        assert_eq!(apis.next_due(), Some(now + PERIOD_MIN));
        let later = now + PERIOD_MIN;
        // A change during the look counts after it, and what was found meanwhile is of another service.
        let server = apis.begin(later).expect("due");
        define(&mut apis, api(2), later);
        assert!(!apis.finish(&server, &found(), discovered(), later));
        assert_eq!(apis.next_due(), Some(later + PERIOD_MIN));
    }

    #[test]
    fn a_status_that_somebody_else_wrote_is_looked_at_soon() {
        let (mut apis, mut now) = (TrackedApis::default(), Clock::real().now());
        let name = api(1).name;
        define(&mut apis, api(1), now);
        apis.check_told(&name, &json!({}), now);
        look(&mut apis, now, discovered());
        let told = json!({"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": "none"});
        let mut other = told.clone();
        other["status"] = json!("True");
        for (conditions, next) in [
            (json!([{"type": "A"}, told]), PERIOD),
            (json!([other]), Duration::ZERO),
        ] {
            apis.check_told(&name, &json!({"status": {"conditions": conditions}}), now);
            assert_eq!(apis.next_due(), Some(now + next));
        }
        // Who writes over it again and again is answered once in a while.
        for _ in 0..2 {
            look(&mut apis, now, discovered());
            for _ in 0..2 {
                apis.check_told(&name, &json!({"status": {}}), now);
                assert_eq!(apis.next_due(), Some(now + TOLD_PERIOD_MIN));
            }
            now += TOLD_PERIOD_MIN;
        }
    }

    #[test]
    fn clients_see_only_what_has_changed() {
        let (mut apis, now) = (TrackedApis::default(), Clock::real().now());
        define(&mut apis, api(1), now);
        let seen = apis.changed().expect("it is new");
        assert!(seen[0].is_stale && !seen[0].api.available);
        look(&mut apis, now, discovered());
        let seen = apis.changed().expect("it says what it has");
        assert!(!seen[0].is_stale);
        look(&mut apis, now + PERIOD, discovered());
        let available = AggregatedApi {
            available: true,
            ..api(1)
        };
        assert!(apis.changed().is_none(), "it says the same");
        define(&mut apis, available, now);
        let seen = apis.changed().expect("it is available");
        assert!(!seen[0].is_stale && seen[0].openapi.is_some());
        look(&mut apis, now + 2 * PERIOD, None);
        let seen = apis.changed().expect("it is gone");
        assert!(seen[0].is_stale && seen[0].openapi.is_some());
        apis.remove("v1.example.com");
        assert!(apis.changed().expect("it is not served").is_empty());
    }
}
