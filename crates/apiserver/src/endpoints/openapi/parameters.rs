//! The parameters of operations.

use std::borrow::Cow;

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

/// The query parameters of a list or watch.
pub(super) const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// The query parameters of a creation or update.
pub(super) const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];

/// The query parameters of a patch.
pub(super) const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];

/// The query parameters of a deletion.
pub(super) const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// The query parameters of the deletion of a collection.
pub(super) const DELETE_COLLECTION: &[&str] = &[
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
];

/// The query parameters of subresources that are no objects, by their kind.
const SUBRESOURCE_QUERIES: &[(&str, &[&str])] = &[
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

/// The query parameters of a pod's log.
pub(super) const LOG: &[&str] = &[
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
];

/// The name, type and description of each query parameter; others are strings without a description.
const MEANINGS: &[(&str, &str, &str)] = &[
    (
        "allowWatchBookmarks",
        "boolean",
        "Whether a watch may send bookmarks.",
    ),
    ("command", "string", "The command and its arguments."),
    (
        "container",
        "string",
        "The container; the only one if there is one.",
    ),
    (
        "continue",
        "string",
        "Where a list goes on, as the part before it said.",
    ),
    (
        "dryRun",
        "string",
        "All: nothing is stored, everything else is done.",
    ),
    (
        "fieldManager",
        "string",
        "Under which name fields are managed.",
    ),
    (
        "fieldSelector",
        "string",
        "Selects objects by their fields.",
    ),
    (
        "fieldValidation",
        "string",
        "What becomes of unknown and duplicate fields: Ignore, Warn or Strict.",
    ),
    ("follow", "boolean", "Whether what comes later is sent too."),
    (
        "force",
        "boolean",
        "Whether apply takes fields from other managers.",
    ),
    (
        "gracePeriodSeconds",
        "integer",
        "How long deletion waits; 0 for not at all.",
    ),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Whether an object that cannot be read is deleted without looking at it.",
    ),
    (
        "insecureSkipTLSVerifyBackend",
        "boolean",
        "Whether the certificate of the kubelet is not looked at.",
    ),
    (
        "labelSelector",
        "string",
        "Selects objects by their labels.",
    ),
    (
        "limit",
        "integer",
        "How many objects a part of a list has at most.",
    ),
    ("limitBytes", "integer", "How many bytes are sent at most."),
    (
        "orphanDependents",
        "boolean",
        "Deprecated: please use propagationPolicy.",
    ),
    ("path", "string", "The path that is asked for."),
    ("ports", "integer", "The ports to forward."),
    (
        "pretty",
        "string",
        "Whether the answer is laid out for people.",
    ),
    (
        "previous",
        "boolean",
        "Whether the log is that of the container before.",
    ),
    (
        "propagationPolicy",
        "string",
        "What becomes of dependents: Orphan, Background or Foreground.",
    ),
    (
        "resourceVersion",
        "string",
        "How new the answer is, or after what a watch begins.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion binds a list: NotOlderThan or Exact.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Whether a watch begins with what there is, and a bookmark after it.",
    ),
    ("sinceSeconds", "integer", "How far back the log begins."),
    ("stderr", "boolean", "Whether the standard error is sent."),
    ("stdin", "boolean", "Whether the standard input is read."),
    ("stdout", "boolean", "Whether the standard output is sent."),
    (
        "stream",
        "string",
        "Which stream of the log: All, Stdout or Stderr.",
    ),
    (
        "tailLines",
        "integer",
        "How many lines of the end of the log are sent.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "For how long a list or watch runs at most.",
    ),
    (
        "timestamps",
        "boolean",
        "Whether each line begins with its time.",
    ),
    ("tty", "boolean", "Whether there is a terminal."),
    ("watch", "boolean", "Whether changes are sent as they come."),
];

/// Returns the query parameters of these names.
pub(super) fn queries(names: &[&'static str]) -> Vec<Parameter> {
    names.iter().map(|name| query(name)).collect()
}

/// Returns the query parameters of a subresource of a kind such as `PodExecOptions`; `None` for the kinds of objects.
pub(super) fn subresource_queries(kind: &str) -> Option<Vec<Parameter>> {
    let known = SUBRESOURCE_QUERIES.iter().find(|(known, _)| *known == kind);
    known.map(|(_, names)| queries(names))
}

/// Returns the query parameter of this name, with its type and description.
pub(super) fn query(name: &'static str) -> Parameter {
    let known = MEANINGS.iter().find(|(known, ..)| *known == name);
    let (_, kind, meaning) = known.copied().unwrap_or((name, "string", ""));
    Parameter {
        name,
        place: "query",
        kind,
        description: meaning.into(),
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
