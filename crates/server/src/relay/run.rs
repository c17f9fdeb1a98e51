//! Starts a relay, and ends it in order when a signal comes.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_endpoints::current_credentials::tls;
use ringwatch_filters::threads::RuntimeHandles;
use ringwatch_http::Listener;
use ringwatch_relay::{Caches, Front};
use ringwatch_tls::certificates::subjects;
use ringwatch_tls::error::StartError;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::build::RelayInputs;
use crate::config::admin_kubeconfig::{keep_kubeconfig, local_url};
use crate::config::credentials::CredentialFiles;
use crate::config::data_dir::data_dir;
use crate::config::flags::{CachedResource, RelayFlags};
use crate::config::security::{addresses, host_name};
use crate::config::tracing_file::SpansConfig;
use crate::config::upstream_kubeconfig::UpstreamKubeconfig;
use crate::debug::ProcessControls;
use crate::run::announcement;
use crate::run::background::Background;
use crate::run::process;
use crate::run::serve::spawn;
use crate::shutdown::Steps;

/// Maximum time that the start waits for the caches that flags name.
const CACHES_FILLED_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a relay until a signal ends it. The controls of the process are for authorized users.
///
/// # Errors
/// The reason why it does not start, or that it was told twice to end.
pub fn run(
    flags: &RelayFlags,
    controls: Option<Arc<dyn ProcessControls>>,
) -> Result<(), StartError> {
    process::run(async |runtimes, signals| {
        let relay = Relay::listen(flags, runtimes, controls).await?;
        tokio::select! {
            () = relay.fill(&flags.cache) => {
                announce(flags, &relay);
                signals.next().await;
            }
            () = signals.next() => {}
        }
        process::end(relay.end(flags.serving.shutdown_delay_duration), signals).await
    })
}

/// A relay that serves. When it is dropped, its tasks and connections are aborted.
struct Relay {
    /// The URL at which this machine reaches it.
    url: String,
    kubeconfig: PathBuf,
    front: Arc<Front>,
    caches: Arc<Caches>,
    steps: Steps,
    listener: AbortOnDropHandle<JoinSet<()>>,
    background: Background,
    clock: Clock,
}

impl Relay {
    /// Starts to listen. The relay answers requests when this returns; nothing has been asked of the upstream.
    ///
    /// # Errors
    /// A file cannot be used, or the address is taken.
    async fn listen(
        flags: &RelayFlags,
        runtimes: RuntimeHandles,
        controls: Option<Arc<dyn ProcessControls>>,
    ) -> Result<Self, StartError> {
        let clock = Clock::real();
        let served = flags.as_served();
        let ledger = Ledger::new(served.memory_budget());
        let kubeconfig = &flags.kubeconfig;
        let (upstream_file, upstream) = UpstreamKubeconfig::load(kubeconfig, &ledger, &clock)?;
        let upstream = Arc::new(upstream);
        let spans = SpansConfig::load(flags.tracing_config_file.as_deref())?;
        let data_dir = data_dir(&flags.data_dir)?;
        let subjects = subjects(&addresses(&flags.serving), host_name());
        let files = CredentialFiles::load(&served, subjects, &clock)?;
        let credentials = files.current();
        let bind = SocketAddr::new(flags.serving.bind_address, flags.serving.secure_port);
        let listener = Listener::bind(bind, flags.serving.permit_port_sharing).await?;
        let url = local_url(listener.address());
        let kubeconfig = data_dir.join("kubeconfig");
        let keeping = keep_kubeconfig(&kubeconfig, &url, &credentials)?;
        let following = upstream_file.follow(Arc::clone(&upstream), clock.clone());
        let steps = process::steps(&flags.serving);
        let inputs = RelayInputs {
            flags: &served,
            ttls: flags.review_ttls(),
            caches_secrets: flags.cache_secrets,
            upstream,
            ledger,
            address: listener.address(),
            steps: &steps,
            spans,
            controls,
            runtimes: &runtimes,
            clock: clock.clone(),
        };
        let (built, mut tasks) = inputs.build(&credentials)?;
        tasks.background("kubeconfig of the admin", keeping);
        tasks.background("files of trust", files.follow(clock.clone()));
        tasks.background("kubeconfig of the upstream", following);
        tasks.background("caches", follow(Arc::clone(&built.caches)));
        let stop = steps.stop_accepting.clone();
        Ok(Self {
            url,
            kubeconfig,
            front: built.front,
            caches: built.caches,
            background: Background::run(tasks, &runtimes.background),
            listener: spawn(listener.run(built.connections, tls(credentials), stop)),
            steps,
            clock,
        })
    }

    /// Begins the caches of these resources, and waits a bounded time until they are filled.
    async fn fill(&self, resources: &[CachedResource]) {
        let all = async {
            for CachedResource { plural, version } in resources {
                match self.front.fill(version, plural).await {
                    Ok(true) => {}
                    Ok(false) => tracing::warn!(plural, %version, "the resource cannot be cached"),
                    Err(error) => tracing::warn!(plural, %version, %error, "a cache is not filled"),
                }
            }
        };
        if self
            .clock
            .timeout(CACHES_FILLED_TIMEOUT, all)
            .await
            .is_err()
        {
            tracing::warn!("caches are still being filled");
        }
    }

    /// Ends the relay in order: the listener, watches and connections, then the tasks.
    async fn end(self, delay: Duration) {
        let caches = self.caches;
        let end_watches = async { caches.drain() };
        let listener = self.listener.detach();
        let nothing = std::future::ready(());
        self.steps
            .take(delay, nothing, listener, end_watches, &self.clock)
            .await;
        self.background.stop(&self.clock).await;
        tracing::info!("ended");
    }
}

/// Runs the tasks that fill and follow caches, on the threads of the caller.
async fn follow(caches: Arc<Caches>) {
    let mut followers = JoinSet::new();
    loop {
        tokio::select! {
            follower = caches.next_follower() => {
                followers.spawn(follower);
            }
            Some(_) = followers.join_next() => {}
        }
    }
}

/// Prints the announcement. An error of standard output is ignored.
fn announce(flags: &RelayFlags, relay: &Relay) {
    let text = announcement::of_relay(flags, &relay.url, &relay.kubeconfig);
    let _ = writeln!(std::io::stdout(), "{text}");
}
