//! `ringwatch relay`: the watch cache in front of another API server, built and run as a server is.

mod build;
mod paths;
mod run;

pub use self::run::run;
