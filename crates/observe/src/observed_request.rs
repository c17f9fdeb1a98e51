//! The facts of requests by which observers tell them apart.

use std::fmt::Debug;

/// A request whose facts are known.
pub trait ObservedRequest: Send + Sync + Debug {
    /// Returns the verb.
    fn verb(&self) -> &str;

    /// Returns the path, without parameters.
    fn path(&self) -> &str;

    /// Returns the resource; `None` if the request is not about one.
    fn resource(&self) -> Option<ObservedResource<'_>>;
}

/// The resource of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedResource<'a> {
    /// The group; empty for the core.
    pub group: &'a str,
    /// The plural resource.
    pub resource: &'a str,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A request with these facts.
    #[derive(Debug)]
    pub(crate) struct PlainRequest {
        pub(crate) verb: &'static str,
        pub(crate) path: &'static str,
        pub(crate) resource: Option<ObservedResource<'static>>,
    }

    impl ObservedRequest for PlainRequest {
        fn verb(&self) -> &str {
            self.verb
        }

        fn path(&self) -> &str {
            self.path
        }

        fn resource(&self) -> Option<ObservedResource<'_>> {
            self.resource
        }
    }
}
