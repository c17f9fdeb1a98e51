//! The scenarios, one file each. Each sets up its objects in the workspace, is measured in several runs, and checks
//! that everything came.

mod baseline;
pub(crate) mod burst;
mod delivery;
pub(crate) mod fanout;
mod floor_runs;
pub(crate) mod get;
mod growth;
pub(crate) mod idle;
pub(crate) mod list;
mod parameters;
mod phases;
mod receivers;
pub(crate) mod renew;
mod request_floor;
pub(crate) mod restart;
pub(crate) mod resume;
pub(crate) mod selective;
pub(crate) mod slow;
pub(crate) mod storm;
pub(crate) mod write;

pub(crate) use delivery::DEFAULT_LENGTH;
