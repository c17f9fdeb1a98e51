//! The documents of a server, one after the other: of its stream, or made of its metrics.

use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_load::{Pieces, Remote, RemoteError};
use ringwatch_observe::status::findings::findings;
use ringwatch_observe::status::{STATE_PATH, STREAM_EVENT, STREAM_PATH, ServerState};

use crate::TopError;
use crate::metrics;

/// The path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// The interval between two scrapes of a server without a stream, whose metrics take it some work; the second comes
/// sooner, since rates are made of two.
const SCRAPE_PERIOD: Duration = Duration::from_secs(5);
const SECOND_SCRAPE_DELAY: Duration = Duration::from_secs(1);

/// The delay before a stream that has ended is opened again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum number of bytes of a document: that of 10,000 types.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;

/// The documents of a server.
#[derive(Debug)]
pub(crate) struct Documents {
    remote: Remote,
    clock: Clock,
    from: From,
    /// The state that was made of the last scrape; `None` before the first, and of a stream.
    scraped: Option<ServerState>,
    /// The number of scrapes so far.
    scrapes: u64,
}

#[derive(Debug)]
enum From {
    /// The stream, with the bytes of it that make no whole document yet; `None` until it is opened again.
    Stream(Option<(Pieces, Vec<u8>)>),
    /// The metrics.
    Metrics,
}

impl Documents {
    /// Finds out what the server has.
    ///
    /// # Errors
    /// It cannot be reached, or the user may read neither.
    pub(crate) async fn open(mut remote: Remote, clock: Clock) -> Result<Self, TopError> {
        let from = match remote.stream(STREAM_PATH).await {
            Ok(pieces) => From::Stream(Some((pieces, Vec::new()))),
            // Another API server knows no such path, and a proxy may refuse it in another way.
            Err(RemoteError::Refused {
                code: 404 | 405, ..
            }) => From::Metrics,
            // A server asks what the user may do before it looks whether it has the path.
            Err(error @ RemoteError::Refused { code: 403, .. }) => {
                if remote.get(METRICS_PATH).await.is_err() {
                    return Err(unread(&remote, STREAM_PATH, error));
                }
                From::Metrics
            }
            Err(error) => return Err(unread(&remote, STREAM_PATH, error)),
        };
        Ok(Self {
            remote,
            clock,
            from,
            scraped: None,
            scrapes: 0,
        })
    }

    /// Returns true if there is more to ask than what the documents say.
    pub(crate) fn are_whole(&self) -> bool {
        matches!(self.from, From::Stream(_))
    }

    /// Waits for the next document.
    pub(crate) async fn next(mut self) -> (Self, Result<ServerState, TopError>) {
        let next = match &mut self.from {
            From::Stream(None) => self.open_again().await,
            From::Stream(Some((pieces, rest))) => next_event(pieces, rest)
                .await
                .map_err(|error| unread(&self.remote, STREAM_PATH, error)),
            From::Metrics => self.scrape().await,
        };
        if next.is_err()
            && let From::Stream(stream) = &mut self.from
        {
            *stream = None;
        }
        (self, next)
    }

    /// Opens the stream again. The state is asked for, since it comes sooner than the first of the stream.
    async fn open_again(&mut self) -> Result<ServerState, TopError> {
        self.clock.sleep(RETRY_DELAY).await;
        let opened = self.remote.stream(STREAM_PATH).await;
        let pieces = opened.map_err(|error| unread(&self.remote, STREAM_PATH, error))?;
        let json = self.remote.get(STATE_PATH).await;
        let json = json.map_err(|error| unread(&self.remote, STATE_PATH, error))?;
        self.from = From::Stream(Some((pieces, Vec::new())));
        serde_json::from_slice(&json).map_err(|error| TopError::Unknown {
            path: STATE_PATH,
            address: self.remote.address().to_owned(),
            why: error.to_string(),
        })
    }

    async fn scrape(&mut self) -> Result<ServerState, TopError> {
        match self.scrapes {
            0 => {}
            1 => self.clock.sleep(SECOND_SCRAPE_DELAY).await,
            _ => self.clock.sleep(SCRAPE_PERIOD).await,
        }
        self.scrapes += 1;
        let text = self.remote.get(METRICS_PATH).await;
        let text = text.map_err(|error| unread(&self.remote, METRICS_PATH, error))?;
        let text = String::from_utf8_lossy(&text);
        let mut state = metrics::state(&text, self.clock.wall());
        state.findings = findings(&state, self.scraped.as_ref());
        self.scraped = Some(state.clone());
        Ok(state)
    }
}

fn unread(remote: &Remote, path: &'static str, error: RemoteError) -> TopError {
    TopError::Read {
        path,
        address: remote.address().to_owned(),
        error,
    }
}

/// Returns the document of the next event of a stream.
async fn next_event(pieces: &mut Pieces, rest: &mut Vec<u8>) -> Result<ServerState, RemoteError> {
    loop {
        if let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = rest.drain(..end + 2).collect();
            match document(&event) {
                Some(document) => return document,
                None => continue,
            }
        }
        if rest.len() > DOCUMENT_BYTES_MAX {
            return Err(RemoteError::Broken("a document is too long".to_owned()));
        }
        match pieces.next().await? {
            Some(piece) => rest.extend_from_slice(&piece),
            None => return Err(RemoteError::Broken("the stream has ended".to_owned())),
        }
    }
}

/// Returns the document of an event; `None` if it is another event.
fn document(event: &[u8]) -> Option<Result<ServerState, RemoteError>> {
    let event = std::str::from_utf8(event).ok()?;
    let field = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    if field("event") != Some(STREAM_EVENT) {
        return None;
    }
    let document = serde_json::from_str(field("data")?);
    Some(document.map_err(|error| {
        RemoteError::Broken(format!("the document is of another version: {error}"))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_events_are_passed_over_and_other_documents_refused() {
        assert!(document(b": a comment\n\n").is_none());
        assert!(document(b"event: other\ndata: {}\n\n").is_none());
        let refused = document(b"event: state\ndata: {}\n\n").expect("a document");
        assert!(refused.is_err());
    }
}
