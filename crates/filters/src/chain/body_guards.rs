//! Places that the body of a response holds until it is sent or dropped.

use ringwatch_flowcontrol::fairness::{CountedWatch, Turn};
use ringwatch_http::{Body, BodyGuard, CancellationFlag};
use ringwatch_observe::running_requests::RunningRequest;

use crate::drain::OpenWatch;
use crate::in_flight::Permit;

/// A place among the requests in flight, the request's seats, and its place among those that run.
#[derive(Debug)]
struct RequestGuard {
    _permit: Permit,
    _turn: Option<Turn>,
    running: RunningRequest,
}

impl BodyGuard for RequestGuard {
    fn sent(&self, bytes: usize) {
        self.running.sent(bytes);
    }
}

/// A place among the watches of a user, and one among the watches that end one by one.
#[derive(Debug)]
struct WatchGuard {
    _place: Option<CountedWatch>,
    _open: Option<OpenWatch>,
}

impl BodyGuard for WatchGuard {}

/// Returns a body that holds a place among the requests in flight, the request's seats, and its place among those that
/// run.
pub(super) fn guard_request(
    body: Body,
    permit: Permit,
    turn: Option<Turn>,
    running: RunningRequest,
) -> Body {
    let guard = RequestGuard {
        _permit: permit,
        _turn: turn,
        running,
    };
    Body::holding(body, Box::new(guard))
}

/// Returns the body of a watch or stream, which ends when it is its turn, or else when all watches do.
pub(super) fn guard_watch(
    body: Body,
    open: Option<OpenWatch>,
    place: Option<CountedWatch>,
    end_of_watches: &CancellationFlag,
) -> Body {
    let end = open.as_ref().map_or(end_of_watches, OpenWatch::end).clone();
    if open.is_none() && place.is_none() {
        return Body::until(body, &end, None);
    }
    let guard = WatchGuard {
        _place: place,
        _open: open,
    };
    Body::until(body, &end, Some(Box::new(guard)))
}
