//! Prepares and checks every new object: kube-apiserver's BeforeCreate.

use ringwatch_apimachinery::accessor::text;
use ringwatch_apimachinery::validation::{validate_kube_finalizers, validate_object_meta};
use ringwatch_apimachinery::{Error, FieldError};
use serde_json::Value;

use super::Store;
use crate::RequestContext;
use crate::resource::qualified;

impl Store {
    /// Prepares, checks and canonicalizes a new object that has its name and its system fields. `of_guard` are the
    /// errors that the guard has found, which come first.
    ///
    /// # Errors
    /// [`Error::Invalid`] with all that is wrong.
    pub(super) fn before_create(
        &self,
        context: &RequestContext,
        object: &mut Value,
        of_guard: Vec<FieldError>,
    ) -> Result<(), Error> {
        let strategy = self.strategy();
        strategy.prepare_for_create(context, object);
        self.check_kind(object)?;
        let mut of_metadata =
            validate_object_meta(object, self.resource.namespaced, strategy.name_rule());
        of_metadata.extend(self.wrong_finalizers(object));
        let others = strategy.validate(object);
        if strategy.judges_metadata_last() && !others.is_empty() {
            of_metadata.clear();
        }
        let errors = [of_guard, of_metadata, others].concat();
        if !errors.is_empty() {
            return Err(self.invalid(object, errors));
        }
        for warning in strategy.warnings_on_create(object) {
            context.warn(warning);
        }
        strategy.canonicalize(object);
        Ok(())
    }

    /// Refuses a custom object of another kind or version than its definition has, before any other validation. For
    /// built-in resources the decoder has refused those.
    ///
    /// # Errors
    /// [`Error::Invalid`], about the type that the object says it has.
    pub(super) fn check_kind(&self, object: &Value) -> Result<(), Error> {
        let resource = &self.resource;
        if !resource.is_custom() {
            return Ok(());
        }
        let wanted = [
            ("kind", resource.kind.clone()),
            ("apiVersion", resource.group_version.to_string()),
        ];
        let is_wrong = |(name, wanted): &(&str, String)| object[*name] != **wanted;
        let errors: Vec<FieldError> = wanted
            .into_iter()
            .filter(is_wrong)
            .map(|(name, wanted)| {
                FieldError::invalid(name, &object[name], format!("must be {wanted}"))
            })
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        let said = |name: &str| object[name].as_str().unwrap_or_default();
        let group = said("apiVersion").split_once('/').map_or("", |it| it.0);
        Err(Error::Invalid {
            kind: qualified(said("kind"), group),
            name: text(object, "name").to_owned(),
            errors,
        })
    }

    /// Returns the errors in the finalizers of an object whose kind may not have any.
    pub(super) fn wrong_finalizers(&self, object: &Value) -> Vec<FieldError> {
        if self.resource.takes_any_finalizer() {
            return Vec::new();
        }
        validate_kube_finalizers(object)
    }

    /// Returns the error that an object is not valid.
    pub(super) fn invalid(&self, object: &Value, errors: Vec<FieldError>) -> Error {
        Error::Invalid {
            kind: self.resource.validated_kind(),
            name: text(object, "name").to_owned(),
            errors: FieldError::as_told(errors),
        }
    }
}
