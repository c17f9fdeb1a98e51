//! Tests of coverage against kube-apiserver's rule, and of the parts that are reported as missing.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use ringwatch_apimachinery::User;

use super::*;
use crate::Attributes;
use crate::describe_rules;

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn rule(verbs: &[&str], group: &str, resources: &[&str], names: &[&str]) -> Rule {
    Rule {
        verbs: list(verbs),
        api_groups: list(&[group]),
        resources: list(resources),
        resource_names: list(names),
        ..Rule::default()
    }
}

fn paths(verbs: &[&str], paths: &[&str]) -> Rule {
    Rule {
        verbs: list(verbs),
        non_resource_urls: list(paths),
        ..Rule::default()
    }
}

#[test]
fn what_is_missing_is_told_by_resource() {
    let held = [
        rule(&["get"], "", &["pods"], &[]),
        rule(&["list"], "", &["pods"], &[]),
        rule(&["get"], "", &["secrets"], &["mine"]),
        rule(&["*"], "apps", &["*/scale"], &[]),
        paths(&["get"], &["/healthz/*"]),
    ];
    let missing = |wanted: Rule| describe_rules(missing_rules(&held, &[wanted]));
    assert_eq!(missing(rule(&["get", "list"], "", &["pods"], &[])), "");
    assert_eq!(missing(rule(&["get"], "", &["secrets"], &["mine"])), "");
    assert_eq!(
        missing(rule(&["get"], "apps", &["deployments/scale"], &[])),
        ""
    );
    assert_eq!(missing(paths(&["get"], &["/healthz/ping"])), "");
    assert_eq!(
        missing(rule(
            &["watch", "get", "create"],
            "",
            &["pods", "pods/log"],
            &[]
        )),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"create\"]}\n\
         {APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"watch\" \"get\" \"create\"]}"
    );
    assert_eq!(
        missing(rule(&["get"], "", &["secrets"], &[])),
        "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
    assert_eq!(
        missing(rule(&["get"], "", &["secrets"], &["mine", "yours"])),
        "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"yours\"], Verbs:[\"get\"]}"
    );
    assert_eq!(
        missing(paths(&["get"], &["/metrics"])),
        "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
    );
}

#[test]
fn rules_of_many_words_are_not_taken_apart_in_vain() {
    let words = |begin: &str| (0..2_000).map(|it| format!("{begin}{it}")).collect();
    let wanted = [Rule {
        verbs: words("verb"),
        api_groups: list(&[""]),
        resources: words("resource"),
        resource_names: words("name"),
        ..Rule::default()
    }];
    let held = [
        rule(&["*"], "", &["resource1"], &[]),
        rule(&["verb1"], "", &["*"], &[]),
    ];
    let missing = missing_rules(&held, &wanted);
    assert!(missing.more);
    assert_eq!(missing.parts.len(), MISSING_PARTS_MAX);
    assert!(missing_rules(&[rule(&["*"], "*", &["*"], &[])], &wanted).is_none());
    assert!(missing_rules(&wanted, &wanted).is_none());
}

#[test]
fn too_many_looks_end_as_missing() {
    // Each word is in other rules than all others.
    let bits = 12;
    let words =
        |begin: &str| -> Vec<String> { (0..1 << bits).map(|it| format!("{begin}{it}")).collect() };
    let (verbs, resources) = (words("verb"), words("resource"));
    let having = |words: &[String], bit: usize| -> Vec<String> {
        let words = words.iter().enumerate();
        let having = words.filter(|(index, _)| index >> bit & 1 == 1);
        having.map(|(_, word)| word.clone()).collect()
    };
    let held: Vec<Rule> = (0..bits)
        .map(|bit| Rule {
            verbs: having(&verbs, bit),
            api_groups: list(&[""]),
            resources: having(&resources, bit),
            ..Rule::default()
        })
        .collect();
    let wanted = Rule {
        verbs,
        api_groups: list(&[""]),
        resources,
        ..Rule::default()
    };
    let missing = missing_rules(&held, &[wanted]);
    assert!(missing.more);
    let told = describe_rules(missing);
    assert!(told.ends_with("\nand more than can be told; grant fewer rules at a time"));
}

/// Decides as kube-apiserver's `ruleCovers` does: one rule alone covers a part.
fn covers(held: &Rule, part: &Rule) -> bool {
    let all_of = |held: &[String], wanted: &[String]| {
        held.iter().any(|it| it == ALL) || wanted.iter().all(|it| held.contains(it))
    };
    let resources = part.resources.iter().all(|wanted| {
        let of_all = part_of_all(wanted);
        let mut held = held.resources.iter();
        held.any(|it| it == ALL || it == wanted || of_all.as_ref() == Some(it))
    });
    let names = held.resource_names.is_empty()
        || !part.resource_names.is_empty()
            && part
                .resource_names
                .iter()
                .all(|it| held.resource_names.contains(it));
    all_of(&held.verbs, &part.verbs)
        && all_of(&held.api_groups, &part.api_groups)
        && resources
        && names
}

/// Lists the missing parts by taking a rule apart in full.
fn model(held: &[Rule], wanted: &Rule) -> Vec<Rule> {
    let mut missing = Vec::new();
    let one = |text: &String| vec![text.clone()];
    let mut names: Vec<_> = wanted.resource_names.iter().map(one).collect();
    if names.is_empty() {
        names.push(Vec::new());
    }
    for group in &wanted.api_groups {
        for resource in &wanted.resources {
            for verb in &wanted.verbs {
                for names in &names {
                    let part = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        resource_names: names.clone(),
                        ..Rule::default()
                    };
                    if !held.iter().any(|rule| covers(rule, &part)) {
                        missing.push(part);
                    }
                }
            }
        }
    }
    missing
}

proptest! {
    /// The same is missing as when every part is looked for by itself.
    #[test]
    fn parts_are_missing_that_no_held_rule_covers(
        held in prop::collection::vec(rules(), 0..4),
        wanted in rules(),
    ) {
        let missing = missing_rules(&held, std::slice::from_ref(&wanted));
        prop_assert_eq!(missing.parts, model(&held, &wanted));
        prop_assert!(!missing.more);
    }

    /// A rule of which nothing is missing allows nothing that is not allowed already.
    #[test]
    fn what_is_covered_is_allowed(
        held in prop::collection::vec(rules(), 0..4),
        wanted in rules(),
        verb in select(&["get", "list"][..]),
        group in select(&["", "apps"][..]),
        resource in select(&["pods", "nodes"][..]),
        subresource in select(&["", "log"][..]),
        name in select(&["", "a", "b"][..]),
    ) {
        let user = User::default();
        let attributes = Attributes {
            subresource,
            name,
            ..Attributes::of_resource(&user, verb, group, resource)
        };
        let covered = missing_rules(&held, std::slice::from_ref(&wanted)).is_none();
        if covered && wanted.allows(&attributes) {
            prop_assert!(held.iter().any(|rule| rule.allows(&attributes)));
        }
    }
}

fn rules() -> impl Strategy<Value = Rule> {
    let lists =
        |of: &'static [&'static str]| subsequence(of, 0..=of.len()).prop_map(|it| list(&it));
    (
        lists(&["get", "list", "*"]),
        lists(&["", "apps", "*"]),
        lists(&["pods", "pods/log", "nodes", "*/log", "*"]),
        lists(&["a", "b"]),
    )
        .prop_map(|(verbs, api_groups, resources, resource_names)| Rule {
            verbs,
            api_groups,
            resources,
            resource_names,
            ..Rule::default()
        })
}
