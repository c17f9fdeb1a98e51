//! The embedded backend through its interface: durable and in memory.

mod files;
mod formats;
mod full_file_system;
mod leases;
mod model;
pub(crate) mod opened;
mod requests;
mod watches;
