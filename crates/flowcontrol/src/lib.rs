//! API Priority and Fairness: FlowSchemas file requests under priority levels, and within a level each flow, mostly a
//! user, has a queue of its own. Users also take turns at what only a few requests can have at a time, such as a thread
//! for large work.
//!
//! The controller that follows FlowSchemas and PriorityLevelConfigurations does not belong here, but to
//! `ringwatch-controllers`; their validation is in `ringwatch-resources`.

mod dangling;
pub mod fairness;
mod flow_table;
mod level;
mod schema;
pub mod turns;

pub use self::fairness::Fairness;
pub use self::fairness::watches::UserWatches;

pub use dangling::with_dangling_condition;
pub use flow_table::{Flow, FlowTable};
pub use level::{Level, Limits};
pub use ringwatch_apimachinery::{Lane, Requester};
pub use schema::Schema;
