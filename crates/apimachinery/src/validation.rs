//! Validation of object metadata, with Kubernetes' rules and error messages, which reach clients.

pub mod formats;
mod object_meta;
mod object_meta_update;

pub use object_meta::{
    FIELD_MANAGER_BYTES_MAX, annotations_too_long, validate_annotations, validate_field_manager,
    validate_kube_finalizers, validate_labels, validate_names_too, validate_object_meta,
};
pub use object_meta_update::validate_object_meta_update;
