//! The seats of requests in progress.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Instant;
use super::level::{Level, Limits};

#[path = "../../../crates/flowcontrol/src/fairness/seats.rs"]
#[allow(dead_code, reason = "the models need not call everything")]
mod included;

/// The seats of all priority levels.
#[derive(Clone, Debug)]
pub struct Seats(Arc<included::Seats>);

/// A request that has its seats, or waits for them.
#[derive(Debug)]
pub struct SeatRequest(included::SeatRequest);

/// A request that has its seats. Dropping it gives them back.
#[derive(Debug)]
pub struct Seat {
    _inner: included::Seat,
}

impl Seats {
    /// Creates this number of seats, divided among levels.
    pub fn new(total: u32, levels: &[Arc<Level>]) -> Self {
        let seats = included::Seats::new(total, Duration::MAX);
        seats.set_levels(levels);
        Self(Arc::new(seats))
    }

    /// Requests a seat for a request of a flow; `None` if it may not wait.
    pub fn ask(
        &self,
        level: &str,
        limits: Limits,
        flow: &str,
        now: Instant,
    ) -> Option<SeatRequest> {
        let request = self.0.ask(&level.into(), limits, ("s", flow), 1, now);
        request.map(SeatRequest)
    }
}

impl SeatRequest {
    /// Returns true if it has no seat yet.
    pub fn waits(&self) -> bool {
        self.0.waits()
    }

    /// Waits for the seat; `None` when the level is gone.
    pub async fn seated(self) -> Option<Seat> {
        let seat = self.0.seated().await?;
        Some(Seat { _inner: seat })
    }
}
