//! The objects that were seen, and the rules that they must follow. Revisions of all types are of one order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Resource, ResourceExt};

use crate::children;
use crate::controller::FINALIZER;
use crate::site::Site;

/// The most violations that are printed.
const TOLD_MAX: usize = 50;

/// A version of an object: its uid and its revision.
type Version = (String, u64);

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sites: HashMap<String, SiteHistory>,
    registrations: HashMap<String, Registration>,
    /// The newest revision of everything that is there, by uid.
    live: HashMap<String, u64>,
    seen: HashSet<Version>,
    acknowledged: HashSet<Version>,
    /// The first and the last revision that a leader of each term wrote.
    written: BTreeMap<i32, (u64, u64)>,
    /// The revision at which each term began.
    won: BTreeMap<i32, u64>,
    counts: BTreeMap<&'static str, u64>,
    violations: BTreeSet<String>,
}

#[derive(Debug)]
struct SiteHistory {
    host: String,
    generation: i64,
    observed: i64,
    had_finalizer: bool,
    deleted: Option<u64>,
}

#[derive(Debug, Default)]
struct Registration {
    given_back: Option<u64>,
}

/// A change of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    Put,
    Gone,
}

impl Ledger {
    /// Notes that something was done, or refused as it must be.
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Notes that a rule was broken.
    pub(super) fn violate(&mut self, what: String) {
        if self.violations.len() < TOLD_MAX {
            eprintln!("VIOLATION {what}");
        }
        self.violations.insert(what);
    }

    pub(super) fn violations(&self) -> usize {
        self.violations.len()
    }

    /// Notes a write that the server has acknowledged.
    pub(super) fn acknowledge<K: Resource>(&mut self, object: &K) {
        self.count("writes");
        self.acknowledged.insert(version(object));
    }

    /// Notes an event of any type, in the order of its watch.
    pub(super) fn event<K: Resource>(&mut self, change: Change, object: &K) {
        let (uid, revision) = version(object);
        self.count("events");
        let before = match change {
            Change::Put => self.live.insert(uid.clone(), revision),
            Change::Gone => self.live.remove(&uid),
        };
        if before.is_some_and(|before| before >= revision) {
            self.violate(format!("{} went back to {revision}", object.name_any()));
        }
        if let Some(term) = object
            .annotations()
            .get(children::TERM)
            .and_then(|it| it.parse().ok())
            && change == Change::Put
        {
            self.wrote(term, revision);
        }
        if let Some(site) = object.labels().get(children::REGISTERED).cloned() {
            self.registration(change, site, revision);
        }
        self.seen.insert((uid, revision));
    }

    /// A watch that lists again may have missed something.
    pub(super) fn lost_place(&mut self, kind: &str) {
        self.violate(format!("the watch of {kind} lost its place"));
    }

    fn wrote(&mut self, term: i32, revision: u64) {
        let (first, last) = self.written.entry(term).or_insert((revision, revision));
        *first = (*first).min(revision);
        *last = (*last).max(revision);
    }

    fn registration(&mut self, change: Change, site: String, revision: u64) {
        let known = self.registrations.entry(site.clone()).or_default();
        let before = known.given_back;
        if change == Change::Gone {
            known.given_back = Some(revision);
        }
        if before.is_some() {
            self.violate(format!(
                "the registration of {site} came or went again at {revision}"
            ));
        }
    }

    /// The rules of sites.
    pub(super) fn site(&mut self, change: Change, site: &Site) {
        let (uid, revision) = version(site);
        let name = site.name_any();
        let generation = site.metadata.generation.unwrap_or_default();
        let status = site.status.clone().unwrap_or_default();
        let mut wrong = Vec::new();
        let known = self.sites.entry(uid).or_insert_with(|| SiteHistory {
            host: site.spec.host.clone(),
            generation,
            observed: 0,
            had_finalizer: false,
            deleted: None,
        });
        if site.spec.replicas > site.spec.replicas_max || site.spec.host != known.host {
            wrong.push("breaks the rules of its schema");
        }
        if generation < known.generation || status.observed_generation < known.observed {
            wrong.push("has an earlier generation than before");
        }
        if status.observed_generation > generation {
            wrong.push("was observed before it was written");
        }
        known.generation = generation;
        known.observed = status.observed_generation;
        let has_finalizer = site.finalizers().iter().any(|it| it == FINALIZER);
        if change == Change::Gone {
            known.deleted = Some(revision);
            if known.had_finalizer && site.metadata.deletion_timestamp.is_none() {
                wrong.push("went without a word to its finalizer");
            }
        }
        known.had_finalizer |= has_finalizer;
        for what in wrong {
            self.violate(format!("{name} {what}, at {revision}"));
        }
    }

    /// Notes the holder of the lease. Only changes of terms count.
    pub(super) fn lease(&mut self, lease: &Lease) {
        let spec = lease.spec.clone().unwrap_or_default();
        let (_, revision) = version(lease);
        let released = spec.holder_identity.unwrap_or_default().is_empty();
        if !released {
            let term = spec.lease_transitions.unwrap_or_default();
            self.won.entry(term).or_insert(revision);
        }
    }

    /// Returns true if the observer has not yet seen everything that was acknowledged.
    pub(super) fn is_behind(&self) -> bool {
        !self.acknowledged.is_subset(&self.seen)
    }

    /// The newest revision of each object that is there.
    pub(super) fn live(&self) -> &HashMap<String, u64> {
        &self.live
    }

    /// The rules that need all that happened.
    pub(super) fn finish(&mut self) {
        let mut wrong = Vec::new();
        for (uid, revision) in self.acknowledged.difference(&self.seen) {
            wrong.push(format!(
                "{uid} was acknowledged at {revision}, and never seen so"
            ));
        }
        for (uid, site) in &self.sites {
            let Some(deleted) = site.deleted.filter(|_| site.had_finalizer) else {
                continue;
            };
            match self.registrations.get(uid).map(|it| it.given_back) {
                Some(None) => wrong.push(format!("the registration of {uid} was never given back")),
                Some(Some(back)) if back > deleted => {
                    wrong.push(format!(
                        "{uid} went at {deleted}, its registration at {back}"
                    ));
                }
                _ => {}
            }
        }
        for (term, (first, last)) in &self.written {
            let began = self.won.get(term);
            let next = self.won.range(term + 1..).next();
            if began.is_none_or(|began| began > first) || next.is_some_and(|(_, next)| next < last)
            {
                wrong.push(format!("term {term} wrote from {first} to {last}, but began at {began:?} and was over at {next:?}"));
            }
        }
        wrong.into_iter().for_each(|it| self.violate(it));
    }
}

/// Returns the identity and the revision of an object.
pub(super) fn version<K: Resource>(object: &K) -> Version {
    let revision = object.resource_version().and_then(|it| it.parse().ok());
    (
        object.uid().unwrap_or_default(),
        revision.unwrap_or_default(),
    )
}

impl fmt::Display for Ledger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} sites, {} terms of leaders",
            self.sites.len(),
            self.won.len()
        )?;
        for (what, count) in &self.counts {
            writeln!(out, "{count:>8} {what}")?;
        }
        match self.violations.len() {
            0 => write!(out, "every invariant held"),
            some => write!(out, "{some} violations"),
        }
    }
}
