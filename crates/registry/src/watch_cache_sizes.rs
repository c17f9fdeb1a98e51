//! `--watch-cache` and `--watch-cache-sizes`: which resources are served from memory.

/// An entry of `--watch-cache-sizes`: a resource, and 0 if it has no watch cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchCacheSize {
    /// The plural of the resource.
    resource: String,
    /// The group of the resource; empty for the core group.
    group: String,
    /// 0 disables the cache; any other number enables it, since sizes adapt themselves.
    size: u32,
}

/// The resources that have a watch cache.
#[derive(Clone, Debug)]
pub struct WatchCacheSizes {
    enabled: bool,
    /// Exceptions; the last one of a resource holds.
    entries: Vec<WatchCacheSize>,
}

impl WatchCacheSize {
    /// Reads an item of `--watch-cache-sizes`: `resource[.group]#size`.
    ///
    /// # Errors
    /// A message for the user that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not of the form resource[.group]#size");
        let (name, size) = text.split_once('#').ok_or_else(wrong)?;
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        if resource.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            resource: resource.to_owned(),
            group: group.to_owned(),
            size: size.parse().map_err(|_| wrong())?,
        })
    }
}

impl WatchCacheSizes {
    /// Returns the caches: none if not `enabled`, else those of all resources except entries with size 0.
    #[must_use]
    pub fn new(enabled: bool, entries: Vec<WatchCacheSize>) -> Self {
        Self { enabled, entries }
    }

    /// Returns true if a resource has a watch cache. Events have none unless an entry enables it, as in kube-apiserver:
    /// they are many, written once and rarely read.
    #[must_use]
    pub fn cached(&self, group: &str, resource: &str) -> bool {
        let entry = self
            .entries
            .iter()
            .rev()
            .find(|entry| entry.resource == resource && entry.group == group);
        let is_event = resource == "events" && matches!(group, "" | "events.k8s.io");
        self.enabled && entry.map_or(!is_event, |entry| entry.size > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(enabled: bool, entries: &[&str]) -> WatchCacheSizes {
        let entries = entries
            .iter()
            .map(|text| WatchCacheSize::parse(text).expect("an entry"))
            .collect();
        WatchCacheSizes::new(enabled, entries)
    }

    #[test]
    fn zero_is_off_and_the_last_entry_holds() {
        let sizes = sizes(true, &["pods#0", "deployments.apps#0", "pods#100"]);
        assert!(sizes.cached("", "pods"));
        assert!(!sizes.cached("apps", "deployments"));
        assert!(sizes.cached("extensions", "deployments"));
    }

    #[test]
    fn events_are_not_cached_unless_asked_for() {
        assert!(!sizes(true, &[]).cached("", "events"));
        assert!(!sizes(true, &[]).cached("events.k8s.io", "events"));
        assert!(sizes(true, &["events#10"]).cached("", "events"));
    }

    #[test]
    fn the_main_switch_wins() {
        assert!(!sizes(false, &["pods#100"]).cached("", "pods"));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in ["pods", "#1", "pods#", "pods#-1", "pods#x", ".apps#1"] {
            assert!(WatchCacheSize::parse(text).is_err(), "{text}");
        }
    }
}
