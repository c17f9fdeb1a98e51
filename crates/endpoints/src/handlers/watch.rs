//! Watches the objects of a namespace, or of all: GET with `watch=true`.
//!
//! The hard part is batching: all pending events are sent as one chunk, so that a burst costs one write instead of one
//! for each event. A single event is sent as it is, with the same bytes for every watch. The stream ends at its
//! deadline, or after an error.

mod chunks;
mod shared;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use ringwatch::budget::Share;
use ringwatch::clock::{Clock, Instant, Timer};
use ringwatch::codec::FRAME_LENGTH_BYTES;
use ringwatch::storage::cacher::BOOKMARK_BEFORE_DEADLINE;
use ringwatch_apimachinery::upgrade::is_web_socket;
use ringwatch_http::{BoxError, EventStream, ResponseBody};
use ringwatch_observe::ClientSummary;
use ringwatch_observe::open_watches::WatchTarget;

use crate::call::{Call, WatchTerms};
use crate::errors::Failure;
use crate::metrics::LongRunning;
use crate::negotiation::Format;
use crate::respond::respond;
use crate::spans::WatchSpans;
use crate::websocket;
use chunks::{EventChunks, InitialEvents};
use shared::SharedWatch;

/// The time before its deadline from which on a watch follows no other, since it gets its last bookmark itself. It
/// takes over some time before that bookmark.
const ENDING: Duration = BOOKMARK_BEFORE_DEADLINE.saturating_mul(2);

/// Answers with a stream of events.
///
/// # Errors
/// 400 and 422 for bad parameters, 406, 429 while the cache is not ready. Later errors are sent
/// in the stream.
pub(crate) async fn watch(
    call: &Call<'_>,
    terms: WatchTerms,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.list_output()?;
    let mut params = call.list_params()?;
    if !call.name().is_empty() {
        params.select_name(call.name())?;
    }
    let timeout = params
        .timeout()
        .unwrap_or_else(|| between_one_and_two_times(terms.default_timeout));
    let mut options = params.into_options(call.about())?;
    let output = output.of_stream()?;
    let with_state = options.send_initial_events == Some(true);
    let mut spans = WatchSpans::start(call, with_state, output);
    let begun = call.context.clock.now();
    let deadline = begun + timeout;
    options.deadline = Some(deadline);
    let entry = terms.open.add(WatchTarget {
        resource: (&call.info.group, &call.info.resource),
        namespace: call.namespace(),
        predicate: &options.predicate,
        client: ClientSummary::new(&call.context.user.name, call.headers, call.address),
        since: begun,
    });
    options.observer = Some(entry.observer());
    let encoder = call.event_encoder(output);
    let class = shared::class(&encoder, call.namespace(), &options.predicate);
    let events = call
        .store
        .watch(call.namespace(), options)
        .await
        .map_err(|error| call.fail(error))?;
    let clock = call.context.clock.clone();
    let initial = InitialEvents {
        clock: clock.clone(),
        begun,
        span: std::mem::take(&mut spans.state),
    };
    let one_by_one = is_web_socket(call.headers);
    let chunks = EventChunks {
        one_by_one,
        ..EventChunks::new(events, encoder, terms.counts, initial)
    };
    let watch = Arc::new(SharedWatch::new(class, chunks, entry));
    let body = WatchBody {
        watch: Arc::clone(&watch),
        _running: terms.running,
        _share: terms.share,
        _spans: spans,
        deadline,
        timer: clock.timer(deadline - ENDING.min(timeout)),
        is_ending: false,
        clock,
        task: None,
    };
    if one_by_one {
        let is_text = output.format != Format::Protobuf;
        let messages = body.map_frame(move |frame| frame.map_data(|event| message(event, is_text)));
        let clock = &call.context.clock;
        return websocket::watch(call.headers, messages.boxed_unsync(), is_text, clock);
    }
    let media_type = output.format.stream_media_type();
    let mut response = respond(StatusCode::OK, media_type, body.boxed_unsync());
    let shared = Some(watch as _);
    response
        .extensions_mut()
        .insert(EventStream { deadline, shared });
    Ok(response)
}

/// Returns an event as a WebSocket has it: there messages have their own lengths.
fn message(event: Bytes, is_text: bool) -> Bytes {
    if is_text {
        event
    } else {
        event.slice(FRAME_LENGTH_BYTES..)
    }
}

/// Returns a random duration of one to two times this one, so that watches that began together do not end together.
fn between_one_and_two_times(base: Duration) -> Duration {
    base.mul_f64(1.0 + rand::random::<f64>())
}

/// The response body of a watch, which encodes events as they occur.
struct WatchBody {
    watch: Arc<SharedWatch>,
    /// The clock of the deadline.
    clock: Clock,
    /// Counts the watch as running.
    _running: LongRunning,
    /// The watch's share of the memory budget.
    _share: Share,
    /// The spans of the watch, if it is traced.
    _spans: WatchSpans,
    /// The time at which the watch ends.
    deadline: Instant,
    /// Wakes the task [`ENDING`] before the deadline, then at the deadline.
    timer: Timer,
    /// True once it is so late that the timer is that of the deadline.
    is_ending: bool,
    /// The waker of the task that polled last.
    task: Option<Waker>,
}

impl WatchBody {
    /// Returns true if the deadline has passed. The timer is polled once for each task, since it keeps the task's
    /// waker; after that the clock is read, which is cheaper than polling the timer.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let now = self.clock.now();
        if now >= self.deadline {
            return true;
        }
        if !self.is_ending && now + ENDING >= self.deadline {
            self.is_ending = true;
            self.watch.lock().is_ending = true;
            self.timer = self.clock.timer(self.deadline);
            self.task = None;
        }
        let task = context.waker();
        if self
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(task))
        {
            return false;
        }
        self.task = Some(task.clone());
        let is_due = Pin::new(&mut self.timer).poll(context).is_ready();
        if is_due && !self.is_ending {
            // The time has come meanwhile.
            return self.is_late(context);
        }
        is_due
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let is_late = self.is_late(context);
        let mut watch = self.watch.lock();
        if is_late {
            watch.chunks.next = None;
            watch.chunks.ended = true;
            return Poll::Ready(None);
        }
        let chunk = ready!(watch.chunks.poll_chunk(context));
        if chunk.is_some() {
            let events = watch.chunks.count_chunk();
            watch.entry.sent(events, watch.chunks.reached);
        }
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        let watch = self.watch.lock();
        watch.chunks.ended && watch.chunks.next.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use futures::{FutureExt, stream};
    use http::{HeaderMap, Method};
    use proptest::prelude::*;
    use ringwatch::budget::{Account, Ledger};
    use ringwatch::meta::WatchEvent;
    use ringwatch::storage::{SelectionPredicate, StorageError, WatchStream};
    use ringwatch_apimachinery::User;
    use ringwatch_observe::open_watches::OpenWatches;
    use ringwatch_registry::testing::MemoryStorage;
    use ringwatch_registry::{RequestContext, Verb};
    use ringwatch_spans::Span;
    use serde_json::Value;

    use super::chunks::CHUNK_BYTES_MAX;
    use super::*;
    use crate::api_config::ApiFeatures;
    use crate::encoding::{Encoder, EncodingCache, EventEncoder, Tables};
    use crate::memory_gate::MemoryGate;
    use crate::metrics::{Metrics, RequestKind};
    use crate::negotiation::{IncludeObject, ObjectForm, Output, TableForm};
    use crate::params::Query;
    use crate::request_info::RequestInfo;
    use crate::routes::Routes;
    use crate::testing::{config_map, config_maps, config_maps_in, kubelets};

    /// The next item of a watch.
    #[derive(Clone, Debug)]
    enum Item {
        /// An object of so many bytes more than the least.
        Object(usize),
        /// A bookmark, which ends the initial events or does not.
        Bookmark(bool),
        /// There is nothing yet.
        Gap,
    }

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let bytes = prop_oneof![3 => 0..200_usize, 1 => 0..2 * CHUNK_BYTES_MAX];
        let item = prop_oneof![
            4 => bytes.prop_map(Item::Object),
            2 => any::<bool>().prop_map(Item::Bookmark),
            1 => Just(Item::Gap),
        ];
        proptest::collection::vec(item, 0..40)
    }

    /// Returns a stream of these events, of which `None` is yet to come when it is looked for first.
    fn scripted(events: Vec<Option<WatchEvent>>) -> WatchStream {
        let mut events = VecDeque::from(events);
        let events = stream::poll_fn(move |context: &mut Context<'_>| match events.pop_front() {
            Some(Some(event)) => Poll::Ready(Some(Ok(event))),
            Some(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        });
        WatchStream::new(events)
    }

    /// Returns the body of a watch of these events.
    fn body(events: WatchStream, one_by_one: bool) -> WatchBody {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let cache = EncodingCache::new(usize::MAX, &Ledger::unlimited());
        let output = Output {
            format: Format::Json,
            form: ObjectForm::Whole,
        };
        let (metrics, kind) = (Metrics::default(), RequestKind::default());
        let begun = clock.now();
        let deadline = begun + Duration::from_secs(60);
        let entry = OpenWatches::default().add(WatchTarget {
            resource: ("", "configmaps"),
            namespace: "",
            predicate: &SelectionPredicate::default(),
            client: ClientSummary::new("somebody", &HeaderMap::new(), None),
            since: begun,
        });
        let encoder = EventEncoder::Objects(Encoder::new(cache, config_maps(&clock), output));
        let initial = InitialEvents {
            clock: clock.clone(),
            begun,
            span: Span::default(),
        };
        let chunks = EventChunks {
            one_by_one,
            ..EventChunks::new(events, encoder, metrics.watch(&kind), initial)
        };
        WatchBody {
            watch: Arc::new(SharedWatch::new(0, chunks, entry)),
            _running: metrics.long_running(&kind),
            _share: Ledger::unlimited().share(Account::Requests),
            _spans: WatchSpans::default(),
            deadline,
            timer: clock.timer(deadline - ENDING),
            is_ending: false,
            clock,
            task: None,
        }
    }

    fn object(revision: u64, more_bytes: usize) -> WatchEvent {
        WatchEvent::Added(config_map(revision, more_bytes))
    }

    /// Returns the type and the version of each event of some chunks.
    fn written(chunks: &[Bytes]) -> Vec<(String, u64)> {
        let all = chunks.concat();
        let lines = all.split(|byte| *byte == b'\n').filter(|it| !it.is_empty());
        let events = lines.map(|line| {
            let event: Value = serde_json::from_slice(line).expect("an event a line");
            let version = &event["object"]["metadata"]["resourceVersion"];
            let version = version.as_str().and_then(|it| it.parse().ok());
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            (kind, version.expect("a version"))
        });
        events.collect()
    }

    /// Returns the chunks of a body up to its end, or until it says that it has ended, as hyper reads it. It waits only
    /// in gaps, which end at once.
    fn chunks(mut body: WatchBody) -> Vec<Bytes> {
        let mut chunks = Vec::new();
        while !body.is_end_stream() {
            match body.frame().now_or_never() {
                None => {}
                Some(None) => return chunks,
                Some(Some(frame)) => {
                    let data = frame.expect("no error").into_data();
                    chunks.push(data.expect("events"));
                }
            }
        }
        chunks
    }

    proptest! {
        /// A client resumes from the last version that it was sent, so nothing may come after what is newer.
        #[test]
        fn events_and_bookmarks_are_sent_in_their_order_however_they_are_joined(
            items in items(),
            one_by_one in any::<bool>(),
        ) {
            let (mut events, mut expected) = (Vec::new(), Vec::new());
            for (revision, item) in (7..).zip(items) {
                events.push(match item {
                    Item::Object(more_bytes) => {
                        expected.push(("ADDED".to_owned(), revision));
                        Some(object(revision, more_bytes))
                    }
                    Item::Bookmark(initial_events_end) => {
                        expected.push(("BOOKMARK".to_owned(), revision));
                        Some(WatchEvent::Bookmark { revision, initial_events_end })
                    }
                    Item::Gap => None,
                });
            }
            let chunks = chunks(body(scripted(events), one_by_one));
            prop_assert_eq!(written(&chunks), expected);
            for chunk in &chunks {
                let count = written(std::slice::from_ref(chunk)).len();
                prop_assert!(count == 1 || (!one_by_one && chunk.len() <= CHUNK_BYTES_MAX));
            }
        }
    }

    #[test]
    fn what_has_come_is_one_chunk_with_a_bookmark_in_its_place() {
        let bookmark = WatchEvent::Bookmark {
            revision: 10,
            initial_events_end: false,
        };
        let events = [object(9, 0), bookmark, object(12, 0)];
        let chunks = chunks(body(scripted(events.map(Some).into()), false));
        assert_eq!(chunks.len(), 1);
        let kinds = ["ADDED", "BOOKMARK", "ADDED"].map(str::to_owned);
        assert_eq!(
            written(&chunks),
            kinds.into_iter().zip([9, 10, 12]).collect::<Vec<_>>()
        );
    }

    /// The client is told why its watch ends, though the events before it fill a chunk.
    #[test]
    fn an_error_is_sent_before_the_end_however_full_the_chunk_is() {
        for first_bytes in (CHUNK_BYTES_MAX - 400..CHUNK_BYTES_MAX).step_by(20) {
            for one_by_one in [false, true] {
                let events = [Ok(object(9, first_bytes)), Err(StorageError::WatchExpired)];
                let chunks =
                    chunks(body(WatchStream::new(stream::iter(events)), one_by_one)).concat();
                let last = chunks.split(|byte| *byte == b'\n').rev().nth(1);
                let last: Value = serde_json::from_slice(last.expect("events")).expect("an event");
                assert_eq!(
                    (&last["type"], &last["object"]["code"]),
                    (&"ERROR".into(), &410.into())
                );
            }
        }
    }

    /// A leader may have read an event that did not fit into its last chunk.
    #[test]
    fn a_watch_that_takes_over_goes_on_after_the_last_chunk_of_its_leader() {
        let events = [
            object(7, CHUNK_BYTES_MAX / 2),
            object(8, CHUNK_BYTES_MAX / 2),
        ];
        let leader = body(scripted(events.map(Some).into()), false);
        let follower = body(WatchStream::new(stream::pending()), false);
        let mut leader = leader.watch.lock();
        let mut follower = follower.watch.lock();
        let mut context = Context::from_waker(Waker::noop());
        let mut chunk = |chunks: &mut EventChunks| match chunks.poll_chunk(&mut context) {
            Poll::Ready(Some(chunk)) => Some(written(&[chunk])),
            Poll::Ready(None) => Some(Vec::new()),
            Poll::Pending => None,
        };
        let added = |revision| Some(vec![("ADDED".to_owned(), revision)]);
        assert_eq!(chunk(&mut leader.chunks), added(7));
        follower.chunks.take_over(&leader.chunks);
        assert_eq!(chunk(&mut follower.chunks), added(8));
        assert_eq!(chunk(&mut follower.chunks), None);
        // After an error that was sent for all nothing comes.
        (leader.chunks.next, leader.chunks.failed) = (None, true);
        follower.chunks.take_over(&leader.chunks);
        assert_eq!(chunk(&mut follower.chunks), Some(Vec::new()));
    }

    /// A table has its columns once, and a watch may begin with whatever it likes.
    #[test]
    fn the_first_table_alone_has_the_columns() {
        let bookmark = |revision| WatchEvent::Bookmark {
            revision,
            initial_events_end: revision == 7,
        };
        for events in [
            [bookmark(7), bookmark(8), object(9, 0), object(10, 0)],
            [object(7, 0), bookmark(8), object(9, 0), bookmark(10)],
        ] {
            let body = body(scripted(events.map(Some).into()), false);
            let form = TableForm {
                version: "v1",
                include: IncludeObject::Metadata,
            };
            let tables = Tables::new(config_maps(&body.clock), form, body.clock.clone());
            body.watch.lock().chunks.encoder = EventEncoder::tables(tables);
            let chunks = chunks(body);
            let events = chunks.concat();
            let events = events
                .split(|byte| *byte == b'\n')
                .filter(|it| !it.is_empty());
            let columns: Vec<_> = events
                .map(|event| {
                    let event: Value = serde_json::from_slice(event).expect("an event a line");
                    let columns = event["object"]["columnDefinitions"].as_array();
                    columns.map_or(0, Vec::len)
                })
                .collect();
            assert_eq!(columns, [3, 0, 0, 0]);
        }
    }

    /// A task, which counts how often it is woken.
    #[derive(Debug, Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// hyper's task polls a watch first, and its connection's afterwards: a quiet watch ends by the wake of the last.
    #[test]
    fn the_task_that_polled_last_is_woken_at_the_deadline() {
        let mut body = body(WatchStream::new(stream::pending()), false);
        let clock = body.clock.clone();
        let tasks = [(); 3].map(|()| Arc::new(Task::default()));
        let mut poll = |task: &Arc<Task>| {
            let waker = Waker::from(Arc::clone(task));
            Pin::new(&mut body).poll_frame(&mut Context::from_waker(&waker))
        };
        for task in [&tasks[0], &tasks[1], &tasks[1], &tasks[2]] {
            assert!(poll(task).is_pending());
        }
        let woken = || tasks.each_ref().map(|it| it.0.load(Ordering::Relaxed));
        clock.advance(Duration::from_secs(60) - ENDING - Duration::from_secs(1));
        assert_eq!(woken(), [0, 0, 0]);
        // From then on it follows no other watch.
        clock.advance(Duration::from_secs(1));
        assert_eq!(woken(), [0, 0, 1]);
        assert!(poll(&tasks[2]).is_pending());
        clock.advance(ENDING - Duration::from_secs(1));
        assert_eq!(woken(), [0, 0, 1]);
        clock.advance(Duration::from_secs(1));
        assert_eq!(woken(), [0, 0, 2]);
        assert!(matches!(poll(&tasks[2]), Poll::Ready(None)));
    }

    /// A cache sends a last bookmark shortly before the end, for which it has to know that.
    #[tokio::test]
    async fn the_storage_is_told_when_the_watch_will_end() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let storage = MemoryStorage::new("/configmaps");
        let store = config_maps_in(Arc::clone(&storage) as _);
        let (routes, kubelets) = (Routes::new(&[Arc::clone(&store)], &[]), kubelets());
        let (metrics, memory) = (Metrics::default(), MemoryGate::open());
        let encodings = EncodingCache::new(usize::MAX, &Ledger::unlimited());
        let headers = HeaderMap::new();
        for (query, seconds) in [
            ("watch=true&timeoutSeconds=90", 90..=90),
            ("watch=true", 1_800..=3_600),
        ] {
            let info = RequestInfo::new(&Method::GET, "/api/v1/configmaps", query);
            let call = Call {
                routes: &routes,
                verb: Verb::Watch,
                store: &store,
                encodings: &encodings,
                memory: &memory,
                kubelets: &kubelets,
                token_issuer: None,
                method: &Method::GET,
                info: &info,
                query: &Query::parse(query),
                headers: &headers,
                address: None,
                context: RequestContext::new(User::default(), String::new(), clock.clone()),
                pretty: false,
                features: ApiFeatures::default(),
            };
            let kind = RequestKind::default();
            let terms = WatchTerms {
                running: metrics.long_running(&kind),
                share: Ledger::unlimited().share(Account::Requests),
                counts: metrics.watch(&kind),
                open: OpenWatches::default(),
                default_timeout: Duration::from_secs(1_800),
            };
            let response = watch(&call, terms).await.expect("a watch");
            let deadline = response
                .extensions()
                .get::<EventStream>()
                .expect("a stream")
                .deadline;
            assert_eq!(storage.take_deadlines(), [Some(deadline)]);
            assert!(
                seconds.contains(&(deadline - clock.now()).as_secs()),
                "{query}"
            );
        }
    }
}
