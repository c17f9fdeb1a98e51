//! The APIs that other servers serve, and when each is checked next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Instant;
use ringwatch_apiserver::RemoteApi;
use ringwatch_apiserver::endpoints::Remote;

use super::inquiry::Told;

/// How often a server is asked that answers, as in kube-apiserver, and how often at least one that does not.
const PERIOD: Duration = Duration::from_secs(30);

/// How soon one is asked again that does not answer; each time it takes twice as long.
const RETRY_PERIOD: Duration = Duration::from_millis(250);

/// How often one is asked at most, whatever changes.
const PERIOD_MIN: Duration = Duration::from_millis(100);

/// An API.
#[derive(Debug)]
pub(super) struct Known {
    remote: Arc<Remote>,
    /// When it is looked at next.
    due: Instant,
    /// When it was looked at last.
    begun: Option<Instant>,
    /// True while a check is under way.
    is_checked: bool,
    /// True if something has changed since it began.
    has_changed: bool,
    /// How often it has failed since it was well.
    failures: u32,
}

/// All APIs by the name of their APIServices.
#[derive(Debug, Default)]
pub(super) struct KnownApis {
    apis: BTreeMap<String, Known>,
    /// True if clients should see something else than before.
    has_changed: bool,
}

impl KnownApis {
    /// Returns true if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.apis.is_empty()
    }

    /// Keeps those of these names. Nothing of the others is checked any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let before = self.apis.len();
        self.apis.retain(|name, _| is_there(name));
        self.has_changed |= self.apis.len() != before;
        for known in self.apis.values_mut() {
            known.is_checked = false;
        }
    }

    /// Removes an API.
    pub(super) fn remove(&mut self, name: &str) {
        self.has_changed |= self.apis.remove(name).is_some();
    }

    /// Adds or changes an API by its APIService.
    pub(super) fn define(
        &mut self,
        api: RemoteApi,
        now: Instant,
        tls: impl FnOnce(&RemoteApi) -> Result<Arc<rustls::ClientConfig>, String>,
    ) {
        let Some(known) = self.apis.get_mut(&api.name) else {
            let name = api.name.clone();
            let known = Known::new(Remote::new(tls(&api), api), now);
            self.apis.insert(name, known);
            self.has_changed = true;
            return;
        };
        if known.remote.api == api {
            return;
        }
        self.has_changed = true;
        let same = known.remote.api.is_reached_like(&api);
        let remote = Arc::make_mut(&mut known.remote);
        if !same {
            remote.tls = tls(&api);
            remote.is_stale = true;
        }
        remote.api = api;
        if !same {
            known.look_soon(now);
        }
    }

    /// A service may be reached elsewhere now.
    pub(super) fn service_changed(&mut self, namespace: &str, name: &str, now: Instant) {
        for known in self.apis.values_mut() {
            let service = &known.remote.api.service;
            if service.namespace == namespace && service.name == name {
                known.look_soon(now);
            }
        }
    }

    /// Returns true if the service of an API is in this namespace.
    pub(super) fn is_in(&self, namespace: &str) -> bool {
        let mut apis = self.apis.values();
        apis.any(|it| it.remote.api.service.namespace == namespace)
    }

    /// An API that is to be looked at by now.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Arc<Remote>> {
        let waiting = self.apis.values_mut().filter(|it| !it.is_checked);
        let first = waiting.min_by_key(|it| it.due).filter(|it| it.due <= now)?;
        first.is_checked = true;
        first.has_changed = false;
        first.begun = Some(now);
        Some(Arc::clone(&first.remote))
    }

    /// When the next is to be looked at.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.apis.values().filter(|it| !it.is_checked);
        waiting.map(|it| it.due).min()
    }

    /// Takes what has come out of a look at an API; `None` of what it says if it does not. Whether it is still that API.
    pub(super) fn finish(&mut self, checked: &Remote, told: Option<Told>, now: Instant) -> bool {
        let Some(known) = self.apis.get_mut(&checked.api.name) else {
            return false;
        };
        known.is_checked = false;
        if !known.remote.api.is_reached_like(&checked.api) {
            known.look_soon(now);
            return false;
        }
        known.failures = if told.is_some() {
            0
        } else {
            known.failures.saturating_add(1)
        };
        if known.has_changed {
            known.look_soon(now);
        } else {
            known.due = now + known.pause();
        }
        self.has_changed |= known.take(told);
        true
    }

    /// All of them, if clients should see something else than before.
    pub(super) fn changed(&mut self) -> Option<Vec<Arc<Remote>>> {
        let all = self.apis.values().map(|it| Arc::clone(&it.remote));
        std::mem::take(&mut self.has_changed).then(|| all.collect())
    }
}

impl Known {
    fn new(remote: Remote, now: Instant) -> Self {
        Self {
            remote: Arc::new(remote),
            due: now,
            begun: None,
            is_checked: false,
            has_changed: false,
            failures: 0,
        }
    }

    fn look_soon(&mut self, now: Instant) {
        let earliest = self.begun.map(|begun| begun + PERIOD_MIN);
        self.due = earliest.map_or(now, |earliest| earliest.max(now));
        self.has_changed = true;
        self.failures = 0;
    }

    fn pause(&self) -> Duration {
        match self.failures.checked_sub(1) {
            None => PERIOD,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                RETRY_PERIOD.saturating_mul(factor).min(PERIOD)
            }
        }
    }

    /// Takes the answers of a server; returns true if they change anything. The last answers are kept while there are none.
    fn take(&mut self, told: Option<Told>) -> bool {
        let known = &self.remote;
        let same = match &told {
            None => known.is_stale,
            Some(told) => {
                !known.is_stale
                    && *known.resources == told.resources
                    && known.openapi == told.openapi
            }
        };
        if same {
            return false;
        }
        let remote = Arc::make_mut(&mut self.remote);
        remote.is_stale = told.is_none();
        if let Some(told) = told {
            remote.resources = Arc::new(told.resources);
            remote.openapi = told.openapi;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::GroupVersion;
    use ringwatch_apiserver::ServiceReference;

    use super::*;

    fn api(port: u16) -> RemoteApi {
        RemoteApi {
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

    fn told() -> Option<Told> {
        Some(Told {
            resources: Vec::new(),
            openapi: Some("/openapi/v3/x".to_owned()),
        })
    }

    fn define(known: &mut KnownApis, api: RemoteApi, now: Instant) {
        known.define(api, now, |_| Err(String::new()));
    }

    /// Looks at the API, which takes no time. How long it is left alone then.
    fn look(known: &mut KnownApis, now: Instant, told: Option<Told>) -> Duration {
        let remote = known.begin(now).expect("due");
        assert!(known.begin(now).is_none(), "it is looked at already");
        assert!(known.finish(&remote, told, now));
        known.next_due().expect("one") - now
    }

    #[test]
    fn a_server_that_fails_is_asked_less_and_less_often() {
        let (mut known, mut now) = (KnownApis::default(), Clock::real().now());
        define(&mut known, api(1), now);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let pause = look(&mut known, now, None);
            pauses.push(pause.as_millis());
            now += pause;
        }
        let expected = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(pauses, expected);
        assert_eq!(look(&mut known, now, told()), PERIOD);
        now += PERIOD;
        assert_eq!(look(&mut known, now, None), RETRY_PERIOD);
    }

    #[test]
    fn what_changes_is_looked_at_soon_but_not_all_the_time() {
        let (mut known, now) = (KnownApis::default(), Clock::real().now());
        define(&mut known, api(1), now);
        look(&mut known, now, told());
        known.service_changed("ns", "other", now);
        assert_eq!(known.next_due(), Some(now + PERIOD));
        known.service_changed("ns", "api", now);
        assert_eq!(known.next_due(), Some(now + PERIOD_MIN));
        let later = now + PERIOD_MIN;
        // A change during the look counts after it, and what was found meanwhile is of another service.
        let remote = known.begin(later).expect("due");
        define(&mut known, api(2), later);
        assert!(!known.finish(&remote, told(), later));
        assert_eq!(known.next_due(), Some(later + PERIOD_MIN));
    }

    #[test]
    fn clients_see_only_what_has_changed() {
        let (mut known, now) = (KnownApis::default(), Clock::real().now());
        define(&mut known, api(1), now);
        let seen = known.changed().expect("it is new");
        assert!(seen[0].is_stale && !seen[0].api.available);
        look(&mut known, now, told());
        let seen = known.changed().expect("it says what it has");
        assert!(!seen[0].is_stale);
        look(&mut known, now + PERIOD, told());
        let available = RemoteApi {
            available: true,
            ..api(1)
        };
        assert!(known.changed().is_none(), "it says the same");
        define(&mut known, available, now);
        let seen = known.changed().expect("it is available");
        assert!(!seen[0].is_stale && seen[0].openapi.is_some());
        look(&mut known, now + 2 * PERIOD, None);
        let seen = known.changed().expect("it is gone");
        assert!(seen[0].is_stale && seen[0].openapi.is_some());
        known.remove("v1.example.com");
        assert!(known.changed().expect("it is not served").is_empty());
    }
}
