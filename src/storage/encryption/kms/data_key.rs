//! The keys of values: derived of a seed for each value, or one key for many.

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use aws_lc_rs::rand;

use super::super::cipher::{CannotEncrypt, Cipher, NotAuthentic};
use super::envelope::SourceKind;

/// The least length of a seed, and the length of the random bytes of which a key is derived with it.
const SEED_BYTES: usize = 32;
/// The greatest length of a seed that the derivation takes.
const SEED_BYTES_MAX: usize = 64;
const INFO_BYTES: usize = 32;

/// A decrypted seed or key.
#[derive(Debug)]
pub(super) enum DataKey {
    /// A seed. A value begins with the random bytes of which its key is derived.
    Seed(Prk),
    /// A key, with which nothing is encrypted any more.
    Key(Cipher),
}

impl DataKey {
    /// Makes the key of a decrypted source; `None` if its length is wrong.
    pub(super) fn new(kind: SourceKind, plain: &[u8]) -> Option<Self> {
        match kind {
            SourceKind::Key => Cipher::aes_gcm(plain).map(Self::Key),
            SourceKind::Seed if (SEED_BYTES..=SEED_BYTES_MAX).contains(&plain.len()) => {
                Some(Self::Seed(Prk::new_less_safe(HKDF_SHA256, plain)))
            }
            SourceKind::Seed => None,
        }
    }

    /// Returns a new seed.
    ///
    /// # Errors
    /// There is no randomness.
    pub(super) fn generate() -> Result<[u8; SEED_BYTES], CannotEncrypt> {
        let mut seed = [0; SEED_BYTES];
        rand::fill(&mut seed).map_err(|_| CannotEncrypt)?;
        Ok(seed)
    }

    /// Encrypts a value that will be stored under a key, which only seeds do.
    ///
    /// # Errors
    /// There is no randomness, or this is no seed.
    pub(super) fn seal(&self, plain: &[u8], storage_key: &str) -> Result<Vec<u8>, CannotEncrypt> {
        let seed = match self {
            Self::Seed(seed) => seed,
            Self::Key(_) => return Err(CannotEncrypt),
        };
        let mut info = [0; INFO_BYTES];
        rand::fill(&mut info).map_err(|_| CannotEncrypt)?;
        let cipher = derive(seed, &info).ok_or(CannotEncrypt)?;
        let sealed = cipher.seal(plain, storage_key)?;
        Ok([&info[..], &sealed].concat())
    }

    /// Decrypts a value that was stored under a key.
    pub(super) fn open(&self, sealed: &[u8], storage_key: &str) -> Result<Vec<u8>, NotAuthentic> {
        match self {
            Self::Seed(seed) => {
                let (info, sealed) = sealed
                    .split_first_chunk::<INFO_BYTES>()
                    .ok_or(NotAuthentic)?;
                let cipher = derive(seed, info).ok_or(NotAuthentic)?;
                cipher.open(sealed, storage_key)
            }
            Self::Key(cipher) => cipher.open(sealed, storage_key),
        }
    }
}

/// Returns the cipher of a value: the first 32 bytes of HKDF with SHA-256 are its key.
fn derive(seed: &Prk, info: &[u8]) -> Option<Cipher> {
    let mut key = [0; 32];
    let info = [info];
    let derived = seed.expand(&info, HKDF_SHA256).ok()?;
    derived.fill(&mut key).ok()?;
    Cipher::aes_gcm(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first block of HKDF-Expand is the HMAC of the info and a byte 1: RFC 5869, section 2.3.
    #[test]
    fn keys_are_derived_by_hkdf_without_extraction() {
        let seed = [1; 32];
        let info = [2; 32];
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &seed);
        let derived = aws_lc_rs::hmac::sign(&key, &[&info[..], &[1]].concat());
        let cipher = Cipher::aes_gcm(derived.as_ref()).expect("a key");
        let sealed = cipher.seal(b"value", "/k").expect("sealed");
        let data_key = DataKey::new(SourceKind::Seed, &seed).expect("a seed");
        let stored = [&info[..], &sealed].concat();
        assert_eq!(data_key.open(&stored, "/k").as_deref(), Ok(&b"value"[..]));
        assert_eq!(data_key.open(&stored, "/other"), Err(NotAuthentic));
    }

    #[test]
    fn each_value_has_a_key_of_its_own() {
        let data_key = DataKey::new(SourceKind::Seed, &[1; 32]).expect("a seed");
        let [one, two] = [0; 2].map(|_| data_key.seal(b"value", "/k").expect("sealed"));
        assert_ne!(one[..INFO_BYTES], two[..INFO_BYTES]);
        assert_eq!(one.len(), INFO_BYTES + 12 + 5 + 16);
        for short in 0..one.len() {
            assert_eq!(data_key.open(&one[..short], "/k"), Err(NotAuthentic));
        }
        for wrong in [31, 65] {
            assert!(DataKey::new(SourceKind::Seed, &vec![1; wrong]).is_none());
        }
        assert!(DataKey::new(SourceKind::Key, &[1; 31]).is_none());
        let key = DataKey::new(SourceKind::Key, &[1; 32]).expect("a key");
        assert!(key.seal(b"value", "/k").is_err(), "keys only decrypt");
        let cipher = Cipher::aes_gcm(&[1; 32]).expect("a key");
        let sealed = cipher.seal(b"value", "/k").expect("sealed");
        assert_eq!(key.open(&sealed, "/k").as_deref(), Ok(&b"value"[..]));
    }
}
