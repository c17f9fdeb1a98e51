//! The minimums: how much must have happened in a run for its verdict to say anything.
//!
//! A server that refuses every write breaks no promise of the watch protocol, and neither does one whose
//! watches end before their first event. So every kind of request must have been answered as often as a
//! small part of what the flags ask for comes to. The part is small since machines are slow, and since a
//! restart on the way takes its time; a server that answers no request of a kind stays below it.

use std::time::Duration;

use super::VerifyFlags;
use super::reader::WAYS;
use super::roles::Role;
use crate::client::Encoding;
use crate::output::number::count;
use crate::verify::checks::Tally;
use crate::verify::history::{Get, History, ListRead, RevisionMatch, Verb, Watcher, Write};
use crate::verify::violation::{Promise, Violation};

/// The part of what was asked for that must be done: one of so many.
const DONE_ONE_OF: u64 = 4;
/// The least number of requests a second that a writer or reader must have made: it waits for each answer, so a slow
/// machine is asked less often than the flags say.
/// Of each client no more requests are counted on in a second.
const REQUESTS_PER_SECOND: u64 = 2;
/// The least number of writes of a kind, or of changes of a selection, of which a part must have been done. Of fewer,
/// chance may have kept all from being done.
const SAMPLE_MIN: u64 = 20;

/// The flags and the length of a run, from which the minimums follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minimums<'a> {
    pub(super) seconds: f64,
    pub(super) flags: &'a VerifyFlags,
    /// The roles of the watchers, in their order.
    pub(super) roles: &'a [Role],
    /// The encodings in which objects are written and read.
    pub(super) encodings: &'a [Encoding],
}

/// The numbers of something that were done, that were asked for, and that had to be done at the least.
#[derive(Clone, Copy, Debug)]
struct Done {
    done: u64,
    requested: u64,
    least: u64,
}

impl Done {
    fn new(done: u64, requested: u64) -> Self {
        Self::counting_on(requested, done, requested)
    }

    /// Returns the count of what was done, of which less is demanded where not all that was asked for can be counted
    /// on.
    fn counting_on(expected: u64, done: u64, requested: u64) -> Self {
        let least = expected / DONE_ONE_OF;
        Self {
            done,
            requested,
            least,
        }
    }

    /// Returns the violation if too little was done.
    fn falls_short(self, rule: Promise, who: impl Into<String>, what: &str) -> Option<Violation> {
        let Self {
            done,
            requested,
            least,
        } = self;
        (done < least).then(|| {
            let (done, requested, least) = (count(done), count(requested), count(least));
            let message = format!("{done} of {requested} {what}, at least {least} must be");
            Violation::new(rule, who, message)
        })
    }
}

impl Minimums<'_> {
    /// Returns a violation for everything of which there was too little.
    pub(super) fn check(&self, history: &History, tallies: &[Tally]) -> Vec<Violation> {
        let mut found = self.few_writes(&history.writes);
        found.extend(self.few_reads(&history.reads, &history.gets));
        let watchers = history.watchers.iter().zip(tallies).zip(self.roles);
        for ((watcher, tally), role) in watchers {
            let who = format!("watcher {}", watcher.name);
            found.extend(few_events(&who, tally));
            found.extend(self.few_initial_events(&who, watcher, role));
            found.extend(self.few_resumes(&who, watcher, role));
        }
        found
    }

    /// Returns how often something is asked for in the whole run.
    fn in_all(&self, per_second: f64) -> u64 {
        (per_second * self.seconds) as u64
    }

    /// Returns how many writers can write at the same time: writers that meet at one object keep each other from
    /// writing.
    fn undisturbed_writers(&self) -> u64 {
        u64::from(self.flags.writers.min(self.flags.objects))
    }

    fn few_writes(&self, writes: &[Write]) -> Vec<Violation> {
        let done = writes.iter().filter(|it| is_done(it)).count() as u64;
        let rate = self.undisturbed_writers() * REQUESTS_PER_SECOND;
        let expected = self.in_all(self.flags.rate.min(rate as f64));
        let all = Done::counting_on(expected, done, self.in_all(self.flags.rate));
        let all = all.falls_short(
            Promise::FewWrites,
            "all writers",
            "writes were acknowledged",
        );
        let mut found: Vec<Violation> = all.into_iter().collect();
        let tried = writes.len() as u64;
        for verb in [Verb::Create, Verb::Update, Verb::Delete] {
            for &encoding in self.encodings {
                let such = writes.iter();
                let such = such.filter(|it| it.verb == verb && it.encoding == encoding);
                found.extend(self.few_of_a_kind(verb, encoding, such, expected, tried));
            }
        }
        found
    }

    /// Judges the writes of one kind by how many of them were tried. Of those that can be counted on in all they
    /// have the same part as of those that were tried: a server may refuse most writes of very many writers.
    fn few_of_a_kind<'a>(
        &self,
        verb: Verb,
        encoding: Encoding,
        writes: impl Iterator<Item = &'a Write> + Clone,
        expected_in_all: u64,
        tried_in_all: u64,
    ) -> Option<Violation> {
        let name = match verb {
            Verb::Create => "creations",
            Verb::Update => "updates",
            Verb::Delete => "deletions",
        };
        let requested = writes.clone().count() as u64;
        let done = writes.filter(|it| is_done(it)).count() as u64;
        let undisturbed = requested * self.undisturbed_writers() / u64::from(self.flags.writers);
        let expected = undisturbed.min(expected_in_all * requested / tried_in_all.max(1));
        let done = Done::counting_on(expected, done, requested);
        let who = format!("{name} in {}", form(encoding));
        let few = done.falls_short(Promise::FewWrites, who, "were acknowledged");
        few.filter(|_| requested >= SAMPLE_MIN)
    }

    fn few_reads(&self, reads: &[ListRead], gets: &[Get]) -> Vec<Violation> {
        let requested = self.in_all((u64::from(self.flags.readers) * REQUESTS_PER_SECOND) as f64);
        let done = |fits: &dyn Fn(&ListRead) -> bool| {
            let fitting = reads.iter().filter(|read| fits(read));
            fitting.count() as u64
        };
        let mut found = Vec::new();
        let mut look = |who: &str, requested: u64, fits: &dyn Fn(&ListRead) -> bool| {
            let done = Done::new(done(fits), requested);
            found.extend(done.falls_short(Promise::FewReads, who, "were answered"));
        };
        for &encoding in self.encodings {
            let who = format!("lists in {}", form(encoding));
            look(&who, requested / self.encodings.len() as u64, &|it| {
                it.encoding == encoding
            });
        }
        let newest = |read: &ListRead| read.revision_match == RevisionMatch::Newest;
        let exact = |read: &ListRead| matches!(read.revision_match, RevisionMatch::Exact(_));
        let later = |read: &ListRead| matches!(read.revision_match, RevisionMatch::NotOlderThan(_));
        look("lists of any state", requested / WAYS, &|it| {
            it.revision_match == RevisionMatch::Any
        });
        look("lists of an exact revision", requested / WAYS, &exact);
        look("lists not older than a revision", requested / WAYS, &later);
        look("consistent lists in pages", 2 * requested / WAYS, &|it| {
            newest(it) && it.limit.is_some()
        });
        look("consistent lists", requested / WAYS, &|it| {
            newest(it) && it.limit.is_none()
        });
        let gets = Done::new(gets.len() as u64, requested);
        found.extend(gets.falls_short(Promise::FewReads, "gets", "were answered"));
        found
    }

    fn few_initial_events(&self, who: &str, watcher: &Watcher, role: &Role) -> Option<Violation> {
        let every = role.plan.begins_every()?;
        let sessions = watcher.sessions.iter();
        let complete = sessions.filter(|it| it.initial_revision().is_some());
        let done = Done::new(complete.count() as u64, self.times(every));
        let done = Done {
            // However short the run, the last watch has the time to settle.
            least: done.least.max(1),
            ..done
        };
        let what = "starts with initial events were completed";
        done.falls_short(Promise::FewEvents, who, what)
    }

    fn few_resumes(&self, who: &str, watcher: &Watcher, role: &Role) -> Option<Violation> {
        let every = role.plan.resumes_every()?;
        let resumed = watcher.sessions.iter().filter(|it| it.was_resumed());
        let done = Done::new(resumed.count() as u64, self.times(every));
        done.falls_short(Promise::FewResumes, who, "resumes were granted")
    }

    /// Returns how often something happens in the whole run that happens once in this time.
    fn times(&self, every: Duration) -> u64 {
        self.in_all(1.0 / every.as_secs_f64())
    }
}

fn is_done(write: &Write) -> bool {
    write.acknowledged_at().is_some()
}

fn few_events(who: &str, tally: &Tally) -> Option<Violation> {
    let done = Done::new(tally.changes.received, tally.selected);
    let few = done.falls_short(Promise::FewEvents, who, "events were received");
    few.filter(|_| tally.selected >= SAMPLE_MIN)
}

fn form(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "JSON",
        Encoding::Protobuf => "protobuf",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::history::{
        Item, LabelValue, ListedPage, ObjectKey, Refusal, SeenItem, Selector, Session, Start,
        WatchEnd, WriteAnswer,
    };
    use crate::verify::run::watcher::Plan;

    const SECONDS: f64 = 20.0;
    const ENCODINGS: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

    fn flags() -> VerifyFlags {
        VerifyFlags {
            watchers: 3,
            writers: 4,
            readers: 2,
            objects: 40,
            rate: 100.0,
            faults: Vec::new(),
            watchers_only: None,
            resource: None,
        }
    }

    fn writes(count: usize, verb: Verb, encoding: Encoding, is_done: bool) -> Vec<Write> {
        let (at, revision) = (0, None);
        let write = Write {
            key: ObjectKey(0),
            verb,
            base: None,
            group: LabelValue(0),
            encoding,
            invoked: 0,
            answer: match is_done {
                true => WriteAnswer::Acknowledged { at, revision },
                false => WriteAnswer::Refused {
                    at,
                    refusal: Refusal::Conflict,
                },
            },
        };
        vec![write; count]
    }

    fn reads(count: usize, revision_match: RevisionMatch, limit: Option<usize>) -> Vec<ListRead> {
        let read = |encoding| ListRead {
            revision_match,
            selector: Selector::Everything,
            limit,
            encoding,
            pages: Vec::<ListedPage>::new(),
        };
        (0..count).map(|place| read(ENCODINGS[place % 2])).collect()
    }

    /// Returns one that begins with initial events, and one that goes on.
    fn sessions(end: &WatchEnd) -> Vec<Session> {
        let bookmark = Item::Bookmark {
            revision: 5,
            ends_initial: true,
        };
        let session = |start, seen: &[Item]| Session {
            opened: 0,
            start,
            seen: seen.iter().map(|&item| SeenItem { at: 0, item }).collect(),
            end: end.clone(),
        };
        vec![
            session(Start::InitialEvents { any: false }, &[bookmark]),
            session(Start::Resume { after: 5 }, &[]),
        ]
    }

    fn watcher(name: &str, sessions: Vec<Session>) -> Watcher {
        Watcher {
            name: name.to_owned(),
            selector: Selector::Everything,
            sessions,
        }
    }

    fn roles() -> Vec<Role> {
        let plans = [
            Plan::Follow,
            Plan::Short,
            Plan::InitialEvents { any: false },
        ];
        let role = |plan| Role {
            name: String::new(),
            selector: Selector::Everything,
            plan,
            encoding: Encoding::Json,
            is_cluster: false,
        };
        plans.map(role).into()
    }

    fn tally(received: u64, selected: u64) -> Tally {
        let mut tally = Tally {
            selected,
            ..Tally::default()
        };
        tally.changes.received = received;
        tally
    }

    /// Returns a history and tallies with just enough of everything.
    fn enough() -> (History, Vec<Tally>) {
        let history = History {
            writes: [
                writes(10, Verb::Update, Encoding::Json, true),
                writes(30, Verb::Update, Encoding::Json, false),
                writes(30, Verb::Create, Encoding::Protobuf, true),
            ]
            .concat(),
            reads: [
                reads(3, RevisionMatch::Any, None),
                reads(3, RevisionMatch::Exact(5), None),
                reads(3, RevisionMatch::NotOlderThan(5), None),
                reads(6, RevisionMatch::Newest, Some(3)),
                reads(9, RevisionMatch::Newest, None),
            ]
            .concat(),
            gets: vec![
                Get {
                    key: ObjectKey(0),
                    invoked: 0,
                    answered: 0,
                    found: None,
                };
                20
            ],
            watchers: vec![
                watcher("follows", Vec::new()),
                watcher("short", sessions(&WatchEnd::Closed)),
                watcher("begins", sessions(&WatchEnd::Left)),
            ],
            final_read: None,
        };
        (
            history,
            vec![tally(100, 400), tally(0, 19), tally(400, 400)],
        )
    }

    fn found(flags: &VerifyFlags, history: &History, tallies: &[Tally]) -> Vec<String> {
        let minimums = Minimums {
            seconds: SECONDS,
            flags,
            roles: &roles(),
            encodings: &ENCODINGS,
        };
        let found = minimums.check(history, tallies);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn enough_of_everything_is_enough() {
        let (history, tallies) = enough();
        assert_eq!(found(&flags(), &history, &tallies), Vec::<String>::new());
    }

    #[test]
    fn one_less_of_anything_is_too_little() {
        let (mut history, mut tallies) = enough();
        history.writes.remove(0);
        history.reads.remove(0);
        history.gets.remove(0);
        tallies[0].changes.received -= 1;
        let broken = WatchEnd::Broken("at once".to_owned());
        history.watchers[1].sessions[1].end = broken.clone();
        history.watchers[2].sessions = sessions(&broken);
        history.watchers[2].sessions[0].seen.clear();
        assert_eq!(
            found(&flags(), &history, &tallies),
            [
                "few-writes: all writers: 39 of 2,000 writes were acknowledged, at least 40 must be",
                "few-reads: lists of any state: 2 of 13 were answered, at least 3 must be",
                "few-reads: gets: 19 of 80 were answered, at least 20 must be",
                "few-events: watcher follows: 99 of 400 events were received, at least 100 must be",
                "few-resumes: watcher short: 0 of 6 resumes were granted, at least 1 must be",
                "few-events: watcher begins: 0 of 5 starts with initial events were completed, at least 1 must be",
                "few-resumes: watcher begins: 0 of 5 resumes were granted, at least 1 must be",
            ]
        );
    }

    #[test]
    fn a_run_without_anything_falls_short_of_everything() {
        let watchers = ["follows", "short", "begins"];
        let history = History {
            watchers: watchers.map(|name| watcher(name, Vec::new())).into(),
            ..History::default()
        };
        let tallies = [Tally::default(); 3];
        let found = found(&flags(), &history, &tallies);
        for rule in ["few-writes", "few-events", "few-resumes", "few-reads"] {
            assert!(found.iter().any(|it| it.starts_with(rule)), "{found:?}");
        }
    }

    #[test]
    fn writers_that_meet_keep_each_other_from_writing() {
        let (mut history, tallies) = enough();
        let flags = VerifyFlags {
            writers: 100,
            objects: 2,
            ..flags()
        };
        history.writes = [
            writes(20, Verb::Update, Encoding::Json, true),
            writes(1_980, Verb::Update, Encoding::Json, false),
        ]
        .concat();
        assert_eq!(found(&flags, &history, &tallies), Vec::<String>::new());
    }
}
