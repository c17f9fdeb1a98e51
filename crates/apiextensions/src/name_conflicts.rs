//! Accepts the names of definitions: no two of a group may share one.
//!
//! Whoever had a name first keeps it. A definition is established, and so served, once all its
//! names are its own; it stays so when a later change asks for a name that is taken.

use std::collections::HashSet;
use std::iter;

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

/// Returns the definition with the status that it should have beside the others; `None` if it has it.
#[must_use]
pub fn accept<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
    now: Timestamp,
) -> Option<Value> {
    let object = definition.object();
    let (names, refused) = accepted(definition, others);
    let (names_accepted, established) = match refused {
        None => (
            (true, "NoConflicts", "no conflicts found".to_owned()),
            (
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted".to_owned(),
            ),
        ),
        Some((reason, message)) => (
            (false, reason, message),
            (
                false,
                "NotAccepted",
                "not all names are accepted".to_owned(),
            ),
        ),
    };
    // Who is established stays so, whatever somebody else wrote as the reason.
    let established = (!definition.has("Established")).then_some(("Established", established));
    let conditions = iter::once(("NamesAccepted", names_accepted)).chain(established);
    // Mostly nothing has changed, and definitions may be large.
    let mut next = None;
    if get(object, "status.acceptedNames") != Some(&names) {
        set(
            next.get_or_insert_with(|| object.clone()),
            "status.acceptedNames",
            names,
        );
    }
    let approval = Approval::of(object).map(|approval| {
        let holds = approval == Approval::Approved;
        let state = (holds, approval.reason(), approval.message(object));
        ("KubernetesAPIApprovalPolicyConformant", state)
    });
    for (kind, (holds, reason, message)) in conditions.chain(approval) {
        let status = if holds { "True" } else { "False" };
        let known = list(object, "status.conditions").iter();
        let unchanged = known.filter(|it| text(it, "type") == kind).any(|it| {
            (text(it, "status"), text(it, "reason"), text(it, "message"))
                == (status, reason, message.as_str())
        });
        if unchanged {
            continue;
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
    next
}

/// Returns the names that a definition may have, of those that it wants, beside those that it has; and why it may not
/// have the last of the others.
fn accepted<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
) -> (Value, Option<(&'static str, String)>) {
    let others = others
        .filter(|other| other.group() == definition.group() && other.uid() != definition.uid());
    let taken: Vec<&Value> = others
        .filter_map(|other| get(other.object(), "status.acceptedNames"))
        .collect();
    let object = definition.object();
    let mut accepted = get(object, "status.acceptedNames")
        .cloned()
        .unwrap_or_default();
    let mut refused = None;
    for name in &NAMES {
        let wanted = get(object, "spec.names").and_then(|it| it.get(name.member));
        let members = |others: &&'a Value| name.clashes.iter().filter_map(|it| others.get(it));
        let known = taken.iter().flat_map(members).flat_map(texts);
        let known: HashSet<&str> = known.collect();
        let mut wanted_texts = wanted.into_iter().flat_map(texts);
        let clash = wanted_texts.find(|wish| known.contains(wish));
        match clash {
            Some(wish) => refused = Some((name.reason, format!("{wish:?} is already in use"))),
            None => copy(&mut accepted, name.member, wanted),
        }
    }
    let categories = get(object, "spec.names.categories");
    copy(&mut accepted, "categories", categories);
    (accepted, refused)
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

    #[test]
    fn what_somebody_wrote_about_an_established_definition_stays() {
        let condition =
            |status: &str| json!({"type": "Established", "status": status, "reason": "R"});
        for (status, reason) in [("True", "R"), ("False", "InitialNamesAccepted")] {
            let definition = Definition::new(json!({"spec": {"group": "example.com"},
                "status": {"conditions": [condition(status)]}}));
            let accepted = accept(&definition, iter::empty(), Timestamp::UNIX_EPOCH);
            let accepted = accepted.expect("a status");
            let conditions = list(&accepted, "status.conditions");
            assert_eq!(text(&conditions[0], "reason"), reason);
            assert_eq!(text(&conditions[1], "reason"), "NoConflicts");
        }
    }

    #[test]
    fn definitions_of_kubernetes_domains_tell_their_approval() {
        let conditions = |group: &str| {
            let definition = Definition::new(json!({"spec": {"group": group},
                "metadata": {"annotations": {"api-approved.kubernetes.io": "https://example.com"}}}));
            let accepted = accept(&definition, iter::empty(), Timestamp::UNIX_EPOCH);
            let accepted = accepted.expect("a status");
            let conditions = list(&accepted, "status.conditions").iter();
            let shown = |it: &Value| format!("{} {}", text(it, "type"), text(it, "reason"));
            conditions.map(shown).collect::<Vec<_>>()
        };
        let usual = [
            "NamesAccepted NoConflicts",
            "Established InitialNamesAccepted",
        ];
        assert_eq!(conditions("example.com"), usual);
        let approved = "KubernetesAPIApprovalPolicyConformant ApprovedAnnotation";
        assert_eq!(conditions("x.k8s.io"), [usual[0], usual[1], approved]);
    }
}
