//! Bodies in YAML.

use ringwatch_apimachinery::yaml;

use super::strict::DecodedBody;

/// Maximum number of values of a document; the largest bodies have fewer.
const NODES_MAX: usize = 1_000_000;

/// Reads the first YAML document of a body, with the keys that one map has twice. Fails with the parser's message.
pub(super) fn read(content: &[u8]) -> Result<DecodedBody, String> {
    let yaml::Document { value, repeated } = yaml::read(content, NODES_MAX)?;
    Ok(DecodedBody {
        value,
        complaints: Vec::new(),
        repeated,
    })
}
