//! Random trees, and random patches of them with directives, fitting or not.

use serde_json::{Value, json};

use super::Members;

/// Decisions of a random tree, one by one.
pub(super) struct Choices<'a>(pub(super) std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, end: u8) -> u8 {
        self.0.next().map_or(0, |it| it % end)
    }

    /// Returns true once in so many times.
    fn seldom(&mut self, times: u8) -> bool {
        self.below(times) == times - 1
    }

    fn text(&mut self) -> Value {
        json!(["a", "b", "c"][usize::from(self.below(3))])
    }

    /// Returns something that fits nothing, or not well.
    fn odd(&mut self) -> Value {
        match self.below(10) {
            0 => json!(1),
            1 => json!(1.0),
            2 => json!([]),
            3 => json!({}),
            4 => json!([[1]]),
            5 => json!(["a", 1]),
            6 => json!([null]),
            7 => json!([{"name": "a"}]),
            8 => json!({"a": {"b": null, "c": [{"d": null}]}}),
            _ => self.text(),
        }
    }

    /// Makes a member of a map of this name, of the object or of a patch.
    fn member(&mut self, name: &str, is_patch: bool) -> Value {
        if self.seldom(if is_patch { 14 } else { 40 }) {
            return self.odd();
        }
        if is_patch && self.seldom(12) {
            return Value::Null;
        }
        match name {
            "metadata" => self.map(&["labels", "finalizers"], is_patch),
            "labels" | "selector" => self.map(&["a", "b", "$c"], is_patch),
            "finalizers" | "args" => (0..self.below(4)).map(|_| self.text()).collect(),
            "spec" => self.map(
                &[
                    "containers",
                    "nodeName",
                    "selector",
                    "strategy",
                    "tolerations",
                ],
                is_patch,
            ),
            "containers" => {
                let count = self.below(4);
                self.items(
                    count,
                    "name",
                    &["args", "env", "image", "ports", "resources"],
                    is_patch,
                )
            }
            "env" => {
                let count = self.below(3);
                self.items(count, "name", &["value"], is_patch)
            }
            "ports" => {
                let count = self.below(3);
                self.items(count, "containerPort", &["name"], is_patch)
            }
            "tolerations" => {
                let count = self.below(3);
                self.items(count, "key", &["labels"], is_patch)
            }
            "resources" | "strategy" => self.map(&["labels", "image"], is_patch),
            _ => self.text(),
        }
    }

    fn items(&mut self, count: u8, key: &str, names: &[&str], is_patch: bool) -> Value {
        let mut items = Vec::new();
        for _ in 0..count {
            let mut item = self.map(names, is_patch);
            if !self.seldom(30) {
                item[key] = match key {
                    "containerPort" => json!(80 + self.below(3)),
                    _ => self.text(),
                };
            }
            if is_patch && self.seldom(6) {
                item["$patch"] =
                    json!(["delete", "delete", "replace", "merge"][usize::from(self.below(4))]);
            }
            items.push(item);
        }
        items.into()
    }

    pub(super) fn map(&mut self, names: &[&str], is_patch: bool) -> Value {
        let mut members = Members::new();
        for name in names {
            if self.below(3) > 0 {
                members.insert((*name).to_owned(), self.member(name, is_patch));
            }
        }
        if is_patch {
            self.direct(names, &mut members);
        }
        members.into()
    }

    /// Adds directives to a map of a patch.
    fn direct(&mut self, names: &[&str], members: &mut Members) {
        let name = names[usize::from(self.below(u8::try_from(names.len()).expect("few names")))];
        match self.below(16) {
            0 => {
                let directive = ["delete", "replace", "bogus"][usize::from(self.below(3))];
                members.insert("$patch".to_owned(), directive.into());
            }
            1 => {
                let mut kept: Vec<_> = members.keys().cloned().collect();
                if self.seldom(4) {
                    kept.pop();
                }
                members.insert("$retainKeys".to_owned(), kept.into());
            }
            2 | 3 => {
                let gone = match self.below(3) {
                    0 => json!([self.text()]),
                    1 => json!([self.text(), self.text()]),
                    _ => self.member(name, true),
                };
                let list = ["finalizers", "args", name][usize::from(self.below(3))];
                members.insert(format!("$deleteFromPrimitiveList/{list}"), gone);
            }
            4 | 5 => {
                let lists = ["containers", "finalizers", "env", "ports", "args"];
                for list in lists.into_iter().filter(|it| names.contains(it)) {
                    let order = self.order(members.get(list));
                    members.insert(format!("$setElementOrder/{list}"), order);
                }
            }
            6 => {
                let odd = [
                    "$setElementOrder",
                    "$deleteFromPrimitiveList",
                    "$other",
                    "$retainKeys",
                ];
                let value = self.odd();
                members.insert(odd[usize::from(self.below(4))].to_owned(), value);
            }
            _ => {}
        }
    }

    /// Returns an order that fits a list of a patch more often than not.
    fn order(&mut self, list: Option<&Value>) -> Value {
        let mut order = Vec::new();
        for item in list.and_then(Value::as_array).into_iter().flatten() {
            let key = ["name", "containerPort"]
                .into_iter()
                .find_map(|key| Some((key, item.get(key)?)));
            let item = key.map_or_else(|| item.clone(), |(key, value)| json!({key: value}));
            if !order.contains(&item) {
                order.push(item);
            }
        }
        let more = match order.first() {
            Some(Value::String(_)) => [json!("a"), json!("b"), json!("c")],
            Some(item) if item.get("containerPort").is_some() => {
                [80, 81, 82].map(|port| json!({"containerPort": port}))
            }
            _ => ["a", "b", "c"].map(|name| json!({"name": name})),
        };
        for item in more {
            let at = usize::from(self.below(4));
            if !order.contains(&item) && at < 3 {
                order.insert(at.min(order.len()), item);
            }
        }
        if self.seldom(8) {
            order.push(self.odd());
        }
        order.into()
    }
}
