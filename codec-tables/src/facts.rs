//! What Go says of fields, and guesses about those that it does not know yet.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::path::Path;

use prost_types::FieldDescriptorProto;
use prost_types::field_descriptor_proto::{Label, Type};

/// What is known of all fields.
pub(crate) struct Facts {
    fields: HashMap<(String, i32), Form>,
    kinds: BTreeSet<String>,
}

/// How a field looks in JSON and whether it is written when empty.
#[derive(Clone)]
pub(crate) struct Form {
    /// Its name; `-` if its own fields are merged into those around it.
    pub(crate) json_name: String,
    /// `p` for a pointer, `e` for omitempty, `z` for omitzero, `i` for inline; `-` for none.
    pub(crate) flags: String,
}

impl Facts {
    /// Reads the facts, and corrections in the same syntax.
    pub(crate) fn read(go_types: &Path, overrides: &Path) -> Result<Self, Box<dyn Error>> {
        let mut facts = Self {
            fields: HashMap::new(),
            kinds: BTreeSet::new(),
        };
        for path in [go_types, overrides] {
            for line in std::fs::read_to_string(path)?.lines() {
                if !line.is_empty() && !line.starts_with('#') {
                    facts
                        .line(line)
                        .ok_or_else(|| format!("not a fact: {line}"))?;
                }
            }
        }
        Ok(facts)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [message, number, json_name, flags] = words.as_slice() else {
            return None;
        };
        let message = message
            .strip_prefix("k8s.io/")?
            .replace('/', ".")
            .replace("apiextensions-apiserver", "apiextensions_apiserver")
            .replace("kube-aggregator", "kube_aggregator");
        let number = number.parse().ok()?;
        if number == 0 {
            self.kinds.insert(message);
        } else {
            let form = Form {
                json_name: (*json_name).to_owned(),
                flags: (*flags).to_owned(),
            };
            self.fields.insert((message, number), form);
        }
        Some(())
    }

    /// Whether Go's type has a kind and a version.
    pub(crate) fn is_kind(&self, message: &str) -> bool {
        self.kinds.contains(message)
    }

    /// How a field of a message looks.
    pub(crate) fn find(&self, message: &str, field: &FieldDescriptorProto, comment: &str) -> Form {
        if let Some(form) = self.fields.get(&(message.to_owned(), field.number())) {
            return form.clone();
        }
        let guess = guess(field, comment);
        // Another version of the group mostly has the same message.
        let mut words = message.rsplitn(3, '.');
        if let (Some(name), Some(_), Some(group)) = (words.next(), words.next(), words.next()) {
            let mut others: Vec<(&String, &Form)> = self
                .fields
                .iter()
                .filter(|((other, number), form)| {
                    let inline = form.flags.contains('i') && *number == field.number();
                    other.starts_with(group)
                        && other.rsplit('.').next() == Some(name)
                        && (inline || plain(&form.json_name) == plain(&guess.json_name))
                })
                .map(|((other, _), form)| (other, form))
                .collect();
            others.sort_by_key(|(other, _)| *other);
            if let Some((_, form)) = others.pop() {
                return form.clone();
            }
        }
        eprintln!(
            "guessed: k8s.io/{message} {} {} {}",
            field.number(),
            guess.json_name,
            guess.flags
        );
        guess
    }
}

/// A name without what tells the JSON one from that of the definitions.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// What Kubernetes' conventions suggest.
fn guess(field: &FieldDescriptorProto, comment: &str) -> Form {
    let part = matches!(
        field.name(),
        "metadata" | "spec" | "status" | "lastTransitionTime"
    );
    let optional = comment.contains("+optional") || field.name() == "metadata";
    let one = field.label() != Label::Repeated && !part;
    let pointer = one && !matches!(field.r#type(), Type::String | Type::Bytes);
    let flags = match (optional, pointer) {
        (true, true) => "pe",
        (true, false) => "e",
        (false, _) => "-",
    };
    Form {
        json_name: field.name().to_owned(),
        flags: flags.to_owned(),
    }
}
