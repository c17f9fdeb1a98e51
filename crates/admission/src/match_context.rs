//! The stores and caches in which webhooks and policies look up whether they match a write.

use std::sync::Arc;

use ringwatch::storage::Interface;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_authorization::Authorizer;
use ringwatch_registry::Resource;
use ringwatch_registry::admission::{Operation, Request};
use serde_json::Value;

use super::lookup::find_tree;
use super::matching::Criteria;
use super::served_types::ServedTypes;

/// The stores and caches that matching needs.
#[derive(Clone, Debug)]
pub struct MatchContext {
    /// The storage of Namespaces.
    pub namespaces: Arc<dyn Interface>,
    /// The served versions of each resource.
    pub types: Arc<ServedTypes>,
    /// The authorizer behind the variable `authorizer` of expressions.
    pub authorizer: Arc<Authorizer>,
}

/// The namespace of a request, looked up when it is first needed.
pub(super) struct RequestNamespace<'a> {
    match_context: &'a MatchContext,
    request: &'a Request<'a>,
    found: Option<Value>,
}

impl MatchContext {
    pub(super) fn namespace_of<'a>(&'a self, request: &'a Request<'a>) -> RequestNamespace<'a> {
        RequestNamespace {
            match_context: self,
            request,
            found: None,
        }
    }

    async fn namespace(&self, name: &str) -> Result<Value, Error> {
        let key = format!("/namespaces/{name}");
        let found = find_tree(&*self.namespaces, &key).await?;
        found.ok_or_else(|| Error::not_found("namespaces", name))
    }
}

impl RequestNamespace<'_> {
    /// Returns the resource as which the request matches the criteria, selectors included; `None` if it does not match.
    ///
    /// # Errors
    /// An error of the store if the namespace cannot be looked up.
    pub(super) async fn matched(
        &mut self,
        criteria: &Criteria,
        object: &Value,
    ) -> Result<Option<Arc<Resource>>, Error> {
        let Some(resource) = criteria.matched(self.request, &self.match_context.types) else {
            return Ok(None);
        };
        if !criteria.selects(object, self.request.old) || !self.selected(criteria, object).await? {
            return Ok(None);
        }
        Ok(Some(resource))
    }

    async fn selected(&mut self, criteria: &Criteria, object: &Value) -> Result<bool, Error> {
        let selector = &criteria.namespaces;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_written = matches!(
            self.request.operation,
            Operation::Create | Operation::Update
        );
        if self.request.is_of("", "namespaces") && is_written {
            return Ok(selector.matches(accessor::labels(object).as_labels()));
        }
        // What lies in no namespace is never spared.
        let namespace = self.object().await?;
        Ok(namespace
            .is_none_or(|namespace| selector.matches(accessor::labels(namespace).as_labels())))
    }

    /// Returns the namespace as an object; `None` if there is none in the request.
    ///
    /// # Errors
    /// An error of the store if it cannot be looked up.
    pub(super) async fn object(&mut self) -> Result<Option<&Value>, Error> {
        let name = namespace_name(self.request);
        if name.is_empty() {
            return Ok(None);
        }
        if self.found.is_none() {
            self.found = Some(self.match_context.namespace(name).await?);
        }
        Ok(self.found.as_ref())
    }
}

/// Returns the name of the request's namespace, which for a write of a Namespace itself is its name, as in
/// kube-apiserver.
pub(super) fn namespace_name<'a>(request: &Request<'a>) -> &'a str {
    let resource = request.resource;
    let is_namespace = resource.plural == "namespaces" && resource.group_version.group.is_empty();
    if is_namespace && request.operation != Operation::Create {
        request.name
    } else {
        request.namespace
    }
}
