//! API Priority and Fairness: FlowSchemas file requests under priority levels, and within a level each flow, mostly a
//! user, has a queue of its own.
//!
//! The controller that follows FlowSchemas and PriorityLevelConfigurations does not belong here, but to
//! `ringwatch-controllers`; their validation is in `ringwatch-resources`.

mod dangling;
pub mod fairness;
mod flow_table;
mod level;
mod schema;

pub use self::fairness::Fairness;
pub use self::fairness::watches::Watches;

pub use dangling::with_dangling_condition;
pub use flow_table::{Flow, FlowTable};
pub use level::{Level, Limits};
pub use schema::Schema;
