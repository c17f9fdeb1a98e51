//! A simulation of the whole server from one seed: clock, schedule, network, disk or etcd, and clients of all kinds.
//!
//! ```text
//!  clients of `load verify` --- network of turmoil, with resets and short writes --- server, as it is
//!          |                                                                           |
//!       checks of what they were told                 embedded store on a disk that fails and loses power,
//!                                                     or a cluster of etcd whose leaders change and members lag
//! ```
//!
//! A [`Plan`] follows from its seed: which store, which protocol, how long, and which faults come when. [`run`] runs
//! it in one thread, in which nothing is random but by the seed: time passes only when everybody waits, and the
//! system's random numbers come from the seed too. So a run with the same seed is the same run, to the byte.
//! [`shrink`] leaves out faults as long as it still fails.
//!
//! # What is not simulated
//!
//! TLS, since its library takes random numbers from the system by itself; threads, since there is one (the models of
//! loom and shuttle have those); etcd's gRPC, since the simulated cluster is a
//! [`Backend`]; and files that the server follows, which tokio reads in other threads, so it is given none.
//!
//! [`Backend`]: ringwatch::storage::backend::Backend
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a composition root of its own, in which tokio's time is simulated"
)]

mod damage;
mod etcd;
mod network;
mod plan;
mod processes;
mod run;
mod server;
mod shrink;
mod store;

pub use plan::Plan;
pub use processes::Processes;
pub use run::{Outcome, run};
pub use shrink::shrink;
