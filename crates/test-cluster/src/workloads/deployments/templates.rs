//! The templates of pods in Deployments and in their ReplicaSets: which are the same, and the hash by which a set and
//! its pods are named.

use serde_json::{Map, Value};

/// The label with the hash of the template, by which the sets of a Deployment know their pods.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// The digits of a hash. There are no vowels among them, so that they make no words.
const DIGITS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Number of digits of a hash.
const HASH_LENGTH: usize = 10;

/// The first value and the factor of a FNV-1a hash of 64 bits.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_FACTOR: u64 = 0x0000_0100_0000_01b3;

/// Maximum length of the name of a set.
const NAME_MAX: usize = 253;

/// Returns true if two templates make the same pods, whatever hash their labels have (`EqualIgnoreHash`).
pub(super) fn are_same(one: &Value, other: &Value) -> bool {
    plain(one) == plain(other)
}

/// Returns the hash of a template, which differs with the number of collisions. It need not be that of
/// kube-controller-manager, which is one of Go's printed form of the template: a set is found by its template, and the
/// hash only names it.
pub(super) fn hash(template: &Value, collisions: i64) -> String {
    // The members of an object are sorted.
    let text = format!("{}{collisions}", plain(template));
    let mut hash = text.bytes().fold(FNV_START, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_FACTOR)
    });
    let base = u64::try_from(DIGITS.len()).unwrap_or(u64::MAX);
    let mut digits = String::with_capacity(HASH_LENGTH);
    for _ in 0..HASH_LENGTH {
        let digit = usize::try_from(hash % base).unwrap_or_default();
        digits.push(char::from(DIGITS[digit]));
        hash /= base;
    }
    digits
}

/// Returns the name of the set of a Deployment whose template has this hash.
pub(super) fn set_name(deployment: &str, hash: &str) -> String {
    // Names are ASCII.
    let length = deployment.len().min(NAME_MAX - 1 - hash.len());
    let deployment = deployment.get(..length).unwrap_or(deployment);
    format!("{deployment}-{hash}")
}

/// Returns a template without its hash, and without members that say nothing, since whoever wrote it may have left
/// them out as well.
fn plain(template: &Value) -> Value {
    let mut template = template.clone();
    let labels = template.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    without_empties(template)
}

fn without_empties(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, value)| (name, without_empties(value)));
            let said: Map<_, _> = members.filter(|(_, value)| !is_empty(value)).collect();
            said.into()
        }
        Value::Array(items) => items.into_iter().map(without_empties).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_the_same_whatever_their_hash_and_their_empty_lists() {
        let plain =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}});
        let hashed = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b", "pod-template-hash": "x"}},
            "spec": {"containers": [{"name": "c", "env": []}]}});
        assert!(are_same(&plain, &hashed));
        assert_eq!(hash(&plain, 0), hash(&hashed, 0));
        let other =
            json!({"metadata": {"labels": {"a": "c"}}, "spec": {"containers": [{"name": "c"}]}});
        assert!(!are_same(&plain, &other));
        // An empty object may say something, such as the kind of a volume.
        let volume = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
        assert!(!are_same(
            &volume,
            &json!({"spec": {"volumes": [{"name": "v"}]}})
        ));
    }

    #[test]
    fn a_hash_stays_and_is_fit_for_names() {
        let template = json!({"spec": {"containers": [{"name": "c"}]}});
        let hashes = [0, 1, 2].map(|collisions| hash(&template, collisions));
        assert_eq!(
            hashes,
            ["n8ljbfwlq9", "dsjm6f2hv9", "4dgqzg6d29"],
            "whatever the version of this program"
        );
        for hash in hashes {
            assert!(hash.bytes().all(|it| DIGITS.contains(&it)) && hash.len() == HASH_LENGTH);
        }
        assert_eq!(set_name("web", "bcdfghjklm"), "web-bcdfghjklm");
        assert_eq!(set_name(&"a".repeat(253), "bcdfghjklm").len(), 253);
    }
}
