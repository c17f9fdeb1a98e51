//! Translates storage errors into errors of requests.

use ringwatch::storage::StorageError;
use ringwatch_apimachinery::Error;

use crate::Resource;

/// The storage operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreOperation {
    Create,
    Get,
    List,
    Update,
    Delete,
}

impl StoreOperation {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    fn writes_existing(self) -> bool {
        matches!(self, Self::Update | Self::Delete)
    }
}

/// Returns the error of the request for an error of the storage. A rejection by a higher layer is returned unchanged,
/// errors about the object get its name, and the others are passed on.
pub(super) fn to_request_error(
    error: StorageError,
    operation: StoreOperation,
    resource: &Resource,
    name: &str,
) -> Error {
    let qualified = || (resource.qualified_name(), name.to_owned());
    match &error {
        StorageError::KeyNotFound { .. } if operation != StoreOperation::Create => {
            let (resource, name) = qualified();
            Error::NotFound { resource, name }
        }
        StorageError::KeyExists { .. } if operation == StoreOperation::Create => {
            let (resource, name) = qualified();
            Error::AlreadyExists {
                resource,
                name,
                being_deleted: false,
                generated: false,
            }
        }
        StorageError::KeyExists { .. }
        | StorageError::Conflict { .. }
        | StorageError::InvalidObject { .. }
            if operation.writes_existing() =>
        {
            let (resource, name) = qualified();
            Error::Conflict {
                resource,
                name,
                message: error.to_string(),
            }
        }
        StorageError::Unreachable { .. } => unavailable(operation, resource),
        StorageError::Timeout { .. } if operation == StoreOperation::List => {
            unavailable(operation, resource)
        }
        StorageError::Rejected(_) => rejected(error),
        _ => Error::Storage(error),
    }
}

fn unavailable(operation: StoreOperation, resource: &Resource) -> Error {
    Error::ServerTimeout {
        resource: resource.qualified_name(),
        operation: operation.name(),
    }
}

fn rejected(error: StorageError) -> Error {
    let StorageError::Rejected(rejection) = error else {
        return Error::Storage(error);
    };
    match rejection.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::Storage(StorageError::Rejected(other)),
    }
}
