//! The requests for values that types wait for.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::decryption_request::{ValueAnswer, decrypt};
use super::feed_shared::FeedShared;
use super::followed_types::FollowedTypes;
use crate::clock::Instant;

/// The requests in flight, at most one of each type.
#[derive(Debug, Default)]
pub(crate) struct ValueRequests {
    in_flight: FuturesUnordered<BoxFuture<'static, ValueAnswer>>,
    next_ticket: u64,
}

impl ValueRequests {
    /// Requests the values that types wait for, if they are due and have not been requested. Returns when the next one
    /// is due.
    pub(crate) fn send(
        &mut self,
        types: &mut FollowedTypes,
        feed: &Arc<FeedShared>,
    ) -> Option<Instant> {
        let now = feed.clock.now();
        while let Some((id, encrypted)) = types.next_encrypted(self.next_ticket, now) {
            let (ticket, feed) = (self.next_ticket, Arc::clone(feed));
            self.next_ticket += 1;
            let answer = async move {
                let value = decrypt(&feed, encrypted).await;
                ValueAnswer { id, ticket, value }
            };
            self.in_flight.push(answer.boxed());
        }
        types.next_encrypted_due()
    }

    /// Returns the next answer; `None` if nothing is requested.
    pub(crate) async fn next(&mut self) -> Option<ValueAnswer> {
        self.in_flight.next().await
    }

    /// Forgets what is requested.
    pub(crate) fn forget(&mut self) {
        self.in_flight = FuturesUnordered::new();
    }
}
