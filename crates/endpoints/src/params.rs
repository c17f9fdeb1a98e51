//! Parses and validates the query parameters of requests.

mod delete_options;
mod list_options;
mod query;
pub(crate) mod write_options;

pub(super) use delete_options::{SCHEME, read_delete_options};
pub(super) use list_options::ListParams;
pub(super) use query::{Query, is_true};
pub(super) use write_options::{
    FieldValidation, WriteKind, WriteParams, manager_name, write_options,
};
