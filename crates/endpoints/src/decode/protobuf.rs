//! Decodes the protobuf bodies of requests, in Kubernetes' envelope (`runtime.Unknown`).

use ringwatch::codec::{self, DecodeError};

use super::{DecodedBody, ExpectedKind, cannot_be_handled, check_type};
use crate::errors::Failure;
use crate::negotiation::OBJECT_MEDIA_TYPES;

/// Reads any object. If it does not tell its version and kind, they are `default`.
pub(super) fn read(content: &[u8], default: (&str, &str)) -> Result<DecodedBody, DecodeError> {
    let value = codec::decode(content, default)?;
    Ok(DecodedBody {
        value,
        complaints: Vec::new(),
        repeated: Vec::new(),
    })
}

/// Reads an object of the expected kind.
///
/// # Errors
/// 415 for a kind that has no protobuf, 400 for everything that is wrong with the content.
pub(super) fn object(
    content: &[u8],
    expected: ExpectedKind<'_>,
    unrecognized: &dyn Fn(&str) -> Failure,
) -> Result<DecodedBody, Failure> {
    let version = expected.group_version.to_string();
    if codec::kind(&version, expected.kind).is_none() {
        return Err(Failure::unknown_format(OBJECT_MEDIA_TYPES));
    }
    read(content, (&version, expected.kind)).map_err(|error| match error {
        DecodeError::Envelope(message) => unrecognized(&message),
        DecodeError::UnknownKind { api_version, kind } => {
            let mismatch = check_type(&kind, &api_version, expected);
            match mismatch {
                Ok(()) => Failure::unknown_format(OBJECT_MEDIA_TYPES),
                Err(wrong) => wrong.refused(&kind, &api_version, expected),
            }
        }
        DecodeError::Object {
            api_version,
            kind,
            message,
        } => cannot_be_handled(&kind, &api_version, expected, &message),
    })
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::GroupVersion;

    use super::*;

    /// A ConfigMap `pb1` with one entry, in protobuf.
    const CONFIG_MAP: &[u8] =
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0f\x0a\x05\x0a\x03pb1\x12\x06\x0a\x01k\x12\x01v";

    fn decode(content: &[u8], kind: &str) -> Result<DecodedBody, Failure> {
        let core = GroupVersion::new("", "v1");
        let expected = ExpectedKind {
            group_version: &core,
            kind,
            strategy: None,
            custom: false,
        };
        object(content, expected, &|error| {
            Failure::bad_request(format!("unrecognized: {error}"))
        })
    }

    fn message(content: &[u8], kind: &str) -> String {
        let failure = decode(content, kind).expect_err("a failure");
        failure.status().message.clone()
    }

    #[test]
    fn objects_are_read() {
        let decoded = decode(CONFIG_MAP, "ConfigMap").expect("a ConfigMap");
        assert_eq!(decoded.value["data"]["k"], "v");
        assert_eq!(decoded.value["metadata"]["name"], "pb1");
    }

    #[test]
    fn broken_bytes_are_told_in_gos_words() {
        let cut = &CONFIG_MAP[..CONFIG_MAP.len() - 3];
        assert_eq!(message(cut, "ConfigMap"), "unrecognized: unexpected EOF");
        let mut broken = CONFIG_MAP.to_vec();
        broken[24] = 0x7f;
        assert_eq!(
            message(&broken, "ConfigMap"),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF"
        );
    }

    #[test]
    fn kinds_without_protobuf_are_an_unknown_format() {
        assert!(message(CONFIG_MAP, "Widget").starts_with("the body of the request was in an unk"));
        let unknown = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Widget\x12\x00";
        assert!(message(unknown, "ConfigMap").contains("no kind \"Widget\" is registered"));
    }
}
