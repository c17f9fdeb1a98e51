//! Places of connections, over in-memory sockets and with time that passes when the test says so.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    unauthenticated: 4,
    of_address: 2,
    authenticated: 2,
};

fn places() -> UnauthenticatedConnections {
    UnauthenticatedConnections::new(LIMITS, &Clock::real())
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A connection and its client.
struct Connection {
    entered: EnteredConnection,
    io: ClientIo<DuplexStream>,
    client: DuplexStream,
}

impl Connection {
    /// Returns a new connection, if there is a place for it now.
    fn open(places: &UnauthenticatedConnections, from: &str) -> Option<Self> {
        let entered = places.enter(address(from)).now_or_never().flatten()?;
        let (client, server) = tokio::io::duplex(64);
        let io = ClientIo::new(server, entered.standing().clone());
        Some(Self {
            entered,
            io,
            client,
        })
    }

    /// Reads as much as there is. Pending means that the client is waited for.
    fn read(&mut self) -> Poll<std::io::Result<usize>> {
        let mut bytes = [0; 8];
        let mut read = ReadBuf::new(&mut bytes);
        let mut context = Context::from_waker(Waker::noop());
        let polled = Pin::new(&mut self.io).poll_read(&mut context, &mut read);
        polled.map_ok(|()| read.filled().len())
    }

    /// Makes the server wait for its client.
    fn waits(mut self) -> Self {
        assert!(self.read().is_pending());
        self
    }

    fn is_cut_off(&mut self) -> bool {
        matches!(self.read(), Poll::Ready(Err(_)))
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_that_was_waited_for_longest_goes_for_a_new_one() {
    let places = places();
    let mut silent: Vec<Connection> = Vec::new();
    for from in ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"] {
        silent.push(Connection::open(&places, from).expect("a place").waits());
        tokio::time::advance(WAIT_MIN).await;
    }
    let fifth = Connection::open(&places, "10.0.0.5");
    assert!(fifth.is_some(), "a new client is let in");
    let cut_off: Vec<bool> = silent.iter_mut().map(Connection::is_cut_off).collect();
    assert_eq!(cut_off, [true, false, false, false]);
    assert_eq!(places.0.shed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_goes_who_waits_for_the_server() {
    let places = places();
    let mut clients: Vec<Connection> = Vec::new();
    for from in ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"] {
        let mut client = Connection::open(&places, from).expect("a place").waits();
        client.client.write_all(b"hello").await.expect("sent");
        clients.push(client);
    }
    tokio::time::advance(WAIT_MIN * 10).await;
    assert!(Connection::open(&places, "10.0.0.5").is_none(), "it waits");
    assert!(clients.iter_mut().all(|client| !client.is_cut_off()));
    // All that has come is read, so now the server waits.
    let mut clients: Vec<_> = clients.into_iter().map(Connection::waits).collect();
    tokio::time::advance(WAIT_MIN).await;
    assert!(Connection::open(&places, "10.0.0.5").is_some());
    assert!(clients[0].is_cut_off());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_a_byte_now_and_then_is_waited_for_all_the_same() {
    let places = places();
    let mut slow = Connection::open(&places, "10.0.0.1")
        .expect("a place")
        .waits();
    for _ in 0..4 {
        tokio::time::advance(WAIT_MIN / 4).await;
        slow.client.write_all(b"x").await.expect("sent");
        assert!(slow.read().is_ready());
        assert!(slow.read().is_pending());
    }
    let _quick: Vec<_> = ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
        .map(|from| Connection::open(&places, from).expect("a place").waits())
        .into();
    assert!(Connection::open(&places, "10.0.0.5").is_some());
    assert!(slow.is_cut_off());
}

#[tokio::test(start_paused = true)]
async fn what_can_be_written_says_nothing_about_what_is_waited_for() {
    let places = places();
    let mut client = Connection::open(&places, "10.0.0.1")
        .expect("a place")
        .waits();
    client.io.write_all(b"x").await.expect("written");
    tokio::time::advance(WAIT_MIN).await;
    assert!(
        client
            .entered
            .standing()
            .waited(Clock::real().now())
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_request_is_being_answered_waits_for_the_server() {
    let places = places();
    let mut client = Connection::open(&places, "10.0.0.1")
        .expect("a place")
        .waits();
    let answer = client.entered.standing().answer();
    // A server may read on meanwhile.
    assert!(client.read().is_pending());
    tokio::time::advance(WAIT_MIN).await;
    let waited = |client: &Connection| client.entered.standing().waited(Clock::real().now());
    assert_eq!(waited(&client), None);
    drop(answer);
    assert!(client.read().is_pending());
    tokio::time::advance(WAIT_MIN).await;
    assert_eq!(waited(&client), Some(WAIT_MIN));
}

#[tokio::test(start_paused = true)]
async fn an_address_has_half_of_the_places() {
    let places = places();
    let one = || Connection::open(&places, "2001:db8::1").map(Connection::waits);
    let (mut first, _second) = (one().expect("a place"), one().expect("a place"));
    let neighbour = Connection::open(&places, "2001:db8::ffff:0:0:2");
    assert!(neighbour.is_none(), "the same network");
    assert_eq!(places.0.refused.get(), 1);
    let other = Connection::open(&places, "2001:db8:0:1::1").expect("another network");
    tokio::time::advance(WAIT_MIN).await;
    assert!(one().is_some(), "its own go for it");
    assert!(first.is_cut_off());
    assert!(!other.waits().is_cut_off());
}

#[tokio::test(start_paused = true)]
async fn an_address_waits_while_the_server_is_behind_with_it() {
    let places = places();
    let one = || Connection::open(&places, "10.0.0.1");
    let (_first, _second) = (one().expect("a place"), one().expect("a place"));
    assert!(one().is_none());
    assert_eq!(places.0.refused.get(), 0, "it is not sent away");
}

#[tokio::test(start_paused = true)]
async fn authenticated_clients_take_no_place() {
    let places = places();
    let mut known = Vec::new();
    for _ in 0..LIMITS.authenticated {
        let client = Connection::open(&places, "10.0.0.1")
            .expect("a place")
            .waits();
        client.entered.standing().authenticate();
        known.push(client);
    }
    assert_eq!(places.0.count.get(), 0);
    tokio::time::advance(WAIT_MIN).await;
    for _ in 0..2 * LIMITS.unauthenticated {
        let _ = Connection::open(&places, "10.0.0.1");
    }
    assert!(known.iter_mut().all(|client| !client.is_cut_off()));
    // One more has no place among them, and goes on among the others.
    let late = Connection::open(&places, "10.0.0.9").expect("a place");
    late.entered.standing().authenticate();
    assert!(!late.entered.standing().is_authenticated());
    assert!(late.entered.standing().is_judged());
    known.clear();
    late.entered.standing().authenticate();
    assert!(late.entered.standing().is_authenticated());
    assert_eq!(places.0.count.get(), 0);
}

#[tokio::test]
async fn who_waits_for_a_place_gets_one_when_a_connection_ends() {
    let places = places();
    let mut open: Vec<_> = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
        .map(|from| Connection::open(&places, from).expect("a place"))
        .into();
    let mut next = std::pin::pin!(places.enter(address("10.0.0.5")));
    assert!(
        poll_fn(|context| Poll::Ready(next.as_mut().poll(context)))
            .await
            .is_pending()
    );
    open.pop();
    assert!(next.await.is_some());
    assert_eq!(places.0.count.get(), 3, "those that are held are counted");
}

#[test]
fn few_files_mean_few_connections() {
    let limits = ConnectionLimits::for_files(1_000);
    assert_eq!(limits.unauthenticated, 250);
    assert_eq!(limits.of_address, 125);
    assert_eq!(limits.authenticated, 750);
    let limits = ConnectionLimits::for_files(usize::MAX);
    assert_eq!(limits.unauthenticated, UNAUTHENTICATED_MAX);
    assert_eq!(limits.authenticated, AUTHENTICATED_MAX);
}

/// A task that counts how often it is woken.
#[derive(Debug, Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_reader_and_a_writer_with_different_wakers_are_both_woken() {
    let places = places();
    let mut connection = Connection::open(&places, "10.0.0.1").expect("a place");
    let (reader, writer) = (Arc::new(Task::default()), Arc::new(Task::default()));
    let (reads, writes) = (Waker::from(reader.clone()), Waker::from(writer.clone()));
    let mut context = Context::from_waker(&writes);
    // As much as the pipe takes.
    let written = Pin::new(&mut connection.io).poll_write(&mut context, &[0; 64]);
    assert!(matches!(written, Poll::Ready(Ok(64))));
    let written = Pin::new(&mut connection.io).poll_write(&mut context, b"more");
    assert!(written.is_pending());
    let mut bytes = [0; 8];
    let mut read = ReadBuf::new(&mut bytes);
    let mut context = Context::from_waker(&reads);
    let polled = Pin::new(&mut connection.io).poll_read(&mut context, &mut read);
    assert!(polled.is_pending());
    drop(connection.client);
    let woken = [&reader, &writer].map(|it| it.0.load(Ordering::SeqCst));
    assert_eq!(woken, [1, 1]);
}

#[test]
fn whoever_waits_for_the_judgement_is_woken() {
    let task = Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let mut context = Context::from_waker(&waker);
    for judge in [ClientStanding::refuse, ClientStanding::authenticate] {
        let standing = ClientStanding::uncounted();
        let before = task.0.load(Ordering::SeqCst);
        assert!(standing.poll_judged(&mut context).is_pending());
        judge(&standing);
        assert_eq!(task.0.load(Ordering::SeqCst), before + 1);
        assert!(standing.poll_judged(&mut context).is_ready());
    }
}
