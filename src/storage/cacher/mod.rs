//! The watch cache in front of a store.
