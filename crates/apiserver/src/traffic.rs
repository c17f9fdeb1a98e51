//! The requests of the last minute by client, verb and resource, for those who look at the server.
//!
//! A request is counted once, when its response is sent; of a watch that is its beginning. Rows are in several maps, by
//! their keys, so that requests of different clients seldom wait for each other, and each map has a maximum of rows: what
//! finds no room is counted together, as that of others.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;

use http::StatusCode;
use indexmap::{Equivalent, IndexMap};
use ringwatch::clock::Instant;
use ringwatch::sync::{Mutex, MutexGuard};
use ringwatch_apimachinery::last_minute::LastMinute;
use ringwatch_registry::Verb;

use crate::endpoints::RequestInfo;
use crate::shown_client::ShownClient;
use crate::shown_text::start;

/// The number of maps.
const SHARDS: usize = 16;

/// Maximum number of rows of each map.
const ROWS_MAX: usize = 64;

/// The bytes for which a request counts besides those of its response, when clients are ranked: about the work of a
/// request whose response is short.
const REQUEST_BYTES: u64 = 4 << 10;

/// The requests of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Finds the map of a key.
    hasher: std::hash::RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    rows: IndexMap<Key<Box<str>>, Row>,
    /// The requests for which there was no row.
    others: LastMinute<Sums>,
}

/// The client of requests, and the kind of them; of texts that are borrowed or kept.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key<T> {
    user: T,
    user_agent: T,
    verb: T,
    group: T,
    /// The plural resource; the start of the path if the request is not about one.
    resource: T,
    /// True if the resource is asked for in all namespaces.
    everything: bool,
}

#[derive(Debug)]
struct Row {
    /// The address of the last request.
    address: Option<IpAddr>,
    sums: LastMinute<Sums>,
}

/// Sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of requests.
    pub requests: u64,
    /// The number of those whose response is an error, or that had none.
    pub failed: u64,
    /// The bytes of the responses' bodies, as they were sent; none of watches.
    pub bytes: u64,
    /// The time that the requests took, until their responses were sent.
    pub took: Duration,
}

/// The requests of one kind that a client made within the last minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTraffic {
    /// The client, with the address of its last request; `None` for all clients that found no room.
    pub client: Option<(Box<str>, Box<str>, Option<IpAddr>)>,
    /// The verb.
    pub verb: Box<str>,
    /// The group of the resource; empty for the core.
    pub group: Box<str>,
    /// The plural resource; the start of the path if the requests are not about one.
    pub resource: Box<str>,
    /// True if the resource was asked for in all namespaces.
    pub everything: bool,
    /// The sums of them.
    pub sums: Sums,
}

impl Traffic {
    /// Counts a request. `end` tells how it ended.
    pub(crate) fn count(&self, client: &ShownClient, info: &RequestInfo, end: &Sums, now: Instant) {
        let resource = match info.is_resource {
            true => &info.resource,
            false => &info.path,
        };
        let key = Key {
            user: &*client.user,
            user_agent: &*client.user_agent,
            verb: start(info.verb.name()),
            group: start(&info.group),
            resource: start(resource),
            everything: is_of_collections(info.verb.on_resource()) && info.namespace.is_empty(),
        };
        let shard = &self.shards[self.hasher.hash_one(&key) as usize % SHARDS];
        lock(shard).count(&key, client, end, now);
    }

    /// Returns the rows that make the most work, those of the most first. What found no room is a row of its own.
    pub(crate) fn busiest(&self, max: usize, now: Instant) -> Vec<ClientTraffic> {
        let mut all = Vec::new();
        let mut others = Sums::default();
        for shard in &self.shards {
            let shard = lock(shard);
            let rows = shard.rows.iter();
            all.extend(rows.map(|(key, row)| key.shown(row, now)));
            others.add(&sum(&shard.others, now));
        }
        all.push(ClientTraffic {
            client: None,
            verb: Box::default(),
            group: Box::default(),
            resource: Box::default(),
            everything: false,
            sums: others,
        });
        all.retain(|it| it.sums.requests > 0);
        all.sort_by_key(|it| std::cmp::Reverse(it.sums.work()));
        all.truncate(max);
        all
    }
}

/// Returns true if a verb is about collections, rather than one object.
fn is_of_collections(verb: Option<Verb>) -> bool {
    matches!(
        verb,
        Some(Verb::List | Verb::Watch | Verb::DeleteCollection)
    )
}

impl Shard {
    fn count(&mut self, key: &Key<&str>, client: &ShownClient, end: &Sums, now: Instant) {
        let address = client.address.map(|it| it.ip().to_canonical());
        if let Some(row) = self.rows.get_mut(key) {
            row.address = address;
            row.sums.part(now).add(end);
            return;
        }
        if self.rows.len() >= ROWS_MAX {
            self.rows.retain(|_, row| !row.sums.is_idle(now));
        }
        if self.rows.len() >= ROWS_MAX {
            self.others.part(now).add(end);
            return;
        }
        let mut sums: LastMinute<Sums> = LastMinute::default();
        sums.part(now).add(end);
        self.rows.insert(key.kept(), Row { address, sums });
    }
}

impl Key<&str> {
    fn kept(&self) -> Key<Box<str>> {
        Key {
            user: self.user.into(),
            user_agent: self.user_agent.into(),
            verb: self.verb.into(),
            group: self.group.into(),
            resource: self.resource.into(),
            everything: self.everything,
        }
    }
}

/// A key of borrowed texts stands for one that keeps the same texts; both have the same hash.
impl Equivalent<Key<Box<str>>> for Key<&str> {
    fn equivalent(&self, kept: &Key<Box<str>>) -> bool {
        let same = |one: &str, other: &str| one == other;
        same(self.user, &kept.user)
            && same(self.user_agent, &kept.user_agent)
            && same(self.verb, &kept.verb)
            && same(self.group, &kept.group)
            && same(self.resource, &kept.resource)
            && self.everything == kept.everything
    }
}

impl Key<Box<str>> {
    fn shown(&self, row: &Row, now: Instant) -> ClientTraffic {
        ClientTraffic {
            client: Some((self.user.clone(), self.user_agent.clone(), row.address)),
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: self.resource.clone(),
            everything: self.everything,
            sums: sum(&row.sums, now),
        }
    }
}

impl Sums {
    /// The sums of one request whose response has a status, if it has one.
    pub(crate) fn of_one(code: Option<StatusCode>, bytes: u64, took: Duration) -> Self {
        let succeeded = code.is_some_and(|it| it.as_u16() < 400);
        Self {
            requests: 1,
            failed: u64::from(!succeeded),
            bytes,
            took,
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.took += other.took;
    }

    /// Returns about how much work it was for the server, in bytes.
    fn work(&self) -> u64 {
        self.requests * REQUEST_BYTES + self.bytes
    }
}

fn sum(minute: &LastMinute<Sums>, now: Instant) -> Sums {
    let mut all = Sums::default();
    minute.parts(now).for_each(|part| all.add(part));
    all
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, header};
    use ringwatch::clock::Clock;

    use super::*;

    fn client(agent: &str) -> ShownClient {
        let agent = HeaderValue::from_str(agent).expect("a header");
        let headers = HeaderMap::from_iter([(header::USER_AGENT, agent)]);
        let address = "[::ffff:10.0.0.1]:4321".parse().expect("an address");
        ShownClient::new("jane", &headers, Some(address))
    }

    fn list(path: &str) -> RequestInfo {
        RequestInfo::new(&Method::GET, path, "")
    }

    fn one(code: u16, bytes: u64) -> Sums {
        let code = StatusCode::from_u16(code).ok();
        Sums::of_one(code, bytes, Duration::from_millis(3))
    }

    #[test]
    fn requests_are_summed_by_client_verb_and_resource() {
        let (traffic, now) = (Traffic::default(), Clock::real().now());
        let count = |path, end| traffic.count(&client("nosy/1.2"), &list(path), &end, now);
        count("/apis/apps/v1/deployments", one(200, 100_000));
        count("/apis/apps/v1/deployments", one(429, 50));
        count("/apis/apps/v1/namespaces/a/deployments", one(200, 10));
        count("/metrics", one(200, 1));
        let busiest = traffic.busiest(10, now);
        let shown: Vec<_> = busiest
            .iter()
            .map(|it| (&*it.verb, &*it.group, &*it.resource, it.everything))
            .collect();
        assert_eq!(shown[0], ("list", "apps", "deployments", true));
        assert_eq!(shown[1], ("list", "apps", "deployments", false));
        assert_eq!(shown[2], ("get", "", "/metrics", false));
        assert_eq!(shown.len(), 3);
        let expected = Sums {
            requests: 2,
            failed: 1,
            bytes: 100_050,
            took: Duration::from_millis(6),
        };
        assert_eq!(busiest[0].sums, expected);
        let address = "10.0.0.1".parse().expect("an address");
        let who = ("jane".into(), "nosy/1.2".into(), Some(address));
        assert_eq!(busiest[0].client, Some(who));
        let later = now + Duration::from_secs(80);
        assert_eq!(traffic.busiest(10, later), []);
    }

    #[test]
    fn clients_beyond_the_maximum_are_counted_together() {
        let (traffic, now) = (Traffic::default(), Clock::real().now());
        let all = 2 * SHARDS * ROWS_MAX;
        for number in 0..all {
            let client = client(&format!("client-{number}"));
            traffic.count(&client, &list("/api/v1/pods"), &one(200, 1), now);
        }
        let busiest = traffic.busiest(all, now);
        assert!(busiest.len() <= SHARDS * ROWS_MAX + 1);
        let others = busiest.iter().find(|it| it.client.is_none());
        let others = others.expect("others").sums.requests;
        assert_eq!(others as usize, all - (busiest.len() - 1));
        // Those who have not asked for a minute make room.
        let later = now + Duration::from_secs(80);
        traffic.count(&client("new"), &list("/api/v1/pods"), &one(200, 1), later);
        let busiest = traffic.busiest(all, later);
        assert_eq!(busiest.len(), 1);
        assert!(busiest[0].client.is_some());
    }
}
