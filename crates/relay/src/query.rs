//! The query of a list or watch.

use form_urlencoded::byte_serialize;
use ringwatch::meta::VersionMatch;
use ringwatch::storage::ListOptions;

/// The parameters of a request, in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(String);

impl Query {
    /// Creates a query without parameters.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(byte_serialize(value.to_string().as_bytes()));
        self
    }

    /// Adds a parameter if there is a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Creates the query of a list.
    pub(crate) fn list(options: &ListOptions, name: Option<&str>) -> Self {
        let predicate = &options.predicate;
        let token = &predicate.continue_token;
        Self::selection(options, name)
            .with_some("limit", (predicate.limit > 0).then_some(predicate.limit))
            .with_some("continue", (!token.is_empty()).then_some(token))
    }

    /// Creates the query of a watch.
    pub(crate) fn watch(options: &ListOptions, name: Option<&str>) -> Self {
        let bookmarks = options.predicate.allow_watch_bookmarks || options.progress_notify;
        Self::selection(options, name)
            .with("watch", true)
            .with_some("allowWatchBookmarks", bookmarks.then_some(true))
            .with_some("sendInitialEvents", options.send_initial_events)
    }

    fn selection(options: &ListOptions, name: Option<&str>) -> Self {
        let (label, field) = (&options.predicate.label, &options.predicate.field);
        let field = match name {
            Some(name) => field.clone().and_exact("metadata.name", name),
            None => field.clone(),
        };
        let version_match = options.version_match.map(|it| match it {
            VersionMatch::Exact => "Exact",
            VersionMatch::NotOlderThan => "NotOlderThan",
        });
        Self::new()
            .with_some("labelSelector", (!label.is_empty()).then_some(label))
            .with_some("fieldSelector", (!field.is_empty()).then_some(field))
            .with_some("resourceVersion", options.resource_version)
            .with_some("resourceVersionMatch", version_match)
    }

    /// Appends the query to a path.
    pub(crate) fn after(self, path: &str) -> String {
        match self.0.as_str() {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwatch::meta::{FieldSelector, LabelSelector, ResourceVersion};
    use ringwatch::storage::SelectionPredicate;

    #[test]
    fn options_become_parameters() {
        let mut options = ListOptions {
            resource_version: Some(ResourceVersion(7)),
            version_match: Some(VersionMatch::Exact),
            predicate: SelectionPredicate {
                label: LabelSelector::parse("a in (b, c)").expect("a selector"),
                field: FieldSelector::parse("x=y").expect("a selector"),
                limit: 5,
                continue_token: "t".to_owned(),
                ..SelectionPredicate::default()
            },
            ..ListOptions::default()
        };
        assert_eq!(
            Query::list(&options, Some("n")).after("/p"),
            "/p?labelSelector=a+in+%28b%2Cc%29&fieldSelector=metadata.name%3Dn%2Cx%3Dy&resourceVersion=7&resourceVersionMatch=Exact&limit=5&continue=t"
        );
        options.version_match = None;
        options.predicate = SelectionPredicate {
            allow_watch_bookmarks: true,
            ..SelectionPredicate::default()
        };
        assert_eq!(
            Query::watch(&options, None).after("/p"),
            "/p?resourceVersion=7&watch=true&allowWatchBookmarks=true"
        );
        assert_eq!(Query::new().after("/p"), "/p");
    }
}
