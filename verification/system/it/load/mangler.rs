//! Faults that are planted in the frames of a watch.

use std::sync::Arc;

use bytes::BytesMut;

use super::fault::{Chooser, Fault};

/// A delayed event comes after so many newer ones.
const DELAY_EVENTS: usize = 3;
/// A fault is taken as seen when so many events went out after it. A watch that its client has left
/// ends earlier, perhaps before the client has read what is wrong.
const SEEN_AFTER_EVENTS: usize = 10;
/// Types of events in JSON.
const ADDED: &str = r#""ADDED""#;
const MODIFIED: &str = r#""MODIFIED""#;

/// Cuts a stream into frames: lines in JSON, lengths and messages in protobuf.
#[derive(Debug)]
pub(crate) struct Frames {
    is_json: bool,
    begun: BytesMut,
}

impl Frames {
    pub(crate) fn new(is_json: bool) -> Self {
        Self {
            is_json,
            begun: BytesMut::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
    }

    /// The next whole frame, as it came.
    pub(crate) fn next(&mut self) -> Option<BytesMut> {
        let length = if self.is_json {
            self.begun.iter().position(|byte| *byte == b'\n')? + 1
        } else {
            let length = self.begun.get(..4)?.try_into().expect("four bytes");
            4 + u32::from_be_bytes(length) as usize
        };
        (self.begun.len() >= length).then(|| self.begun.split_to(length))
    }
}

/// Plants a fault among the frames of one watch.
#[derive(Debug)]
pub(crate) struct Mangler {
    fault: Fault,
    is_json: bool,
    chooser: Arc<Chooser>,
    /// True once an event has come. Before that, a missing event might have been skipped by a resume.
    has_begun: bool,
    held: Option<Held>,
    /// Nothing more goes out.
    has_ended: bool,
    /// The number of events that must still go out before the last planted fault is taken as seen.
    unseen: usize,
}

/// An event that is held back.
#[derive(Debug)]
struct Held {
    event: BytesMut,
    /// The number of events that have gone past the one that is held.
    passed: usize,
}

impl Mangler {
    pub(crate) fn new(fault: Fault, is_json: bool, chooser: Arc<Chooser>) -> Self {
        Self {
            fault,
            is_json,
            chooser,
            has_begun: false,
            held: None,
            has_ended: false,
            unseen: 0,
        }
    }

    /// Takes a frame and gives what goes out.
    pub(crate) fn pass(&mut self, frame: &[u8], out: &mut BytesMut) {
        let is_event = ["ADDED", "MODIFIED", "DELETED"]
            .iter()
            .any(|kind| contains(&frame[..frame.len().min(32)], kind.as_bytes()));
        if self.has_ended || (is_event && self.fault == Fault::EndWatches) {
            self.has_ended = true;
            return;
        }
        if !is_event {
            // What a bookmark covers goes before it.
            self.let_go(out);
            out.extend_from_slice(frame);
        } else if self.held.is_some() {
            self.overtake(frame, out);
        } else if self.has_begun && self.suits(frame) && self.chooser.is_chosen() {
            self.plant(frame, out);
        } else {
            out.extend_from_slice(frame);
            self.unseen = self.unseen.saturating_sub(1);
        }
        self.has_begun |= is_event;
    }

    /// Returns true if the watch is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Lets go of what is held.
    pub(crate) fn let_go(&mut self, out: &mut BytesMut) {
        if let Some(held) = self.held.take() {
            if held.passed > 0 {
                self.count();
            } else {
                self.chooser.owe();
            }
            out.extend_from_slice(&held.event);
        }
    }

    /// Returns true if the fault can be planted in this event.
    fn suits(&self, event: &[u8]) -> bool {
        match self.fault {
            Fault::EarlyBookmark => self.is_json,
            Fault::WrongType => self.is_json && contains(event, MODIFIED.as_bytes()),
            Fault::DropEvent | Fault::DuplicateEvent | Fault::SwapEvents | Fault::DelayEvent => {
                true
            }
            _ => false,
        }
    }

    fn plant(&mut self, event: &[u8], out: &mut BytesMut) {
        let text = String::from_utf8_lossy(event);
        match self.fault {
            Fault::DropEvent | Fault::SwapEvents | Fault::DelayEvent => {
                let event = event.into();
                self.held = Some(Held { event, passed: 0 });
                return;
            }
            Fault::DuplicateEvent => out.extend_from_slice(event),
            Fault::EarlyBookmark => out.extend_from_slice(bookmark(&text).as_bytes()),
            Fault::WrongType => {
                let text = text.replacen(MODIFIED, ADDED, 1);
                out.extend_from_slice(text.as_bytes());
                self.count();
                return;
            }
            _ => {}
        }
        out.extend_from_slice(event);
        self.count();
    }

    /// A fault is planted.
    fn count(&mut self) {
        self.chooser.count();
        self.unseen = SEEN_AFTER_EVENTS;
    }

    /// An event comes while another is held.
    fn overtake(&mut self, event: &[u8], out: &mut BytesMut) {
        out.extend_from_slice(event);
        let Some(held) = &mut self.held else {
            return;
        };
        held.passed += 1;
        match self.fault {
            Fault::DropEvent => {
                self.held = None;
                self.count();
            }
            Fault::DelayEvent if held.passed < DELAY_EVENTS => {}
            _ => self.let_go(out),
        }
    }
}

impl Drop for Mangler {
    fn drop(&mut self) {
        if self.unseen > 0 {
            self.chooser.owe();
        }
    }
}

/// A bookmark that says that this event has come.
fn bookmark(event: &str) -> String {
    let (_, rest) = event
        .split_once(r#""resourceVersion":""#)
        .expect("a version");
    let (version, _) = rest.split_once('"').expect("its end");
    format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"Secret","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}}}{}"#,
        '\n'
    )
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
