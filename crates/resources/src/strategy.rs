//! The strategy of most kinds, put together from switches, and the rows by which a group lists its kinds.

pub(crate) mod generic;
pub(crate) mod kind_hooks;
pub(crate) mod row;
pub(crate) mod stored;

#[cfg(test)]
mod tests;
