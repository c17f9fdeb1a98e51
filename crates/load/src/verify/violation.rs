//! A rule that was broken, by whom, and the part of the history that shows it.

use std::fmt;

/// The most lines of history that a violation shows.
pub(crate) const EVIDENCE_LINES_MAX: usize = 12;

/// A promise that must hold. The first seven are etcd's guarantees for watches and what Kubernetes makes of them;
/// without the last four the others would hold since nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Promise {
    /// A revision is one change of one object, and a write happens once.
    Unique,
    /// Versions rise along a watch.
    Ordered,
    /// No event comes twice, over resumes either.
    NoDuplicate,
    /// Between the start of a watch and its position no event is left out.
    NoGap,
    /// A bookmark comes after every event that it covers.
    BookmarkEarly,
    /// A resumed watch goes on right after the position.
    Resume,
    /// Entering a selection is ADDED, staying MODIFIED, leaving DELETED with the last object inside.
    Transition,
    /// Every object that is shown was written, as it was written.
    NeverWritten,
    /// The initial events are, at their end, the state of one revision, and the newest if asked for.
    InitialEvents,
    /// A write that begins after another's answer has the later revision.
    WriteOrder,
    /// A conditional write happens on the version that it demands.
    LostUpdate,
    /// The writes and consistent reads of an object happened one after the other, each between request and answer.
    Linearizable,
    /// A consistent read is not older than what was known before it began.
    StaleRead,
    /// A read that names a revision is answered accordingly.
    ReadRevision,
    /// A list is the state of its revision.
    Snapshot,
    /// The pages of a list are of one revision.
    MixedPages,
    /// In the end every watcher has the state that the list shows.
    FinalState,
    /// Enough writes were acknowledged, of every kind.
    FewWrites,
    /// Every watcher has got enough events.
    FewEvents,
    /// Every watcher that comes back went on where it was often enough.
    FewResumes,
    /// Enough lists were answered, of every kind.
    FewReads,
}

impl Promise {
    /// Returns the name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Ordered => "ordered",
            Self::NoDuplicate => "no-duplicate",
            Self::NoGap => "no-gap",
            Self::BookmarkEarly => "bookmark-early",
            Self::Resume => "resume",
            Self::Transition => "selector-transition",
            Self::NeverWritten => "never-written",
            Self::InitialEvents => "initial-events",
            Self::WriteOrder => "write-order",
            Self::LostUpdate => "lost-update",
            Self::Linearizable => "linearizable",
            Self::StaleRead => "stale-read",
            Self::ReadRevision => "read-revision",
            Self::Snapshot => "snapshot",
            Self::MixedPages => "mixed-pages",
            Self::FinalState => "final-state",
            Self::FewWrites => "few-writes",
            Self::FewEvents => "few-events",
            Self::FewResumes => "few-resumes",
            Self::FewReads => "few-reads",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule, by whom, and the history that shows it.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: Promise,
    /// The watcher, read or write that shows it.
    pub(crate) who: String,
    /// The message, a sentence.
    pub(crate) message: String,
    /// The part of the history that shows it.
    pub(crate) evidence: Vec<String>,
}

impl Violation {
    pub(crate) fn new(rule: Promise, who: impl Into<String>, message: String) -> Self {
        Self {
            rule,
            who: who.into(),
            message,
            evidence: Vec::new(),
        }
    }

    /// Adds a line of history; what is too much is left out.
    pub(crate) fn shown_by(mut self, line: impl fmt::Display) -> Self {
        if self.evidence.len() < EVIDENCE_LINES_MAX {
            self.evidence.push(line.to_string());
        }
        self
    }

    /// Adds several lines of history, as far as there is room.
    pub(crate) fn shown_by_all<T: fmt::Display>(self, lines: impl IntoIterator<Item = T>) -> Self {
        lines.into_iter().fold(self, Self::shown_by)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.who, self.message)?;
        self.evidence
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}
