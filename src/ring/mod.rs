//! The kernel: the lock-minimised structures under the watch cache, checked with loom.
