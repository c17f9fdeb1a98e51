//! The paths below `/debug` of a process that only says what it was asked for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, LOCATION};
use http_body_util::BodyExt;
use ringwatch::budget::{Account, Ledger};
use ringwatch_http::full;
use ringwatch_observe::status::thresholds::Thresholds;
use tokio::sync::Notify;

use super::*;
use crate::debug::process_controls::{LogLevelError, ProfileError};

/// More bytes than a value may have.
const TOO_LONG: usize = 4097;

/// A process without anything to measure.
#[derive(Debug, Default)]
struct Process {
    directives: Mutex<String>,
    /// A CPU profile has begun.
    began: Notify,
    /// A CPU profile has ended.
    ended: Notify,
}

impl ProcessControls for Process {
    fn cpu_profile(&self, wait: &mut dyn FnMut()) -> Result<Vec<u8>, ProfileError> {
        self.began.notify_one();
        wait();
        self.ended.notify_one();
        Ok(b"stacks".to_vec())
    }

    fn heap_profile(&self) -> Result<Vec<u8>, ProfileError> {
        Err(ProfileError::NotPrepared("build it otherwise"))
    }

    fn log_directives(&self) -> String {
        let directives = self.directives.lock();
        directives.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_log_directives(&self, directives: &str) -> Result<(), LogLevelError> {
        if directives.contains('!') {
            return Err(LogLevelError::Directives("bad mark".to_owned()));
        }
        let mut current = (self.directives.lock()).unwrap_or_else(PoisonError::into_inner);
        directives.clone_into(&mut current);
        Ok(())
    }

    fn set_log_level(&self, level: u32) -> Result<(), LogLevelError> {
        self.set_log_directives(&format!("level {level}"))
    }
}

fn paths(process: &Arc<Process>) -> ProcessPaths {
    let controls: Arc<dyn ProcessControls> = Arc::clone(process) as _;
    ProcessPaths::new(true, Some(&controls), &Clock::real()).expect("paths")
}

async fn read(response: Response<ResponseBody>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    (status, text)
}

async fn get(paths: &ProcessPaths, path: &str, query: &str) -> Option<(u16, String)> {
    let answer = paths.answer(&Method::GET, path, query).await?;
    Some(read(answer).await)
}

#[test]
fn nothing_is_served_that_is_switched_off() {
    let controls: Arc<dyn ProcessControls> = Arc::new(Process::default());
    assert!(ProcessPaths::new(false, Some(&controls), &Clock::real()).is_none());
    assert!(ProcessPaths::new(true, None, &Clock::real()).is_none());
}

#[tokio::test(start_paused = true)]
async fn one_profile_is_taken_at_a_time_and_for_as_long_as_was_asked() {
    let process = Arc::new(Process::default());
    let paths = paths(&process);
    let clock = Clock::real();
    let began = clock.now();
    let profile = paths.answer(&Method::GET, "/debug/pprof/profile", "seconds=7");
    let second = async {
        process.began.notified().await;
        let second = get(&paths, "/debug/pprof/profile", "").await;
        let heap = get(&paths, "/debug/pprof/heap", "").await;
        // Time does not pass by itself while a blocking thread works, which begins to wait some time after it has said
        // so.
        let mut ended = std::pin::pin!(process.ended.notified());
        while futures::poll!(&mut ended).is_pending() {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        (second, heap)
    };
    let (profile, (second, heap)) = tokio::join!(profile, second);
    let profile = profile.expect("an answer");
    let file = profile.headers()[CONTENT_DISPOSITION].clone();
    assert_eq!(file, "attachment; filename=\"profile\"");
    assert_eq!(read(profile).await, (200, "stacks".to_owned()));
    assert!(clock.now().duration_since(began).as_secs() >= 7);
    assert_eq!(second.expect("an answer").0, 429);
    assert_eq!(heap.expect("an answer").0, 429);
    let heap = get(&paths, "/debug/pprof/heap", "").await;
    assert_eq!(heap.expect("an answer").0, 404, "it has its turn again");
}

#[tokio::test]
async fn a_profile_ends_when_its_client_goes() {
    let process = Arc::new(Process::default());
    let paths = paths(&process);
    let profile = paths.answer(&Method::GET, "/debug/pprof/profile", "seconds=300");
    tokio::select! {
        _ = profile => panic!("the time is not over"),
        () = process.began.notified() => {}
    }
    process.ended.notified().await;
}

#[tokio::test]
async fn other_profiles_say_what_there_is() {
    let paths = paths(&Arc::default());
    for (name, query, status, words) in [
        ("profile", "seconds=301", 400, "at most 300 seconds"),
        ("heap", "", 404, "build it otherwise"),
        ("goroutine", "", 404, "of Go's runtime"),
        ("trace", "seconds=1", 404, "of Go's runtime"),
        ("fungus", "", 404, "Unknown profile"),
        ("", "", 200, "profile?seconds=30"),
        ("cmdline", "", 200, "ringwatch_server"),
    ] {
        let answer = get(&paths, &format!("/debug/pprof/{name}"), query).await;
        let (code, text) = answer.expect(name);
        assert_eq!(code, status, "{name}: {text}");
        assert!(text.contains(words), "{name}: {text}");
    }
    let moved = paths.answer(&Method::GET, "/debug/pprof", "").await;
    let moved = moved.expect("an answer");
    assert_eq!(moved.status(), 302);
    assert_eq!(moved.headers()[LOCATION], "/debug/pprof/");
    assert_eq!(get(&paths, "/debug/pprofs", "").await, None);
    let posted = paths.answer(&Method::POST, "/debug/pprof/profile", "");
    assert!(posted.await.is_none());
}

#[tokio::test]
async fn log_levels_are_set_and_shown() {
    let process = Arc::new(Process::default());
    let paths = paths(&process);
    for (flag, value, status, text, directives) in [
        (
            "v",
            "4",
            200,
            "successfully set klog.logging.verbosity to 4\n",
            "level 4",
        ),
        (
            "log",
            " warn,h2=trace\n",
            200,
            "successfully set the log directives to warn,h2=trace\n",
            "warn,h2=trace",
        ),
        (
            "v",
            "-1",
            400,
            "strconv.ParseUint: parsing \"-1\": invalid syntax\n",
            "warn,h2=trace",
        ),
        (
            "v",
            "4294967296",
            400,
            "strconv.ParseUint: parsing \"4294967296\": value out of range\n",
            "warn,h2=trace",
        ),
        (
            "log",
            "!",
            400,
            "bad mark; write directives as RUST_LOG has them, such as warn,ringwatch=debug\n",
            "warn,h2=trace",
        ),
    ] {
        let path = format!("/debug/flags/{flag}");
        let request = Request::put(&path).body(full(Bytes::from_static(value.as_bytes())));
        let answer = paths.put(request.expect("a request"), &path).await;
        let answer = read(answer.expect("an answer")).await;
        assert_eq!(answer, (status, text.to_owned()), "{value}");
        let shown = get(&paths, "/debug/flags/log", "").await;
        assert_eq!(shown, Some((200, format!("{directives}\n"))));
    }
    let long = Request::put("/").body(full(vec![b'a'; TOO_LONG]));
    let long = paths
        .put(long.expect("a request"), "/debug/flags/log")
        .await;
    assert_eq!(read(long.expect("an answer")).await.0, 400);
    let read_v = get(&paths, "/debug/flags/v", "").await;
    assert_eq!(read_v, Some((406, "unsupported http method\n".to_owned())));
    for path in ["/debug/flags", "/debug/flags/", "/debug/flags/vmodule"] {
        let (code, text) = get(&paths, path, "").await.expect(path);
        assert!(code == 200 && text.contains("RUST_LOG"), "{text}");
    }
    let other = Request::put("/")
        .body(full(Bytes::new()))
        .expect("a request");
    assert!(paths.put(other, "/debug/flags/vmodule").await.is_err());
}

#[test]
fn streams_of_the_state_are_requests_that_last() {
    use ringwatch_endpoints::RequestInfo;
    let info = RequestInfo::new(&Method::GET, ringwatch_observe::status::STREAM_PATH, "");
    assert!(info.is_long_running());
}

#[test]
fn a_relay_answers_what_is_below_its_own_paths_alone() {
    for own in [
        "/debug/ui",
        "/debug/ui/state",
        "/debug/pprof/heap",
        "/debug/flags/v",
    ] {
        assert!(is_own(own), "{own}");
    }
    for other in [
        "/debug",
        "/debug/uis",
        "/debug/api_priority_and_fairness/dump_requests",
    ] {
        assert!(!is_own(other), "{other}");
    }
}

#[test]
fn memory_is_told_to_be_short_where_the_budget_gives_way() {
    let (ledger, part) = (Ledger::new(8_000), Thresholds::default().memory_part);
    let mut objects = ledger.share(Account::Objects);
    let bytes = |part: f64| (8_000.0 * part) as u64;
    objects.set(bytes(part.warn));
    assert_eq!(ledger.owed_by_windows(), 0);
    objects.set(bytes(part.warn) + 1);
    assert_eq!(ledger.owed_by_windows(), 1);
    objects.set(bytes(part.bad) - 1);
    drop(ledger.admit(1).expect("room for a byte"));
    objects.set(bytes(part.bad));
    assert!(ledger.admit(1).is_err());
}
