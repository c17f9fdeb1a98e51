//! Custom resources: types that clients define while the server runs.

pub mod schema;
