//! Servers that run: their start, their tasks, their announcement and their end.

pub(crate) mod announcement;
pub(crate) mod audit;
pub(crate) mod backend;
pub(crate) mod background;
pub(crate) mod in_process;
pub(crate) mod process;
pub mod serve;
