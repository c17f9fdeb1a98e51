//! The composition root: flags, storage, identity, listener, limits, health, metrics, shutdown.
