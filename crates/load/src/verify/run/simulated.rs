//! The clients of `load verify` in a simulation: over connections that it makes, and judged without minimums, since a
//! simulation may keep any of them from its server.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::resource::Resource;
use super::{RunStage, VerifyFlags, report};
use crate::client::{Client, Connect, HttpVersion};
use crate::error::LoadError;
use crate::verify::history::{History, WriteAnswer};
use crate::workspace::Workspace;

/// The pause between two attempts to create the namespace, and how many there are.
const BEGIN_PAUSE: Duration = Duration::from_millis(500);
const BEGIN_ATTEMPTS_MAX: u32 = 60;

/// Writers, watchers and readers of one server, as many of each as `ringwatch load verify` has by the same numbers.
///
/// They read time by tokio's timer alone, so they may run where it is paused.
#[derive(Clone, Debug)]
pub struct SimulatedClients {
    /// Makes their connections.
    pub connect: Arc<dyn Connect>,
    /// The bearer token by which the server knows them.
    pub token: String,
    /// The version of HTTP that they speak.
    pub http: HttpVersion,
    /// The time for which the clients write and read.
    pub duration: Duration,
    /// Number of watchers.
    pub watchers: u32,
    /// Number of writers.
    pub writers: u32,
    /// Number of clients that list.
    pub readers: u32,
    /// Number of objects that are written.
    pub objects: u32,
    /// Writes a second, of all writers together.
    pub rate: f64,
}

/// The verdict on what the clients were told.
#[derive(Clone, Debug)]
pub struct HistoryVerdict {
    /// The promises that were broken, each with the history that shows it, and those that could not be checked; empty
    /// if all were kept.
    pub faults: Vec<String>,
    /// Number of writes that were acknowledged.
    pub acknowledged: usize,
    /// Number of events and bookmarks that came over watches.
    pub events: usize,
    /// Number of lists that were answered.
    pub lists: usize,
    /// A digest of the whole history: that of a run which repeats another one is the same.
    pub digest: u64,
}

impl SimulatedClients {
    /// Has the clients write, watch and read, waits until the watchers have had the time to see everything, and checks
    /// what they were told.
    ///
    /// # Errors
    /// No namespace can be created, for half a minute.
    pub async fn run(&self) -> Result<HistoryVerdict, LoadError> {
        let client = Client::over(Arc::clone(&self.connect), self.token.clone(), self.http);
        let workspace = begin(&client).await?;
        let flags = VerifyFlags {
            watchers: self.watchers,
            writers: self.writers,
            readers: self.readers,
            objects: self.objects,
            rate: self.rate,
            faults: Vec::new(),
            watchers_only: None,
            resource: None,
        };
        let resource = Resource::secrets();
        let stage = RunStage::new(&client, &workspace, resource, &flags, self.duration, 0);
        let played = stage.play().await;
        let judged = stage.judge(played);
        let history = &judged.history;
        let mut faults = report::report(history, &judged.checked, judged.trouble).faults;
        // Few clients write to few objects, so that each of them is decided.
        faults.extend(report::undecided(&judged.checked));
        let acknowledged = |it: &&_| matches!(it, &&WriteAnswer::Acknowledged { .. });
        let sessions = history.watchers.iter().flat_map(|it| &it.sessions);
        Ok(HistoryVerdict {
            acknowledged: history
                .writes
                .iter()
                .map(|write| &write.answer)
                .filter(acknowledged)
                .count(),
            events: sessions.map(|session| session.seen.len()).sum(),
            lists: history.reads.len(),
            digest: digest(history),
            faults,
        })
    }
}

/// Creates the namespace of the run. A server that is away for a while is waited for.
async fn begin(client: &Client) -> Result<Workspace, LoadError> {
    for _ in 1..BEGIN_ATTEMPTS_MAX {
        if let Ok(workspace) = create(client).await {
            return Ok(workspace);
        }
        tokio::time::sleep(BEGIN_PAUSE).await;
    }
    create(client).await
}

async fn create(client: &Client) -> Result<Workspace, LoadError> {
    // Of a namespace whose creation was not answered nobody knows, so each attempt has another.
    let mut workspace = Workspace::new(None);
    let mut connection = client.connect().await?;
    workspace.create(&mut connection).await?;
    Ok(workspace)
}

fn digest(history: &History) -> u64 {
    /// Hashes what is written to it.
    struct Hashed(DefaultHasher);

    impl std::fmt::Write for Hashed {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }

    let mut hashed = Hashed(DefaultHasher::new());
    // Writing into a hash does not fail.
    let _ = write!(hashed, "{history:?}");
    hashed.0.finish()
}
