//! Facts about fields that Go's types have and the definitions do not.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::path::Path;

use prost_types::FieldDescriptorProto;

/// The facts about all fields.
pub(crate) struct Facts {
    fields: HashMap<(String, i32), Form>,
    kinds: BTreeSet<String>,
}

/// The form of a field in JSON: its name, and flags that tell whether it is written when empty.
#[derive(Clone)]
pub(crate) struct Form {
    /// Its name; `-` if its own fields are merged into those around it.
    pub(crate) json_name: String,
    /// `p` for a pointer, `e` for omitempty, `z` for omitzero, `i` for inline; `-` for none.
    pub(crate) flags: String,
}

impl Facts {
    /// Reads what `go_types.py` has written.
    pub(crate) fn read(go_types: &Path) -> Result<Self, Box<dyn Error>> {
        let mut facts = Self {
            fields: HashMap::new(),
            kinds: BTreeSet::new(),
        };
        for line in std::fs::read_to_string(go_types)?.lines() {
            facts
                .line(line)
                .ok_or_else(|| format!("not a fact: {line}"))?;
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

    /// Returns true if Go's type has a kind and a version.
    pub(crate) fn is_kind(&self, message: &str) -> bool {
        self.kinds.contains(message)
    }

    /// Returns the form of a field of a message. Go has no struct with tags for messages whose JSON is not an object of
    /// their fields, and of those only the names and the numbers of fields count.
    pub(crate) fn find(&self, message: &str, field: &FieldDescriptorProto) -> Form {
        let form = self.fields.get(&(message.to_owned(), field.number()));
        form.cloned().unwrap_or_else(|| Form {
            json_name: field.name().to_owned(),
            flags: "-".to_owned(),
        })
    }
}
