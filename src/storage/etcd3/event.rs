//! Conversion of an event of the backend into an event of a watch, or into none.

use std::sync::Arc;

use super::decode::ValueReader;
use crate::meta::{Object, WatchEvent};
use crate::storage::backend::{Event, EventKind};
use crate::storage::{ListOptions, StorageError};

/// Converts an event for a watch, by whether the object was selected before and is selected now.
///
/// A deleted object is delivered with the content it had, at the revision of its deletion.
///
/// # Errors
/// [`StorageError::Corrupt`] when an object that is needed cannot be decoded; [`StorageError::Internal`] when the
/// backend has no previous value of the event, or a value cannot be decrypted now.
pub(super) fn convert(
    values: &ValueReader,
    options: &ListOptions,
    event: &Event,
) -> Result<Option<WatchEvent>, StorageError> {
    let predicate = &options.predicate;
    let revision = event.kv.mod_revision;
    let everything = predicate.is_everything();
    let selected = |object: &Object| everything || predicate.matches(object.attributes());
    let created = event.kv.create_revision == revision;
    match event.kind {
        EventKind::Put => {
            let object = Arc::new(values.decode(&event.kv)?);
            let now = selected(&object);
            if created {
                return Ok(now.then_some(WatchEvent::Added(object)));
            }
            if everything && !options.with_previous {
                return Ok(Some(WatchEvent::Modified(object)));
            }
            let before = match previous(values, event)? {
                Ok(before) => Some(before),
                // A value that cannot be decoded was never delivered.
                Err(StorageError::Corrupt { .. }) => None,
                Err(unreadable) => return Err(unreadable),
            };
            let before = before.filter(|before| selected(before));
            Ok(match (now, before) {
                (true, Some(previous)) if options.with_previous => Some(WatchEvent::Replaced {
                    object,
                    previous: Arc::new(previous),
                }),
                (true, Some(_)) => Some(WatchEvent::Modified(object)),
                (true, None) => Some(WatchEvent::Added(object)),
                (false, Some(before)) => Some(deleted(&before, revision)),
                (false, None) => None,
            })
        }
        EventKind::Delete => {
            let before = previous(values, event)??;
            Ok(selected(&before).then(|| deleted(&before, revision)))
        }
    }
}

fn deleted(before: &Object, revision: u64) -> WatchEvent {
    WatchEvent::Deleted(Arc::new(before.at_revision(revision)))
}

/// Returns the previous object of the event; the inner error is that it cannot be decoded.
fn previous(
    values: &ValueReader,
    event: &Event,
) -> Result<Result<Object, StorageError>, StorageError> {
    let Some(kv) = &event.previous else {
        return Err(StorageError::Internal {
            message: format!(
                "etcd event received with PrevKv=nil (key={:?}, modRevision={}, type={})",
                event.kv.key,
                event.kv.mod_revision,
                match event.kind {
                    EventKind::Put => "PUT",
                    EventKind::Delete => "DELETE",
                }
            ),
        });
    };
    Ok(values.decode(kv))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::codec;
    use crate::meta::LabelSelector;
    use crate::storage::SelectionPredicate;
    use crate::storage::backend::KeyValue;
    use crate::storage::encryption::{Encryption, EncryptionConfig};
    use crate::storage::etcd3::decode::Values;

    fn kv(labels: &str, create_revision: u64, mod_revision: u64) -> KeyValue {
        let value = format!(
            r#"{{"kind":"A","apiVersion":"v1","metadata":{{"labels":{{{labels}}},"name":"a"}}}}"#
        );
        KeyValue {
            key: "/registry/as/a".to_owned(),
            value: Bytes::from(value),
            create_revision,
            mod_revision,
            version: 1,
            lease: None,
        }
    }

    fn labelled() -> ListOptions {
        ListOptions {
            predicate: SelectionPredicate {
                label: LabelSelector::parse("app=x").expect("a selector"),
                ..SelectionPredicate::default()
            },
            ..ListOptions::default()
        }
    }

    fn delivered(event: &Event) -> Option<(&'static str, u64, String)> {
        delivered_to(&labelled(), event)
    }

    fn delivered_to(options: &ListOptions, event: &Event) -> Option<(&'static str, u64, String)> {
        let converted = convert(&ValueReader::default(), options, event);
        let (name, object) = match converted.expect("no error")? {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Replaced { previous, .. } => ("REPLACED", previous),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark { .. } => return None,
        };
        let label = object.attributes().labels().get("app").unwrap_or_default();
        Some((name, object.revision(), label.to_owned()))
    }

    fn put(now: &str, before: Option<&str>) -> Event {
        Event {
            kind: EventKind::Put,
            kv: kv(now, if before.is_some() { 3 } else { 5 }, 5),
            previous: before.map(|labels| kv(labels, 3, 3)),
        }
    }

    #[tokio::test]
    async fn a_previous_value_that_cannot_be_decrypted_now_is_an_error() {
        let config = "kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [as]
  providers:
  - identity: {}
  - kms: {apiVersion: v2, name: p, endpoint: 'unix:///nobody/listens'}
";
        let config = EncryptionConfig::parse(config, &Clock::real()).expect("a configuration");
        let values = Values {
            transformer: Encryption::new(config).transformer("as", ""),
            ..Values::default()
        };
        let converted = async |previous: &'static [u8]| {
            let mut event = put(r#""app":"y""#, Some(r#""app":"x""#));
            event.previous.as_mut().expect("a version").value = Bytes::from_static(previous);
            let read = values.reader([&event.kv].into_iter().chain(&event.previous));
            convert(&read.await, &labelled(), &event)
        };
        // The object may have been selected, and its watcher would keep it for ever.
        let asked_later = converted(b"k8s:enc:kms:v2:p:\x0a\x04data\x12\x011\x1a\x04seed").await;
        let asked_later = asked_later.expect_err("not known now");
        assert!(
            matches!(asked_later, StorageError::Internal { .. }),
            "{asked_later}"
        );
        let never_delivered = converted(b"k8s:enc:unknown:v1:x")
            .await
            .expect("known for good");
        assert!(never_delivered.is_none());
    }

    #[test]
    fn what_counts_is_selection_before_and_now() {
        let (x, y) = (r#""app":"x""#, r#""app":"y""#);
        let expected_event = |name, label: &str| Some((name, 5, label.to_owned()));
        assert_eq!(delivered(&put(x, None)), expected_event("ADDED", "x"));
        assert_eq!(delivered(&put(y, None)), None);
        assert_eq!(delivered(&put(x, Some(x))), expected_event("MODIFIED", "x"));
        assert_eq!(delivered(&put(x, Some(y))), expected_event("ADDED", "x"));
        assert_eq!(delivered(&put(y, Some(x))), expected_event("DELETED", "x"));
        assert_eq!(delivered(&put(y, Some(y))), None);
        for (before, expected) in [(x, expected_event("DELETED", "x")), (y, None)] {
            let event = Event {
                kind: EventKind::Delete,
                ..put("", Some(before))
            };
            assert_eq!(delivered(&event), expected);
        }
    }

    #[test]
    fn a_watch_that_wants_it_sees_the_content_before() {
        for predicate in [SelectionPredicate::default(), labelled().predicate] {
            let options = ListOptions {
                predicate,
                with_previous: true,
                ..ListOptions::default()
            };
            let (now, before) = (r#""app":"x","b":"c""#, r#""app":"x""#);
            let seen = delivered_to(&options, &put(now, Some(before)));
            assert_eq!(seen, Some(("REPLACED", 3, "x".to_owned())));
            let seen = delivered_to(&options, &put(now, None));
            assert_eq!(seen, Some(("ADDED", 5, "x".to_owned())));
        }
    }

    #[test]
    fn a_deletion_without_the_content_is_an_error() {
        let mut event = put("", Some(""));
        event.kind = EventKind::Delete;
        event.previous = None;
        let error = convert(&ValueReader::default(), &ListOptions::default(), &event)
            .expect_err("no content");
        assert!(error.to_string().contains("PrevKv=nil"), "{error}");
    }

    /// Returns a value as it may lie in etcd: sound in either form, with some bytes changed, cut off, or any bytes.
    fn value() -> impl Strategy<Value = Bytes> {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "v"}});
        let forms = [
            object.to_string().into_bytes(),
            codec::encode_value(&object).expect("a known kind"),
        ];
        let damage = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        let damaged = (prop::sample::select(forms.to_vec()), damage, 0..4_usize);
        let damaged = damaged.prop_map(|(mut bytes, damage, cut)| {
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.truncate(bytes.len() - cut);
            bytes
        });
        let any_bytes = proptest::collection::vec(any::<u8>(), 0..64);
        let after_magic = any_bytes
            .clone()
            .prop_map(|it| [&codec::MAGIC[..], &it].concat());
        prop_oneof![4 => damaged, 1 => any_bytes, 1 => after_magic].prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn whatever_is_stored_is_told_at_its_revision_or_refused(
            now in value(),
            before in proptest::option::of(value()),
            deletes in any::<bool>(),
            selects in any::<bool>(),
            with_previous in any::<bool>(),
        ) {
            let kind = if deletes { EventKind::Delete } else { EventKind::Put };
            let with = |value, revision| KeyValue { value, ..kv("", 3, revision) };
            let previous = before.map(|value| with(value, 3));
            let event = Event { kind, kv: with(now, 5), previous };
            let label = if selects { "app=x" } else { "" };
            let predicate = SelectionPredicate {
                label: LabelSelector::parse(label).expect("a selector"),
                ..SelectionPredicate::default()
            };
            let options = ListOptions { predicate, with_previous, ..ListOptions::default() };
            match convert(&ValueReader::default(), &options, &event) {
                Ok(Some(
                    WatchEvent::Added(object)
                    | WatchEvent::Modified(object)
                    | WatchEvent::Replaced { object, .. }
                    | WatchEvent::Deleted(object),
                )) => prop_assert_eq!(object.revision(), 5),
                Ok(None) => prop_assert!(selects, "everything is selected"),
                Err(StorageError::Corrupt { keys }) => prop_assert_eq!(keys.len(), 1),
                Err(StorageError::Internal { .. }) => prop_assert!(event.previous.is_none()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
