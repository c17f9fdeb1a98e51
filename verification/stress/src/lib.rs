//! A load on the watch cache, as a test: see `tests/load`. Nothing is here.
