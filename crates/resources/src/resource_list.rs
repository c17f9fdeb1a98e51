//! Quantities by the names of resources, as in the ResourceList of Kubernetes.

use std::collections::BTreeMap;
use std::fmt;

use ringwatch_apimachinery::quantity::Amount;
use serde_json::{Map, Value};

/// Quantities by the names of resources, such as `cpu` and `memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(BTreeMap<String, Amount>);

impl ResourceList {
    /// Reads what an object says. What is no quantity does not count: validation refuses it.
    pub fn read(list: &Value) -> Self {
        let members = list.as_object().into_iter().flatten();
        let amounts = members.filter_map(|(name, value)| {
            let number = value.as_number().map(ToString::to_string);
            let text = number.as_deref().or_else(|| value.as_str())?;
            Some((name.clone(), text.parse().ok()?))
        });
        Self(amounts.collect())
    }

    /// Returns the quantities as objects have them.
    pub fn to_value(&self) -> Value {
        let members = self.0.iter();
        let members = members.map(|(name, amount)| (name.clone(), amount.to_string().into()));
        Value::Object(members.collect::<Map<_, _>>())
    }

    /// Returns the amount of a resource, or `None` if there is none.
    pub fn get(&self, name: &str) -> Option<Amount> {
        self.0.get(name).copied()
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, name: impl Into<String>, amount: Amount) {
        self.0.insert(name.into(), amount);
    }

    /// Sets the amount of a resource to a number of things.
    pub fn count(&mut self, name: impl Into<String>, number: usize) {
        self.set(name, Amount::whole(number));
    }

    /// Returns the resources with their amounts, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns the names of the resources.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns true if there are no amounts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the list without the resources that the predicate refuses.
    pub fn only(&self, wanted: impl Fn(&str, Amount) -> bool) -> Self {
        let kept = self
            .0
            .iter()
            .filter(|(name, amount)| wanted(name, **amount));
        Self(kept.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    /// Adds other amounts to these.
    pub fn add(&mut self, more: &Self) {
        for (name, amount) in more.iter() {
            let sum = self.get(name).map_or(amount, |known| known.plus(amount));
            self.set(name, sum);
        }
    }

    /// Subtracts other amounts from these.
    pub fn subtract(&mut self, less: &Self) {
        for (name, amount) in less.iter() {
            let known = self.get(name).unwrap_or_else(|| Amount::whole(0));
            self.set(name, known.minus(amount));
        }
    }

    /// Raises each amount to that of another list, where that is greater.
    pub fn raise(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.raise_one(name, amount);
        }
    }

    /// Raises the amount of a resource to this one, if that is greater.
    pub(crate) fn raise_one(&mut self, name: &str, amount: Amount) {
        let less = self
            .get(name)
            .is_none_or(|known| known.quantity < amount.quantity);
        if less {
            self.set(name, amount);
        }
    }

    /// Returns the names of the resources whose quantities are negative.
    pub fn negative(&self) -> Vec<&str> {
        let negative = self
            .iter()
            .filter(|(_, amount)| amount.quantity.is_negative());
        negative.map(|(name, _)| name).collect()
    }
}

/// Writes the amounts as kube-apiserver shows them: `cpu=1,memory=2Gi`.
impl fmt::Display for ResourceList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();
        formatter.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_added_and_written_as_they_were_written_first() {
        let mut used =
            ResourceList::read(&json!({"cpu": "500m", "memory": "1Gi", "pods": "0", "x": 2}));
        used.add(&ResourceList::read(
            &json!({"cpu": "1", "memory": "512Mi", "pods": "1", "y": "1k"}),
        ));
        assert_eq!(used.to_string(), "cpu=1500m,memory=1536Mi,pods=1,x=2,y=1k");
        used.subtract(&ResourceList::read(
            &json!({"cpu": "1.5", "memory": "1Gi", "z": "1"}),
        ));
        assert_eq!(used.to_string(), "cpu=0,memory=512Mi,pods=1,x=2,y=1k,z=-1");
        assert_eq!(used.negative(), ["z"]);
        let mut most = ResourceList::read(&json!({"cpu": "1", "memory": "1Ki"}));
        most.raise(&ResourceList::read(
            &json!({"cpu": "900m", "memory": "1Mi", "pods": "3"}),
        ));
        assert_eq!(
            most.to_value(),
            json!({"cpu": "1", "memory": "1Mi", "pods": "3"})
        );
    }

    #[test]
    fn nothing_takes_the_form_of_what_is_added_to_it() {
        let mut used = ResourceList::read(&json!({"memory": "0"}));
        used.add(&ResourceList::read(&json!({"memory": "64Mi"})));
        assert_eq!(used.to_string(), "memory=64Mi");
    }
}
