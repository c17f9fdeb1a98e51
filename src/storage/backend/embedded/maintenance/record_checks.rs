//! The rules that the records of a store follow.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::storage::backend::LeaseId;
use crate::storage::backend::embedded::log::decode;
use crate::storage::backend::embedded::mvcc::{
    KeyVersion, REVISION_EMPTY, Record, RevisionChange, State,
};

/// The most violations that are told; the others are counted.
const FINDINGS_MAX: usize = 100;

/// Violations, each as a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) told: Vec<String>,
    /// The number of further violations, which have no line.
    pub(super) more: u64,
}

impl Findings {
    pub(super) fn add(&mut self, finding: String) {
        match self.told.len() < FINDINGS_MAX {
            true => self.told.push(finding),
            false => self.more += 1,
        }
    }
}

/// A check of records in the order of their revisions, which makes the state that they add up to.
#[derive(Debug)]
pub(super) struct RecordChecks {
    compacted: u64,
    state: State,
    findings: Findings,
}

impl RecordChecks {
    /// Begins a check of the records of a store that is compacted at a revision; 0 if it is not.
    pub(super) fn new(compacted: u64) -> Self {
        Self {
            compacted,
            state: State::new(),
            findings: Findings::default(),
        }
    }

    /// Checks the next record. Returns it if its bytes are one.
    pub(super) fn add(&mut self, revision: u64, bytes: &[u8]) -> Option<Arc<Record>> {
        self.check_revision(revision);
        let record = match decode(revision, bytes) {
            Ok(record) => Arc::new(record),
            Err(error) => {
                self.findings.add(error.to_string());
                return None;
            }
        };
        match &record.change {
            RevisionChange::Put(version) => self.check_put(version),
            RevisionChange::Delete(keys) => {
                for key in keys.iter().filter(|_| revision > self.compacted) {
                    if self.state.get(key).is_none() {
                        let finding =
                            format!("revision {revision} deletes {key}, which is not there");
                        self.findings.add(finding);
                    }
                }
            }
        }
        self.state.apply(Arc::clone(&record));
        Some(record)
    }

    /// Ends the check: the leases are those of the store. Returns the violations and the state.
    pub(super) fn finish(mut self, leases: &[(LeaseId, i64)]) -> (Findings, State) {
        let (compacted, revision) = (self.compacted, self.state.revision());
        if compacted > revision {
            self.findings.add(format!(
                "the compacted revision {compacted} is after the newest, {revision}"
            ));
        } else if compacted > REVISION_EMPTY {
            let first = self.state.history_from(compacted).next();
            if first.is_none_or(|record| record.revision != compacted) {
                self.findings
                    .add(format!("the compacted revision {compacted} is missing"));
            }
        }
        if compacted > 0 && compacted <= revision {
            // It is above 0, so it can be compacted.
            let _ = self.state.compact(compacted);
        }
        let leases: BTreeSet<_> = leases.iter().map(|(lease, _)| *lease).collect();
        for version in self.state.live() {
            if let Some(lease) = version.lease.filter(|it| !leases.contains(it)) {
                let (key, lease) = (&version.key, lease.0);
                self.findings
                    .add(format!("{key} has lease {lease}, which is missing"));
            }
        }
        (self.findings, self.state)
    }

    fn check_revision(&mut self, revision: u64) {
        let newest = self.state.revision();
        let expected = newest.max(self.compacted) + 1;
        if revision <= newest {
            self.findings
                .add(format!("revision {revision} comes after {newest}"));
        } else if revision > self.compacted && revision != expected {
            let last = revision - 1;
            self.findings.add(match expected == last {
                true => format!("revision {expected} is missing"),
                false => format!("revisions {expected} to {last} are missing"),
            });
        }
    }

    /// Checks a version against the one before it. Up to the compacted revision that may have been removed.
    fn check_put(&mut self, version: &KeyVersion) {
        let (revision, created) = (version.mod_revision, version.create_revision);
        let begins = created == revision && version.version == 1;
        let goes_on =
            created < revision && version.version > 1 && version.version <= revision - created + 1;
        let is_right = match self.state.get(&version.key) {
            Some(before) => {
                goes_on
                    && created == before.create_revision
                    && version.version == before.version + 1
            }
            None => begins || (goes_on && revision <= self.compacted),
        };
        if !is_right {
            let (key, number) = (&version.key, version.version);
            let before = self.state.get(key).map_or_else(
                || "there is none before it".to_owned(),
                |it| {
                    let (number, created) = (it.version, it.create_revision);
                    format!("before it is version {number} created at {created}")
                },
            );
            self.findings.add(format!(
                "revision {revision} is version {number} of {key} created at {created}, but {before}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;

    use super::*;
    use crate::storage::backend::embedded::log::StoredRecord;

    /// Returns the records of a state with three keys, of which one is deleted: revisions 2 to 7.
    fn records() -> Vec<Record> {
        let mut state = State::new();
        let mut records = Vec::new();
        for (key, lease) in [
            ("/a", None),
            ("/b", Some(LeaseId(9))),
            ("/a", None),
            ("/c", None),
        ] {
            records.push(state.put(key, Bytes::from_static(b"value"), lease));
        }
        records.extend(state.delete(["/a"]));
        records.push(state.put("/a", Bytes::new(), None));
        drop(state);
        let owned = |it: Arc<Record>| Arc::into_inner(it).expect("the only owner");
        records.into_iter().map(owned).collect()
    }

    fn findings(compacted: u64, records: &[Record], leases: &[(LeaseId, i64)]) -> Vec<String> {
        let mut checks = RecordChecks::new(compacted);
        for record in records {
            let bytes = StoredRecord::from(record).encode_to_vec();
            checks.add(record.revision, &bytes).expect("a record");
        }
        checks.finish(leases).0.told
    }

    const LEASES: &[(LeaseId, i64)] = &[(LeaseId(9), 60)];

    #[test]
    fn records_of_a_store_have_no_findings() {
        assert_eq!(findings(0, &records(), LEASES), [""; 0]);
        // Some or all of what a compaction made obsolete may be removed: revisions 2, 4 and 6.
        for removed in 0..=2 {
            let mut records = records();
            let obsolete = [2, 4][..removed].to_vec();
            records.retain(|it| !obsolete.contains(&it.revision));
            assert_eq!(findings(6, &records, LEASES), [""; 0], "{removed}");
        }
    }

    #[test]
    fn missing_revisions_and_leases_are_told() {
        let without = |revisions: &[u64]| {
            let mut records = records();
            records.retain(|it| !revisions.contains(&it.revision));
            records
        };
        assert_eq!(
            findings(0, &without(&[5]), LEASES),
            ["revision 5 is missing"]
        );
        assert_eq!(
            findings(0, &without(&[2, 3]), LEASES),
            [
                "revisions 2 to 3 are missing",
                "revision 4 is version 2 of /a created at 2, but there is none before it"
            ]
        );
        assert_eq!(
            findings(6, &without(&[6]), LEASES)[0],
            "revision 7 is version 1 of /a created at 7, but before it is version 2 created at 2"
        );
        assert_eq!(
            findings(5, &without(&[5]), LEASES),
            ["the compacted revision 5 is missing"]
        );
        assert_eq!(
            findings(9, &records(), LEASES),
            ["the compacted revision 9 is after the newest, 7"]
        );
        assert_eq!(
            findings(0, &records(), &[]),
            ["/b has lease 9, which is missing"]
        );
    }

    #[test]
    fn only_so_many_findings_are_told() {
        let mut findings = Findings::default();
        for number in 0..FINDINGS_MAX + 3 {
            findings.add(number.to_string());
        }
        assert_eq!((findings.told.len(), findings.more), (FINDINGS_MAX, 3));
    }

    #[test]
    fn bytes_that_are_no_record_are_told() {
        let mut checks = RecordChecks::new(0);
        assert!(checks.add(2, b"nonsense").is_none());
        let (findings, _) = checks.finish(&[]);
        assert_eq!(findings.told, ["revision 2 cannot be read"]);
    }
}
