//! `ringwatch store`: status, snapshots, restoring, checks and compaction of embedded stores.
//!
//! Here belong the commands, and the files that they need. Reading and writing stores and snapshots is the
//! engine's (`ringwatch::storage::backend::embedded::maintenance`), and making snapshots of a store that is served the
//! server's; nothing here knows kinds or requests of the API.
//!
//! A store is a file that one process has open. So every command but `snapshot --kubeconfig`, which asks the server, needs a
//! store that nothing serves. Files come to be under temporary names and get theirs when they are whole and durable.

mod command_line;
mod download;
mod error;
mod new_file;
mod output;
mod progress;
mod run;

pub use command_line::StoreFlags;
pub use error::StoreError;
pub use run::run;
