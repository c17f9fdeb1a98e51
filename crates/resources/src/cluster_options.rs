//! The settings of a cluster on which the rules of built-in kinds depend.

/// The settings of a cluster on which the rules of built-in kinds depend. The default is for tests and tools, which
/// look at the kinds of no cluster.
#[derive(Clone, Copy, Debug)]
pub struct ClusterOptions {
    /// True if containers may be privileged.
    pub allow_privileged: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            allow_privileged: true,
        }
    }
}
