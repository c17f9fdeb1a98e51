//! Validates a policy: `ValidatePolicy` of Kubernetes 1.36 (`apis/audit/validation`).

use ringwatch_apimachinery::validation::formats::dns_subdomain;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use super::file::{GroupResourcesFile, RuleFile};
use crate::level::{Level, Stage, Stages};

/// Returns the errors of a policy with these members.
pub(super) fn validate(
    rules: Option<&[RuleFile]>,
    omit_stages: Option<&[String]>,
) -> Vec<FieldError> {
    let mut errors = stage_errors(omit_stages, "omitStages");
    for (place, rule) in rules.into_iter().flatten().enumerate() {
        errors.extend(rule_errors(rule, &format!("rules[{place}]")));
    }
    errors
}

/// Returns the level of this name.
pub(super) fn level(name: &str) -> Option<Level> {
    Level::ALL.into_iter().find(|it| it.name() == name)
}

/// Returns the stages that are named; names that are none are left out.
pub(super) fn stages(names: Option<&[String]>) -> Stages {
    names
        .into_iter()
        .flatten()
        .filter_map(|it| stage(it))
        .collect()
}

fn stage(name: &str) -> Option<Stage> {
    Stage::ALL.into_iter().find(|it| it.name() == name)
}

fn rule_errors(rule: &RuleFile, at: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = level_error(&rule.level, at).into_iter().collect();
    let urls = rule.non_resource_urls.as_deref().unwrap_or_default();
    for (place, url) in urls.iter().enumerate() {
        errors.extend(url_errors(url, &format!("{at}.nonResourceURLs[{place}]")));
    }
    for resources in rule.resources.iter().flatten() {
        errors.extend(resource_errors(resources, &format!("{at}.resources")));
    }
    let omitted = format!("{at}.omitStages");
    errors.extend(stage_errors(rule.omit_stages.as_deref(), &omitted));
    let has = |list: Option<bool>| list == Some(true);
    let has_resources = has(rule.resources.as_ref().map(|it| !it.is_empty()))
        || has(rule.namespaces.as_ref().map(|it| !it.is_empty()));
    if !urls.is_empty() && has_resources {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(FieldError::invalid(
            format!("{at}.nonResourceURLs"),
            &json!(urls),
            why,
        ));
    }
    errors
}

fn level_error(name: &str, at: &str) -> Option<FieldError> {
    let field = format!("{at}.level");
    if name.is_empty() {
        return Some(FieldError::required(field));
    }
    let supported = Level::ALL.map(|it| format!("{:?}", it.name())).join(", ");
    let detail = format!("{name:?}: supported values: {supported}");
    let error = FieldError::new(FieldErrorKind::NotSupported, field, detail);
    level(name).is_none().then_some(error)
}

fn url_errors(url: &str, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if url == "*" {
        return errors;
    }
    let invalid = |why| FieldError::invalid(at, &json!(url), why);
    if !url.starts_with('/') {
        errors.push(invalid(
            "non-resource URL rules must begin with a '/' character",
        ));
    }
    let before_last = url.char_indices().next_back().map(|(end, _)| &url[..end]);
    if before_last.is_some_and(|it| it.contains('*')) {
        errors.push(invalid(
            "non-resource URL wildcards '*' must be the final character of the rule",
        ));
    }
    errors
}

fn resource_errors(resources: &GroupResourcesFile, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let group = &resources.group;
    if !group.is_empty() && group != "*" {
        let wrong = dns_subdomain(group);
        if !wrong.is_empty() {
            let why = wrong.join(",");
            errors.push(FieldError::invalid(
                format!("{at}.group"),
                &json!(group),
                why,
            ));
        }
    }
    let names = resources.resource_names.as_deref().unwrap_or_default();
    let without_resources = resources.resources.as_ref().is_none_or(Vec::is_empty);
    if !names.is_empty() && without_resources {
        let why = "using resourceNames requires at least one resource";
        errors.push(FieldError::invalid(
            format!("{at}.resourceNames"),
            &json!(names),
            why,
        ));
    }
    errors
}

fn stage_errors(names: Option<&[String]>, at: &str) -> Vec<FieldError> {
    let allowed = Stage::ALL.map(Stage::name).join(",");
    let names = names.into_iter().flatten().enumerate();
    let wrong = names.filter(|(_, name)| stage(name).is_none());
    let error = |(place, name): (usize, &String)| {
        let why = format!("allowed stages are {allowed}");
        FieldError::invalid(format!("{at}[{place}]"), &json!(name), why)
    };
    wrong.map(error).collect()
}
