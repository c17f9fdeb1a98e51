//! Users: they create, edit, scale and delete sites, at once and in each other's way, and do what is not allowed.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::{NAMESPACE, Stage};
use crate::children::{TERM, TEXT};
use crate::site::{HOST_CHANGED, Site, SiteSpec, TOO_MANY_REPLICAS};

/// The most sites that there are at a time.
const SITES: u32 = 12;
/// Pages that a site may have.
const PAGES: [&str; 4] = ["about", "home", "news", "shop"];
/// The most replicas that a site may have.
const REPLICAS_MAX: i32 = 5;
/// The pause between two writes of one user.
const PACE: Duration = Duration::from_millis(20);
/// The pause while the server is away.
const AWAY: Duration = Duration::from_millis(200);

/// One user.
struct Writer {
    stage: Stage,
    random: StdRng,
}

/// The expected outcome of a request.
#[derive(Clone, Copy)]
enum Must {
    /// It is done, unless another was faster.
    Succeed,
    /// It is refused by this rule, unless there is no such site.
    BeRefused(&'static str),
}

/// Writes until it is dropped.
pub(super) async fn write(stage: Stage, seed: u64) {
    let mut writer = Writer {
        stage,
        random: StdRng::seed_from_u64(seed),
    };
    loop {
        match writer.one().await {
            Ok(()) => tokio::time::sleep(PACE).await,
            Err(_away) => {
                writer
                    .stage
                    .ledger()
                    .count("requests to a server that was away");
                tokio::time::sleep(AWAY).await;
            }
        }
    }
}

impl Writer {
    async fn one(&mut self) -> Result<(), kube::Error> {
        let name = format!("site-{}", self.random.random_range(0..SITES));
        let params = PatchParams::default();
        let sites = self.stage.sites();
        match self.random.random_range(0..20) {
            0..4 => {
                let site = self.site(&name);
                self.judge(
                    sites.create(&PostParams::default(), &site).await,
                    Must::Succeed,
                )
            }
            4 => {
                let mut site = self.site(&name);
                site.spec.replicas = REPLICAS_MAX + 1;
                let created = sites.create(&PostParams::default(), &site).await;
                self.judge(created, Must::BeRefused(TOO_MANY_REPLICAS))
            }
            5..9 => self.edit(&name).await,
            9..11 => self.race(&name).await,
            11 => {
                let change = json!({"spec": {"host": format!("other-{name}.example.com")}});
                let patched = sites.patch(&name, &params, &Patch::Merge(change)).await;
                self.judge(patched, Must::BeRefused(HOST_CHANGED))
            }
            12 => {
                // The status is not written here.
                let change = json!({"status": {"observedGeneration": 999_999, "term": 0, "pages": 0, "replicas": 0}});
                let patched = sites.patch(&name, &params, &Patch::Merge(change)).await;
                self.judge(patched, Must::Succeed)
            }
            13..15 => self.scale(&name).await,
            15 => self.apply(&name).await,
            16 => self.meddle(&name).await,
            _ => {
                let deleted = sites.delete(&name, &DeleteParams::default()).await;
                let left = deleted.map(|it| it.left());
                match left {
                    Ok(None) => Ok(()),
                    Ok(Some(site)) => self.judge(Ok(site), Must::Succeed),
                    Err(error) => self.judge::<Site>(Err(error), Must::Succeed),
                }
            }
        }
    }

    fn site(&mut self, name: &str) -> Site {
        let spec = SiteSpec {
            host: format!("{name}.example.com"),
            pages: self.pages(),
            replicas: self.random.random_range(0..=REPLICAS_MAX),
            replicas_max: REPLICAS_MAX,
        };
        Site::new(name, spec)
    }

    fn pages(&mut self) -> BTreeMap<String, String> {
        let mut pages = BTreeMap::new();
        for page in PAGES {
            if self.random.random_bool(0.5) {
                let text = format!("text {}", self.random.random_range(0..1_000_000));
                pages.insert(page.to_owned(), text);
            }
        }
        pages
    }

    /// Changes a site that was read before, as most clients do.
    async fn edit(&mut self, name: &str) -> Result<(), kube::Error> {
        let sites = self.stage.sites();
        let Some(mut site) = sites.get_opt(name).await? else {
            return Ok(());
        };
        site.spec.pages = self.pages();
        site.spec.replicas = self.random.random_range(0..=REPLICAS_MAX);
        let replaced = sites.replace(name, &PostParams::default(), &site).await;
        self.judge(replaced, Must::Succeed)
    }

    /// Two change the same version of a site: one at most may.
    async fn race(&mut self, name: &str) -> Result<(), kube::Error> {
        let sites = self.stage.sites();
        let Some(site) = sites.get_opt(name).await? else {
            return Ok(());
        };
        let params = PostParams::default();
        let [one, other] = ["one", "other"].map(|winner| {
            let mut changed = site.clone();
            let text = format!("{winner} {}", self.random.random_range(0..1_000_000));
            changed.spec.pages.insert("home".to_owned(), text);
            changed
        });
        let (one, other) = tokio::join!(
            sites.replace(name, &params, &one),
            sites.replace(name, &params, &other)
        );
        self.stage.ledger().count("races");
        if one.is_ok() && other.is_ok() {
            self.stage
                .ledger()
                .violate(format!("two changed one version of {name}"));
        }
        self.judge(one, Must::Succeed)?;
        self.judge(other, Must::Succeed)
    }

    async fn scale(&mut self, name: &str) -> Result<(), kube::Error> {
        let replicas = self.random.random_range(0..=REPLICAS_MAX + 1);
        let change = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let (sites, params) = (self.stage.sites(), PatchParams::default());
        let scaled = sites.patch_scale(name, &params, &change).await;
        let must = match replicas {
            ..=REPLICAS_MAX => Must::Succeed,
            _ => Must::BeRefused(TOO_MANY_REPLICAS),
        };
        self.judge(scaled, must)
    }

    /// Another applies what may be somebody else's; then it is a conflict.
    async fn apply(&mut self, name: &str) -> Result<(), kube::Error> {
        let replicas = self.random.random_range(0..=REPLICAS_MAX);
        let sites = self.stage.sites();
        if sites.get_opt(name).await?.is_none() {
            return Ok(());
        }
        let mut wanted = self.site(name);
        wanted.spec.replicas = replicas;
        wanted.spec.pages.clear();
        let applied = sites
            .patch(
                name,
                &PatchParams::apply("autoscaler"),
                &Patch::Apply(&wanted),
            )
            .await;
        if let Ok(site) = &applied
            && site.spec.replicas != replicas
        {
            self.stage
                .ledger()
                .violate(format!("{name} was applied, but is not as applied"));
        }
        self.judge(applied, Must::Succeed)
    }

    /// Changes or deletes a page behind the operator's back, which will have to mend it.
    async fn meddle(&mut self, name: &str) -> Result<(), kube::Error> {
        let config_maps: Api<ConfigMap> = Api::namespaced(self.stage.client.clone(), NAMESPACE);
        let page = format!("{name}-{}", PAGES[self.random.random_range(0..PAGES.len())]);
        if self.random.random_bool(0.5) {
            let deleted = config_maps.delete(&page, &DeleteParams::default()).await;
            return self.judge::<ConfigMap>(
                deleted.map(|it| it.left().unwrap_or_default()),
                Must::Succeed,
            );
        }
        // Without the term, or it would look as if the leader of then had written this.
        let change: Value =
            json!({"metadata": {"annotations": {TERM: null}}, "data": {TEXT: "graffiti"}});
        let patched = config_maps
            .patch(&page, &PatchParams::default(), &Patch::Merge(change))
            .await;
        self.judge(patched, Must::Succeed)
    }

    /// Checks an answer against the expected outcome. An error is a server that did not answer.
    fn judge<K: kube::Resource>(
        &self,
        answer: Result<K, kube::Error>,
        must: Must,
    ) -> Result<(), kube::Error> {
        let mut ledger = self.stage.ledger();
        match (answer, must) {
            (Ok(object), Must::Succeed) => {
                if object.uid().is_some() {
                    ledger.acknowledge(&object);
                }
            }
            (Ok(object), Must::BeRefused(rule)) => {
                ledger.violate(format!(
                    "{} was written against {rule:?}",
                    object.name_any()
                ));
            }
            (Err(kube::Error::Api(status)), must) => match (status.code, must) {
                (404, _) => ledger.count("requests for what is not there"),
                (409, _) => ledger.count("conflicts"),
                (422, Must::BeRefused(rule)) if status.message.contains(rule) => {
                    ledger.count("refused by a rule");
                }
                (429 | 500.., _) => return Err(kube::Error::Api(status)),
                _ => ledger.violate(format!("an answer that should not be: {status:?}")),
            },
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }
}
