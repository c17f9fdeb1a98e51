//! The providers of a type: encryption and decryption of its values.
//!
//! The first provider encrypts, with the first of its keys. All decrypt: a value names its provider and its key. A
//! value that was written by another provider or key than the first is stale, and is rewritten by the next update of
//! its object, whether or not that changes anything.

use std::sync::Arc;

use bytes::Bytes;

use super::cipher::Cipher;
use super::kms::{KmsProvider, OpenError};
use super::stored_value::{ENCRYPTED, NO_KEYS, TransformError};

/// The providers of a type's values. The first one encrypts.
#[derive(Clone, Debug)]
pub(super) struct Providers(Arc<[Arc<Provider>]>);

/// A provider of an encryption configuration.
#[derive(Debug)]
pub(super) enum Provider {
    /// Values stay as they are.
    Identity,
    /// Values are encrypted.
    Encrypted {
        /// The prefix of its values.
        prefix: &'static str,
        /// The provider's name in the error that no key fits.
        name: &'static str,
        /// The keys; the first one encrypts.
        keys: Vec<NamedKey>,
    },
    /// Values are encrypted with keys of a KMS plugin.
    Kms(Arc<KmsProvider>),
}

/// A key of the configuration, with its cipher.
#[derive(Debug)]
pub(super) struct NamedKey {
    /// The name of the key and a colon.
    pub(super) prefix: String,
    pub(super) cipher: Cipher,
}

impl Default for Providers {
    /// Creates the providers of a type that is not encrypted.
    fn default() -> Self {
        Self::new(vec![Arc::new(Provider::Identity)])
    }
}

impl Providers {
    pub(super) fn new(providers: Vec<Arc<Provider>>) -> Self {
        Self(providers.into())
    }

    /// Returns true if no value is or has been encrypted.
    fn is_identity(&self) -> bool {
        let mut providers = self.0.iter();
        providers.all(|it| matches!(**it, Provider::Identity))
    }

    /// Decrypts a value that is stored under a full key, and returns true with it if it is stale.
    ///
    /// # Errors
    /// [`TransformError`] when no provider can read it.
    pub(super) fn open(&self, stored: &Bytes, key: &str) -> Result<(Bytes, bool), TransformError> {
        let mut failure = None;
        for (index, provider) in self.0.iter().enumerate() {
            match provider.open(stored, key) {
                None => {}
                Some(Ok((plain, stale))) => return Ok((plain, stale || index > 0)),
                Some(Err(error)) => {
                    failure.get_or_insert(error);
                }
            }
        }
        let unknown = if self.is_identity() {
            NO_KEYS
        } else {
            "no matching prefix found"
        };
        Err(failure.unwrap_or_else(|| TransformError::Unreadable(unknown.to_owned())))
    }

    /// Makes keys of KMS plugins known with which these values are encrypted, so that [`Self::open`] finds them.
    pub(super) async fn fetch_keys(&self, stored: &[Bytes]) {
        for provider in &*self.0 {
            if let Provider::Kms(kms) = &**provider {
                let sealed = stored.iter();
                let sealed = sealed.filter_map(|it| without_prefix(it, kms.prefix()));
                kms.fetch_seeds(sealed.collect()).await;
            }
        }
    }

    /// Returns true if values are encrypted with a KMS plugin, so that their keys have to be fetched.
    pub(super) fn uses_kms(&self) -> bool {
        let mut providers = self.0.iter();
        providers.any(|it| matches!(**it, Provider::Kms(_)))
    }

    /// Encrypts a value for a full key.
    ///
    /// # Errors
    /// [`TransformError`] when there is no randomness, or a KMS plugin does not answer.
    pub(super) fn seal(&self, plain: Bytes, key: &str) -> Result<Bytes, TransformError> {
        let (prefix, keys) = match self.0.first().map(|it| &**it) {
            Some(Provider::Encrypted { prefix, keys, .. }) => (prefix, keys),
            Some(Provider::Kms(kms)) => {
                let sealed = kms.seal(&plain, key).map_err(TransformError::Unavailable)?;
                return Ok([kms.prefix().as_bytes(), &sealed].concat().into());
            }
            Some(Provider::Identity) | None => return Ok(plain),
        };
        let failed = || TransformError::Unreadable("the value cannot be encrypted".to_owned());
        let first = keys.first().ok_or_else(failed)?;
        let sealed = first.cipher.seal(&plain, key).map_err(|_| failed())?;
        Ok([prefix.as_bytes(), first.prefix.as_bytes(), &sealed]
            .concat()
            .into())
    }
}

impl Provider {
    /// Decrypts a value, and returns true with it if it is stale; `None` if another provider wrote it.
    fn open(&self, stored: &Bytes, key: &str) -> Option<Result<(Bytes, bool), TransformError>> {
        let (prefix, name, keys) = match self {
            Self::Identity if stored.starts_with(ENCRYPTED) => return None,
            Self::Identity => return Some(Ok((stored.clone(), false))),
            Self::Encrypted { prefix, name, keys } => (prefix, name, keys),
            Self::Kms(kms) => {
                let sealed = without_prefix(stored, kms.prefix())?;
                return Some(kms.open(sealed, key).map_err(|error| match error {
                    OpenError::Unreadable(why) => TransformError::Unreadable(why),
                    OpenError::Unavailable(why) => TransformError::Unavailable(why),
                }));
            }
        };
        let rest = stored.strip_prefix(prefix.as_bytes())?;
        let mut authentic = true;
        for (index, named) in keys.iter().enumerate() {
            let Some(sealed) = rest.strip_prefix(named.prefix.as_bytes()) else {
                continue;
            };
            match named.cipher.open(sealed, key) {
                Ok(plain) => return Some(Ok((plain.into(), index > 0))),
                // Another key may have the same name.
                Err(_) => authentic = false,
            }
        }
        let error = if authentic {
            format!("no matching key was found for the provided {name} transformer")
        } else {
            format!("the value cannot be decrypted with the keys of the {name} transformer")
        };
        Some(Err(TransformError::Unreadable(error)))
    }
}

/// Returns the part of a value after a prefix; `None` if it has another one.
fn without_prefix(stored: &Bytes, prefix: &str) -> Option<Bytes> {
    stored
        .starts_with(prefix.as_bytes())
        .then(|| stored.slice(prefix.len()..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, byte: u8) -> NamedKey {
        NamedKey {
            prefix: format!("{name}:"),
            cipher: Cipher::aes_gcm(&[byte; 32]).expect("a key"),
        }
    }

    fn aes(keys: Vec<NamedKey>) -> Arc<Provider> {
        Arc::new(Provider::Encrypted {
            prefix: "k8s:enc:aesgcm:v1:",
            name: "AES",
            keys,
        })
    }

    fn identity() -> Arc<Provider> {
        Arc::new(Provider::Identity)
    }

    fn read(providers: &Providers, stored: &Bytes) -> Result<(String, bool), String> {
        let (plain, stale) = providers
            .open(stored, "/k")
            .map_err(|error| error.to_string())?;
        Ok((String::from_utf8_lossy(&plain).into_owned(), stale))
    }

    #[test]
    fn the_first_key_writes_and_all_read() {
        let old = Providers::new(vec![aes(vec![key("one", 1)])]);
        let both = Providers::new(vec![aes(vec![key("two", 2), key("one", 1)])]);
        let new = Providers::new(vec![aes(vec![key("two", 2)])]);
        let plain = Bytes::from_static(b"plain");
        let stored = old.seal(plain.clone(), "/k").expect("encrypted");
        assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:one:"));
        assert_eq!(read(&old, &stored), Ok(("plain".to_owned(), false)));
        assert_eq!(read(&both, &stored), Ok(("plain".to_owned(), true)));
        let stored = both.seal(plain, "/k").expect("encrypted");
        assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:two:"));
        assert_eq!(read(&both, &stored), Ok(("plain".to_owned(), false)));
        assert_eq!(read(&new, &stored), Ok(("plain".to_owned(), false)));
        assert!(
            read(&old, &stored)
                .expect_err("unknown")
                .contains("no matching key")
        );
    }

    #[test]
    fn encryption_begins_and_ends_by_the_order_of_providers() {
        let begun = Providers::new(vec![aes(vec![key("one", 1)]), identity()]);
        let ended = Providers::new(vec![identity(), aes(vec![key("one", 1)])]);
        let plain = Bytes::from_static(b"plain");
        assert_eq!(read(&begun, &plain), Ok(("plain".to_owned(), true)));
        let stored = begun.seal(plain.clone(), "/k").expect("encrypted");
        assert_eq!(read(&ended, &stored), Ok(("plain".to_owned(), true)));
        assert_eq!(ended.seal(plain.clone(), "/k"), Ok(plain));
    }

    #[test]
    fn what_is_encrypted_never_passes_for_plain() {
        let right = Providers::new(vec![aes(vec![key("one", 1)])]);
        let wrong = Providers::new(vec![aes(vec![key("one", 2)]), identity()]);
        let stored = right.seal(Bytes::from_static(b"plain"), "/k");
        let stored = stored.expect("encrypted");
        assert!(
            read(&wrong, &stored)
                .expect_err("a wrong key")
                .contains("cannot be decrypted")
        );
        let plain = Providers::default();
        assert_eq!(
            read(&plain, &stored).expect_err("no key"),
            "identity transformer tried to read encrypted data"
        );
        let unknown = Bytes::from_static(b"k8s:enc:kms:v2:x:abc");
        assert_eq!(
            read(&wrong, &unknown).expect_err("no provider"),
            "no matching prefix found"
        );
        // Another key than that for which it was encrypted.
        right.open(&stored, "/other").expect_err("moved");
        // A later key of the same name is tried.
        let same_name = Providers::new(vec![aes(vec![key("one", 2), key("one", 1)])]);
        assert_eq!(read(&same_name, &stored), Ok(("plain".to_owned(), true)));
    }
}
