//! Kubernetes' storage semantics over any backend.
