//! A check of the bytes of stored objects: whether fields that a kind's defaults fill in have values.
//!
//! The fields are compiled into a tree of messages, whose bytes are read once, from field to field. What is not wanted
//! is skipped, so an object costs little more than its walk.

use super::message::{Field, Message};
use super::stored_fields::{StoredFields, message_of};
use super::tables;
use super::wire::{Content, Fields};
use crate::meta::Object;

/// A value that an object should have. Paths are the names that lead to a field in JSON, joined by dots; where a path
/// leads into a list, its step ends with `[]`.
#[derive(Clone, Debug)]
pub enum RequiredValue {
    /// There is a value at the path, and so all that leads there.
    Value(&'static str),
    /// Whatever is at the path has these values.
    Within(&'static str, Vec<Self>),
    /// If the text at the path is one of these, there are these values.
    IfText(&'static str, &'static [&'static str], Vec<Self>),
    /// If there is a value at the path, there are these values.
    IfValue(&'static str, Vec<Self>),
}

/// The values that stored objects of a kind should have.
#[derive(Debug)]
pub struct Presence(PresenceNode);

/// The values that a message should have.
#[derive(Debug)]
struct PresenceNode {
    message: &'static Message,
    /// The fields that are looked at, by number.
    fields: Vec<Use>,
    conditions: Vec<Condition>,
}

/// A field that is looked at.
#[derive(Debug)]
struct Use {
    field: &'static Field,
    /// True if it must be there.
    wanted: bool,
    /// The values that its message, or those of its items, should have.
    inside: Option<PresenceNode>,
}

/// Values that a message should have under a condition.
#[derive(Debug)]
struct Condition {
    path: &'static str,
    /// The texts of which one must be at the path; `None` if any value will do.
    texts: Option<&'static [&'static str]>,
    then: PresenceNode,
}

/// Maximum number of fields of a message that are looked at: those that were met are bits of a number.
const FIELDS_MAX: usize = u64::BITS as usize;

impl Presence {
    /// Compiles what objects of a kind should have; `None` if the kind has no message. Paths that its message does not
    /// have are left out.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, wanted: &[RequiredValue]) -> Option<Self> {
        let kind = tables::kind(api_version, kind)?;
        let mut node = PresenceNode::new(kind.0);
        node.add_all(wanted);
        Some(Self(node))
    }

    /// Returns true if an object has all values. An object that is stored as JSON, or in another version, counts as one
    /// that has.
    #[must_use]
    pub fn holds(&self, object: &Object) -> bool {
        match StoredFields::new(object) {
            Some(stored) if std::ptr::eq(stored.message(), self.0.message) => {
                self.0.holds(stored.bytes())
            }
            _ => true,
        }
    }
}

impl PresenceNode {
    fn new(message: &'static Message) -> Self {
        Self {
            message,
            fields: Vec::new(),
            conditions: Vec::new(),
        }
    }

    fn add_all(&mut self, wanted: &[RequiredValue]) {
        for it in wanted {
            self.add(it);
        }
    }

    fn add(&mut self, wanted: &RequiredValue) {
        match wanted {
            RequiredValue::Value(path) => self.descend(path, true, &mut |_| {}),
            RequiredValue::Within(path, wanted) => {
                self.descend(path, false, &mut |node| node.add_all(wanted));
            }
            RequiredValue::IfText(path, texts, wanted) => self.condition(path, Some(texts), wanted),
            RequiredValue::IfValue(path, wanted) => self.condition(path, None, wanted),
        }
    }

    fn condition(
        &mut self,
        path: &'static str,
        texts: Option<&'static [&'static str]>,
        wanted: &[RequiredValue],
    ) {
        let mut then = Self::new(self.message);
        then.add_all(wanted);
        self.conditions.push(Condition { path, texts, then });
    }

    /// Goes to the message at a path, whose fields are wanted or only looked into.
    fn descend(&mut self, path: &str, wanted: bool, arrive: &mut dyn FnMut(&mut Self)) {
        let (step, rest) = path
            .split_once('.')
            .map_or((path, None), |(step, rest)| (step, Some(rest)));
        let name = step.strip_suffix("[]").unwrap_or(step);
        let Some(field) = self.field_to(name) else {
            return;
        };
        let place = self
            .fields
            .iter()
            .position(|it| it.field.number == field.number);
        if place.is_none() && self.fields.len() == FIELDS_MAX {
            return;
        }
        let place = place.unwrap_or_else(|| {
            let place = self
                .fields
                .partition_point(|it| it.field.number < field.number);
            let added = Use {
                field,
                wanted: false,
                inside: None,
            };
            self.fields.insert(place, added);
            place
        });
        let Some(used) = self.fields.get_mut(place) else {
            return;
        };
        used.wanted |= wanted;
        let Some(message) = message_of(field) else {
            return;
        };
        if !field.inline && rest.is_none() && wanted {
            return;
        }
        let inside = used.inside.get_or_insert_with(|| Self::new(message));
        match rest {
            // The members of an inlined message are those of the object around it.
            _ if field.inline => inside.descend(path, wanted, arrive),
            Some(rest) => inside.descend(rest, wanted, arrive),
            None => arrive(inside),
        }
    }

    /// Returns the field of a name, or the inlined one that has it.
    fn field_to(&self, name: &str) -> Option<&'static Field> {
        let has = |field: &&Field| {
            let message = message_of(field).filter(|_| field.inline);
            message.is_some_and(|it| Self::new(it).field_to(name).is_some())
        };
        let mut fields = self.message.fields.iter();
        let own = fields.find(|it| !it.inline && it.name == name);
        own.or_else(|| self.message.fields.iter().find(has))
    }

    /// Returns true if the bytes of a message have all values.
    fn holds(&self, bytes: &[u8]) -> bool {
        let mut met = 0_u64;
        let mut fields = Fields::new(bytes);
        // The object has been decoded as a whole before, so broken bytes are not reported here.
        while let Ok(Some((number, content))) = fields.next_field() {
            let Some(place) = self.fields.iter().position(|it| it.field.number == number) else {
                continue;
            };
            let used = &self.fields[place];
            if is_value(used.field, content) {
                met |= 1 << place;
            }
            if let (Some(inside), Content::Bytes(bytes)) = (&used.inside, content)
                && !inside.holds(bytes)
            {
                return false;
            }
        }
        let mut fields = self.fields.iter().enumerate();
        fields.all(|(place, it)| !it.wanted || met & (1 << place) != 0)
            && self.conditions.iter().all(|it| it.holds(bytes))
    }
}

impl Condition {
    fn holds(&self, bytes: &[u8]) -> bool {
        let stored = StoredFields::within(self.then.message, bytes);
        let applies = match self.texts {
            Some(texts) => texts.contains(&stored.text(self.path)),
            None => stored.has(self.path),
        };
        !applies || self.then.holds(bytes)
    }
}

/// Returns true if the content of a field is a value: that of one which is not a pointer in Go is none if it is zero.
fn is_value(field: &Field, content: Content<'_>) -> bool {
    let zero = match content {
        Content::Varint(number) | Content::Fixed64(number) => number == 0,
        Content::Bytes(bytes) => bytes.is_empty(),
        Content::Group | Content::Fixed32 => false,
    };
    !zero || field.pointer || message_of(field).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::codec::{encode_value, object};

    fn holds(wanted: &[RequiredValue], spec: Value) -> bool {
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
        let bytes = encode_value(&pod).expect("a kind");
        let pod = object(&bytes, 7, &Default::default()).expect("an object");
        let presence = Presence::new("v1", "Pod", wanted).expect("a message");
        presence.holds(&pod)
    }

    #[test]
    fn values_are_wanted_with_all_that_leads_there() {
        let wanted = [
            RequiredValue::Value("spec.dnsPolicy"),
            RequiredValue::Value("spec.securityContext.runAsUser"),
        ];
        let whole = json!({"dnsPolicy": "x", "securityContext": {"runAsUser": 0}});
        assert!(holds(&wanted, whole));
        assert!(!holds(
            &wanted,
            json!({"dnsPolicy": "x", "securityContext": {}})
        ));
        assert!(!holds(&wanted, json!({"dnsPolicy": "x"})));
        let empty = json!({"dnsPolicy": "", "securityContext": {"runAsUser": 0}});
        assert!(!holds(&wanted, empty), "an empty text is none");
    }

    #[test]
    fn what_is_not_there_lacks_nothing() {
        let wanted = [RequiredValue::Within(
            "spec.containers[]",
            vec![
                RequiredValue::Value("imagePullPolicy"),
                RequiredValue::Within("livenessProbe.httpGet", vec![RequiredValue::Value("path")]),
            ],
        )];
        assert!(holds(&wanted, json!({})));
        let one = json!({"name": "a", "imagePullPolicy": "Always"});
        assert!(holds(&wanted, json!({"containers": [one]})));
        assert!(!holds(&wanted, json!({"containers": [one, {"name": "b"}]})));
        // The handler of a probe is inlined.
        for (get, expected) in [(json!({"port": 1}), false), (json!({"path": "/"}), true)] {
            let mut probed = one.clone();
            probed["livenessProbe"] = json!({"httpGet": get});
            assert_eq!(holds(&wanted, json!({"containers": [probed]})), expected);
        }
    }

    #[test]
    fn conditions_are_about_texts_and_values() {
        let wanted = [
            RequiredValue::IfText(
                "spec.restartPolicy",
                &["Always", "Never"],
                vec![RequiredValue::Value("spec.nodeName")],
            ),
            RequiredValue::IfValue(
                "spec.tolerations",
                vec![RequiredValue::Value("spec.hostname")],
            ),
        ];
        assert!(holds(&wanted, json!({"restartPolicy": "OnFailure"})));
        assert!(!holds(&wanted, json!({"restartPolicy": "Never"})));
        assert!(holds(
            &wanted,
            json!({"restartPolicy": "Never", "nodeName": "n"})
        ));
        assert!(!holds(&wanted, json!({"tolerations": [{"key": "k"}]})));
        assert!(holds(
            &wanted,
            json!({"tolerations": [{"key": "k"}], "hostname": "h"})
        ));
    }

    #[test]
    fn other_forms_count_as_whole() {
        let wanted = [RequiredValue::Value("spec.dnsPolicy")];
        let presence = Presence::new("v1", "Pod", &wanted).expect("a message");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let stored = object(pod.to_string().as_bytes(), 7, &Default::default());
        assert!(presence.holds(&stored.expect("an object")), "JSON");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        let bytes = encode_value(&node).expect("a kind");
        let stored = object(&bytes, 7, &Default::default()).expect("an object");
        assert!(presence.holds(&stored), "another message");
        assert!(Presence::new("v1", "Nothing", &wanted).is_none());
    }
}
