//! The task that frees memory when it is short, and the metrics of the memory budget.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::budget::{Account, Ledger};
use ringwatch_endpoints::EncodingCache;

/// Shrinks the cache of encodings and then the windows of the watch caches whenever memory becomes short. Never
/// completes.
pub(crate) async fn shrink_caches(
    ledger: Ledger,
    encodings: EncodingCache,
    shrink_windows: impl Fn(),
) {
    loop {
        ledger.pressed().await;
        encodings.evict_surplus();
        shrink_windows();
    }
}

/// The ledger's figures, as `/metrics` shows them.
#[derive(Debug)]
pub(crate) struct MemoryMetrics {
    ledger: Ledger,
    /// The bytes in use, by account.
    spent: Family<AccountLabels, Gauge<i64, AtomicI64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabels {
    account: &'static str,
}

impl MemoryMetrics {
    /// Registers the metrics, with the limit of the budget.
    #[must_use]
    pub(crate) fn register(registry: &mut Registry, ledger: Ledger) -> Self {
        let spent = Family::default();
        registry.register(
            "ringwatch_memory_bytes",
            "Memory in use by account, as the memory budget counts it.",
            spent.clone(),
        );
        let limit: Gauge<i64, AtomicI64> = Gauge::default();
        limit.set(shown(ledger.limit()));
        registry.register(
            "ringwatch_memory_limit_bytes",
            "The memory budget: before it is spent, new lists and watches are refused.",
            limit,
        );
        let metrics = Self { ledger, spent };
        metrics.refresh();
        metrics
    }

    /// Sets the metrics to what the ledger says now, before a scrape.
    pub(crate) fn refresh(&self) {
        for account in Account::ALL {
            let labels = AccountLabels {
                account: account.name(),
            };
            let bytes = shown(self.ledger.spent(account));
            self.spent.get_or_create(&labels).set(bytes);
        }
    }
}

fn shown(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_shown_from_the_start_and_follow() {
        let ledger = Ledger::new(1000);
        let mut registry = Registry::default();
        let metrics = MemoryMetrics::register(&mut registry, ledger.clone());
        let mut share = ledger.share(Account::Windows);
        share.set(7);
        metrics.refresh();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in [
            "ringwatch_memory_bytes{account=\"windows\"} 7",
            "ringwatch_memory_bytes{account=\"objects\"} 0",
            "ringwatch_memory_limit_bytes 1000",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
