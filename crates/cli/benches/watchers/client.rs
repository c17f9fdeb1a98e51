//! The process of the watching clients: one thread, as lean as can be, so that it takes little of
//! the machine from the server and the server's time can be told from its own.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{LocalSet, spawn_local};

use super::group::{Group, until};
use super::protocol::{ClientAnswer, ClientOrder, Mode, Opening, Protocol};
use super::{http1, http2, tls};

/// So many connections are being opened at once.
const OPENING_MAX: usize = 64;
/// All watches of a group must be answered within this time.
const OPENED_SECONDS_MAX: u64 = 180;
/// A group must have gone away within this time.
const AWAY_MAX: Duration = Duration::from_secs(10);
/// How much is read at once.
const SCRATCH_BYTES: usize = 64 << 10;

/// Does what it is told until its input ends.
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, obey());
}

async fn obey() {
    let mut orders = orders();
    let mut groups = Vec::new();
    while let Some(line) = orders.recv().await {
        let answer = match serde_json::from_str(&line) {
            Ok(order) => answer(order, &mut groups).await,
            Err(error) => ClientAnswer::Failed(error.to_string()),
        };
        let answer = serde_json::to_string(&answer).expect("an answer");
        if writeln!(io::stdout(), "{answer}").is_err() {
            return;
        }
    }
}

/// The lines of the input, which a thread waits for, since nothing else can.
fn orders() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn answer(order: ClientOrder, groups: &mut Vec<Rc<Group>>) -> ClientAnswer {
    match order {
        ClientOrder::Open(opening) => {
            let group = open(*opening);
            groups.push(Rc::clone(&group));
            let watches = group.opening.watches;
            let at_most = Duration::from_secs(OPENED_SECONDS_MAX);
            if until(at_most, || group.live() == watches).await {
                let group = groups.len() - 1;
                return ClientAnswer::Opened { group };
            }
            let faults = group.collect(0, Duration::ZERO).await.first_faults;
            let live = group.live();
            ClientAnswer::Failed(format!("{live} of {watches} watches: {faults:?}"))
        }
        ClientOrder::Begin => {
            groups.iter().for_each(|group| group.begin());
            ClientAnswer::Done
        }
        ClientOrder::Collect {
            group,
            events,
            seconds_max,
        } => {
            let at_most = Duration::from_secs(seconds_max);
            ClientAnswer::Collected(groups[group].collect(events, at_most).await)
        }
        ClientOrder::Set { group, mode } => {
            let group = &groups[group];
            group.set_mode(mode);
            let gone = mode != Mode::Away || until(AWAY_MAX, || group.live() == 0).await;
            if gone {
                ClientAnswer::Done
            } else {
                ClientAnswer::Failed(format!("{} watches do not go away", group.live()))
            }
        }
        ClientOrder::AwaitLive { seconds_max } => {
            let live = || groups.iter().map(|group| group.live()).sum::<usize>();
            let all: usize = groups.iter().map(|group| group.opening.watches).sum();
            until(Duration::from_secs(seconds_max), || live() == all).await;
            ClientAnswer::Live { live: live() }
        }
    }
}

/// Begins to open the watches of a group.
fn open(opening: Opening) -> Rc<Group> {
    let group = Group::new(opening);
    let opening = &group.opening;
    match opening.protocol {
        Protocol::Http1 => {
            let shared = Rc::new(http1::Shared {
                tls: tls::client_config(&opening.authority, b"http/1.1"),
                scratch: RefCell::new(vec![0; SCRATCH_BYTES].into()),
                opening: Semaphore::new(OPENING_MAX),
            });
            for index in 0..opening.watches {
                let (group, shared) = (Rc::clone(&group), Rc::clone(&shared));
                spawn_local(http1::follow(group, index, shared));
            }
        }
        Protocol::Http2 { streams } => {
            let config = tls::client_config(&opening.authority, b"h2");
            for first in (0..opening.watches).step_by(streams) {
                let indexes = first..(first + streams).min(opening.watches);
                spawn_local(http2::follow(Rc::clone(&group), indexes, config.clone()));
            }
        }
    }
    group
}
