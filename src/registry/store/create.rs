//! Creating objects.

use std::sync::Arc;

use serde_json::Value;

use super::incoming::{fill_system_fields, wipe_system_fields};
use super::interpret::{Operation, interpret};
use super::{Store, dry_run};
use crate::meta::Object;
use crate::registry::accessor::{is_terminating, remove, set, text};
use crate::registry::names::generate_name;
use crate::registry::{CreateOptions, Error, RequestContext};
use crate::storage::{GetOptions, StorageError};

/// How many names are tried for an object with a `generateName`.
const GENERATED_NAME_ATTEMPTS_MAX: u32 = 8;

impl Store {
    /// Creates an object in `namespace` (empty if the resource has none).
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Forbidden`] for the namespace, [`Error::Invalid`],
    /// [`Error::AlreadyExists`], [`Error::Storage`] with [`StorageError::VersionOnCreate`].
    pub async fn create(
        &self,
        context: &RequestContext,
        namespace: &str,
        object: Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        let mut object = self.incoming(context, object)?;
        wipe_system_fields(&mut object);
        self.ensure_namespace(namespace, &mut object)?;
        self.track_fields(context, None, &mut object);
        self.admit_create(namespace, &object).await?;
        match self
            .create_named(context, namespace, &object, options)
            .await
        {
            // What changed the fields is worth less than the fields.
            Err(Error::Storage(StorageError::TooLarge { .. })) => {
                remove(&mut object, "managedFields");
                self.create_named(context, namespace, &object, options)
                    .await
            }
            result => result,
        }
    }

    /// Creates an object under its name, or under generated ones until one is free.
    async fn create_named(
        &self,
        context: &RequestContext,
        namespace: &str,
        object: &Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        let base = text(object, "generateName");
        let generates = text(object, "name").is_empty() && !base.is_empty();
        let attempts_max = if generates {
            GENERATED_NAME_ATTEMPTS_MAX
        } else {
            1
        };
        let mut attempts = 1;
        loop {
            let mut object = object.clone();
            fill_system_fields(context, &mut object);
            if generates {
                set(&mut object, "name", generate_name(base));
            }
            let result = self.create_once(context, namespace, object, options).await;
            if attempts == attempts_max || !matches!(result, Err(Error::AlreadyExists { .. })) {
                return result;
            }
            attempts += 1;
        }
    }

    async fn create_once(
        &self,
        context: &RequestContext,
        namespace: &str,
        mut object: Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        self.before_create(context, namespace, &mut object)?;
        let result = self.store_new(namespace, &object, options).await;
        if options.dry_run || result.as_ref().is_err_and(is_certain) {
            self.strategy().release(&object);
        }
        let created = result?;
        self.after_create(&created, options.dry_run);
        Ok(created)
    }

    async fn store_new(
        &self,
        namespace: &str,
        object: &Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        let name = text(object, "name");
        let key = self.key(namespace, name)?;
        let result = if options.dry_run {
            dry_run::create(&*self.storage, &key, object).await
        } else {
            let ttl = self.strategy().ttl_seconds(object);
            self.storage.create(&key, object, ttl).await
        };
        match result {
            Ok(created) => Ok(created),
            Err(error) => Err(self.interpret_create(error, &key, object).await),
        }
    }

    /// Says why an object could not be created; if there is one, also whether it is leaving.
    pub(super) async fn interpret_create(
        &self,
        error: StorageError,
        key: &str,
        object: &Value,
    ) -> Error {
        let name = text(object, "name");
        let mut error = interpret(error, Operation::Create, &self.resource, name);
        if let Error::AlreadyExists {
            being_deleted,
            generated,
            ..
        } = &mut error
        {
            *generated = !text(object, "generateName").is_empty();
            let existing = self.storage.get(key, GetOptions::default()).await;
            let existing = existing.ok().and_then(|existing| existing.to_value().ok());
            *being_deleted = existing.is_some_and(|it| is_terminating(&it));
        }
        error
    }

    pub(super) fn after_create(&self, object: &Object, dry_run: bool) {
        if let Some(after) = &self.after {
            after.after_create(object, dry_run);
        }
    }
}

/// Whether an error leaves no doubt that nothing was written.
pub(super) fn is_certain(error: &Error) -> bool {
    !matches!(
        error,
        Error::ServerTimeout { .. }
            | Error::Storage(StorageError::Timeout { .. } | StorageError::Internal { .. })
    )
}
