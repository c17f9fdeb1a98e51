//! The requests of the last minute by client, verb and resource.
//!
//! A request is counted once, when its response is sent; of a watch that is its beginning. Rows are in several maps, by
//! their keys, so that requests of different clients seldom wait for each other. Each map has a maximum of rows: a new
//! one takes the place of that which made the least work, whose requests are then counted with those of all others. So
//! clients of little work, however many, do not hide one of much.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;

use http::StatusCode;
use indexmap::{Equivalent, IndexMap};
use ringwatch::clock::Instant;
use ringwatch::sync::{Mutex, MutexGuard};

use crate::client_summary::ClientSummary;
use crate::last_minute::LastMinute;
use crate::observed_request::{ObservedRequest, ObservedResource};
use crate::shortened_text::{prefix, shortened};

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
    rows: IndexMap<ClientKey<Box<str>>, LastMinute<Sums>>,
    /// The requests whose row had to make room. They count from that time on, so that they are shown for a minute more
    /// than others at most.
    others: LastMinute<Sums>,
}

/// The client of requests, and the kind of them; of texts that are borrowed or kept.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ClientKey<T> {
    user: T,
    user_agent: T,
    address: Option<IpAddr>,
    verb: T,
    group: T,
    /// The plural resource; the first two segments of the path if the request is not about one.
    resource: T,
    subresource: T,
    /// True if all objects of the resource are asked for.
    everything: bool,
}

/// Sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of requests.
    pub requests: u64,
    /// The number of those that were refused (401, 403, 429), failed in the server (from 500 on), or had no response. A
    /// missing object and a conflict are usual answers.
    pub failed: u64,
    /// The bytes of the responses' bodies, as they were sent; none of watches.
    pub bytes: u64,
    /// The time that the requests took, until their responses were sent.
    pub took: Duration,
}

/// The requests of one kind that a client made within the last minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTraffic {
    /// The user, the user agent and the address; `None` for all clients whose rows had to make room.
    pub client: Option<(Box<str>, Box<str>, Option<IpAddr>)>,
    /// The verb.
    pub verb: Box<str>,
    /// The group of the resource; empty for the core.
    pub group: Box<str>,
    /// The plural resource; the first two segments of the path if the requests are not about one.
    pub resource: Box<str>,
    /// The subresource; empty for the resource itself.
    pub subresource: Box<str>,
    /// True if all objects of the resource were asked for.
    pub everything: bool,
    /// The sums of them.
    pub sums: Sums,
}

/// Returns the first two segments of a path, so that the many files of a page are one thing that a client gets.
fn beginning(path: &str) -> &str {
    let mut ends = path.match_indices('/').map(|(index, _)| index).skip(2);
    &path[..ends.next().unwrap_or(path.len())]
}

impl Traffic {
    /// Counts a request. `everything` says whether it asks for all objects, `end` how it ended.
    pub(crate) fn count(
        &self,
        client: &ClientSummary,
        facts: &dyn ObservedRequest,
        everything: bool,
        end: &Sums,
        now: Instant,
    ) {
        let of_path = || ObservedResource {
            group: "",
            resource: beginning(facts.path()),
            subresource: "",
        };
        let resource = facts.resource().unwrap_or_else(of_path);
        let key = ClientKey {
            user: &*client.user,
            user_agent: &*client.user_agent,
            address: client.address.map(|it| it.ip().to_canonical()),
            verb: prefix(facts.verb()),
            group: prefix(resource.group),
            resource: prefix(resource.resource),
            subresource: prefix(resource.subresource),
            everything,
        };
        let shard = &self.shards[self.hasher.hash_one(&key) as usize % SHARDS];
        lock(shard).count(&key, end, now);
    }

    /// Returns the rows that make the most work, those of the most first. What had to make room is a row of its own.
    pub(crate) fn busiest(&self, max: usize, now: Instant) -> Vec<ClientTraffic> {
        let mut all = Vec::new();
        let mut others = Sums::default();
        for shard in &self.shards {
            let shard = lock(shard);
            let rows = shard.rows.iter();
            all.extend(rows.map(|(key, sums)| key.shown(sums, now)));
            others.add(&sum(&shard.others, now));
        }
        all.push(ClientTraffic {
            client: None,
            verb: Box::default(),
            group: Box::default(),
            resource: Box::default(),
            subresource: Box::default(),
            everything: false,
            sums: others,
        });
        all.retain(|it| it.sums.requests > 0);
        all.sort_by_key(|it| std::cmp::Reverse(it.sums.work()));
        all.truncate(max);
        all
    }
}

impl Shard {
    fn count(&mut self, key: &ClientKey<&str>, end: &Sums, now: Instant) {
        if let Some(sums) = self.rows.get_mut(key) {
            sums.part(now).add(end);
            return;
        }
        if self.rows.len() >= ROWS_MAX {
            self.make_room(now);
        }
        let mut sums: LastMinute<Sums> = LastMinute::default();
        sums.part(now).add(end);
        self.rows.insert(key.kept(), sums);
    }

    /// Removes the row that made the least work within the last minute.
    fn make_room(&mut self, now: Instant) {
        let rows = self.rows.values().enumerate();
        let least = rows.min_by_key(|(_, sums)| sum(sums, now).work());
        if let Some((index, _)) = least
            && let Some((_, sums)) = self.rows.swap_remove_index(index)
        {
            self.others.part(now).add(&sum(&sums, now));
        }
    }
}

impl ClientKey<&str> {
    fn kept(&self) -> ClientKey<Box<str>> {
        ClientKey {
            user: self.user.into(),
            user_agent: self.user_agent.into(),
            address: self.address,
            verb: self.verb.into(),
            group: self.group.into(),
            resource: self.resource.into(),
            subresource: self.subresource.into(),
            everything: self.everything,
        }
    }
}

/// A key of borrowed texts stands for one that keeps the same texts; both have the same hash.
impl Equivalent<ClientKey<Box<str>>> for ClientKey<&str> {
    fn equivalent(&self, kept: &ClientKey<Box<str>>) -> bool {
        let same = |one: &str, other: &str| one == other;
        same(self.user, &kept.user)
            && same(self.user_agent, &kept.user_agent)
            && self.address == kept.address
            && same(self.verb, &kept.verb)
            && same(self.group, &kept.group)
            && same(self.resource, &kept.resource)
            && same(self.subresource, &kept.subresource)
            && self.everything == kept.everything
    }
}

impl ClientKey<Box<str>> {
    fn shown(&self, sums: &LastMinute<Sums>, now: Instant) -> ClientTraffic {
        ClientTraffic {
            client: Some((self.user.clone(), self.user_agent.clone(), self.address)),
            verb: shortened(&self.verb),
            group: shortened(&self.group),
            resource: shortened(&self.resource),
            subresource: shortened(&self.subresource),
            everything: self.everything,
            sums: sum(sums, now),
        }
    }
}

impl Sums {
    /// The sums of one request whose response has a status, if it has one.
    pub(crate) fn of_one(code: Option<StatusCode>, bytes: u64, took: Duration) -> Self {
        let failed =
            code.is_none_or(|it| it.is_server_error() || [401, 403, 429].contains(&it.as_u16()));
        Self {
            requests: 1,
            failed: u64::from(failed),
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
    use http::{HeaderMap, HeaderValue, header};
    use ringwatch::clock::Clock;

    use super::*;
    use crate::observed_request::testing::PlainRequest;

    fn client(agent: &str) -> ClientSummary {
        let agent = HeaderValue::from_str(agent).expect("a header");
        let headers = HeaderMap::from_iter([(header::USER_AGENT, agent)]);
        let address = "[::ffff:10.0.0.1]:4321".parse().expect("an address");
        ClientSummary::new("jane", &headers, Some(address))
    }

    fn request(
        verb: &'static str,
        (group, resource, subresource): (&'static str, &'static str, &'static str),
    ) -> PlainRequest {
        PlainRequest {
            verb,
            path: "/",
            resource: Some(ObservedResource {
                group,
                resource,
                subresource,
            }),
        }
    }

    fn one(code: u16, bytes: u64) -> Sums {
        let code = StatusCode::from_u16(code).ok();
        Sums::of_one(code, bytes, Duration::from_millis(3))
    }

    #[test]
    fn requests_are_summed_by_client_verb_and_resource() {
        let (traffic, now) = (Traffic::default(), Clock::real().now());
        let count = |request: &PlainRequest, everything, end| {
            traffic.count(&client("nosy/1.2"), request, everything, &end, now);
        };
        let list = request("list", ("apps", "deployments", ""));
        count(&list, true, one(200, 100_000));
        count(&list, true, one(429, 50));
        count(&list, false, one(200, 20_000));
        count(&list, false, one(404, 10));
        count(&list, false, one(200, 10));
        let log = request("get", ("", "pods", "log"));
        count(&log, false, one(500, 10));
        let metrics = PlainRequest {
            verb: "get",
            path: "/metrics",
            resource: None,
        };
        count(&metrics, false, one(200, 1));
        let busiest = traffic.busiest(10, now);
        let shown = busiest.iter().map(|it| {
            let kind = (&*it.verb, &*it.group, &*it.resource, &*it.subresource);
            (kind, it.everything, it.sums.requests, it.sums.failed)
        });
        let shown: Vec<_> = shown.collect();
        let deployments = ("list", "apps", "deployments", "");
        let expected = [
            (deployments, true, 2, 1),
            (deployments, false, 3, 0),
            (("get", "", "pods", "log"), false, 1, 1),
            (("get", "", "/metrics", ""), false, 1, 0),
        ];
        assert_eq!(shown, expected);
        assert_eq!(busiest[0].sums.bytes, 100_050);
        assert_eq!(busiest[0].sums.took, Duration::from_millis(6));
        let address = "10.0.0.1".parse().expect("an address");
        let who = ("jane".into(), "nosy/1.2".into(), Some(address));
        assert_eq!(busiest[0].client, Some(who));
        let later = now + Duration::from_secs(80);
        assert_eq!(traffic.busiest(10, later), []);
    }

    #[test]
    fn paths_of_no_resource_count_by_their_beginning() {
        let of = ["/", "/metrics", "/debug/ui", "/debug/ui/table.js", "/a//b"].map(beginning);
        assert_eq!(of, ["/", "/metrics", "/debug/ui", "/debug/ui", "/a/"]);
    }

    #[test]
    fn many_clients_of_little_work_do_not_hide_one_of_much() {
        let (traffic, now) = (Traffic::default(), Clock::real().now());
        let all = 4 * SHARDS * ROWS_MAX;
        let count = |agent: &str, bytes| {
            let list = request("list", ("", "pods", ""));
            traffic.count(&client(agent), &list, true, &one(200, bytes), now);
        };
        for number in 0..all {
            count(&format!("early-{number}"), 1);
        }
        count("busy", 1 << 20);
        for number in 0..all {
            count(&format!("late-{number}"), 1);
        }
        let busiest = traffic.busiest(2 * all, now);
        assert!(busiest.len() <= SHARDS * ROWS_MAX + 1);
        let busy = busiest.iter().filter_map(|it| it.client.as_ref());
        assert!(busy.into_iter().any(|it| &*it.1 == "busy"));
        let requests: u64 = busiest.iter().map(|it| it.sums.requests).sum();
        assert_eq!(requests as usize, 2 * all + 1, "none is forgotten");
        assert!(busiest.iter().any(|it| it.client.is_none()));
    }
}
