//! The envelope of a stored value: the encrypted seed of its key, and the data.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use bytes::Bytes;
use prost::Message;

use super::messages::{EncryptResponse, EncryptedObject};

/// Maximum number of bytes of an identifier of a key.
const KEY_ID_BYTES_MAX: usize = 1 << 10;
/// Maximum number of bytes of an encrypted seed.
const SOURCE_BYTES_MAX: usize = 1 << 10;
/// Maximum number of bytes of the keys and values of annotations together.
const ANNOTATION_BYTES_MAX: usize = 32 << 10;

/// The SHA-256 of an encrypted source, by which it is remembered.
pub(super) type Digest = [u8; 32];

/// A seed, or a key, as the plugin has encrypted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncryptedSource {
    pub(super) kind: SourceKind,
    pub(super) ciphertext: Bytes,
    /// The identifier of the plugin's key.
    pub(super) key_id: String,
    /// Values that the plugin gets again when it decrypts.
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

/// The meaning of a decrypted source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// The key of AES-GCM itself, as Kubernetes wrote until 1.28.
    Key,
    /// A seed, of which the key of each value is derived.
    Seed,
}

impl EncryptedSource {
    /// Checks an identifier of a key.
    ///
    /// # Errors
    /// An explanation.
    pub(super) fn check_key_id(key_id: &str) -> Result<(), String> {
        match key_id.len() {
            0 => Err("keyID is empty".to_owned()),
            bytes if bytes > KEY_ID_BYTES_MAX => Err(format!(
                "keyID is {bytes} bytes, which exceeds the max size of {KEY_ID_BYTES_MAX}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the seed that the plugin has encrypted.
    ///
    /// # Errors
    /// An explanation of why the answer cannot be stored.
    pub(super) fn from_answer(answer: EncryptResponse) -> Result<Self, String> {
        let source = Self {
            kind: SourceKind::Seed,
            ciphertext: answer.ciphertext,
            key_id: answer.key_id,
            annotations: answer.annotations,
        };
        source.check()?;
        Ok(source)
    }

    /// Returns the digest of all parts, each of which is preceded by its length.
    pub(super) fn digest(&self) -> Digest {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut add = |part: &[u8]| {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        };
        add(match self.kind {
            SourceKind::Key => b"key",
            SourceKind::Seed => b"seed",
        });
        add(&self.ciphertext);
        add(self.key_id.as_bytes());
        for (key, value) in &self.annotations {
            add(key.as_bytes());
            add(value);
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        bytes
    }

    /// Ported from `ValidateEncryptedObject`.
    fn check(&self) -> Result<(), String> {
        let bytes = self.ciphertext.len();
        if bytes == 0 || bytes > SOURCE_BYTES_MAX {
            return Err(format!(
                "failed to validate encrypted DEK source: it has {bytes} bytes instead of 1 to {SOURCE_BYTES_MAX}"
            ));
        }
        Self::check_key_id(&self.key_id)
            .map_err(|why| format!("failed to validate key id: {why}"))?;
        let wrong = |why: String| Err(format!("failed to validate annotations: {why}"));
        if let Some(key) = self.annotations.keys().find(|key| !is_domain(key)) {
            return wrong(format!("{key:?} is not a fully qualified domain name"));
        }
        let pairs = self.annotations.iter();
        let bytes: usize = pairs.map(|(key, value)| key.len() + value.len()).sum();
        if bytes > ANNOTATION_BYTES_MAX {
            return wrong(format!(
                "total size of annotations is {bytes}, which exceeds the max size of {ANNOTATION_BYTES_MAX}"
            ));
        }
        Ok(())
    }
}

/// Returns true for a domain name of at least two labels, such as `version.example.com`.
fn is_domain(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let labels: Vec<&str> = name.split('.').collect();
    let is_label = |label: &&str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|byte| inner(*byte))
            && bytes.last().is_some_and(|byte| inner(*byte))
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    };
    labels.len() >= 2 && name.len() <= 253 && labels.iter().all(is_label)
}

/// Wraps encrypted data.
pub(super) fn wrap(source: &EncryptedSource, encrypted_data: Vec<u8>) -> Vec<u8> {
    let object = EncryptedObject {
        encrypted_data: encrypted_data.into(),
        key_id: source.key_id.clone(),
        encrypted_dek_source: source.ciphertext.clone(),
        annotations: source.annotations.clone(),
        encrypted_dek_source_type: match source.kind {
            SourceKind::Key => 0,
            SourceKind::Seed => 1,
        },
    };
    object.encode_to_vec()
}

/// Returns the source and the encrypted data of a stored value.
///
/// # Errors
/// An explanation of why it is not such a value.
pub(super) fn unwrap(stored: Bytes) -> Result<(EncryptedSource, Bytes), String> {
    let object = EncryptedObject::decode(stored).map_err(|error| error.to_string())?;
    let source = EncryptedSource {
        kind: match object.encrypted_dek_source_type {
            0 => SourceKind::Key,
            1 => SourceKind::Seed,
            other => return Err(format!("unknown encryptedDEKSourceType: {other}")),
        },
        ciphertext: object.encrypted_dek_source,
        key_id: object.key_id,
        annotations: object.annotations,
    };
    if object.encrypted_data.is_empty() {
        return Err("encrypted data is empty".to_owned());
    }
    source.check()?;
    Ok((source, object.encrypted_data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_differ_have_digests_that_differ() {
        let source = EncryptedSource {
            kind: SourceKind::Seed,
            ciphertext: Bytes::from_static(b"ab"),
            key_id: "c".to_owned(),
            annotations: BTreeMap::new(),
        };
        let annotated = |key: &str, value: &str| EncryptedSource {
            annotations: [(key.to_owned(), value.as_bytes().to_vec())].into(),
            ..source.clone()
        };
        let others = [
            EncryptedSource {
                kind: SourceKind::Key,
                ..source.clone()
            },
            EncryptedSource {
                ciphertext: Bytes::from_static(b"a"),
                key_id: "bc".to_owned(),
                ..source.clone()
            },
            annotated("a.b", "cd"),
            annotated("a.bc", "d"),
            source.clone(),
        ];
        let digests = others.iter().map(EncryptedSource::digest);
        let distinct: std::collections::BTreeSet<_> = digests.collect();
        assert_eq!(distinct.len(), others.len());
        assert_eq!(source.digest(), others[4].digest());
    }
}
