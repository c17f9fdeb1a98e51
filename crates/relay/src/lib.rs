//! The watch cache in front of another Kubernetes API server, the upstream.
//!
//! Here belongs what stands in for `etcd3` where the objects are another server's: for each resource of the upstream a
//! [`Source`] of its changes, from which a `Feed` of its own fills the cache, and a [`Store`] that asks the upstream
//! itself; and [`Caches`], which begins them as they are asked for. All keep the upstream's resource versions, so that a client
//! may go on at either. Serving clients does not belong here, nor does who may see what.
//!
//! ```text
//!   CacheDelegator ----reads that the cache cannot answer, writes----> Store ---+
//!        |                                                                      +--> Upstream --HTTP--> API server
//!     Cacher <---- Reflector <---- Feed, one for each resource <---- Source ----+
//! ```
//!
//! # Why each resource has a feed of its own
//!
//! A feed has one revision, up to which it knows every change of every type. The upstream gives a stream for each
//! resource, each in its own order and as late as it likes, and the versions of two resources may even come from two
//! stores. A watch of one resource shows how far that one is and nothing about others.
//!
//! # Why consistent reads go to the upstream
//!
//! The current version of the upstream is found by one small list, but nothing makes a watch say at once that it has
//! reached that version: on a quiet resource only its next bookmark does, up to a minute later. So [`Source`] says that
//! its progress cannot be trusted, and reads without a version are the upstream's, which is right by definition.

mod caches;
mod error;
mod event;
mod frames;
mod list_page;
mod moments;
mod object_head;
mod order;
mod query;
mod refusal;
mod remote;
mod resource;
mod source;
mod store;
mod stream;
mod upstream;
mod writes;

pub use caches::{Caches, Follower};
pub use error::UpstreamError;
pub use resource::ResourceType;
pub use source::Source;
pub use store::Store;
pub use upstream::Upstream;
