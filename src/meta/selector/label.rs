//! Label selectors: a conjunction of requirements, each on one label.
//!
//! The hard part is the labels that are absent: `!=` and `notin` select objects without the label,
//! `<` and `>` do not.

use std::fmt;

use super::demand::{Demand, FEW};
use crate::meta::Labels;

/// A label selector: all its requirements must hold. The default selects everything.
///
/// ```
/// use ringwatch::meta::{FieldSchema, LabelSelector, Object};
/// use serde_json::json;
///
/// let selector = LabelSelector::parse("app=web,tier notin (cache)")?;
/// assert_eq!(selector.requires_exact("app"), Some("web"));
///
/// let pod = json!({
///     "kind": "Pod",
///     "apiVersion": "v1",
///     "metadata": {"name": "a", "labels": {"app": "web"}},
/// });
/// let pod = Object::from_value(&pod, 1, &FieldSchema::default())?;
/// assert!(selector.matches(pod.attributes().labels()));
///
/// let error = LabelSelector::parse("app in").unwrap_err();
/// assert!(error.to_string().contains("expected: '('"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements, in the order of their keys; those of one key in the order of the text.
    requirements: Vec<Requirement>,
    /// True if there are so few that they are checked one by one.
    is_short: bool,
    /// The combined requirements on labels that an object must have, by key.
    needed: Vec<(String, Demand)>,
    /// The combined requirements on labels that an object need not have, by key.
    others: Vec<(String, Demand)>,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub(super) key: String,
    /// The operator by which its value is compared.
    pub(super) operator: Operator,
    /// The values, sorted and without repetition; empty for the operators of existence.
    pub(super) values: Vec<String>,
}

/// An operator of a label selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Kubernetes'")]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Creates the selector of all these requirements.
    pub(super) fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        let mut demands: Vec<(String, Demand)> = Vec::new();
        for same_key in requirements.chunk_by(|one, other| one.key == other.key) {
            let mut demand = Demand::default();
            same_key.iter().for_each(|it| it.join(&mut demand));
            demand.sort();
            demands.extend(same_key.first().map(|it| (it.key.clone(), demand)));
        }
        let (needed, others) = demands.into_iter().partition(|(_, it)| it.present);
        let is_few = |requirement: &Requirement| requirement.values.len() <= FEW;
        Self {
            is_short: requirements.len() <= FEW && requirements.iter().all(is_few),
            requirements,
            needed,
            others,
        }
    }

    /// Returns true if it selects these labels.
    #[must_use]
    pub fn matches(&self, labels: Labels<'_>) -> bool {
        if self.is_short {
            let mut requirements = self.requirements.iter();
            return requirements.all(|it| it.matches(labels.get(&it.key)));
        }
        let met = |(key, demand): &(String, Demand)| demand.is_met(labels.find(key));
        if !self.needed.iter().all(met) {
            return false;
        }
        if self.others.len() <= labels.len() {
            return self.others.iter().all(met);
        }
        labels.iter().all(|(key, value)| {
            let found = self.others.binary_search_by(|(it, _)| it.as_str().cmp(key));
            found.map_or(true, |at| self.others[at].1.is_met(Some(value)))
        })
    }

    /// Returns true if it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the value that it requires of a label; `None` if there is not exactly one.
    #[must_use]
    pub fn requires_exact(&self, key: &str) -> Option<&str> {
        self.requirements
            .iter()
            .filter(|requirement| requirement.key == key)
            .find_map(Requirement::exact)
    }

    /// Returns its requirements, in the order of the labels.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl Requirement {
    /// Returns the key of the label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the operator by which its value is compared.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Returns the values of the requirement, sorted.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns true if the label's value, or its absence, meets the requirement.
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compared(value).is_some_and(|(one, bound)| one > bound),
            Operator::LessThan => self.compared(value).is_some_and(|(one, bound)| one < bound),
        }
    }

    /// Returns the label's value and the bound as numbers; `None` if there is no value or it is no number.
    fn compared(&self, value: Option<&str>) -> Option<(i64, i64)> {
        let bound = self.values.first()?;
        Some((value?.parse().ok()?, bound.parse().ok()?))
    }

    /// Adds the requirement to the combined ones of its label.
    fn join(&self, demand: &mut Demand) {
        let bound = || self.values.first().and_then(|bound| bound.parse().ok());
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                demand.be_among(&self.values);
            }
            Operator::NotIn | Operator::NotEquals => demand.be_none_of(&self.values),
            Operator::Exists => {}
            Operator::DoesNotExist => demand.absent = true,
            Operator::GreaterThan => bound().into_iter().for_each(|it| demand.be_above(it)),
            Operator::LessThan => bound().into_iter().for_each(|it| demand.be_below(it)),
        }
        demand.present |= !matches!(
            self.operator,
            Operator::NotIn | Operator::NotEquals | Operator::DoesNotExist
        );
    }

    /// Returns the only value that meets the requirement, if there is only one.
    pub fn exact(&self) -> Option<&str> {
        match (self.operator, self.values.as_slice()) {
            (Operator::In | Operator::Equals | Operator::DoubleEquals, [value]) => Some(value),
            _ => None,
        }
    }
}

/// Writes a text from which the same selector is parsed.
impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            requirement.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::Exists => formatter.write_str(key),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::meta::OwnedLabels;

    fn select(text: &str, labels: &[(&str, &str)]) -> bool {
        LabelSelector::parse(text)
            .expect("a selector")
            .matches(labels.iter().copied().collect::<OwnedLabels>().as_labels())
    }

    #[test]
    fn absent_labels_meet_the_negative_operators_only() {
        for text in ["a!=x", "a notin (x,y)", "!a"] {
            assert!(select(text, &[("b", "x")]), "{text}");
        }
        for text in ["a=x", "a=", "a in (x)", "a", "a>1", "a<1"] {
            assert!(!select(text, &[("b", "x")]), "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(select("a>9", &[("a", "10")]));
        assert!(select("a<10,a>8", &[("a", "9")]));
        assert!(!select("a>9", &[("a", "9")]));
        assert!(!select("a>9", &[("a", "x10")]));
    }

    /// Returns the selector, made to use combined requirements however short it is.
    fn joined(selector: LabelSelector) -> LabelSelector {
        LabelSelector {
            is_short: false,
            ..selector
        }
    }

    #[test]
    fn demands_of_one_label_are_joined() {
        for (text, value, selected) in [
            ("a in (x,y),a in (y,z)", "y", true),
            ("a in (x,y),a in (y,z)", "x", false),
            ("a in (x),a notin (x)", "x", false),
            ("a!=x,a!=y", "y", false),
            ("a!=x,a!=y", "z", true),
            ("a,!a", "x", false),
            ("a>1,a>3,a<9,a<7", "5", true),
            ("a>1,a>3", "2", false),
            ("a<9,a<7", "8", false),
        ] {
            let selector = joined(LabelSelector::parse(text).expect("a selector"));
            let labels = OwnedLabels::from_iter([("a", value)]);
            let labels = labels.as_labels();
            assert_eq!(selector.matches(labels), selected, "{text} {value}");
        }
        assert!(!select("a,!a", &[]));
    }

    #[test]
    fn an_exact_value_is_what_an_index_may_use() {
        let selector = LabelSelector::parse("a,a=x,b in (y),c in (y,z),d!=y").expect("a selector");
        let found = ["a", "b", "c", "d", "e"].map(|key| selector.requires_exact(key));
        assert_eq!(found, [Some("x"), Some("y"), None, None, None]);
    }

    #[test]
    fn the_text_is_canonical() {
        for (text, canonical) in [
            ("", ""),
            (
                " b = x , a == y,c!=z,!d,e , f in(z,y,,z),g notin ( )",
                "a==y,b=x,c!=z,!d,e,f in (,y,z),g notin ()",
            ),
            (
                "a>1,b<2,in in (in),notin=notin",
                "a>1,b<2,in in (in),notin=notin",
            ),
            ("example.com/a=", "example.com/a="),
        ] {
            let selector = LabelSelector::parse(text).expect("a selector");
            assert_eq!(selector.to_string(), canonical);
        }
    }

    /// Returns random requirements.
    fn requirements() -> impl Strategy<Value = Requirement> {
        let key = prop_oneof![
            "[abc]",
            Just("in".to_owned()),
            Just("notin".to_owned()),
            "[ab]\\.io/[a-c][-_.]?[A-C0-9]"
        ];
        let word = prop_oneof![
            "[a-c]",
            "[0-9]{1,2}",
            Just(String::new()),
            Just("in".to_owned())
        ];
        let set = prop::collection::btree_set(word.clone(), 1..4);
        let shape = prop_oneof![
            (Just(Operator::In), set.clone()),
            (Just(Operator::NotIn), set),
            (
                prop_oneof![
                    Just(Operator::Equals),
                    Just(Operator::DoubleEquals),
                    Just(Operator::NotEquals)
                ],
                word.prop_map(|word| [word].into())
            ),
            (
                prop_oneof![Just(Operator::Exists), Just(Operator::DoesNotExist)],
                Just([].into())
            ),
            (
                prop_oneof![Just(Operator::GreaterThan), Just(Operator::LessThan)],
                (0..30i64).prop_map(|number| [number.to_string()].into())
            ),
        ];
        (key, shape).prop_map(|(key, (operator, values))| Requirement {
            key,
            operator,
            values: values.into_iter().collect(),
        })
    }

    fn model(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&requirement.key);
        let inside = value.is_some_and(|value| requirement.values.contains(value));
        let less = |bound: &str, value: &str| match (bound.parse::<i64>(), value.parse::<i64>()) {
            (Ok(bound), Ok(value)) => value.cmp(&bound) as i8,
            _ => 0,
        };
        let order = value.map_or(0, |value| {
            requirement
                .values
                .first()
                .map_or(0, |bound| less(bound, value))
        });
        match requirement.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => inside,
            Operator::NotIn | Operator::NotEquals => !inside,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => order > 0,
            Operator::LessThan => order < 0,
        }
    }

    proptest! {
        #[test]
        fn a_selector_is_read_back_from_its_text(
            requirements in prop::collection::vec(requirements(), 0..5),
        ) {
            let selector = LabelSelector::from_requirements(requirements);
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }

        #[test]
        fn matching_agrees_with_a_plain_model(
            requirements in prop::collection::vec(requirements(), 0..4),
            labels in prop::collection::btree_map("[abc]|in|notin", "[a-c]|[0-9]{0,2}|in", 0..4),
        ) {
            let expected = requirements.iter().all(|one| model(one, &labels));
            let selector = LabelSelector::from_requirements(requirements);
            let texts = labels.iter().map(|(key, value)| (&**key, &**value));
            let labels = OwnedLabels::from_iter(texts);
            let labels = labels.as_labels();
            prop_assert_eq!(selector.matches(labels), expected);
            prop_assert_eq!(joined(selector).matches(labels), expected);
        }
    }
}
