//! A request that asks to be offloaded, and what polls it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use ringwatch::sync::{Arc, Mutex, MutexGuard};

use crate::work::{LARGE_BYTES, Work, memory_for};

tokio::task_local! {
    /// The state of the request that is being polled.
    static CURRENT: Arc<SharedState>;
}

/// The work for which a request asks to be moved to other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadRequest {
    /// The kind of work.
    pub work: Work,
    /// The bytes of content that it keeps while it waits; 0 where others have them as well.
    pub bytes: usize,
    /// The bytes of memory that it may take; `None` where no content tells.
    pub memory: Option<u64>,
}

/// Moves the request if what it is about to do is work on content of more than [`LARGE_BYTES`].
pub async fn offload_if_large(work: Work, content: &[u8]) {
    if content.len() > LARGE_BYTES {
        let bytes = match work {
            Work::Body | Work::ProtobufBody => content.len(),
            // The cache has the object.
            Work::Object | Work::Expressions | Work::Permissions => 0,
        };
        let memory = Some(memory_for(work, content));
        request_offload(OffloadRequest {
            work,
            bytes,
            memory,
        })
        .await;
    }
}

/// Moves the request before work whose cost its size does not tell.
pub async fn offload(work: Work) {
    request_offload(OffloadRequest {
        work,
        bytes: 0,
        memory: None,
    })
    .await;
}

/// Returns true if nobody waits for the answer of this request any more: its deadline is over or its client is gone.
///
/// Long synchronous work asks this now and then and ends early, with whatever result.
#[must_use]
pub fn is_abandoned() -> bool {
    let abandoned = CURRENT.try_with(|shared| shared.state().abandoned);
    abandoned.unwrap_or(false)
}

async fn request_offload(request: OffloadRequest) {
    let Ok(shared) = CURRENT.try_with(Arc::clone) else {
        return;
    };
    poll_fn(|context| shared.poll_offload(request, context.waker())).await;
}

/// The state of an offloadable request, shared by the request and what polls it.
#[derive(Debug, Default)]
struct SharedState(Mutex<RequestProgress>);

#[derive(Debug, Default)]
struct RequestProgress {
    /// The work for which the request waits to be moved.
    requested: Option<OffloadRequest>,
    /// True once it has been moved.
    offloaded: bool,
    /// True once nobody waits for its answer any more.
    abandoned: bool,
    /// Wakes the parts of the request that wait to be moved.
    wakers: Vec<Waker>,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, RequestProgress> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn poll_offload(&self, request: OffloadRequest, waker: &Waker) -> Poll<()> {
        let mut state = self.state();
        if state.offloaded {
            return Poll::Ready(());
        }
        state.requested = Some(request);
        state.wakers.push(waker.clone());
        Poll::Pending
    }
}

/// A request that may ask to be moved while it is polled.
pub struct OffloadableRequest<T> {
    shared: Arc<SharedState>,
    request: Pin<Box<dyn Future<Output = T> + Send>>,
}

/// The outcome of polling a request where it began.
#[derive(Debug)]
pub enum OffloadProgress<T> {
    /// The request has been answered.
    Answered(T),
    /// The request waits to be moved, since its next step is not done where it began.
    Offload(OffloadRequest, OffloadableRequest<T>),
}

/// Tells a moved request, when dropped, that nobody waits for its answer any more.
#[derive(Debug)]
pub struct AbandonOnDrop(Arc<SharedState>);

impl<T> fmt::Debug for OffloadableRequest<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OffloadableRequest")
            .finish_non_exhaustive()
    }
}

impl<T> OffloadableRequest<T> {
    /// Makes a request that has not begun.
    #[must_use]
    pub fn new(request: Pin<Box<dyn Future<Output = T> + Send>>) -> Self {
        Self {
            shared: Arc::default(),
            request,
        }
    }

    /// Runs the request until it has its answer or asks to be offloaded.
    pub async fn start(mut self) -> OffloadProgress<T> {
        let answer = poll_fn(|context| match self.poll(context) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => match self.shared.state().requested {
                Some(request) => Poll::Ready(Err(request)),
                None => Poll::Pending,
            },
        });
        match answer.await {
            Ok(answer) => OffloadProgress::Answered(answer),
            Err(request) => OffloadProgress::Offload(request, self),
        }
    }

    /// Returns the guard to hold for as long as somebody waits for the answer.
    #[must_use]
    pub fn abandon_on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(Arc::clone(&self.shared))
    }

    /// Runs the rest of the request, where it has been moved to.
    pub async fn resume(mut self) -> T {
        let wakers = {
            let mut state = self.shared.state();
            state.offloaded = true;
            std::mem::take(&mut state.wakers)
        };
        // Of parts that wait side by side only those that were woken may be polled.
        wakers.into_iter().for_each(Waker::wake);
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let request = &mut self.request;
        CURRENT.sync_scope(Arc::clone(&self.shared), || request.as_mut().poll(context))
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.state().abandoned = true;
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::{FuturesUnordered, StreamExt};

    use super::*;

    static CONTENT: [u8; LARGE_BYTES + 2] = [b'x'; LARGE_BYTES + 2];

    #[tokio::test]
    async fn a_request_is_offloaded_once_before_large_work() {
        let request = OffloadableRequest::new(Box::pin(async {
            offload_if_large(Work::Body, &CONTENT[..LARGE_BYTES]).await;
            offload_if_large(Work::Object, &CONTENT[..=LARGE_BYTES]).await;
            offload_if_large(Work::Body, &CONTENT).await;
            offload(Work::Expressions).await;
            "done"
        }));
        let OffloadProgress::Offload(asked, rest) = request.start().await else {
            panic!("it did large work where it began");
        };
        let expected = OffloadRequest {
            work: Work::Object,
            bytes: 0,
            memory: Some(16 * (LARGE_BYTES as u64 + 1)),
        };
        assert_eq!(asked, expected);
        assert_eq!(rest.resume().await, "done");
    }

    #[tokio::test]
    async fn a_small_request_stays() {
        let request = OffloadableRequest::new(Box::pin(async {
            tokio::task::yield_now().await;
            offload_if_large(Work::Body, &CONTENT[..LARGE_BYTES]).await;
        }));
        assert!(matches!(
            request.start().await,
            OffloadProgress::Answered(())
        ));
    }

    #[tokio::test]
    async fn a_part_that_is_polled_only_when_woken_goes_on() {
        let request = OffloadableRequest::new(Box::pin(async {
            let mut parts = FuturesUnordered::new();
            parts.push(offload(Work::Expressions));
            parts.push(offload(Work::Body));
            parts.next().await;
            parts.next().await;
        }));
        let OffloadProgress::Offload(_, rest) = request.start().await else {
            panic!("it stayed");
        };
        rest.resume().await;
    }

    #[tokio::test]
    async fn what_is_no_request_is_not_moved() {
        offload(Work::Expressions).await;
        assert!(!is_abandoned());
    }

    #[tokio::test]
    async fn a_moved_request_learns_that_nobody_waits() {
        let request = OffloadableRequest::new(Box::pin(async {
            offload(Work::Expressions).await;
            is_abandoned()
        }));
        let OffloadProgress::Offload(_, rest) = request.start().await else {
            panic!("it stayed");
        };
        drop(rest.abandon_on_drop());
        assert!(rest.resume().await);
    }
}
