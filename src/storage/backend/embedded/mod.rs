//! The embedded backend: etcd's data model in this process.
