//! Writes the watches of an HTTP/2 connection without the streams of the h2 crate.
//!
//! ```text
//!   requests, other responses: hyper, h2 --frames--> [ Watches ] ---> joined writes, TLS
//!   watches: ring --wakes--> Ready --> DATA frames ------^
//!   client's frames: h2 <--without windows of watches-- [ Watches ] <--- TLS
//! ```
//!
//! In h2 each stream is a task of its own, which takes the connection's lock several times a frame. A watch needs
//! nothing of that: so hyper writes the head of its response, then the connection takes the body ([`body`]), and from
//! there on its own task polls the watches that are ready and writes their DATA frames between those of h2. At the end
//! of a watch hyper's body ends, and h2 ends the stream as any other.
//!
//! A watch is *announced* when its body has yielded the empty frame that tells its stream, and has *gone over* when the
//! connection has seen that frame. A connection's *turn* is one poll of its task: hyper first, then the watches. Both
//! take turns also where the socket is slower than either.
//!
//! Watches that get the same events follow a leader, which is asked once for all of them ([`followers`]).
//!
//! # Invariants
//!
//! - A frame of a watch stands between two frames of h2, and never within a header block.
//! - Of a watch that has gone over, h2 sends no DATA frame but the empty last one, and that after all events.
//! - What h2 may send on the connection and what the watches may is together what the client has granted ([`windows`]).
//!   The window of a watch's stream is kept here alone.

pub(super) mod body;
mod followers;
mod incoming;
mod ready;
mod slot;
mod windows;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::http2_frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FramePosition, HEADER_BYTES, HEADERS, Header,
    RST_STREAM, SETTINGS,
};
use body::Handovers;
use followers::Followers;
use incoming::IncomingBytes;
use slot::{Role, Slot};
use windows::Windows;

/// Maximum payload of a frame that every client takes.
const FRAME_BYTES_MAX: usize = 16 << 10;
/// Maximum number of streams whose windows are known. h2 allows fewer to be open; the watch of one beyond stays with
/// it.
const STREAMS_MAX: usize = 4096;
/// The number of frames that a watch may write before the next one has its turn.
const FRAMES_AT_ONCE_MAX: usize = 4;
/// The number of bytes that h2 may write while watches are ready.
const BYTES_BEFORE_WATCHES: usize = 16 << 10;

/// The longest list of ready watches whose memory is kept while none is ready.
const TURN_KEPT_MAX: usize = 16;

/// A stream that is open.
#[derive(Debug, Default)]
struct OpenStream {
    /// The bytes that the client has granted beyond the initial window, before a watch goes over.
    credit: i64,
    /// The watch, once it has gone over.
    watch: Option<Arc<Slot>>,
}

/// The watches of a connection, and the frames between which theirs are written.
#[derive(Debug)]
pub(super) struct ConnectionWatches {
    handovers: Handovers,
    windows: Windows,
    streams: HashMap<u32, OpenStream>,
    /// The watches whose turn it is, exchanged with the list of ready ones.
    turn: VecDeque<Arc<Slot>>,
    /// The streams of the watches that wait for the connection's window, each once.
    starved: Vec<u32>,
    followers: Followers,
    outgoing: FramePosition,
    /// True if h2 writes a header block, between whose frames no other may be.
    in_header_block: bool,
    incoming: IncomingBytes,
    /// True if h2 is to get a part of the watches' window when it next reads.
    refill_due: bool,
    /// The number of bytes that h2 has written since the watches had their turn.
    since_turn: usize,
}

/// The work that is left after the ready watches were asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FrameProgress {
    /// Nothing until something wakes the task.
    Done,
    /// There is more, once the gathered bytes are written.
    Full,
}

impl ConnectionWatches {
    pub(super) fn new(handovers: Handovers) -> Self {
        Self {
            handovers,
            windows: Windows::default(),
            streams: HashMap::new(),
            turn: VecDeque::new(),
            starved: Vec::new(),
            followers: Followers::default(),
            outgoing: FramePosition::default(),
            in_header_block: false,
            incoming: IncomingBytes::default(),
            refill_due: false,
            since_turn: 0,
        }
    }

    /// Takes bytes that h2 writes and appends what goes to the client, which are at most as many beyond a header that
    /// was incomplete. Returns how many were taken; all of them unless the room is too small.
    pub(super) fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> usize {
        let all = bytes.len();
        while !bytes.is_empty() {
            let room = bytes_max.saturating_sub(out.len());
            if self.outgoing.left > 0 {
                let fits = self.outgoing.take_payload(&bytes[..bytes.len().min(room)]);
                if fits == 0 {
                    break;
                }
                out.extend_from_slice(&bytes[..fits]);
                bytes = &bytes[fits..];
                continue;
            }
            if room < HEADER_BYTES || self.has_turn() {
                break;
            }
            let (taken, header) = self.outgoing.take_header(bytes);
            bytes = &bytes[taken..];
            if let Some(header) = header
                && self.sent(header)
            {
                out.extend_from_slice(&header.encode());
            }
        }
        let taken = all - bytes.len();
        self.since_turn += taken;
        taken
    }

    /// Notes that h2 has written every frame that it had taken from its streams.
    pub(super) fn h2_flushed(&self) {
        self.handovers.settle();
    }

    /// Returns true if watches are ready and h2 has to wait at the end of its frame, since it has written enough. Else
    /// an answer of any length would come before them whenever the socket is slower than h2.
    pub(super) fn has_turn(&self) -> bool {
        self.since_turn >= BYTES_BEFORE_WATCHES
            && self.outgoing.is_between_frames()
            && !self.in_header_block
            && (!self.turn.is_empty() || self.handovers.ready().has_entries())
    }

    /// Notes a frame that h2 writes. Returns false if it is not for the client.
    fn sent(&mut self, header: Header) -> bool {
        match header.kind {
            DATA if header.length == 0 && header.flags == 0 => {
                return !self.take_over(header.stream);
            }
            DATA => {
                self.windows.sent_by_h2(header.length as i64);
                self.refill_due |= self.windows.is_refill_due();
            }
            HEADERS | CONTINUATION => self.in_header_block = !header.has(END_HEADERS),
            SETTINGS if header.has(ACK) && self.windows.acknowledged() => self.wake_all(),
            _ => {}
        }
        let ends = matches!(header.kind, DATA | HEADERS) && header.has(END_STREAM);
        if ends || header.kind == RST_STREAM {
            self.forget(header.stream);
        }
        true
    }

    /// Takes the watch that has been announced. Returns false if there is none.
    fn take_over(&mut self, number: u32) -> bool {
        let Some(slot) = self.handovers.take_announced() else {
            return false;
        };
        match self.streams.get_mut(&number) {
            Some(stream) if stream.watch.is_none() => {
                let mut state = slot.lock();
                state.stream = number;
                state.credit = stream.credit;
                drop(state);
                stream.watch = Some(Arc::clone(&slot));
                Waker::from(slot).wake();
            }
            _ => slot.give_back(),
        }
        true
    }

    /// Forgets a stream that has ended. Nothing more is written on it.
    fn forget(&mut self, number: u32) {
        let stream = self.streams.remove(&number);
        if let Some(slot) = stream.and_then(|it| it.watch) {
            if slot.lock().starved {
                self.starved.retain(|it| *it != number);
            }
            self.followers.forget(&slot);
            slot.close();
        }
    }

    /// Returns true, once, if h2 is to read since it gets a part of the watches' window.
    pub(super) fn take_refill_due(&mut self) -> bool {
        std::mem::take(&mut self.refill_due)
    }

    /// Asks all watches again, since their windows have grown.
    fn wake_all(&self) {
        let watches = self.streams.values().filter_map(|it| it.watch.as_ref());
        watches.for_each(|it| Waker::from(Arc::clone(it)).wake());
    }

    /// Returns true if there is at most one watch, so that no others come to be ready with it.
    pub(super) fn are_few(&self) -> bool {
        self.streams.len() <= 1
    }

    /// Appends frames of the watches that are ready, as long as they fit.
    pub(super) fn write(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> FrameProgress {
        if self.outgoing.left > 0 || self.in_header_block {
            // h2 waits for room to write the rest.
            return FrameProgress::Done;
        }
        self.since_turn = 0;
        loop {
            let Some(slot) = self.turn.pop_front() else {
                self.handovers.ready().take(&mut self.turn, context.waker());
                if self.turn.is_empty() {
                    if self.turn.capacity() > TURN_KEPT_MAX {
                        self.turn = VecDeque::new();
                    }
                    return FrameProgress::Done;
                }
                continue;
            };
            if self.write_one(&slot, out, bytes_max) == FrameProgress::Full {
                self.turn.push_front(slot);
                return FrameProgress::Full;
            }
        }
    }

    /// Appends frames of one watch. `Full` if the next does not fit.
    fn write_one(
        &mut self,
        slot: &Arc<Slot>,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> FrameProgress {
        slot.taken();
        let waker = Waker::from(Arc::clone(slot));
        let mut context = Context::from_waker(&waker);
        let role = slot.lock().role;
        match role {
            Role::Leads(class) => {
                return self.write_followers(class, &mut context, out, bytes_max);
            }
            Role::Follows(class) => match self.write_leader_of(slot, class, out, bytes_max) {
                Some(FrameProgress::Done) => {}
                Some(FrameProgress::Full) => return FrameProgress::Full,
                None => return FrameProgress::Done,
            },
            Role::Alone | Role::Lone(_) => {}
        }
        let mut state = slot.lock();
        for _ in 0..FRAMES_AT_ONCE_MAX {
            if !state.poll_chunk(&mut context) {
                drop(state);
                self.followers.note_idle(slot, self.handovers.ready());
                return FrameProgress::Done;
            }
            let of_stream = self.windows.initial() + state.credit;
            let of_connection = self.windows.of_watches();
            let most = FRAME_BYTES_MAX
                .min(bytes_max - HEADER_BYTES)
                .min(state.left());
            let allowed = of_stream.min(of_connection).min(most as i64);
            let Some(bytes) = usize::try_from(allowed).ok().filter(|bytes| *bytes > 0) else {
                state.hold_back();
                if of_stream > 0 && !state.starved {
                    state.starved = true;
                    self.starved.push(state.stream);
                }
                return FrameProgress::Done;
            };
            if out.len() + HEADER_BYTES + bytes > bytes_max {
                return FrameProgress::Full;
            }
            if out.capacity() == 0 {
                out.reserve_exact(if self.are_few() {
                    HEADER_BYTES + bytes
                } else {
                    bytes_max
                });
            }
            out.extend_from_slice(&data_header(state.stream, bytes));
            state.write(bytes, out);
            self.windows.sent_by_watch(allowed);
        }
        drop(state);
        waker.wake();
        FrameProgress::Done
    }
}

/// Encodes the header of a DATA frame of so many bytes.
fn data_header(stream: u32, bytes: usize) -> [u8; HEADER_BYTES] {
    let header = Header {
        length: bytes,
        kind: DATA,
        flags: 0,
        stream,
    };
    header.encode()
}

impl Drop for ConnectionWatches {
    /// Empties the list of ready watches, which they and their wakers keep alive.
    fn drop(&mut self) {
        self.handovers.ready().close();
    }
}

#[cfg(test)]
mod tests;
