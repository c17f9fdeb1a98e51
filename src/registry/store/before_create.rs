//! What every new object goes through: kube-apiserver's BeforeCreate.

use serde_json::Value;

use super::Store;
use crate::registry::accessor::text;
use crate::registry::validation::validate_object_meta;
use crate::registry::{Error, FieldError, RequestContext};

impl Store {
    /// Prepares, checks and canonicalizes a new object that has its name and its system fields.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for a wrong namespace, [`Error::Invalid`] with all that is wrong.
    pub(super) fn before_create(
        &self,
        context: &RequestContext,
        namespace: &str,
        object: &mut Value,
    ) -> Result<(), Error> {
        self.ensure_namespace(namespace, object)?;
        let strategy = self.strategy();
        strategy.prepare_for_create(context, object);
        let mut errors =
            validate_object_meta(object, self.resource.namespaced, strategy.name_rule());
        errors.extend(strategy.validate(object));
        if !errors.is_empty() {
            strategy.release(object);
            return Err(self.invalid(object, errors));
        }
        for warning in strategy.warnings_on_create(object) {
            context.warn(warning);
        }
        strategy.canonicalize(object);
        Ok(())
    }

    /// The error that an object is not valid.
    pub(super) fn invalid(&self, object: &Value, errors: Vec<FieldError>) -> Error {
        Error::Invalid {
            kind: self.resource.qualified_kind(),
            name: text(object, "name").to_owned(),
            errors,
        }
    }
}
