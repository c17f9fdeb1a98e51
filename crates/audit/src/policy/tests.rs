//! Policies: what they match, compared with a plain model, and what is wrong with them.

use std::path::Path;

use proptest::prelude::*;
use ringwatch_apimachinery::User;

use super::*;
use crate::level::Stage;

const HEAD: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";

fn policy(rules: &str) -> Policy {
    Policy::parse(&format!("{HEAD}{rules}")).expect(rules)
}

fn error(text: &str) -> String {
    Policy::parse(text).expect_err(text).to_string()
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
        ..User::default()
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: None, users: [robot]}\n\
         - {level: Request, userGroups: [devs, ops], verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
         - {level: Metadata}\n",
    );
    let (robot, dev, other) = (
        user("robot", &["devs"]),
        user("ann", &["x", "ops"]),
        user("joe", &[]),
    );
    let terms = |user, verb| policy.evaluate(&Attributes::of_resource(user, verb, "", "pods"));
    assert_eq!(terms(&robot, "get").level, Level::None);
    let second = terms(&dev, "get");
    assert_eq!(
        (second.level, second.omit_managed_fields),
        (Level::Request, false)
    );
    assert!(
        second.omit_stages.contains(Stage::Panic)
            && second.omit_stages.contains(Stage::RequestReceived)
    );
    let last = terms(&dev, "list");
    assert_eq!(
        (last.level, last.omit_managed_fields),
        (Level::Metadata, true)
    );
    assert!(!last.omit_stages.contains(Stage::Panic));
    assert_eq!(terms(&other, "get").level, Level::Metadata);
}

#[test]
fn nothing_is_recorded_where_no_rule_matches() {
    let policy = policy("rules: [{level: Metadata, namespaces: [a]}]");
    let someone = user("ann", &[]);
    let path = Attributes::of_path(&someone, "get", "/healthz");
    assert_eq!(policy.evaluate(&path).level, Level::None);
}

#[test]
fn paths_and_resources_are_matched_as_they_are_written() {
    let someone = user("ann", &[]);
    let path = |rule: &str, path| {
        let policy = policy(&format!(
            "rules: [{{level: Metadata, nonResourceURLs: [\"{rule}\"]}}]"
        ));
        policy
            .evaluate(&Attributes::of_path(&someone, "get", path))
            .level
            == Level::Metadata
    };
    assert!(path("*", "/x") && path("/healthz", "/healthz") && path("/api*", "/apis/apps"));
    assert!(!path("/healthz", "/healthz/etcd") && !path("/healthz/*", "/healthz"));
    let resource = |rule: &str, resource, subresource| {
        let rule = format!(
            "rules: [{{level: Metadata, resources: [{{group: \"\", resources: [\"{rule}\"]}}]}}]"
        );
        let attributes = Attributes {
            subresource,
            ..Attributes::of_resource(&someone, "get", "", resource)
        };
        policy(&rule).evaluate(&attributes).level == Level::Metadata
    };
    assert!(resource("pods", "pods", "") && !resource("pods", "pods", "log"));
    assert!(resource("pods/log", "pods", "log") && !resource("pods/log", "pods", ""));
    assert!(
        resource("pods/*", "pods", "log")
            && resource("pods/*", "pods", "")
            && !resource("pods/*", "nodes", "log")
    );
    assert!(
        resource("*/log", "pods", "log")
            && !resource("*/log", "pods", "")
            && resource("*", "pods", "log")
    );
}

/// Kubernetes' function in its own order of steps, over the names alone.
fn model(resource: &GroupResources, attributes: &Attributes<'_>) -> bool {
    let combined = attributes.combined_resource();
    let named = resource.names.is_empty() || resource.names.iter().any(|it| it == attributes.name);
    let group = resource.group == attributes.group || resource.group == "*";
    let listed = resource.resources.iter().any(|it| {
        let of_subresource = it.strip_prefix("*/") == Some(attributes.subresource);
        let of_resource = it.strip_suffix("/*") == Some(attributes.resource);
        *it == combined
            || it == "*"
            || !attributes.subresource.is_empty() && of_subresource
            || of_resource
    });
    group && (resource.resources.is_empty() || named && listed)
}

proptest! {
    #[test]
    fn resources_are_matched_as_in_the_model(
        (group, of) in ("(|apps|\\*)", "(|apps)"),
        patterns in prop::collection::vec("(pods|nodes|\\*)(|/(log|status|\\*))", 0..3),
        names in prop::collection::vec("(a|b)", 0..2),
        (resource, subresource, name) in ("(pods|nodes)", "(|log|status)", "(|a|b)"),
    ) {
        let rule = GroupResources { group, resources: patterns, names };
        let user = User::default();
        let attributes = Attributes {
            subresource: &subresource,
            name: &name,
            ..Attributes::of_resource(&user, "get", &of, &resource)
        };
        let rules = vec![PolicyRule { level: Level::Metadata, resources: vec![rule.clone()], ..PolicyRule::default() }];
        let policy = Policy { rules, omit_stages: Stages::default(), omit_managed_fields: false };
        let matched = policy.evaluate(&attributes).level == Level::Metadata;
        prop_assert_eq!(matched, model(&rule, &attributes));
    }
}

#[test]
fn policies_that_cannot_be_used_say_why() {
    for (text, words) in [
        (
            "rules: [{level: Metadata}]",
            "failed decoding: Object 'Kind' is missing in",
        ),
        (
            "kind: Policy\nrules: []",
            "failed decoding: Object 'apiVersion' is missing in",
        ),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy",
            "no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\"",
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Event",
            "converting (v1.Event) to (audit.Policy): unknown conversion",
        ),
        (HEAD, "loaded illegal policy with 0 rules"),
        ("a: [", "failed decoding: "),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: x",
            "failed decoding: ",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    for (rule, words) in [
        ("{}", "rules[0].level: Required value"),
        (
            "{level: All}",
            "rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
        ),
        (
            "{level: None, omitStages: [x]}",
            "rules[0].omitStages[0]: Invalid value: \"x\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
        (
            "{level: None, nonResourceURLs: [x]}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character",
        ),
        (
            "{level: None, nonResourceURLs: [/a*b]}",
            "non-resource URL wildcards '*' must be the final character of the rule",
        ),
        (
            "{level: None, nonResourceURLs: [/a], namespaces: [b]}",
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "{level: None, resources: [{resourceNames: [a]}]}",
            "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource",
        ),
        (
            "{level: None, resources: [{group: a/v1}]}",
            "rules[0].resources.group: Invalid value: \"a/v1\": ",
        ),
    ] {
        let error = error(&format!("{HEAD}rules: [{rule}]"));
        assert!(error.contains(words), "{rule}: {error}");
    }
    let both = error(&format!("{HEAD}omitStages: [z]\nrules: [{{}}]"));
    assert!(
        both.starts_with("[omitStages[0]: Invalid value")
            && both.ends_with("rules[0].level: Required value]"),
        "{both}"
    );
}

#[test]
fn unknown_and_duplicate_fields_are_only_warned_of() {
    let policy = policy(
        "extra: 1\nrules:\n- {level: Metadata, bogus: x, resources: [{group: '', what: []}]}\n",
    );
    assert_eq!(policy.rules.len(), 1);
    let twice = Policy::parse(&format!(
        "{HEAD}rules: [{{level: None}}]\nrules: [{{level: Request}}]"
    ));
    assert_eq!(twice.expect("the last").rules[0].level, Level::Request);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = Policy::read(Path::new("/no/such/file")).expect_err("nothing there");
    assert!(
        error.starts_with("failed to read file path \"/no/such/file\": "),
        "{error}"
    );
}
