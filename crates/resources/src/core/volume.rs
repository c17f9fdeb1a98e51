//! Volumes of pods, PersistentVolumes and PersistentVolumeClaims.

pub(crate) mod claim_metadata;
pub(crate) mod claim_validation;
pub(crate) mod data_source;
pub(crate) mod defaults;
pub(crate) mod drivers;
mod files;
mod owner;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_validation;
pub(crate) mod table;
pub(crate) mod validation;
