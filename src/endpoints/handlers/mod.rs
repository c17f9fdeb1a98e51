//! What each verb does, one file a verb.

mod apply;
mod binding;
mod connect;
mod create;
mod delete;
mod delete_collection;
mod eviction;
mod get;
mod list;
mod patch;
mod pod_container;
mod pod_log;
mod pod_stream;
mod proxy;
mod relaying;
mod reviews;
mod scale;
mod update;
mod watch;

pub(super) use apply::{apply, is_apply};
pub(super) use binding::bind;
pub(super) use create::create;
pub(super) use delete::delete;
pub(super) use delete_collection::delete_collection;
pub(super) use eviction::evict;
pub(super) use get::get;
pub(super) use list::list;
pub(super) use patch::patch;
pub(super) use pod_log::pod_log;
pub(super) use pod_stream::pod_stream;
pub(super) use proxy::proxy;
pub(super) use reviews::{Review, review};
pub(super) use scale::{get_scale, patch_scale, update_scale};
pub(super) use update::update;
pub(super) use watch::watch;
