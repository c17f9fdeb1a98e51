//! The settings by which aggregated API servers authenticate the requests that this server proxies to them.

/// The entries that one server publishes.
#[derive(Clone, Debug, Default)]
pub struct ExtensionAuthentication {
    /// Certificate authorities in PEM, by their keys in the ConfigMap.
    pub authorities: Vec<(&'static str, String)>,
    /// Lists of names, which are written as JSON, by their keys in the ConfigMap.
    pub lists: Vec<(&'static str, Vec<String>)>,
}
