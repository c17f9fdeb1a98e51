//! The events of a watch in their encoding, joined to chunks.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use ringwatch::clock::{Clock, Instant};
use ringwatch::meta::WatchEvent;
use ringwatch::storage::{StorageError, WatchStream};
use ringwatch_registry::Verb;
use ringwatch_spans::Span;

use crate::encoding::{EventEncoder, EventType};
use crate::errors::{About, Failure};
use crate::event_sizes::Tally;
use crate::metrics::WatchCounts;

/// Maximum number of bytes of a chunk of events: as many as fit into a TLS record and an HTTP/2 frame.
pub(super) const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// The events of a watch, or of a leader.
#[derive(Debug)]
pub(super) struct EventChunks {
    pub(super) events: WatchStream,
    pub(super) encoder: EventEncoder,
    /// True if each event is a chunk of its own.
    pub(super) one_by_one: bool,
    /// True if an error ends the events without a word, since each watch that follows finds it itself.
    pub(super) leads: bool,
    /// The counters of sent events and bytes, labelled by resource.
    pub(super) counts: WatchCounts,
    /// The sizes of the events in the chunk that is being made.
    pub(super) tally: Tally,
    /// The revision of the last event or bookmark that was written.
    pub(super) reached: u64,
    /// The initial events, until all are sent.
    pub(super) initial: InitialEvents,
    /// The event that did not fit into the last chunk.
    pub(super) next: Option<Bytes>,
    /// True if `next` is the last event.
    pub(super) ended: bool,
    /// True if that is because an event could not be encoded.
    pub(super) failed: bool,
}

/// The initial events of a watch.
#[derive(Debug)]
pub(super) struct InitialEvents {
    /// The clock of the metrics.
    pub(super) clock: Clock,
    /// The time at which the watch was requested.
    pub(super) begun: Instant,
    /// The span, if the watch is traced; dropped once they are sent.
    pub(super) span: Span,
}

impl EventChunks {
    /// Creates the chunks of a watch of which nothing was sent.
    pub(super) fn new(
        events: WatchStream,
        encoder: EventEncoder,
        counts: WatchCounts,
        initial: InitialEvents,
    ) -> Self {
        Self {
            events,
            encoder,
            one_by_one: false,
            leads: false,
            counts,
            tally: Tally::default(),
            reached: 0,
            initial,
            next: None,
            ended: false,
            failed: false,
        }
    }

    /// Returns the chunks of another watch of the same events, in the same form; `None` if the form depends on what was
    /// sent before.
    pub(super) fn of_leader(&self) -> Option<Self> {
        let encoder = self.encoder.shared()?;
        let events = self.events.leader()?;
        let initial = InitialEvents {
            clock: self.initial.clock.clone(),
            begun: self.initial.begun,
            span: Span::default(),
        };
        Some(Self {
            leads: true,
            reached: self.reached,
            ..Self::new(events, encoder, self.counts.clone(), initial)
        })
    }

    /// Returns true if nothing is left of what the events have yielded.
    pub(super) fn is_between_events(&self) -> bool {
        self.next.is_none() && !self.ended
    }

    /// Returns the queued events, joined as far as they fit into a chunk; `None` at the end.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(first) = std::task::ready!(self.poll_event(context)) else {
            return Poll::Ready(None);
        };
        if self.one_by_one {
            return Poll::Ready(Some(first));
        }
        let mut joined = BytesMut::new();
        while let Poll::Ready(Some(event)) = self.poll_event(context) {
            if joined.len().max(first.len()) + event.len() > CHUNK_BYTES_MAX {
                self.next = Some(event);
                break;
            }
            if joined.is_empty() {
                joined.reserve(CHUNK_BYTES_MAX);
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&event);
        }
        let chunk = if joined.is_empty() {
            first
        } else {
            joined.freeze()
        };
        Poll::Ready(Some(chunk))
    }

    /// Counts the events of a chunk that is to be sent, and returns how many they are.
    pub(super) fn count_chunk(&mut self) -> u64 {
        self.counts.chunk(&mut self.tally)
    }

    /// Polls for the next event in its encoding; `None` at the end, which also follows an error.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(next));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let event = match Pin::new(&mut self.events).poll_next(context) {
            Poll::Ready(event) => event,
            Poll::Pending => return Poll::Pending,
        };
        let written = match event {
            Some(Ok(event)) => self.write(event),
            Some(Err(error)) if !self.leads => Err(self.fail(&error)),
            Some(Err(_)) | None => {
                self.ended = true;
                return Poll::Ready(None);
            }
        };
        Poll::Ready(Some(written.unwrap_or_else(|failure| {
            (self.ended, self.failed) = (true, true);
            self.encoder.error(&failure)
        })))
    }

    /// Goes on after the last chunk of a leader, which may have an event that did not fit into it.
    pub(super) fn take_over(&mut self, leader: &Self) {
        self.events.take_over(&leader.events);
        self.reached = leader.reached;
        self.next.clone_from(&leader.next);
        // Other ends are found by the watch itself.
        (self.ended, self.failed) = (leader.failed, leader.failed);
    }

    fn write(&mut self, event: WatchEvent) -> Result<Bytes, Failure> {
        self.reached = event.revision();
        let written = match event {
            WatchEvent::Added(object) => self.encoder.event(EventType::Added, &object),
            WatchEvent::Modified(object) | WatchEvent::Replaced { object, .. } => {
                self.encoder.event(EventType::Modified, &object)
            }
            WatchEvent::Deleted(object) => self.encoder.event(EventType::Deleted, &object),
            WatchEvent::Bookmark {
                revision,
                initial_events_end,
            } => {
                if initial_events_end {
                    let initial = &mut self.initial;
                    let took = initial.clock.now() - initial.begun;
                    self.counts.state_sent(&initial.span, took.as_secs_f64());
                    initial.span = Span::default();
                }
                self.encoder.bookmark(revision, initial_events_end)
            }
        }?;
        self.counts.event(&mut self.tally, written.len());
        Ok(written)
    }

    fn fail(&self, error: &StorageError) -> Failure {
        let about = About {
            resource: self.encoder.store().resource(),
            name: "",
            verb: Verb::Watch,
        };
        Failure::from_storage_error(error, about)
    }
}
