//! The checks behind `/healthz`, `/livez` and `/readyz`.

use std::sync::Arc;

use futures::FutureExt;
use ringwatch::storage::cacher::Cacher;
use ringwatch::storage::encryption::Encryption;
use ringwatch_endpoints::health::{Check, Health, Scope, check};

use super::backend::{OpenBackend, add_store_checks, store_check};
use super::inputs::ServerInputs;
use super::post_start_hooks::PostStartHooks;
use super::resources::Resources;

/// Maximum number of unready caches that are named.
const UNREADY_NAMED_MAX: usize = 5;

/// Returns the checks of a server. It is unready once it begins to shut down.
pub(crate) fn health_checks(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    hooks: &PostStartHooks,
) -> Health {
    let (flags, backend, clock) = (inputs.flags, inputs.backend, &inputs.clock);
    let storages = &resources.storages;
    let encryption = &storages.factory.encryption;
    let mut health = Health::new(inputs.steps.shutting_down.clone());
    let etcd = &flags.etcd;
    let (live, ready) = (etcd.etcd_healthcheck_timeout, etcd.readycheck_timeout());
    let answers = |open: &OpenBackend, at_most| store_check(&open.backend, etcd, at_most, clock);
    health.add("etcd", Scope::Liveness, answers(backend, live));
    health.add("etcd-readiness", Scope::Readiness, answers(backend, ready));
    for (index, other) in inputs.overrides.iter().enumerate() {
        let name = format!("etcd-override-{index}");
        health.add(name, Scope::Everywhere, answers(&other.open, live));
        let name = format!("etcd-override-readiness-{index}");
        health.add(name, Scope::Readiness, answers(&other.open, ready));
    }
    if let Some(embedded) = &backend.embedded {
        add_store_checks(embedded, &mut health);
    }
    // A file that is read again may get plugins.
    if flags.encryption_provider_config_automatic_reload || encryption.uses_kms() {
        health.add("kms-providers", Scope::Serving, plugins_healthy(encryption));
    }
    health.add(
        "informer-sync",
        Scope::Readiness,
        all_filled(&storages.cachers),
    );
    let alive_until = clock.now() + flags.cluster.livez_grace_period;
    hooks.add_checks(&mut health, alive_until, clock);
    health
}

/// Returns the check that all KMS plugins are healthy.
fn plugins_healthy(encryption: &Encryption) -> Check {
    let encryption = encryption.clone();
    Arc::new(move || {
        let encryption = encryption.clone();
        async move { encryption.check_kms().await }.boxed()
    })
}

/// Returns the check that all watch caches have been filled. One that is filled again later, or waits for a key, does
/// not take the server out of service: its requests are refused, and all others are answered.
fn all_filled(cachers: &[Arc<Cacher>]) -> Check {
    let cachers = cachers.to_vec();
    check(move || {
        let new = cachers.iter().filter(|it| !it.has_been_ready());
        let unready: Vec<String> = new.filter_map(|it| it.complaint()).collect();
        if unready.is_empty() {
            return Ok(());
        }
        let named = unready[..unready.len().min(UNREADY_NAMED_MAX)].join("; ");
        Err(format!("{} not ready, among them {named}", unready.len()))
    })
}
