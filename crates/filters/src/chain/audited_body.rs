//! A response body whose end is recorded.
//!
//! The last frame is held back until the event is stored, where a backend demands that. A body that is dropped earlier,
//! because its client has gone or needs no more of it, is recorded without waiting.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ringwatch_audit::{AuditBody, Recording, Response};
use ringwatch_http::{BoxError, ResponseBody};

/// The part of a body that is kept.
#[derive(Debug)]
pub(super) enum Capture {
    Nothing,
    /// The first frame, if it begins as a Status does.
    Status(AuditBody),
    /// Everything, as far as memory allows.
    All(AuditBody),
}

impl Capture {
    fn add(&mut self, data: &Bytes, recording: &Recording) {
        let keeps = match self {
            Self::Nothing => return,
            Self::Status(body) => {
                let first = body.bytes() == 0;
                body.push(data.clone());
                first && body.looks_like_status()
            }
            Self::All(body) => {
                body.push(data.clone());
                recording.admit(data.len() as u64)
            }
        };
        if !keeps {
            *self = Self::Nothing;
        }
    }

    fn take(&mut self) -> Option<AuditBody> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => None,
            Self::Status(body) | Self::All(body) => Some(body).filter(|it| it.bytes() > 0),
        }
    }
}

/// A body whose end is recorded.
pub(super) struct AuditedBody {
    inner: ResponseBody,
    recording: Arc<Recording>,
    code: u16,
    capture: Capture,
    end: End,
}

/// The progress of the record of the end.
enum End {
    /// There is more to come.
    Open,
    /// The end is being recorded; then this frame is handed out.
    Recording(BoxFuture<'static, ()>, Option<Frame<Bytes>>),
    Recorded,
}

impl AuditedBody {
    pub(super) fn new(
        inner: ResponseBody,
        recording: Arc<Recording>,
        code: u16,
        capture: Capture,
    ) -> Self {
        Self {
            inner,
            recording,
            code,
            capture,
            end: End::Open,
        }
    }

    fn outcome(&mut self) -> Response {
        Response {
            code: self.code,
            body: self.capture.take(),
            ..Response::default()
        }
    }

    fn record_end(&mut self, last: Option<Frame<Bytes>>) {
        let (recording, outcome) = (Arc::clone(&self.recording), self.outcome());
        let storing = Box::pin(async move { recording.complete(outcome).await });
        self.end = End::Recording(storing, last);
    }
}

impl HttpBody for AuditedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            match &mut this.end {
                End::Recorded => return Poll::Ready(None),
                End::Recording(storing, last) => {
                    ready!(storing.as_mut().poll(context));
                    let last = last.take();
                    this.end = End::Recorded;
                    return Poll::Ready(last.map(Ok));
                }
                End::Open => match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
                    Some(Ok(frame)) => {
                        if let Some(data) = frame.data_ref() {
                            this.capture.add(data, &this.recording);
                        }
                        if !this.inner.is_end_stream() {
                            return Poll::Ready(Some(Ok(frame)));
                        }
                        this.record_end(Some(frame));
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => this.record_end(None),
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.end, End::Recorded)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.end {
            End::Recording(_, Some(last)) => {
                SizeHint::with_exact(last.data_ref().map_or(0, Bytes::len) as u64)
            }
            End::Recorded => SizeHint::with_exact(0),
            End::Recording(..) | End::Open => self.inner.size_hint(),
        }
    }
}

impl Drop for AuditedBody {
    /// Records the end of a body that nobody reads to its end.
    fn drop(&mut self) {
        if matches!(self.end, End::Open) {
            let outcome = self.outcome();
            self.recording.complete_now(Some(outcome));
        }
    }
}
