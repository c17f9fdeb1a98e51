//! What several test modules need to run.

pub(crate) mod etcd;
