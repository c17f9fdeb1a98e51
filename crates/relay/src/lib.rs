//! The watch cache in front of another Kubernetes API server, the upstream.
//!
//! Here belongs what stands in for `etcd3` where the objects are another server's: for each resource of the upstream a
//! [`UpstreamSource`] of its changes, from which a `Feed` of its own fills the cache, and a [`UpstreamStore`] that asks
//! the upstream itself; and [`Caches`], which begins them as they are asked for. All keep the upstream's resource
//! versions, so that a client may go on at either. [`Front`] answers requests from them and passes the others on.
//! Connections of clients, flags and tasks do not belong here; `ringwatch-server` composes a relay.
//!
//! ```text
//!     Front ----writes, subresources, discovery, whatever has no cache----------+
//!        | reads                                                                |
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
//! reached that version: on a quiet resource only its next bookmark does, up to a minute later. So [`UpstreamSource`]
//! says that its progress cannot be trusted, and reads without a version are the upstream's, which is right by
//! definition.

mod caches;
mod contact;
mod discovery;
mod error;
mod event;
mod frames;
mod front;
mod kinds;
mod list_page;
mod moments;
mod object_head;
mod order;
mod query;
mod refusal;
mod remote;
mod resource;
mod reviews;
mod source;
mod store;
mod stream;
mod upstream;
mod writes;

pub use caches::{Caches, Follower};
pub use error::UpstreamError;
pub use front::{Front, FrontConfig};
pub use resource::ResourceType;
pub use reviews::{ReviewTtls, access_reviews, token_reviews};
pub use source::UpstreamSource;
pub use store::UpstreamStore;
pub use upstream::Upstream;
