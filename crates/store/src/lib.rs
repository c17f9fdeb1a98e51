//! `ringwatch store`: status, snapshots, restoring, checks and compaction of embedded stores, and copies from and to
//! etcd.
//!
//! Here belong the commands, and the files that they need. Reading and writing stores and snapshots is the engine's
//! (`ringwatch::storage::backend::embedded::maintenance`), as copying is (`ringwatch::storage::backend::copy`), and
//! making snapshots of a store that is served the server's; nothing here knows kinds or requests of the API.
//!
//! An embedded store is a file that one process has open. So every command needs one that nothing serves, unless it
//! asks the server (`--kubeconfig`). Files come to be under temporary names and get theirs when they are whole and
//! durable.

mod command_line;
mod copy_stores;
mod download;
mod error;
mod new_file;
mod output;
mod progress;
mod run;

pub use command_line::StoreFlags;
pub use error::StoreError;
pub use run::run;
