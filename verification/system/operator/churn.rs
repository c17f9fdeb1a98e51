//! Writes, breaks rules, kills leaders, and watches that nothing happens that must not.
//!
//! ```text
//!  writers ------ sites ------> server <--- operators (processes, whose leader is killed now and then)
//!     |                           |  ^
//!     | acknowledged              |  garbage: deletes what has no owner any more
//!     v                           v
//!   ledger <----- events ----- observer        at the end: settled
//! ```

mod garbage;
mod ledger;
mod observer;
mod operators;
mod settled;
mod writers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, CustomResourceExt};
use serde_json::json;

use super::Failure;
use super::site::Site;
use ledger::Ledger;

/// The namespace of everything that the churn writes.
const NAMESPACE: &str = "site-churn";
/// The field manager of the definition.
const MANAGER: &str = "churn";
/// The most time until a definition is served, and the most time until everything is as it should be at the end.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
const SETTLED_WITHIN: Duration = Duration::from_secs(90);
/// The pause between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The number of users that write at once.
const WRITERS: u64 = 3;

/// Options of the churn.
#[derive(Debug, clap::Args)]
pub(crate) struct Churn {
    /// The time for which the operators work, such as `30s` or `10m`.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
    /// Seed of the writes; the same number writes the same.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        _ => return Err("a number with s or m".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a number with s or m".to_owned())?;
    Ok(Duration::from_secs(number * seconds))
}

/// The part that all writers and observers share.
#[derive(Clone)]
struct Stage {
    client: Client,
    ledger: Arc<Mutex<Ledger>>,
}

impl Stage {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sites(&self) -> Api<Site> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

impl Churn {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = super::client().await?;
        let stage = Stage {
            client,
            ledger: Arc::default(),
        };
        stage.define().await?;
        let observing = observer::observe(&stage);
        let collecting = tokio::spawn(garbage::collect(stage.clone()));
        let mut operators = operators::Operators::start(&stage)?;

        let writing = (0..WRITERS).map(|writer| writers::write(stage.clone(), self.seed + writer));
        let writing = futures::future::join_all(writing);
        let half = async {
            tokio::time::sleep(self.duration / 2).await;
            println!("halfway");
            tokio::time::sleep(self.duration / 2).await;
        };
        tokio::select! {
            _never = writing => {}
            killed = operators.kill_leaders(&stage) => killed?,
            () = half => {}
        }
        let kept = settled::settle(&stage).await?;
        settled::delete_all(&stage).await?;
        let gone = settled::settle(&stage).await?;
        operators.end().await?;
        collecting.abort();
        observing.iter().for_each(tokio::task::AbortHandle::abort);
        let mut ledger = stage.ledger();
        ledger.finish();
        println!("{kept} sites were kept at the end, {gone} after the last deletion");
        println!("{ledger}");
        match ledger.violations() {
            0 => Ok(()),
            some => Err(Failure::Violations(some)),
        }
    }
}

impl Stage {
    /// Defines sites, and waits until they are served. The server may just be starting.
    async fn define(&self) -> Result<(), Failure> {
        let defined = async {
            while let Err(error) = self.try_define().await {
                println!("not yet: {error}");
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let defined = tokio::time::timeout(SERVED_WITHIN, defined).await;
        defined.map_err(|_| Failure::TooLate("the type", SERVED_WITHIN))
    }

    async fn try_define(&self) -> Result<(), kube::Error> {
        let params = PatchParams::apply(MANAGER).force();
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = Patch::Apply(namespace);
        namespaces.patch(NAMESPACE, &params, &namespace).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let definition = Patch::Apply(Site::crd());
        definitions
            .patch(Site::crd_name(), &params, &definition)
            .await?;
        let one = ListParams::default().limit(1);
        self.sites().list(&one).await.map(drop)
    }
}
