//! The history as clients saw it: writes and their answers, the events of every watch, the answers to every read.
//!
//! Nothing here comes from inside of a server. A write that was never answered may have happened, or not.

use std::fmt;

use crate::client::Encoding;

/// A time of the run, in nanoseconds since it began.
pub(crate) type Nanos = u64;

/// One of the objects that the writers fight over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey(pub(crate) u32);

/// The type of an object, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectType(pub(crate) u32);

impl ObjectType {
    /// The number of types.
    const COUNT: u32 = 3;

    /// Returns the type of the object of this name, whenever it is created.
    pub(crate) fn from_key(key: ObjectKey) -> Self {
        Self(key.0 % Self::COUNT)
    }
}

/// The value of the label by which watchers select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LabelValue(pub(crate) u8);

impl LabelValue {
    /// The group of an object whose label is not of ours.
    pub(crate) const NONE: Self = Self(u8::MAX);
}

/// A write's place in the history, which every object carries that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WriteId(pub(crate) u32);

impl WriteId {
    /// The write of an object that none of our writes made.
    pub(crate) const FOREIGN: Self = Self(u32::MAX);
}

/// An object as a client was shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShownObject {
    pub(crate) key: ObjectKey,
    pub(crate) revision: u64,
    /// The write that made this content.
    pub(crate) write: WriteId,
    pub(crate) group: LabelValue,
}

/// The kind of a write: which request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Delete,
}

/// A request to change one object, and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) key: ObjectKey,
    pub(crate) verb: Verb,
    /// The version that it demanded to find; a creation demands none.
    pub(crate) base: Option<u64>,
    /// The group that it gave the object; a deletion has that of what it deletes.
    pub(crate) group: LabelValue,
    /// The form in which it was sent.
    pub(crate) encoding: Encoding,
    pub(crate) invoked: Nanos,
    pub(crate) answer: WriteAnswer,
}

/// The answer to a write, as far as it says that the write happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    /// It happened. The answer to a deletion need not name a revision.
    Acknowledged { at: Nanos, revision: Option<u64> },
    /// It did not happen.
    Refused { at: Nanos, refusal: Refusal },
    /// No answer came, or one that does not tell.
    Uncertain,
}

/// The reason of a refusal, as far as it says something of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The object was there, which a creation does not want, or not at the version that a conditional write demands.
    Conflict,
    /// The object was absent.
    NotFound,
    /// Another, such as too many requests.
    Other,
}

impl Write {
    /// Returns true if it may have happened.
    pub(crate) fn may_have_happened(&self) -> bool {
        !matches!(self.answer, WriteAnswer::Refused { .. })
    }

    /// Returns when it was acknowledged.
    pub(crate) fn acknowledged_at(&self) -> Option<Nanos> {
        match self.answer {
            WriteAnswer::Acknowledged { at, .. } => Some(at),
            WriteAnswer::Refused { .. } | WriteAnswer::Uncertain => None,
        }
    }
}

/// The selection of a watcher or reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    Everything,
    /// By label: any of these groups.
    Groups(Vec<LabelValue>),
    /// By field: this name.
    Name(ObjectKey),
    /// By field: every name but this.
    NotName(ObjectKey),
    /// By field: this type.
    Type(ObjectType),
}

impl Selector {
    pub(crate) fn selects(&self, key: ObjectKey, group: LabelValue) -> bool {
        match self {
            Self::Everything => true,
            Self::Groups(groups) => groups.contains(&group),
            Self::Name(name) => *name == key,
            Self::NotName(name) => *name != key,
            Self::Type(of) => *of == ObjectType::from_key(key),
        }
    }

    /// Returns true if an object can leave the selection without being deleted.
    pub(crate) fn can_be_left(&self) -> bool {
        matches!(self, Self::Groups(_))
    }
}

/// A client that follows a selection, over as many watches as it takes.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    pub(crate) name: String,
    pub(crate) selector: Selector,
    pub(crate) sessions: Vec<Session>,
}

/// One watch: a request and what it brought.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) opened: Nanos,
    pub(crate) start: Start,
    pub(crate) seen: Vec<SeenItem>,
    pub(crate) end: WatchEnd,
}

/// The position or state with which a watch began.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// After a list, which showed these objects.
    List {
        revision: u64,
        objects: Vec<ShownObject>,
    },
    /// With the state as initial events. Unless any state was good enough, it had to be the newest.
    InitialEvents { any: bool },
    /// After the last version that the watcher had got.
    Resume { after: u64 },
}

/// The reason why a watch ended, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// The watch has not ended.
    Open,
    /// The server ended it.
    Closed,
    /// The watcher left, to come back.
    Left,
    /// The connection broke.
    Broken(String),
    /// The server said that the position is too old.
    Expired,
    /// The run was over and the watcher had been given the time to see everything.
    Settled,
}

/// Something that came over a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenItem {
    pub(crate) at: Nanos,
    pub(crate) item: Item,
}

/// An item of a watch: an event or a bookmark.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Event {
        kind: ChangeKind,
        object: ShownObject,
    },
    Bookmark {
        revision: u64,
        /// True if it says that the initial events are complete.
        ends_initial: bool,
    },
}

impl Item {
    /// Returns the version up to which the watcher has come with this.
    pub(crate) fn revision(&self) -> u64 {
        match self {
            Self::Event { object, .. } => object.revision,
            Self::Bookmark { revision, .. } => *revision,
        }
    }
}

/// The type of an event about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl Session {
    /// Returns true if the watch was opened at a position and brought something or stayed open: a server may
    /// accept it only to answer at once that the position is too old.
    pub(crate) fn was_resumed(&self) -> bool {
        let is_resume = matches!(self.start, Start::Resume { .. });
        let has_stood = !matches!(self.end, WatchEnd::Expired | WatchEnd::Broken(_));
        is_resume && (has_stood || !self.seen.is_empty())
    }

    /// Returns the items before the initial events were complete, and those with and after their end. Without such an
    /// end all are initial; a watch that did not ask for them has none.
    pub(crate) fn split_initial(&self) -> (&[SeenItem], &[SeenItem]) {
        if !matches!(self.start, Start::InitialEvents { .. }) {
            return (&[], &self.seen);
        }
        let end = self.initial_end().unwrap_or(self.seen.len());
        self.seen.split_at(end)
    }

    /// Returns the revision of which the initial events were the state.
    pub(crate) fn initial_revision(&self) -> Option<u64> {
        let end = self.initial_end()?;
        Some(self.seen[end].item.revision())
    }

    fn initial_end(&self) -> Option<usize> {
        let ends = |seen: &SeenItem| {
            matches!(
                seen.item,
                Item::Bookmark {
                    ends_initial: true,
                    ..
                }
            )
        };
        self.seen.iter().position(ends)
    }
}

/// A list, of one page or several.
#[derive(Clone, Debug)]
pub(crate) struct ListRead {
    pub(crate) revision_match: RevisionMatch,
    pub(crate) selector: Selector,
    /// The most objects that a page could have; `None` for no limit.
    pub(crate) limit: Option<usize>,
    /// The form of the answers.
    pub(crate) encoding: Encoding,
    pub(crate) pages: Vec<ListedPage>,
}

/// The state that a list asks for, by its `resourceVersion` and `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionMatch {
    /// Any state (`resourceVersion=0`).
    Any,
    /// The newest state.
    Newest,
    /// A state not older than this.
    NotOlderThan(u64),
    /// The state of this revision.
    Exact(u64),
}

/// A page of a list: one answer.
#[derive(Clone, Debug)]
pub(crate) struct ListedPage {
    pub(crate) invoked: Nanos,
    pub(crate) answered: Nanos,
    pub(crate) revision: u64,
    pub(crate) objects: Vec<ShownObject>,
}

impl ListRead {
    pub(crate) fn invoked(&self) -> Nanos {
        self.pages.first().map_or(0, |page| page.invoked)
    }

    pub(crate) fn answered(&self) -> Nanos {
        self.pages.last().map_or(0, |page| page.answered)
    }

    /// Returns the revision of the first page, which all have in a correct list.
    pub(crate) fn revision(&self) -> u64 {
        self.pages.first().map_or(0, |page| page.revision)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &ShownObject> {
        self.pages.iter().flat_map(|page| &page.objects)
    }
}

/// A read of one object, which demands its newest state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Get {
    pub(crate) key: ObjectKey,
    pub(crate) invoked: Nanos,
    pub(crate) answered: Nanos,
    /// The object; `None` if it was absent.
    pub(crate) found: Option<ShownObject>,
}

/// Everything that the clients of a run saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) writes: Vec<Write>,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) reads: Vec<ListRead>,
    pub(crate) gets: Vec<Get>,
    /// The read that showed the state after the last write.
    pub(crate) final_read: Option<usize>,
}

impl History {
    pub(crate) fn write(&self, id: WriteId) -> Option<&Write> {
        self.writes.get(id.0 as usize)
    }

    /// Returns all writes with their identities.
    pub(crate) fn named_writes(&self) -> impl Iterator<Item = (WriteId, &Write)> {
        (0..).map(WriteId).zip(&self.writes)
    }

    /// Returns the read of the final state, if the run came to one.
    pub(crate) fn final_state(&self) -> Option<&ListRead> {
        self.reads.get(self.final_read?)
    }
}

/// A time of the run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(pub(crate) Nanos);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0 / 1_000;
        write!(f, "{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object-{:04}", self.0)
    }
}

impl fmt::Display for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ringwatch.load/type-{}", self.0)
    }
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group-{}", self.0)
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FOREIGN {
            f.write_str("none of our writes")
        } else {
            write!(f, "write {}", self.0)
        }
    }
}

impl fmt::Display for ShownObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            revision,
            write,
            group,
        } = self;
        write!(f, "{key} at {revision} ({group}, {write})")
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
        };
        write!(
            f,
            "{}: {verb} {} ({})",
            At(self.invoked),
            self.key,
            self.group
        )?;
        if let Some(base) = self.base {
            write!(f, " if it is at {base}")?;
        }
        match self.answer {
            WriteAnswer::Acknowledged {
                at,
                revision: Some(revision),
            } => write!(f, "; acknowledged at revision {revision}, {}", At(at)),
            WriteAnswer::Acknowledged { at, .. } => write!(f, "; acknowledged, {}", At(at)),
            WriteAnswer::Refused { at, refusal } => {
                let why = match refusal {
                    Refusal::Conflict => " with a conflict",
                    Refusal::NotFound => ", since nothing is there",
                    Refusal::Other => "",
                };
                write!(f, "; refused{why}, {}", At(at))
            }
            WriteAnswer::Uncertain => f.write_str("; never answered"),
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}

impl fmt::Display for SeenItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", At(self.at))?;
        match &self.item {
            Item::Event { kind, object } => write!(f, "{kind} {object}"),
            Item::Bookmark {
                revision,
                ends_initial: false,
            } => write!(f, "BOOKMARK {revision}"),
            Item::Bookmark { revision, .. } => {
                write!(f, "BOOKMARK {revision}, the end of the initial events")
            }
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List { revision, objects } => {
                write!(f, "after a list of {} at {revision}", objects.len())
            }
            Self::InitialEvents { any: true } => f.write_str("with any state as initial events"),
            Self::InitialEvents { any: false } => {
                f.write_str("with the newest state as initial events")
            }
            Self::Resume { after } => write!(f, "after {after}"),
        }
    }
}

impl fmt::Display for ListRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: list ", At(self.invoked()))?;
        match self.revision_match {
            RevisionMatch::Any => f.write_str("any state"),
            RevisionMatch::Newest => f.write_str("the newest state"),
            RevisionMatch::NotOlderThan(revision) => write!(f, "a state not older than {revision}"),
            RevisionMatch::Exact(revision) => write!(f, "the state of {revision}"),
        }?;
        let (pages, objects) = (self.pages.len(), self.objects().count());
        write!(
            f,
            "; answered {objects} objects in {pages} pages at revision {}, {}",
            self.revision(),
            At(self.answered())
        )
    }
}

impl fmt::Display for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: get {}; answered ", At(self.invoked), self.key)?;
        match &self.found {
            Some(version) => write!(f, "{version}")?,
            None => f.write_str("nothing is there")?,
        }
        write!(f, ", {}", At(self.answered))
    }
}
