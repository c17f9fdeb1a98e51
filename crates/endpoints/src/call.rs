//! One request about a resource, with everything that its handler needs.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use ringwatch::budget::Share;
use ringwatch::codec;
use ringwatch_apimachinery::{Error, GroupVersion, User};
use ringwatch_authentication::service_accounts::TokenIssuer;
use ringwatch_authorization::Attributes;
use ringwatch_http::RequestBody;
use ringwatch_observe::open_watches::OpenWatches;
use ringwatch_registry::{RequestContext, Store, Verb};

use super::api_config::{ApiConfig, ApiFeatures};
use super::decode::{self, ExpectedKind};
use super::encoding::{Encoder, EncodingCache, EventEncoder, Tables};
use super::errors::{About, Failure};
use super::forward::Kubelets;
use super::memory_gate::MemoryGate;
use super::metrics::{LongRunning, WatchCounts};
use super::negotiation::{self, ObjectForm, Output, TableForm};
use super::params::{FieldValidation, ListParams, Query, WriteParams, manager_name, write_options};
use super::patches::Patch;
use super::request_info::RequestInfo;
use super::routes::Routes;

/// The subresources whose storage in kube-apiserver makes no tables.
const SUBRESOURCES_WITHOUT_TABLE: [&str; 3] = ["approval", "ephemeralcontainers", "resize"];

/// The resources of which that is so for the subresource `status`.
const STATUSES_WITHOUT_TABLE: [&str; 3] =
    ["apiservices", "customresourcedefinitions", "resourceclaims"];

/// A request about a resource.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The resources that are served.
    pub(super) routes: &'a Routes,
    /// The verb that is asked for, which the resource or subresource has.
    pub(super) verb: Verb,
    /// The store of the resource.
    pub(super) store: &'a Arc<Store>,
    /// The cache of encoded objects.
    pub(super) encodings: &'a EncodingCache,
    /// Reserves memory for the request's body, and for lists and watches.
    pub(super) memory: &'a MemoryGate,
    /// The addresses and TLS of kubelets.
    pub(super) kubelets: &'a Kubelets,
    /// Issues the tokens of TokenRequests.
    pub(super) token_issuer: Option<&'a TokenIssuer>,
    /// The HTTP method, used by the handlers of proxies and of upgrades; others use the verb.
    pub(super) method: &'a Method,
    /// The parsed path of the request.
    pub(super) info: &'a RequestInfo,
    /// The query parameters.
    pub(super) query: &'a Query,
    /// The HTTP headers of the request.
    pub(super) headers: &'a HeaderMap,
    /// The address of the client, or of the last proxy before this server; `None` if it is not known.
    pub(super) address: Option<SocketAddr>,
    /// The user and the time of the request; collects warnings.
    pub(super) context: RequestContext,
    /// True if the answer is indented for people.
    pub(super) pretty: bool,
    /// The feature gates that decide what it may ask for.
    pub(super) features: ApiFeatures,
}

/// The metrics, memory and duration of a watch.
#[derive(Debug)]
pub(super) struct WatchTerms {
    /// Counts the watch as running for as long as it is held.
    pub(super) running: LongRunning,
    /// The watch's share of the memory budget.
    pub(super) share: Share,
    /// The counters of sent events and bytes, labelled by resource.
    pub(super) counts: WatchCounts,
    /// The watches that clients have open, to which it is added.
    pub(super) open: OpenWatches,
    /// The time that the watch runs without `timeoutSeconds`.
    pub(super) default_timeout: std::time::Duration,
}

impl Call<'_> {
    /// Returns the context of a request for the registry, with the field manager that its parameters name.
    pub(super) fn context(
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
        user: User,
        config: &ApiConfig,
    ) -> RequestContext {
        let agent = negotiation::user_agent(headers);
        let manager = manager_name(query.first("fieldManager"), agent);
        let mut context = RequestContext::new(user, manager, config.clock.clone());
        context.authorizer = Some(Arc::clone(&config.authorizer));
        context.verb = info.verb.on_resource().map_or("", |verb| verb.name());
        context.subresource.clone_from(&info.subresource);
        if let Some(options) = write_options(info.verb.on_resource(), query) {
            // Nobody else has set them yet.
            let _ = context.options.set(options);
        }
        context
    }

    /// Checks that the user may do something to what the request is about, besides the request itself.
    ///
    /// # Errors
    /// 403 if the user may not.
    pub(super) async fn check(&self, verb: &str) -> Result<(), Failure> {
        let attributes = Attributes {
            verb,
            ..self.info.attributes(&self.context.user)
        };
        let checked = self.context.check(&attributes).await;
        checked.map_err(|error| self.fail(error))
    }

    /// Returns the namespace; empty for resources that have none.
    pub(super) fn namespace(&self) -> &str {
        if self.store.resource().namespaced {
            &self.info.namespace
        } else {
            ""
        }
    }

    /// Returns the object's name; empty for collections.
    pub(super) fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns the object of the request, for errors.
    pub(super) fn about(&self) -> About<'_> {
        About {
            resource: self.store.resource(),
            name: &self.info.name,
            verb: self.verb,
        }
    }

    /// Translates an error of the registry into the failure that the client sees.
    pub(super) fn fail(&self, error: Error) -> Failure {
        Failure::from_error(&error, self.about())
    }

    /// Negotiates the encoding and form of a response with one object.
    ///
    /// # Errors
    /// 406 when nothing that is accepted can be written.
    pub(super) fn output(&self) -> Result<Output, Failure> {
        let (resource, part) = (&*self.store.resource().plural, &*self.info.subresource);
        let is_whole = SUBRESOURCES_WITHOUT_TABLE.contains(&part)
            || part == "status"
                && STATUSES_WITHOUT_TABLE.contains(&resource)
                && !self.store.resource().is_custom();
        if is_whole {
            return negotiation::negotiate_whole(
                self.headers,
                self.pretty,
                self.produced(negotiation::OBJECT_MEDIA_TYPES),
                self.in_protobuf(),
            );
        }
        self.negotiate(negotiation::OBJECT_MEDIA_TYPES)
    }

    /// Negotiates the encoding and form of a response with a list.
    ///
    /// # Errors
    /// 406 when nothing that is accepted can be written.
    pub(super) fn list_output(&self) -> Result<Output, Failure> {
        self.negotiate(negotiation::LIST_MEDIA_TYPES)
    }

    /// Reads the parameters of a list, a watch or the deletion of a collection.
    ///
    /// # Errors
    /// As [`ListParams::read`].
    pub(super) fn list_params(&self) -> Result<ListParams, Failure> {
        ListParams::read(
            self.query,
            self.store.resource(),
            self.features.sharded_lists,
        )
    }

    fn negotiate(&self, produced: &'static [&'static str]) -> Result<Output, Failure> {
        negotiation::negotiate(
            self.headers,
            self.pretty,
            self.produced(produced),
            self.in_protobuf(),
        )?
        .with_table_options(self.query)
    }

    /// Returns the media types by which the path is known, unless it is that of a custom resource.
    fn produced(&self, types: &'static [&'static str]) -> Option<&'static [&'static str]> {
        (!self.store.resource().is_custom()).then_some(types)
    }

    /// Writes the resource's objects as rows.
    pub(super) fn tables(&self, form: TableForm) -> Tables {
        Tables::new(Arc::clone(self.store), form, self.context.clock.clone())
    }

    /// Encodes the events of a watch.
    pub(super) fn event_encoder(&self, output: Output) -> EventEncoder {
        match output.form {
            ObjectForm::Table(form) => EventEncoder::tables(self.tables(form)),
            ObjectForm::Whole | ObjectForm::Metadata | ObjectForm::MetadataList => {
                EventEncoder::Objects(self.encoder(output))
            }
        }
    }

    /// Encodes the resource's objects.
    pub(super) fn encoder(&self, output: Output) -> Encoder {
        Encoder::new(self.encodings.clone(), Arc::clone(self.store), output)
    }

    /// Returns true if the resource's kind can be encoded in protobuf.
    fn in_protobuf(&self) -> bool {
        let resource = self.store.resource();
        let version = resource.group_version.to_string();
        codec::kind(&version, &resource.kind).is_some()
    }

    /// Reads a body of at most so many bytes.
    ///
    /// # Errors
    /// 413 and 400, as [`decode::read_body`].
    pub(super) async fn read_body(&self, body: RequestBody, most: usize) -> Result<Bytes, Failure> {
        decode::read_body(self.memory, &self.context.user, self.headers, body, most).await
    }

    /// Reads the object in a body: the resource's kind, or that of the subresource.
    ///
    /// # Errors
    /// 415 and 400, as [`super::decode::object`].
    pub(super) fn decode(
        &self,
        content: &[u8],
        group_version: &GroupVersion,
        kind: &str,
        params: &WriteParams,
    ) -> Result<serde_json::Value, Failure> {
        let object = self.decode_again(content, group_version, kind, params)?;
        if let Some(recording) = &self.context.recording {
            recording.request_object(&object);
        }
        Ok(object)
    }

    /// Reads the object in a body that [`Self::decode`] has read before, with the same result. Its warnings are the
    /// same as well, and a warning is told once.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub(super) fn decode_again(
        &self,
        content: &[u8],
        group_version: &GroupVersion,
        kind: &str,
        params: &WriteParams,
    ) -> Result<serde_json::Value, Failure> {
        decode::object(
            self.headers,
            content,
            self.expected(group_version, kind),
            params.field_validation,
            &self.context,
        )
    }

    /// Checks the result of a patch of an existing object.
    ///
    /// # Errors
    /// [`Error::BadRequest`], as [`super::decode::patched`]; else as [`super::decode::check_patched`].
    pub(super) fn check_patched(
        &self,
        object: &mut serde_json::Value,
        patch: &Patch,
        existing: &serde_json::Value,
        validation: FieldValidation,
    ) -> Result<(), Error> {
        let resource = self.store.resource();
        let expected = self.expected(&resource.group_version, &resource.kind);
        let context = &self.context;
        decode::check_patched(object, patch, existing, expected, validation, context)
    }

    /// Returns the kind that a body must have: the resource's, or that of the subresource.
    fn expected<'a>(&'a self, group_version: &'a GroupVersion, kind: &'a str) -> ExpectedKind<'a> {
        let resource = self.store.resource();
        let is_own = (group_version, kind) == (&resource.group_version, resource.kind.as_str());
        ExpectedKind {
            group_version,
            kind,
            strategy: is_own.then_some(&*resource.strategy),
            custom: is_own && resource.is_custom(),
        }
    }
}
