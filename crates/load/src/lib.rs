//! `ringwatch load`: what watches, lists and writes cost any Kubernetes API server, and whether it
//! gives every watcher every event once and in order.
//!
//! ```text
//!  flags -> target (which server, and may it be loaded) -> workspace (a namespace of its own)
//!        -> scenario --- fleet ----> watchers, on threads of their own
//!              |     \-- writers --> writes, at their due times
//!              |      \- measure --> histograms; processor time of server and client
//!              |       \ floor ----> the same bytes again, from a thread that does nothing else
//!              v
//!           outcome -> table, JSON, report page; saved ones side by side
//! ```
//!
//! It is a pure client of any server: nothing belongs here that knows ringwatch's own server, or that a server needs.
//! A write's time is the one at which it was due, so a stall is charged to every event that it delayed. Whatever
//! else goes well, a run that lost or repeated one event scores zero.
#![allow(
    clippy::disallowed_methods,
    reason = "the load generator is a composition root of its own: it spawns its clients and needs real time"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and nanoseconds are far below 2^52"
)]

mod client;
mod command_line;
mod compare;
mod context;
mod custom_resource;
mod error;
mod flags;
mod fleet;
mod floor;
mod measure;
mod outcome;
mod output;
mod payload;
mod remote;
mod report;
mod requests;
mod run;
mod scenario;
mod schedule;
mod shell_command;
mod show;
mod target;
mod time;
mod units;
mod verify;
mod workspace;
mod writer;

pub use client::{Connect, HttpVersion, Transport};
pub use command_line::LoadFlags;
pub use remote::{Pieces, Remote, RemoteError};
pub use run::run;
pub use target::RemoteFlags;
pub use verify::{HistoryVerdict, SimulatedClients};
