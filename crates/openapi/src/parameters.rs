//! The parameters of operations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The descriptions of query parameters, which `tools/openapi-schemas` makes of Kubernetes' definitions: on each line
/// the message of options, the field, and the text in JSON.
pub(super) const TEXTS: &str = include_str!("parameters.txt");

/// The description of the parameter that all operations with objects have.
const PRETTY: &str = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).";

/// The descriptions by message and field.
static DESCRIPTIONS: LazyLock<BTreeMap<(&str, &str), String>> = LazyLock::new(|| {
    let lines = TEXTS.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (message, field, text) = (words.next()?, words.next()?, words.next()?);
        let text = serde_json::from_str(text).ok()?;
        Some(((message, field), text))
    });
    lines.collect()
});

/// A query or path parameter of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// The place of the parameter, `query` or `path`; those in the path are required.
    pub(super) place: &'static str,
    /// The type of its value in JSON schemas.
    pub(super) kind: &'static str,
    pub(super) description: Cow<'static, str>,
}

/// Query parameters, each named by the message of its options and the field.
pub(super) type Options = &'static [(&'static str, &'static [&'static str])];

/// The query parameters of a list or watch.
pub(super) const LIST: Options = &[(
    "ListOptions",
    &[
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "shardSelector",
        "timeoutSeconds",
        "watch",
    ],
)];

/// The query parameters of reading a custom resource. The text is that of GetOptions too.
pub(super) const GET_CUSTOM: Options = &[("ListOptions", &["resourceVersion"])];

/// The query parameters of a creation.
pub(super) const CREATE: Options = &[(
    "CreateOptions",
    &["dryRun", "fieldManager", "fieldValidation"],
)];

/// The query parameters of an update.
pub(super) const UPDATE: Options = &[(
    "UpdateOptions",
    &["dryRun", "fieldManager", "fieldValidation"],
)];

/// The query parameters of a patch.
pub(super) const PATCH: Options = &[(
    "PatchOptions",
    &["dryRun", "fieldManager", "fieldValidation", "force"],
)];

/// The query parameters of a deletion that its body may have too.
const DELETE_OPTIONS: (&str, &[&str]) = (
    "DeleteOptions",
    &[
        "dryRun",
        "gracePeriodSeconds",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "propagationPolicy",
    ],
);

/// The query parameters of a deletion.
pub(super) const DELETE: Options = &[DELETE_OPTIONS];

/// The query parameters of the deletion of a collection.
pub(super) const DELETE_COLLECTION: Options = &[
    DELETE_OPTIONS,
    (
        "ListOptions",
        &[
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "shardSelector",
            "timeoutSeconds",
        ],
    ),
];

/// The query parameters of a pod's log.
pub(super) const LOG: Options = &[(
    "PodLogOptions",
    &[
        "container",
        "follow",
        "insecureSkipTLSVerifyBackend",
        "limitBytes",
        "previous",
        "sinceSeconds",
        "stream",
        "tailLines",
        "timestamps",
    ],
)];

/// The query parameters of subresources that are no objects, by their kind.
const SUBRESOURCES: Options = &[
    ("NodeProxyOptions", &["path"]),
    (
        "PodAttachOptions",
        &["container", "stderr", "stdin", "stdout", "tty"],
    ),
    (
        "PodExecOptions",
        &["command", "container", "stderr", "stdin", "stdout", "tty"],
    ),
    ("PodPortForwardOptions", &["ports"]),
    ("PodProxyOptions", &["path"]),
    ("ServiceProxyOptions", &["path"]),
];

/// The parameters whose values are numbers.
const NUMBERS: [&str; 7] = [
    "gracePeriodSeconds",
    "limit",
    "limitBytes",
    "ports",
    "sinceSeconds",
    "tailLines",
    "timeoutSeconds",
];

/// The parameters whose values are true or false.
const SWITCHES: [&str; 14] = [
    "allowWatchBookmarks",
    "follow",
    "force",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "insecureSkipTLSVerifyBackend",
    "orphanDependents",
    "previous",
    "sendInitialEvents",
    "stderr",
    "stdin",
    "stdout",
    "timestamps",
    "tty",
    "watch",
];

/// Returns query parameters, in the order of their names.
pub(super) fn queries(options: Options) -> Vec<Parameter> {
    let each = options
        .iter()
        .flat_map(|(message, names)| names.iter().map(|name| query(message, name)));
    let mut parameters: Vec<Parameter> = each.collect();
    parameters.sort_by_key(|it| it.name);
    parameters
}

/// Returns the query parameters of a subresource of a kind such as `PodExecOptions`; `None` for the kinds of objects.
pub(super) fn subresource_queries(kind: &str) -> Option<Vec<Parameter>> {
    let known = SUBRESOURCES.iter().position(|(known, _)| *known == kind)?;
    Some(queries(&SUBRESOURCES[known..=known]))
}

fn query(message: &'static str, name: &'static str) -> Parameter {
    let kind = match name {
        name if NUMBERS.contains(&name) => "integer",
        name if SWITCHES.contains(&name) => "boolean",
        _ => "string",
    };
    let description = DESCRIPTIONS.get(&(message, name)).map(String::as_str);
    Parameter {
        name,
        place: "query",
        kind,
        description: description.unwrap_or_default().into(),
    }
}

/// Returns the query parameter by which answers are indented.
pub(super) fn pretty() -> Parameter {
    Parameter {
        name: "pretty",
        place: "query",
        kind: "string",
        description: PRETTY.into(),
    }
}

/// Returns a path parameter.
pub(super) fn path(name: &'static str, description: impl Into<Cow<'static, str>>) -> Parameter {
    Parameter {
        name,
        place: "path",
        kind: "string",
        description: description.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_parameter_is_described() {
        let all = [
            LIST,
            CREATE,
            UPDATE,
            PATCH,
            DELETE,
            DELETE_COLLECTION,
            LOG,
            SUBRESOURCES,
        ];
        for parameter in all.into_iter().flat_map(queries) {
            assert!(!parameter.description.is_empty(), "{}", parameter.name);
        }
        let limit = queries(LIST).into_iter().find(|it| it.name == "limit");
        assert_eq!(limit.expect("a parameter").kind, "integer");
    }
}
