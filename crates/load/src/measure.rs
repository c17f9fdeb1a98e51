//! Measurements: latencies, processor time and memory of the server, and how busy and how late the client itself was,
//! without which no figure can be believed.

mod lag;
mod latency;
mod observation;
mod process;
mod server;

pub(crate) use lag::watch as watch_lag;
pub(crate) use latency::{Latencies, Recorder};
pub(crate) use observation::{Gauges, Observation, observe};
pub(crate) use process::{Usage, cpu, thread, thread_cpu, too_busy};
pub(crate) use server::Probe;
