//! An upstream that answers with a script.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::cacher::WindowLimits;
use ringwatch_relay::{ResourceType, Upstream};
use ringwatch_tls::kubeconfig::Kubeconfig;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::{Relayed, relayed};

/// A server that answers with a script.
pub(crate) struct Scripted {
    script: Arc<Mutex<Script>>,
    port: u16,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
pub(crate) struct Script {
    /// The version of lists.
    pub(crate) revision: u64,
    /// The version of lists that are asked for at exactly `revision`, if it is another.
    pub(crate) exact: Option<u64>,
    /// The names and versions of the objects.
    pub(crate) objects: Vec<(&'static str, u64)>,
    /// The watches to come.
    watches: VecDeque<Watched>,
    /// The queries of the watches that were opened.
    pub(crate) opened: Vec<String>,
    /// The number of lists that were asked for.
    pub(crate) lists: usize,
    /// The queries of these lists.
    pub(crate) listed: Vec<String>,
    /// The statuses and bodies of the answers to other paths; `None` for one that never comes.
    pub(crate) answers: HashMap<String, Option<(u16, String)>>,
    /// The paths of these answers that were asked for, and the heads of the requests.
    pub(crate) asked: Vec<String>,
    pub(crate) heads: Vec<String>,
}

/// A version and the names and versions of the objects at it.
type State = (u64, Vec<(&'static str, u64)>);

/// A watch to come.
#[derive(Default)]
struct Watched {
    frames: String,
    /// Told when the rest is to be sent, and that rest.
    rest: Option<(oneshot::Receiver<()>, String)>,
    /// True if it ends after the frames.
    ends: bool,
    /// The version and the objects of lists from the last frames on, if they change.
    then: Option<State>,
}

impl Script {
    fn change(&mut self, then: Option<State>) {
        if let Some((revision, objects)) = then {
            (self.revision, self.objects) = (revision, objects);
        }
    }
}

fn object(name: &str, revision: u64) -> String {
    let metadata = format!(r#"{{"name":"{name}","resourceVersion":"{revision}"}}"#);
    format!(r#"{{"kind":"Thing","apiVersion":"example.com/v1","metadata":{metadata}}}"#)
}

pub(crate) fn event(kind: &str, name: &str, revision: u64) -> String {
    let object = object(name, revision);
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

impl Scripted {
    pub(crate) async fn start(revision: u64, objects: &[(&'static str, u64)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(Script {
            revision,
            objects: objects.to_vec(),
            ..Script::default()
        }));
        let shared = Arc::clone(&script);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self {
            script,
            port,
            _tasks: tasks,
        }
    }

    pub(crate) fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    pub(crate) fn will_watch(&self, frames: String, ends: bool) {
        self.will_watch_then(frames, ends, None);
    }

    pub(crate) fn will_watch_then(&self, frames: String, ends: bool, then: Option<State>) {
        self.script().watches.push_back(Watched {
            frames,
            rest: None,
            ends,
            then,
        });
    }

    /// Like [`Self::will_watch_then`], for a watch that does not end. The rest of its frames is sent when the returned
    /// sender is told.
    pub(crate) fn will_watch_in_two(
        &self,
        frames: String,
        rest: String,
        then: Option<State>,
    ) -> oneshot::Sender<()> {
        let (sender, told) = oneshot::channel();
        self.script().watches.push_back(Watched {
            frames,
            rest: Some((told, rest)),
            ends: false,
            then,
        });
        sender
    }

    /// Returns the client of the server.
    pub(crate) fn client(&self) -> Arc<Upstream> {
        self.client_by(Clock::real())
    }

    /// Returns the client of the server that goes by a clock.
    pub(crate) fn client_by(&self, clock: Clock) -> Arc<Upstream> {
        let text = format!(
            "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             current-context: c\n",
            self.port
        );
        let kubeconfig = Kubeconfig::parse(&text, Path::new("kubeconfig")).unwrap();
        Arc::new(Upstream::new(&kubeconfig, Ledger::unlimited(), clock).unwrap())
    }

    /// Puts a cache in front of the server.
    pub(crate) fn relayed(&self) -> Relayed {
        let window = WindowLimits::default();
        relayed(&self.client(), things(), FieldSchema::default(), window)
    }
}

/// Returns the resource that the server has.
pub(crate) fn things() -> ResourceType {
    ResourceType {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        resource: "things".to_owned(),
        kind: "Thing".to_owned(),
        is_namespaced: false,
        prefix: "/things/".to_owned(),
    }
}

async fn serve(stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let other = {
        let mut script = script.lock().unwrap();
        let other = script.answers.get(&target).cloned();
        other.inspect(|_| {
            script.asked.push(target.clone());
            script.heads.push(head.to_lowercase());
        })
    };
    match other {
        Some(Some((status, body))) => {
            let head = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            return;
        }
        Some(None) => std::future::pending().await,
        None => {}
    }
    let (answer, ends, rest) = {
        let mut script = script.lock().unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        if target.contains("watch=true") {
            script.opened.push(target);
            let mut watched = script.watches.pop_front().unwrap_or_default();
            let rest = watched
                .rest
                .map(|(told, rest)| (told, rest, watched.then.take()));
            if rest.is_none() {
                script.change(watched.then);
            }
            (format!("{head}{}", watched.frames), watched.ends, rest)
        } else {
            script.lists += 1;
            script.listed.push(target.clone());
            let exact = script.exact.filter(|_| target.contains("Exact"));
            let items: Vec<_> = script.objects.iter().map(|it| object(it.0, it.1)).collect();
            let revision = exact.unwrap_or(script.revision);
            let items = items.join(",");
            let list =
                format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}},"items":[{items}]}}"#);
            (format!("{head}{list}"), true, None)
        }
    };
    let _ = stream.write_all(answer.as_bytes()).await;
    if let Some((told, rest, then)) = rest
        && told.await.is_ok()
    {
        script.lock().unwrap().change(then);
        let _ = stream.write_all(rest.as_bytes()).await;
    }
    if !ends {
        std::future::pending::<()>().await;
    }
}
