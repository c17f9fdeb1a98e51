//! What the integration tests stand on: real servers in temporary folders, found programs.

pub(crate) mod etcd;
pub(crate) mod server;
pub(crate) mod tools;
