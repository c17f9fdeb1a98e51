//! `/debug/pprof/`: profiles for `go tool pprof` and others that read its format.
//!
//! A blocking thread takes them, one at a time, so that no worker waits. A profile whose client has gone ends at once.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Response, StatusCode};
use ringwatch::clock::Clock;
use ringwatch_endpoints::{TextError, plain};
use ringwatch_http::{ResponseBody, full};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use super::process_controls::{ProcessControls, ProfileError};

/// The path of the index, without the slash at its end.
pub(super) const ROOT: &str = "/debug/pprof";
/// The most profiles that are taken at a time.
const AT_A_TIME_MAX: usize = 1;
/// Seconds of a CPU profile unless the client says how many, as in Go.
const SECONDS_DEFAULT: u64 = 30;
/// Most seconds of a CPU profile.
const SECONDS_MAX: u64 = 300;
/// The profiles of Go's runtime that have no counterpart here.
const OF_GO: [&str; 7] = [
    "allocs",
    "block",
    "goroutine",
    "mutex",
    "symbol",
    "threadcreate",
    "trace",
];
const INDEX: &str = "<html>
<head><title>/debug/pprof/</title></head>
<body>
<p>/debug/pprof/</p>
<ul>
<li><a href='cmdline'>cmdline</a>: the command line of the process</li>
<li><a href='heap'>heap</a>: the memory in use, by the stacks that allocated it</li>
<li><a href='profile?seconds=30'>profile</a>: the stacks that use processors, sampled for some seconds</li>
</ul>
<p>go tool pprof reads the last two. The profiles of goroutines, locks and traces are of Go alone.</p>
</body>
</html>
";

/// The taker of profiles.
#[derive(Debug)]
pub(super) struct Profiles {
    controls: Arc<dyn ProcessControls>,
    turns: Arc<Semaphore>,
    clock: Clock,
}

/// Returns the name of the profile at a path: `None` for another path, `Some(None)` for the path without a slash at its
/// end.
pub(super) fn name(path: &str) -> Option<Option<&str>> {
    match path.strip_prefix(ROOT)? {
        "" => Some(None),
        rest => rest.strip_prefix('/').map(Some),
    }
}

impl Profiles {
    pub(super) fn new(controls: Arc<dyn ProcessControls>, clock: Clock) -> Self {
        Self {
            controls,
            turns: Arc::new(Semaphore::new(AT_A_TIME_MAX)),
            clock,
        }
    }

    /// Answers a GET; `None` for another method, which nothing here has.
    pub(super) async fn answer(
        &self,
        method: &Method,
        name: Option<&str>,
        query: &str,
    ) -> Option<Response<ResponseBody>> {
        if method != Method::GET {
            return None;
        }
        Some(match name {
            None => redirect("/debug/pprof/"),
            Some("") => page(INDEX),
            Some("cmdline") => {
                let words = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
                plain(words.collect::<Vec<_>>().join("\0"))
            }
            Some("profile") => match seconds(query) {
                Ok(seconds) => self.cpu(seconds).await,
                Err(message) => TextError::Wrong(&message).response(),
            },
            Some("heap") => self.heap().await,
            Some(name) if OF_GO.contains(&name) => {
                let message =
                    format!("the profile {name} is of Go's runtime; there are profile and heap");
                TextError::NotHere(&message).response()
            }
            Some(_) => TextError::NotHere("Unknown profile").response(),
        })
    }

    async fn cpu(&self, time: Duration) -> Response<ResponseBody> {
        let (runtime, clock) = (Handle::current(), self.clock.clone());
        let taken = self.taken(move |controls, gone| {
            controls.cpu_profile(&mut || {
                runtime.block_on(async {
                    tokio::select! {
                        () = clock.sleep(time) => {}
                        () = gone.closed() => {}
                    }
                });
            })
        });
        answer("profile", taken.await)
    }

    async fn heap(&self) -> Response<ResponseBody> {
        let taken = self.taken(|controls, _| controls.heap_profile());
        answer("heap", taken.await)
    }

    /// Has a blocking thread of the current runtime take a profile; `None` while another one is taken. The sender that
    /// the thread is given is closed when the client goes.
    async fn taken(
        &self,
        take: impl FnOnce(&dyn ProcessControls, &mut TakenProfile) -> Result<Vec<u8>, ProfileError>
        + Send
        + 'static,
    ) -> Option<Result<Vec<u8>, ProfileError>> {
        let turn = Arc::clone(&self.turns).try_acquire_owned().ok()?;
        let controls = Arc::clone(&self.controls);
        let (mut sender, profile) = oneshot::channel();
        drop(tokio::task::spawn_blocking(move || {
            let taken = take(&*controls, &mut sender);
            drop(turn);
            // The client may have gone.
            let _ = sender.send(taken);
        }));
        let profile = profile.await;
        Some(profile.unwrap_or_else(|_| Err(ProfileError::Failed("its thread ended".to_owned()))))
    }
}

type TakenProfile = oneshot::Sender<Result<Vec<u8>, ProfileError>>;

/// Reads for how long a client wants the processors to be sampled. As in Go, it is the default for a text that says
/// nothing.
fn seconds(query: &str) -> Result<Duration, String> {
    let given = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "seconds");
    let given = given.and_then(|(_, text)| text.parse::<i64>().ok());
    let seconds = given.and_then(|it| u64::try_from(it).ok().filter(|it| *it > 0));
    match seconds.unwrap_or(SECONDS_DEFAULT) {
        seconds if seconds > SECONDS_MAX => Err(format!(
            "a profile takes at most {SECONDS_MAX} seconds; ask for fewer"
        )),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

/// Answers with a profile as a file, as Go does.
fn answer(
    name: &'static str,
    profile: Option<Result<Vec<u8>, ProfileError>>,
) -> Response<ResponseBody> {
    let content = match profile {
        Some(Ok(content)) => content,
        Some(Err(error @ ProfileError::NotPrepared(_))) => {
            return TextError::NotHere(&error.to_string()).response();
        }
        Some(Err(error)) => return TextError::Internal(&error.to_string()).response(),
        None => return TextError::TooManyRequests.response(),
    };
    let mut response = Response::new(full(content));
    let disposition = match name {
        "heap" => HeaderValue::from_static("attachment; filename=\"heap\""),
        _ => HeaderValue::from_static("attachment; filename=\"profile\""),
    };
    let headers = response.headers_mut();
    let bytes = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, bytes);
    headers.insert(CONTENT_DISPOSITION, disposition);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Responds with a page.
pub(super) fn page(text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(full(text));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(CONTENT_TYPE, html);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn redirect(to: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(full(Vec::new()));
    *response.status_mut() = StatusCode::FOUND;
    let to = HeaderValue::from_static(to);
    response.headers_mut().insert(LOCATION, to);
    response
}
