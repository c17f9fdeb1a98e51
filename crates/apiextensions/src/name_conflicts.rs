//! Accepts the names of definitions: no two of a group may share one.
//!
//! Whoever had a name first keeps it. A definition is served, and then established, once all its
//! names are its own; it stays so when a later change asks for a name that is taken.

use std::collections::HashSet;

use jiff::Timestamp;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::conditions::put_condition;
use ringwatch_apimachinery::path::{get, list, remove, set, text};
use serde_json::{Value, json};

use super::Definition;
use super::approval::Approval;

/// A name that only one definition of a group may have.
struct GroupName {
    /// The member of `spec.names`.
    member: &'static str,
    /// The reason of the condition if another definition has the name.
    reason: &'static str,
    /// The members of others' accepted names that it may clash with.
    clashes: &'static [&'static str],
}

/// Names of resources, which stand in paths and on command lines.
const RESOURCES: &[&str] = &["plural", "singular", "shortNames"];

/// The members of `spec.names` that name kinds, which must be unique among kinds.
const KINDS: &[&str] = &["kind", "listKind"];

const NAMES: [GroupName; 5] = [
    name("plural", "PluralConflict", RESOURCES),
    name("singular", "SingularConflict", RESOURCES),
    name("shortNames", "ShortNamesConflict", RESOURCES),
    name("kind", "KindConflict", KINDS),
    name("listKind", "ListKindConflict", KINDS),
];

const fn name(
    member: &'static str,
    reason: &'static str,
    clashes: &'static [&'static str],
) -> GroupName {
    GroupName {
        member,
        reason,
        clashes,
    }
}

/// A condition of a definition: its type, its status, its reason and its message.
struct Condition<'a>(&'a str, bool, &'a str, &'a str);

/// Returns the definition with the next change that its status needs beside the others; `None` if it needs none.
///
/// kube-apiserver has a controller for each change, so a watch sees them one by one: the approval, the names with
/// `Established` False, and `Established` once the names are served.
#[must_use]
pub fn next_status<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
    now: Timestamp,
) -> Option<Value> {
    approve(definition, now)
        .or_else(|| accept(definition, others, now))
        .or_else(|| establish(definition, now))
}

/// Tells the approval of a definition in a group of Kubernetes.
fn approve(definition: &Definition, now: Timestamp) -> Option<Value> {
    let object = definition.object();
    let approval = Approval::of(object)?;
    let message = approval.message(object);
    let condition = Condition(
        "KubernetesAPIApprovalPolicyConformant",
        approval == Approval::Approved,
        approval.reason(),
        &message,
    );
    let mut next = None;
    put(object, &mut next, condition, now);
    next
}

/// Gives a definition the names that it wants and may have. Nothing is decided anew while it has all of them, even if
/// somebody else took its conditions away.
fn accept<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
    now: Timestamp,
) -> Option<Value> {
    let object = definition.object();
    let known = get(object, "status.acceptedNames");
    if known == get(object, "spec.names") {
        return None;
    }
    let (names, refused) = accepted(definition, others);
    let mut next = None;
    if known != Some(&names) {
        set(
            next.get_or_insert_with(|| object.clone()),
            "status.acceptedNames",
            names,
        );
    }
    let names_accepted = match &refused {
        None => Condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => Condition("NamesAccepted", false, reason, message),
    };
    put(object, &mut next, names_accepted, now);
    let next = next?;
    let conditions = list(object, "status.conditions");
    let is_known = conditions
        .iter()
        .any(|it| text(it, "type") == "Established");
    let established = match refused {
        // Who is established stays so, and who is not stays so for the reason that was told first.
        _ if definition.has("Established") => return Some(next),
        Some(_) if is_known => return Some(next),
        Some(_) => Condition(
            "Established",
            false,
            "NotAccepted",
            "not all names are accepted",
        ),
        None => Condition(
            "Established",
            false,
            "Installing",
            "the initial names have been accepted",
        ),
    };
    let mut established_next = Some(next);
    put(object, &mut established_next, established, now);
    established_next
}

/// Tells that a definition is served, whose names are accepted.
fn establish(definition: &Definition, now: Timestamp) -> Option<Value> {
    if !definition.has("NamesAccepted") || definition.has("Established") {
        return None;
    }
    let mut next = None;
    let condition = Condition(
        "Established",
        true,
        "InitialNamesAccepted",
        "the initial names have been accepted",
    );
    put(definition.object(), &mut next, condition, now);
    next
}

/// Writes a condition into `next`, which begins as a copy of the object, unless the object has it. Mostly nothing has
/// changed, and definitions may be large.
fn put(object: &Value, next: &mut Option<Value>, condition: Condition<'_>, now: Timestamp) {
    let Condition(kind, holds, reason, message) = condition;
    let status = if holds { "True" } else { "False" };
    let known = list(object, "status.conditions").iter();
    let unchanged = known.filter(|it| text(it, "type") == kind).any(|it| {
        (text(it, "status"), text(it, "reason"), text(it, "message")) == (status, reason, message)
    });
    if unchanged {
        return;
    }
    let condition = json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    });
    put_condition(next.get_or_insert_with(|| object.clone()), condition);
}

/// Returns the names that a definition may have, of those that it wants, beside those that it has; and why it may not
/// have the last of the others.
fn accepted<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
) -> (Value, Option<(&'static str, String)>) {
    let object = definition.object();
    let others = others
        .filter(|other| other.group() == definition.group() && other.uid() != definition.uid());
    // A name that it has in another role is taken as well.
    let mut taken: Vec<&Value> = others
        .filter_map(|other| get(other.object(), "status.acceptedNames"))
        .collect();
    let none = json!({});
    let own = get(object, "status.acceptedNames").unwrap_or(&none);
    taken.push(own);
    let mut accepted = own.clone();
    let mut refused = None;
    for name in &NAMES {
        let wanted = get(object, "spec.names").and_then(|it| it.get(name.member));
        let clashing = name.clashes.iter();
        let known =
            clashing.flat_map(|member| taken.iter().filter_map(move |names| names.get(member)));
        let known: HashSet<&str> = known.flat_map(texts).collect();
        let own = own.get(name.member).map(texts).unwrap_or_default();
        let wanted_texts = wanted.into_iter().flat_map(texts);
        let clashes = wanted_texts.filter(|wish| !own.contains(wish) && known.contains(wish));
        match in_use(clashes) {
            Some(message) => refused = Some((name.reason, message)),
            None => copy(&mut accepted, name.member, wanted),
        }
    }
    let categories = get(object, "spec.names.categories");
    copy(&mut accepted, "categories", categories);
    (accepted, refused)
}

/// Returns that names are in use, as a list if there are several; `None` if there are none.
fn in_use<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        let line = format!("{name:?} is already in use");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.as_slice() {
        [] => None,
        [line] => Some(line.clone()),
        lines => Some(format!("[{}]", lines.join(", "))),
    }
}

/// Gives a member another value, or takes it away.
fn copy(names: &mut Value, member: &str, value: Option<&Value>) {
    match value {
        Some(value) => set(names, member, value.clone()),
        None => drop(remove(names, member)),
    }
}

/// Returns the texts of a member that is a text or a list of texts.
fn texts(names: &Value) -> Vec<&str> {
    match names {
        Value::String(text) if !text.is_empty() => vec![text],
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(names: Value, status: Value) -> Definition {
        let uid = names["plural"].clone();
        let spec = json!({"group": "example.com", "names": names});
        Definition::new(json!({"metadata": {"uid": uid}, "spec": spec, "status": status}))
    }

    /// Shows the conditions after each step until the status is as it should be.
    fn steps(definition: Definition, others: &[Definition]) -> Vec<String> {
        let mut now = definition;
        let mut seen = Vec::new();
        while let Some(next) = next_status(&now, others.iter(), Timestamp::UNIX_EPOCH) {
            let shown = list(&next, "status.conditions").iter();
            let shown = shown.map(|it| {
                let holds = text(it, "status") == "True";
                let mark = if holds { "" } else { "!" };
                format!("{mark}{} {}", text(it, "type"), text(it, "reason"))
            });
            seen.push(shown.collect::<Vec<_>>().join(", "));
            now = Definition::new(next);
        }
        seen
    }

    #[test]
    fn the_status_changes_in_the_steps_of_the_controllers() {
        let names = json!({"plural": "a", "kind": "A"});
        assert_eq!(
            steps(definition(names.clone(), json!({})), &[]),
            [
                "NamesAccepted NoConflicts, !Established Installing",
                "NamesAccepted NoConflicts, Established InitialNamesAccepted",
            ]
        );
        let mut approved = definition(names, json!({})).object().clone();
        set(&mut approved, "spec.group", "x.k8s.io".into());
        let annotations = json!({"api-approved.kubernetes.io": "https://example.com"});
        set(&mut approved, "metadata.annotations", annotations);
        let approval = "KubernetesAPIApprovalPolicyConformant ApprovedAnnotation";
        assert_eq!(
            steps(Definition::new(approved), &[]),
            [
                approval.to_owned(),
                format!("{approval}, NamesAccepted NoConflicts, !Established Installing"),
                format!("{approval}, NamesAccepted NoConflicts, Established InitialNamesAccepted"),
            ]
        );
    }

    #[test]
    fn conditions_that_somebody_took_away_come_back_only_with_other_names() {
        let names = json!({"plural": "a", "kind": "A"});
        let other = json!([{"type": "Other", "status": "True", "reason": "R"}]);
        let status = json!({"acceptedNames": names.clone(), "conditions": other.clone()});
        assert_eq!(steps(definition(names.clone(), status), &[]), [""; 0]);
        let status = json!({"acceptedNames": {"plural": "a", "kind": ""}, "conditions": other});
        let seen = steps(definition(names, status), &[]);
        assert_eq!(seen.len(), 2, "{seen:?}");
    }

    #[test]
    fn what_somebody_wrote_about_an_established_definition_stays() {
        let names = json!({"plural": "a", "kind": "A"});
        for (status, seen) in [
            ("True", vec!["Established R, NamesAccepted NoConflicts"]),
            (
                "False",
                vec![
                    "!Established Installing, NamesAccepted NoConflicts",
                    "Established InitialNamesAccepted, NamesAccepted NoConflicts",
                ],
            ),
        ] {
            let condition = json!({"type": "Established", "status": status, "reason": "R"});
            let status = json!({"conditions": [condition]});
            assert_eq!(steps(definition(names.clone(), status), &[]), seen);
        }
    }

    #[test]
    fn names_that_others_have_are_refused_all_at_once() {
        let has = json!({"acceptedNames": {"plural": "b", "shortNames": ["s", "t"]}});
        let others = [definition(json!({"plural": "b"}), has)];
        let wanted = json!({"plural": "a", "shortNames": ["s", "u", "t"]});
        let refused = definition(wanted, json!({}));
        let next = next_status(&refused, others.iter(), Timestamp::UNIX_EPOCH).expect("a status");
        let conditions = list(&next, "status.conditions");
        let (names, established) = (&conditions[0], &conditions[1]);
        assert_eq!(text(names, "reason"), "ShortNamesConflict");
        assert_eq!(
            text(names, "message"),
            r#"["s" is already in use, "t" is already in use]"#
        );
        assert_eq!(text(established, "reason"), "NotAccepted");
        assert_eq!(
            get(&next, "status.acceptedNames"),
            Some(&json!({"plural": "a"}))
        );
        assert_eq!(steps(Definition::new(next), &others), [""; 0]);
    }

    #[test]
    fn a_name_is_taken_in_another_role_of_the_same_definition() {
        let has = json!({"acceptedNames": {"plural": "a", "singular": "b", "shortNames": ["s"]}});
        let wanted = json!({"plural": "a", "singular": "s", "shortNames": ["s"]});
        let seen = steps(definition(wanted, has), &[]);
        assert_eq!(
            seen,
            ["!NamesAccepted SingularConflict, !Established NotAccepted"]
        );
    }
}
