//! Label, field and shard selectors. The text of a selector is read as the same selector, which selects as its
//! requirements say one by one. Its memory grows with its length.

use ringwatch::meta::{FieldSelector, LabelSelector, ShardSelector};

use crate::memory::within;

/// Bytes of memory for a byte of a selector: a requirement on a label of one letter takes that much while it is read.
const FACTOR: usize = 400;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let memory = FACTOR * text.len();
    let mut is_selector = false;
    if let Ok(labels) = within(memory, "labels", || LabelSelector::parse(text)) {
        is_selector = true;
        let shown = labels.to_string();
        assert_eq!(
            LabelSelector::parse(&shown).as_ref(),
            Ok(&labels),
            "{shown}"
        );
        for requirement in labels.requirements() {
            let exact = labels.requires_exact(requirement.key());
            if let Some(value) = exact {
                assert!(labels.requirements().iter().any(|it| {
                    it.key() == requirement.key() && it.values().iter().any(|one| one == value)
                }));
            }
        }
    }
    if let Ok(fields) = within(memory, "fields", || FieldSelector::parse(text)) {
        is_selector = true;
        let shown = fields.to_string();
        assert_eq!(
            FieldSelector::parse(&shown).as_ref(),
            Ok(&fields),
            "{shown}"
        );
        for (name, is_equal, value) in fields.terms() {
            if let Some(exact) = fields.requires_exact(name).filter(|_| is_equal) {
                assert!(
                    fields.terms().any(|term| term == (name, true, exact)),
                    "{value}"
                );
            }
        }
    }
    if let Ok(shards) = within(memory, "shards", || ShardSelector::parse(text)) {
        is_selector = true;
        let shown = shards.to_string();
        assert_eq!(
            ShardSelector::parse(&shown).as_ref(),
            Ok(&shards),
            "{shown}"
        );
        for range in shards.ranges() {
            assert!(shards.contains(range.first) && shards.contains(range.last));
            let after = range.last.checked_add(1);
            assert!(after.is_none_or(|it| !shards.contains(it)), "{shown}");
        }
    }
    is_selector
}
