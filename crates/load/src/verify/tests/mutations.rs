//! One promise is broken in a correct history, and the rule that was broken is the one that is named.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestError, TestRunner};

use super::config;
use super::model::{play, steps};
use crate::verify::checks::{CheckResult, check};
use crate::verify::history::{
    ChangeKind, History, Item, ListedPage, Refusal, RevisionMatch, SeenItem, Selector, Session,
    ShownObject, Start, Verb, WatchEnd, WriteAnswer, WriteId,
};
use crate::verify::violation::Promise;

const CASES: u32 = 128;
/// The least number of cases in which the fault must have found a place.
const PLANTED_MIN: u32 = 4;
/// The most rounds of `CASES` cases that are tried until the fault has found a place in `PLANTED_MIN` cases.
const ROUNDS_MAX: u32 = 16;

/// Plants a fault and says who shows it; `None` if this history has no place for it.
type Fault = fn(&mut History, usize) -> Option<String>;

fn is_found(rule: Promise, fault: Fault) {
    shows(fault, |checked, who| {
        let found = &checked.violations;
        let is_named = found.iter().any(|it| it.rule == rule && it.who == who);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        prop_assert!(
            is_named,
            "{rule} by {who} is not among\n{}",
            found.join("\n")
        );
        Ok(())
    });
}

/// Asserts that after this fault the events that were expected and those that came differ by `lost`.
fn is_counted(fault: Fault, lost: i64) {
    shows(fault, |checked, _| {
        let counts = checked.tallies.iter();
        let counts = counts.flat_map(|tally| [tally.initial, tally.changes]);
        let missing: i64 = counts
            .map(|count| count.expected.cast_signed() - count.received.cast_signed())
            .sum();
        prop_assert_eq!(missing, lost, "{:?}", checked.tallies);
        Ok(())
    });
}

/// Plants a fault in many histories and looks at what each of them comes to.
fn shows(fault: Fault, look: impl Fn(&CheckResult, &str) -> TestCaseResult) {
    let planted = Cell::new(0);
    let mut first = TestRunner::new(config(CASES));
    // Some faults fit into few histories.
    for _ in 0..ROUNDS_MAX {
        let mut runner = TestRunner::new_with_rng(config(CASES), first.new_rng());
        let cases = (steps(), any::<usize>());
        let ran = runner.run(&cases, |(steps, pick)| {
            let mut history = play(&steps);
            let Some(who) = fault(&mut history, pick) else {
                return Ok(());
            };
            planted.set(planted.get() + 1);
            look(&check(&history), &who)
        });
        if let Err(TestError::Fail(reason, _)) = ran {
            panic!("{reason}");
        }
        if planted.get() >= PLANTED_MIN {
            return;
        }
    }
    panic!("only {} planted", planted.get());
}

/// A place in the streams of the watchers.
#[derive(Clone, Copy, Debug)]
struct Place {
    watcher: usize,
    session: usize,
    seen: usize,
}

impl Place {
    fn session(self, history: &mut History) -> &mut Session {
        &mut history.watchers[self.watcher].sessions[self.session]
    }

    fn who(self, history: &History) -> String {
        format!("watcher {}", history.watchers[self.watcher].name)
    }
}

/// Returns one of the places after the initial events of which this holds.
fn place(history: &History, pick: usize, holds: impl Fn(&Session, usize) -> bool) -> Option<Place> {
    let mut places = Vec::new();
    for (watcher, it) in history.watchers.iter().enumerate() {
        for (session, it) in it.sessions.iter().enumerate() {
            let initial = it.split_initial().0.len();
            let fitting = (initial..it.seen.len()).filter(|&seen| holds(it, seen));
            places.extend(fitting.map(|seen| Place {
                watcher,
                session,
                seen,
            }));
        }
    }
    one_of(places, pick)
}

fn one_of<T>(mut candidates: Vec<T>, pick: usize) -> Option<T> {
    let count = candidates.len();
    (count > 0).then(|| candidates.swap_remove(pick % count))
}

fn event(seen: Option<&SeenItem>) -> Option<(ChangeKind, ShownObject)> {
    match seen?.item {
        Item::Event { kind, object } => Some((kind, object)),
        Item::Bookmark { .. } => None,
    }
}

fn is_event(session: &Session, seen: usize) -> bool {
    event(session.seen.get(seen)).is_some()
}

fn is_first_after_resume(session: &Session, seen: usize) -> bool {
    seen == 0 && matches!(session.start, Start::Resume { .. })
}

fn remove(history: &mut History, place: Place) -> Option<String> {
    place.session(history).seen.remove(place.seen);
    Some(place.who(history))
}

fn drop_an_event(history: &mut History, pick: usize) -> Option<String> {
    let place = place(history, pick, |it, seen| {
        is_event(it, seen) && is_event(it, seen + 1) && !is_first_after_resume(it, seen)
    })?;
    remove(history, place)
}

#[test]
fn a_dropped_event() {
    is_found(Promise::NoGap, drop_an_event);
}

#[test]
fn an_event_of_another_object_in_its_place() {
    is_found(Promise::NoGap, |history, pick| {
        let puts = |it: &Session, seen: usize| {
            let is_put =
                event(it.seen.get(seen)).is_some_and(|(kind, _)| kind != ChangeKind::Deleted);
            is_put && !is_first_after_resume(it, seen)
        };
        let place = place(history, pick, puts)?;
        if history.watchers[place.watcher].selector != Selector::Everything {
            return None;
        }
        let seen = &mut place.session(history).seen[place.seen];
        if let Item::Event { object, .. } = &mut seen.item {
            object.key.0 += 1;
        }
        Some(place.who(history))
    });
}

#[test]
fn a_dropped_event_is_expected_and_not_received() {
    is_counted(drop_an_event, 1);
}

fn drop_the_last(history: &mut History, pick: usize) -> Option<String> {
    let place = place(history, pick, |it, seen| {
        let is_last = it.end == WatchEnd::Settled && seen + 1 == it.seen.len();
        is_last && is_event(it, seen) && !is_first_after_resume(it, seen)
    })?;
    remove(history, place)
}

#[test]
fn a_dropped_last_event() {
    is_found(Promise::NoGap, drop_the_last);
}

#[test]
fn another_state_in_the_end() {
    is_found(Promise::FinalState, drop_the_last);
}

#[test]
fn an_event_skipped_by_a_resume() {
    is_found(Promise::Resume, |history, pick| {
        let place = place(history, pick, |it, seen| {
            is_first_after_resume(it, seen) && is_event(it, 0) && is_event(it, 1)
        })?;
        remove(history, place)
    });
}

#[test]
fn an_older_event_after_a_resume() {
    is_found(Promise::Resume, |history, pick| {
        let place = place(history, pick, is_first_after_resume)?;
        let sessions = history.watchers[place.watcher].sessions.iter();
        let known: Vec<u64> = sessions
            .flat_map(|it| {
                let seen = it.seen.iter().map(|seen| seen.item.revision());
                let listed: &[ShownObject] = match &it.start {
                    Start::List { objects, .. } => objects,
                    _ => &[],
                };
                seen.chain(listed.iter().map(|object| object.revision))
            })
            .collect();
        let session = place.session(history);
        let Start::Resume { after } = session.start else {
            return None;
        };
        if known.contains(&(after - 1)) {
            return None;
        }
        let (kind, object) = event(session.seen.first())?;
        let object = ShownObject {
            revision: after - 1,
            ..object
        };
        let at = session.seen[0].at;
        let item = Item::Event { kind, object };
        session.seen.insert(0, SeenItem { at, item });
        Some(place.who(history))
    });
}

fn repeat_an_event(history: &mut History, pick: usize) -> Option<String> {
    let place = place(history, pick, is_event)?;
    let session = place.session(history);
    let again = session.seen[place.seen];
    let to = place.seen + 1 + pick % (session.seen.len() - place.seen);
    session.seen.insert(to, again);
    Some(place.who(history))
}

#[test]
fn a_repeated_event() {
    is_found(Promise::NoDuplicate, repeat_an_event);
}

#[test]
fn a_repeated_event_is_received_and_not_expected() {
    is_counted(repeat_an_event, -1);
}

#[test]
fn an_event_repeated_over_a_resume() {
    is_found(Promise::NoDuplicate, |history, pick| {
        let resumed = place(history, pick, is_first_after_resume)?;
        let before = resumed.session.checked_sub(1)?;
        let sessions = &mut history.watchers[resumed.watcher].sessions;
        let last = *sessions[before].seen.last()?;
        event(Some(&last))?;
        sessions[resumed.session].seen.insert(0, last);
        Some(resumed.who(history))
    });
}

#[test]
fn swapped_events() {
    is_found(Promise::Ordered, |history, pick| {
        let place = place(history, pick, |it, seen| {
            is_event(it, seen) && is_event(it, seen + 1)
        })?;
        let seen = &mut place.session(history).seen;
        seen.swap(place.seen, place.seen + 1);
        Some(place.who(history))
    });
}

#[test]
fn a_bookmark_before_an_event_that_it_covers() {
    is_found(Promise::BookmarkEarly, |history, pick| {
        let place = place(history, pick, is_event)?;
        let seen = &mut place.session(history).seen;
        let at = seen[place.seen].at;
        let item = Item::Bookmark {
            revision: seen[place.seen].item.revision(),
            ends_initial: false,
        };
        seen.insert(place.seen, SeenItem { at, item });
        Some(place.who(history))
    });
}

#[test]
fn a_bookmark_for_an_event_that_never_comes() {
    is_found(Promise::BookmarkEarly, |history, pick| {
        let place = place(history, pick, |it, seen| {
            let rest = (seen + 1)..it.seen.len();
            let covers = !rest.is_empty() && rest.clone().all(|seen| !is_event(it, seen));
            let is_first = is_first_after_resume(it, seen);
            is_event(it, seen) && covers && !is_first && it.end != WatchEnd::Settled
        })?;
        remove(history, place)
    });
}

#[test]
fn a_bookmark_that_goes_back() {
    is_found(Promise::Ordered, |history, pick| {
        let place = place(history, pick, is_event)?;
        let seen = &mut place.session(history).seen;
        let at = seen[place.seen].at;
        let item = Item::Bookmark {
            revision: seen[place.seen].item.revision() - 1,
            ends_initial: false,
        };
        seen.insert(place.seen + 1, SeenItem { at, item });
        Some(place.who(history))
    });
}

#[test]
fn a_wrong_type() {
    is_found(Promise::Transition, |history, pick| {
        let place = place(history, pick, is_event)?;
        let seen = &mut place.session(history).seen[place.seen];
        if let Item::Event { kind, .. } = &mut seen.item {
            *kind = match *kind {
                ChangeKind::Added => ChangeKind::Modified,
                ChangeKind::Modified => ChangeKind::Added,
                ChangeKind::Deleted => return None,
            };
        }
        Some(place.who(history))
    });
}

#[test]
fn a_deletion_with_another_content() {
    is_found(Promise::Transition, |history, pick| {
        let deletes = |it: &Session, seen: usize| {
            matches!(event(it.seen.get(seen)), Some((ChangeKind::Deleted, _)))
        };
        let place = place(history, pick, deletes)?;
        let (_, last) = event(place.session(history).seen.get(place.seen))?;
        let older = history.named_writes().find(|(id, write)| {
            let earlier = matches!(write.answer, WriteAnswer::Acknowledged { revision: Some(at), .. }
                if at < last.revision);
            earlier && write.key == last.key && *id != last.write
        });
        let (write, group) = older.map(|(id, write)| (id, write.group))?;
        let object = ShownObject {
            write,
            group,
            ..last
        };
        let kind = ChangeKind::Deleted;
        place.session(history).seen[place.seen].item = Item::Event { kind, object };
        Some(place.who(history))
    });
}

#[test]
fn an_event_outside_the_selection() {
    is_found(Promise::Transition, |history, pick| {
        let selective = history.watchers.iter().position(|it| {
            let groups = matches!(it.selector, Selector::Groups(_));
            groups && it.sessions.len() == 1
        })?;
        let own: Vec<u64> = history.watchers[selective].sessions[0]
            .seen
            .iter()
            .map(|seen| seen.item.revision())
            .collect();
        let foreign = place(history, pick, |it, seen| {
            event(it.seen.get(seen)).is_some_and(|(kind, object)| {
                kind != ChangeKind::Deleted && !own.contains(&object.revision)
            })
        })?;
        let seen = foreign.session(history).seen[foreign.seen];
        let session = &mut history.watchers[selective].sessions[0];
        let to = own.partition_point(|revision| *revision < seen.item.revision());
        session.seen.insert(to, seen);
        Some(format!("watcher {}", history.watchers[selective].name))
    });
}

#[test]
fn an_object_that_was_never_written() {
    is_found(Promise::NeverWritten, |history, pick| {
        let place = place(history, pick, is_event)?;
        let seen = &mut place.session(history).seen[place.seen];
        if let Item::Event { object, .. } = &mut seen.item {
            object.write = WriteId::FOREIGN;
        }
        Some(place.who(history))
    });
}

#[test]
fn an_object_of_a_refused_write() {
    is_found(Promise::NeverWritten, |history, pick| {
        let refused = history.named_writes().filter(|(_, write)| {
            matches!(write.answer, WriteAnswer::Refused { .. }) && write.verb == Verb::Update
        });
        let refused: Vec<_> = refused.map(|(id, write)| (id, *write)).collect();
        let (id, write) = one_of(refused, pick)?;
        let place = place(history, pick, is_event)?;
        let seen = &mut place.session(history).seen[place.seen];
        if let Item::Event { object, .. } = &mut seen.item {
            (object.write, object.key, object.group) = (id, write.key, write.group);
        }
        Some(place.who(history))
    });
}

#[test]
fn a_deletion_that_came_to_nobody() {
    is_found(Promise::NoGap, |history, pick| {
        let deleted = place(history, pick, |it, seen| {
            matches!(event(it.seen.get(seen)), Some((ChangeKind::Deleted, _)))
        })?;
        let (_, object) = event(deleted.session(history).seen.get(deleted.seen))?;
        let deletes = |kind: &ChangeKind| *kind == ChangeKind::Deleted;
        let is_it = |what: &Item| match what {
            Item::Event { kind, object: it } => deletes(kind) && it.revision == object.revision,
            _ => false,
        };
        let base = history.named_writes().find(|(_, write)| {
            let base = history.write(object.write).map(|it| it.answer);
            let base = match base {
                Some(WriteAnswer::Acknowledged { revision, .. }) => revision,
                _ => None,
            };
            write.acknowledged_at().is_some()
                && write.verb == Verb::Delete
                && write.base.is_some()
                && write.base == base
                && write.key == object.key
        });
        base?;
        for session in history.watchers.iter_mut().flat_map(|it| &mut it.sessions) {
            session.seen.retain(|seen| !is_it(&seen.item));
        }
        Some("watcher w0".to_owned())
    });
}

/// Returns one of the reads of which this holds, and its name.
fn read(
    history: &History,
    pick: usize,
    holds: impl Fn(&crate::verify::history::ListRead) -> bool,
) -> Option<(usize, String)> {
    let reads = history.reads.iter().enumerate();
    let fitting = reads
        .filter(|(_, read)| holds(read))
        .map(|(place, _)| place);
    let place = one_of(fitting.collect(), pick)?;
    Some((place, format!("read {place}")))
}

#[test]
fn a_stale_list() {
    is_found(Promise::StaleRead, |history, pick| {
        let known = |before| {
            history.writes.iter().any(|write| {
                let put = matches!(
                    write.answer,
                    WriteAnswer::Acknowledged {
                        revision: Some(_),
                        ..
                    }
                );
                put && write.acknowledged_at().is_some_and(|at| at < before)
            })
        };
        let (place, who) = read(history, pick, |it| {
            it.revision_match == RevisionMatch::Newest && known(it.invoked())
        })?;
        let read = &mut history.reads[place];
        read.pages.truncate(1);
        let ListedPage {
            revision, objects, ..
        } = &mut read.pages[0];
        *revision = 10;
        objects.clear();
        Some(who)
    });
}

#[test]
fn a_list_of_another_revision() {
    is_found(Promise::ReadRevision, |history, pick| {
        let (place, who) = read(history, pick, |it| {
            matches!(it.revision_match, RevisionMatch::Exact(_))
        })?;
        for page in &mut history.reads[place].pages {
            page.revision += 1;
        }
        Some(who)
    });
}

#[test]
fn a_list_without_an_object() {
    is_found(Promise::Snapshot, |history, pick| {
        let (place, who) = read(history, pick, |it| it.objects().count() > 0)?;
        history.reads[place].pages[0].objects.pop();
        Some(who)
    });
}

#[test]
fn a_list_with_an_older_object() {
    is_found(Promise::Snapshot, |history, pick| {
        let (place, who) = read(history, pick, |it| it.objects().count() > 0)?;
        let object = &mut history.reads[place].pages[0].objects[0];
        object.revision -= 1;
        Some(who)
    });
}

#[test]
fn pages_of_two_revisions() {
    is_found(Promise::MixedPages, |history, pick| {
        let (place, who) = read(history, pick, |it| it.pages.len() > 1)?;
        let pages = &mut history.reads[place].pages;
        let page = 1 + pick % (pages.len() - 1);
        pages[page].revision += 1;
        Some(who)
    });
}

#[test]
fn incomplete_initial_events() {
    is_found(Promise::InitialEvents, |history, pick| {
        let mut places = Vec::new();
        for (watcher, it) in history.watchers.iter().enumerate() {
            for (session, it) in it.sessions.iter().enumerate() {
                let (initial, rest) = it.split_initial();
                if rest.is_empty() {
                    continue;
                }
                let key = |seen: &SeenItem| event(Some(seen)).map(|(_, object)| object.key);
                for (seen, one) in initial.iter().enumerate() {
                    let same = initial.iter().filter(|other| key(other) == key(one));
                    if same.count() == 1 {
                        places.push(Place {
                            watcher,
                            session,
                            seen,
                        });
                    }
                }
            }
        }
        remove(history, one_of(places, pick)?)
    });
}

#[test]
fn initial_events_of_an_old_state() {
    is_found(Promise::InitialEvents, |history, pick| {
        let newest_before = |time| {
            let acknowledged = history.writes.iter().filter_map(|it| match it.answer {
                WriteAnswer::Acknowledged { at, revision } if at < time => revision,
                _ => None,
            });
            acknowledged.max()
        };
        let mut old = Vec::new();
        for (watcher, it) in history.watchers.iter().enumerate() {
            for (session, it) in it.sessions.iter().enumerate() {
                if it.initial_revision() < newest_before(it.opened)
                    && it.initial_revision().is_some()
                {
                    old.push((watcher, session));
                }
            }
        }
        let (watcher, session) = one_of(old, pick)?;
        let watcher = &mut history.watchers[watcher];
        watcher.sessions[session].start = Start::InitialEvents { any: false };
        Some(format!("watcher {}", watcher.name))
    });
}

/// Returns the acknowledged writes with their revisions, by revision.
fn acknowledged(history: &History) -> Vec<(WriteId, u64)> {
    let mut found: Vec<_> = history
        .named_writes()
        .filter_map(|(id, write)| match write.answer {
            WriteAnswer::Acknowledged { revision, .. } => Some((id, revision?)),
            _ => None,
        })
        .collect();
    found.sort_by_key(|(_, revision)| *revision);
    found
}

fn set_revision(history: &mut History, id: WriteId, to: u64) {
    if let WriteAnswer::Acknowledged { revision, .. } = &mut history.writes[id.0 as usize].answer {
        *revision = Some(to);
    }
}

#[test]
fn two_writes_with_one_revision() {
    is_found(Promise::Unique, |history, pick| {
        let writes = acknowledged(history);
        let place = pick % writes.len().checked_sub(1)?.max(1);
        let ((one, revision), (other, _)) = (*writes.get(place)?, *writes.get(place + 1)?);
        set_revision(history, other, revision);
        Some(one.max(other).to_string())
    });
}

#[test]
fn a_write_before_what_was_answered_before_it() {
    is_found(Promise::WriteOrder, |history, pick| {
        let writes = acknowledged(history);
        let place = pick % writes.len().checked_sub(1)?.max(1);
        let ((one, first), (other, second)) = (*writes.get(place)?, *writes.get(place + 1)?);
        let answered = history.write(one)?.acknowledged_at()?;
        if history.write(other)?.invoked <= answered {
            return None;
        }
        set_revision(history, one, second);
        set_revision(history, other, first);
        Some(other.to_string())
    });
}

#[test]
fn a_write_on_another_version() {
    is_found(Promise::LostUpdate, |history, pick| {
        let writes = acknowledged(history);
        let (id, _) = one_of(writes, pick)?;
        let write = &mut history.writes[id.0 as usize];
        write.base = Some(write.base? - 1);
        Some(id.to_string())
    });
}

#[test]
fn two_writes_on_one_version() {
    is_found(Promise::LostUpdate, |history, pick| {
        let updates = acknowledged(history).into_iter().filter(|(id, _)| {
            let write = history.write(*id);
            write.is_some_and(|write| write.base.is_some())
        });
        let (id, _) = one_of(updates.collect(), pick)?;
        let last = acknowledged(history).last()?.1;
        let again = WriteId(u32::try_from(history.writes.len()).expect("few writes"));
        let write = *history.write(id)?;
        history.writes.push(write);
        set_revision(history, again, last + 1);
        Some(again.to_string())
    });
}

/// Returns a get of an object that was changed twice before it, and those two acknowledged writes in their order, of
/// which the first one's answer came before the second began.
fn get_after_two_writes(
    history: &History,
    pick: usize,
) -> Option<(usize, ShownObject, ShownObject)> {
    let version = |(id, revision): (WriteId, u64)| {
        let write = history.write(id)?;
        Some(ShownObject {
            key: write.key,
            revision,
            write: id,
            group: write.group,
        })
    };
    let written: Vec<ShownObject> = acknowledged(history)
        .into_iter()
        .filter_map(version)
        .collect();
    let mut found = Vec::new();
    for (place, get) in history.gets.iter().enumerate() {
        let is_before = |it: &&ShownObject, time| {
            let at = history.write(it.write).and_then(|it| it.acknowledged_at());
            it.key == get.key && at.is_some_and(|at| at < time)
        };
        let mut before = written.iter().filter(|it| is_before(it, get.invoked)).rev();
        let (Some(second), Some(first)) = (before.next(), before.next()) else {
            continue;
        };
        let began = history.write(second.write).map_or(0, |it| it.invoked);
        if is_before(&first, began) {
            found.push((place, *first, *second));
        }
    }
    one_of(found, pick)
}

#[test]
fn a_stale_get() {
    is_found(Promise::Linearizable, |history, pick| {
        let (place, first, _) = get_after_two_writes(history, pick)?;
        history.gets[place].found = Some(first);
        Some(first.key.to_string())
    });
}

/// An object was shown at two versions by one write, as if it had happened twice.
#[test]
fn a_write_that_happened_twice() {
    is_found(Promise::Linearizable, |history, pick| {
        let (place, _, second) = get_after_two_writes(history, pick)?;
        let again = ShownObject {
            revision: second.revision + 1,
            ..second
        };
        history.gets[place].found = Some(again);
        Some(second.key.to_string())
    });
}

#[test]
fn a_get_of_what_was_never_written() {
    is_found(Promise::Linearizable, |history, pick| {
        let (place, _, second) = get_after_two_writes(history, pick)?;
        let foreign = ShownObject {
            write: WriteId::FOREIGN,
            ..second
        };
        history.gets[place].found = Some(foreign);
        Some(second.key.to_string())
    });
}

#[test]
fn an_acknowledged_write_that_was_lost() {
    is_found(Promise::Linearizable, |history, pick| {
        let (place, _, second) = get_after_two_writes(history, pick)?;
        let may_be_deleted = history.writes.iter().any(|write| {
            let deletes = write.key == second.key && write.verb == Verb::Delete;
            deletes && write.may_have_happened()
        });
        if may_be_deleted {
            return None;
        }
        history.gets[place].found = None;
        Some(second.key.to_string())
    });
}

/// Returns true if the answer to a write has told a version. Of another nobody knows which write made it.
fn is_told(history: &History, version: Option<u64>) -> bool {
    let told = acknowledged(history);
    version.is_some_and(|version| told.iter().any(|(_, revision)| *revision == version))
}

#[test]
fn two_conditional_updates_of_one_version() {
    is_found(Promise::Linearizable, |history, pick| {
        let updates = acknowledged(history).into_iter().filter(|(id, _)| {
            let write = history.write(*id);
            write.is_some_and(|write| is_told(history, write.base))
        });
        let (id, _) = one_of(updates.collect(), pick)?;
        let last = acknowledged(history).last()?.1;
        let again = WriteId(u32::try_from(history.writes.len()).expect("few writes"));
        let write = *history.write(id)?;
        history.writes.push(write);
        set_revision(history, again, last + 1);
        Some(write.key.to_string())
    });
}

#[test]
fn a_conflict_that_there_was_not() {
    is_found(Promise::Linearizable, |history, pick| {
        let updates = acknowledged(history).into_iter().filter(|(id, _)| {
            let write = history.write(*id);
            write.is_some_and(|write| is_told(history, write.base))
        });
        let (id, _) = one_of(updates.collect(), pick)?;
        let write = *history.write(id)?;
        let next = history
            .writes
            .iter()
            .find(|it| it.base == write.base && it.key == write.key)?;
        (next.invoked == write.invoked).then_some(())?;
        let others = history.writes.iter().filter(|it| it.key == write.key);
        let are_apart = others
            .filter(|it| it.invoked != write.invoked)
            .all(|it| it.acknowledged_at().is_some_and(|at| at < write.invoked));
        are_apart.then_some(())?;
        let at = write.acknowledged_at()?;
        let refusal = Refusal::Conflict;
        history.writes[id.0 as usize].answer = WriteAnswer::Refused { at, refusal };
        Some(write.key.to_string())
    });
}
