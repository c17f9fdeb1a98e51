//! An upstream that sends what no API server should: nobody is shown anything false, and the cache recovers.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::meta::{FieldSchema, ResourceVersion, WatchEvent};
use ringwatch::storage::cacher::WindowLimits;
use ringwatch::storage::{Interface, ListOptions, StorageError, WatchStream};
use ringwatch_relay::{ResourceType, Upstream};
use ringwatch_tls::kubeconfig::Kubeconfig;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{Relayed, eventually, relayed};

/// Longer than any event may take; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that answers with a script.
struct Scripted {
    script: Arc<Mutex<Script>>,
    port: u16,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Script {
    /// The version of lists.
    revision: u64,
    /// The version of lists that are asked for at exactly `revision`, if it is another.
    exact: Option<u64>,
    /// The names and versions of the objects.
    objects: Vec<(&'static str, u64)>,
    /// The watches to come.
    watches: VecDeque<Watched>,
    /// The queries of the watches that were opened.
    opened: Vec<String>,
}

/// A watch to come.
#[derive(Default)]
struct Watched {
    frames: String,
    /// True if it ends after the frames.
    ends: bool,
    /// The version and the objects of lists from then on, if they change.
    then: Option<(u64, Vec<(&'static str, u64)>)>,
}

fn object(name: &str, revision: u64) -> String {
    let metadata = format!(r#"{{"name":"{name}","resourceVersion":"{revision}"}}"#);
    format!(r#"{{"kind":"Thing","apiVersion":"example.com/v1","metadata":{metadata}}}"#)
}

fn event(kind: &str, name: &str, revision: u64) -> String {
    let object = object(name, revision);
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

impl Scripted {
    async fn start(revision: u64, objects: &[(&'static str, u64)]) -> Self {
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

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    fn will_watch(&self, frames: String, ends: bool) {
        self.will_watch_then(frames, ends, None);
    }

    fn will_watch_then(
        &self,
        frames: String,
        ends: bool,
        then: Option<(u64, Vec<(&'static str, u64)>)>,
    ) {
        self.script()
            .watches
            .push_back(Watched { frames, ends, then });
    }

    /// Puts a cache in front of the server.
    fn relayed(&self) -> Relayed {
        let text = format!(
            "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             current-context: c\n",
            self.port
        );
        let kubeconfig = Kubeconfig::parse(&text, Path::new("kubeconfig")).unwrap();
        let upstream = Upstream::new(&kubeconfig, Clock::real()).unwrap();
        let things = ResourceType {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            resource: "things".to_owned(),
            kind: "Thing".to_owned(),
            is_namespaced: false,
            prefix: "/things/".to_owned(),
        };
        let window = WindowLimits::default();
        relayed(&Arc::new(upstream), things, FieldSchema::default(), window)
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
    let (answer, ends) = {
        let mut script = script.lock().unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        if target.contains("watch=true") {
            script.opened.push(target);
            let watched = script.watches.pop_front().unwrap_or_default();
            if let Some((revision, objects)) = watched.then {
                (script.revision, script.objects) = (revision, objects);
            }
            (format!("{head}{}", watched.frames), watched.ends)
        } else {
            let exact = script.exact.filter(|_| target.contains("Exact"));
            let items: Vec<_> = script.objects.iter().map(|it| object(it.0, it.1)).collect();
            let revision = exact.unwrap_or(script.revision);
            let items = items.join(",");
            let list =
                format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}},"items":[{items}]}}"#);
            (format!("{head}{list}"), true)
        }
    };
    let _ = stream.write_all(answer.as_bytes()).await;
    if !ends {
        std::future::pending::<()>().await;
    }
}

async fn watch(relayed: &Relayed, version: u64) -> WatchStream {
    let options = ListOptions {
        resource_version: Some(ResourceVersion(version)),
        recursive: true,
        ..ListOptions::default()
    };
    relayed.cached.watch("/things/", options).await.unwrap()
}

/// Returns what a watch tells until it is silent or ends.
async fn told(watch: &mut WatchStream, most: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < most {
        let item = tokio::time::timeout(PATIENCE, watch.next()).await;
        told.push(match item.expect("something in time") {
            Some(Ok(WatchEvent::Added(it))) => format!("added {} {}", it.name(), it.revision()),
            Some(Ok(WatchEvent::Modified(it))) => format!("set {} {}", it.name(), it.revision()),
            Some(Ok(WatchEvent::Deleted(it))) => format!("deleted {} {}", it.name(), it.revision()),
            Some(Ok(other)) => format!("{other:?}"),
            // An error if the watch was told why, else the end alone.
            Some(Err(_)) | None => {
                told.push("over".to_owned());
                return told;
            }
        });
    }
    told
}

/// Waits until the cache has exactly these objects.
async fn has(relayed: &Relayed, objects: &[(&str, u64)]) {
    eventually("the cache has the upstream's objects", async || {
        let any = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        let list = relayed.cached.get_list("/things/", any).await;
        list.is_ok_and(|list| {
            let found = list.items.iter().map(|it| (it.name(), it.revision()));
            found.eq(objects.iter().copied())
        })
    })
    .await;
}

#[tokio::test]
async fn a_version_that_falls_is_shown_to_nobody() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let lie = event("ADDED", "b", 12) + &event("MODIFIED", "a", 7) + &event("ADDED", "c", 13);
    upstream.will_watch_then(lie, false, Some((20, vec![("a", 15), ("b", 12)])));
    let relayed = upstream.relayed();
    has(&relayed, &[("a", 15), ("b", 12)]).await;
    let opened = || upstream.script().opened.clone();
    eventually("a second watch is opened", async || opened().len() > 1).await;
    assert!(opened()[1].contains("resourceVersion=20"), "{:?}", opened());
    let mut watch = watch(&relayed, 20).await;
    let silent = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(silent.is_err(), "neither a nor c is told: {silent:?}");
}

#[tokio::test]
async fn a_frame_that_is_no_event_ends_no_watch() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let broken = event("ADDED", "b", 12) + "{\"type\":\"ADDED\"\n";
    upstream.will_watch_then(broken, false, Some((12, vec![("a", 5), ("b", 12)])));
    upstream.will_watch(event("ADDED", "c", 13), false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    assert_eq!(told(&mut watch, 2).await, ["added b 12", "added c 13"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=12"), "{opened:?}");
}

#[tokio::test]
async fn objects_that_expire_together_are_deleted_together() {
    let upstream = Scripted::start(10, &[("a", 5), ("b", 6), ("c", 7)]).await;
    let deleted = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch_then(deleted, true, Some((12, vec![("c", 7)])));
    // After a break the version is asked for again, and what was seen of it is skipped.
    let again = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch(again + &event("MODIFIED", "c", 13), false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    let told = told(&mut watch, 3).await;
    assert_eq!(told, ["deleted a 12", "deleted b 12", "set c 13"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=11"), "{opened:?}");
}

#[tokio::test]
async fn a_version_that_was_parted_has_everything_listed_again() {
    let upstream = Scripted::start(10, &[("a", 5), ("b", 6)]).await;
    let part = event("DELETED", "a", 12);
    upstream.will_watch_then(part, true, Some((12, Vec::new())));
    let rest = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch(rest, false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    assert_eq!(told(&mut watch, 3).await, ["deleted a 12", "over"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=11"), "{opened:?}");
    has(&relayed, &[]).await;
}

#[tokio::test]
async fn a_list_of_another_version_is_not_served() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    upstream.script().exact = Some(9);
    let relayed = upstream.relayed();
    eventually("the cache says why it is not ready", async || {
        let complaint = relayed.cached.cacher().complaint().unwrap_or_default();
        complaint.contains("a list of version 9 for one of version 10")
    })
    .await;
    let any = ListOptions {
        resource_version: Some(ResourceVersion(0)),
        recursive: true,
        ..ListOptions::default()
    };
    let refused = relayed.cached.get_list("/things/", any).await;
    assert!(
        matches!(refused, Err(StorageError::NotReady { .. })),
        "{refused:?}"
    );
    upstream.script().exact = None;
    has(&relayed, &[("a", 5)]).await;
}
