//! The ciphers and the layout of their output.

use std::fmt;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm as BlockAlgorithm, DecryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::rand;
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Key, XSalsa20Poly1305};

/// The length of AES' blocks, and so of the initialization vectors of AES-CBC, in bytes.
const BLOCK_BYTES: usize = 16;
/// The length of secretbox's nonces in bytes.
const SECRETBOX_NONCE_BYTES: usize = 24;

/// A cipher with its key.
pub(super) enum Cipher {
    /// AES-GCM with random nonces. The storage key is authenticated along with the value, so that
    /// a value cannot be moved to another key.
    AesGcm(LessSafeKey),
    /// AES-CBC with random initialization vectors and the padding of PKCS#7. It authenticates nothing.
    AesCbc(Box<CbcKeys>),
    /// XSalsa20 and Poly1305. It authenticates the value alone.
    Secretbox(Box<XSalsa20Poly1305>),
}

/// The two directions of a key of AES-CBC.
pub(super) struct CbcKeys {
    encrypting: PaddedBlockEncryptingKey,
    decrypting: PaddedBlockDecryptingKey,
}

/// An error about a value that was not encrypted with this key, or has been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAuthentic;

/// An error: there is no randomness, or the value is longer than the cipher accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CannotEncrypt;

impl Cipher {
    /// Creates AES-GCM with a key; `None` unless it has 16, 24 or 32 bytes.
    pub(super) fn aes_gcm(secret: &[u8]) -> Option<Self> {
        let algorithm: &Algorithm = match secret.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            _ => return None,
        };
        let key = UnboundKey::new(algorithm, secret).ok()?;
        Some(Self::AesGcm(LessSafeKey::new(key)))
    }

    /// Creates AES-CBC with a key; `None` unless it has 16, 24 or 32 bytes.
    pub(super) fn aes_cbc(secret: &[u8]) -> Option<Self> {
        let algorithm: &BlockAlgorithm = match secret.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, secret);
        Some(Self::AesCbc(Box::new(CbcKeys {
            encrypting: PaddedBlockEncryptingKey::cbc_pkcs7(key().ok()?).ok()?,
            decrypting: PaddedBlockDecryptingKey::cbc_pkcs7(key().ok()?).ok()?,
        })))
    }

    /// Creates secretbox with a key; `None` unless it has 32 bytes.
    pub(super) fn secretbox(secret: &[u8]) -> Option<Self> {
        let key: [u8; 32] = secret.try_into().ok()?;
        let cipher = XSalsa20Poly1305::new(&Key::from(key));
        Some(Self::Secretbox(Box::new(cipher)))
    }

    /// Encrypts a value that will be stored under a key.
    pub(super) fn seal(&self, plain: &[u8], storage_key: &str) -> Result<Vec<u8>, CannotEncrypt> {
        match self {
            Self::AesGcm(key) => {
                let nonce: [u8; NONCE_LEN] = random()?;
                let mut sealed = plain.to_vec();
                let aad = Aad::from(storage_key.as_bytes());
                let nonce_used = Nonce::assume_unique_for_key(nonce);
                key.seal_in_place_append_tag(nonce_used, aad, &mut sealed)
                    .map_err(|_| CannotEncrypt)?;
                Ok([&nonce[..], &sealed].concat())
            }
            Self::AesCbc(keys) => {
                let mut sealed = plain.to_vec();
                let context = keys.encrypting.encrypt(&mut sealed);
                let DecryptionContext::Iv128(vector) = context.map_err(|_| CannotEncrypt)? else {
                    return Err(CannotEncrypt);
                };
                Ok([&vector.as_ref()[..], &sealed].concat())
            }
            Self::Secretbox(cipher) => {
                let nonce: [u8; SECRETBOX_NONCE_BYTES] = random()?;
                let sealed = cipher.encrypt(&nonce.into(), plain);
                Ok([&nonce[..], &sealed.map_err(|_| CannotEncrypt)?].concat())
            }
        }
    }

    /// Decrypts a value that was stored under a key.
    pub(super) fn open(&self, sealed: &[u8], storage_key: &str) -> Result<Vec<u8>, NotAuthentic> {
        match self {
            Self::AesGcm(key) => {
                let (nonce, sealed) = sealed.split_first_chunk().ok_or(NotAuthentic)?;
                let mut sealed = sealed.to_vec();
                let aad = Aad::from(storage_key.as_bytes());
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let plain = key.open_in_place(nonce, aad, &mut sealed);
                let length = plain.map_err(|_| NotAuthentic)?.len();
                sealed.truncate(length);
                Ok(sealed)
            }
            Self::AesCbc(keys) => {
                let (vector, sealed) = sealed
                    .split_first_chunk::<BLOCK_BYTES>()
                    .ok_or(NotAuthentic)?;
                let mut sealed = sealed.to_vec();
                let context = DecryptionContext::Iv128(vector.into());
                let plain = keys.decrypting.decrypt(&mut sealed, context);
                let length = plain.map_err(|_| NotAuthentic)?.len();
                sealed.truncate(length);
                Ok(sealed)
            }
            Self::Secretbox(cipher) => {
                let (nonce, sealed) = sealed
                    .split_first_chunk::<SECRETBOX_NONCE_BYTES>()
                    .ok_or(NotAuthentic)?;
                let plain = cipher.decrypt(&(*nonce).into(), sealed);
                plain.map_err(|_| NotAuthentic)
            }
        }
    }
}

/// Hides the key, so that it is never logged.
impl fmt::Debug for Cipher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::AesGcm(_) => "AesGcm",
            Self::AesCbc(_) => "AesCbc",
            Self::Secretbox(_) => "Secretbox",
        })
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], CannotEncrypt> {
    let mut nonce = [0; BYTES];
    rand::fill(&mut nonce).map_err(|_| CannotEncrypt)?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("hex"), 16).expect("hex"))
            .collect()
    }

    /// The first bytes of the box in NaCl's own tests.
    #[test]
    fn secretbox_opens_what_nacl_made() {
        let secret = bytes("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
        let nonce = bytes("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
        let sealed = bytes(
            "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c5\
             31a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8a\
             b932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622\
             a43d14a6599b1f654cb45a74e355a5",
        );
        let cipher = Cipher::secretbox(&secret).expect("a key");
        let plain = cipher.open(&[nonce, sealed].concat(), "any key");
        let plain = plain.expect("authentic");
        assert_eq!(
            plain,
            bytes(
                "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac7\
                 28d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556a\
                 d6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f9377638\
                 48645e0705"
            )
        );
    }

    /// Made with another implementation of AES-GCM, for keys of 0, 1, 2 and so on.
    #[test]
    fn aes_gcm_opens_what_others_made() {
        for (length, sealed) in [
            (
                16_u8,
                "6465666768696a6b6c6d6e6f715a3da5fb71d797fe4a3f79e8ad0b9f44e7\
                 0a9af6a73f3024f987c96960ff733506984fa0",
            ),
            (
                24_u8,
                "6465666768696a6b6c6d6e6f8250c87c72dc6155b6a58a689495bbcda936\
                 2caf9eef05c64c9ded7618f91339804b44a701",
            ),
            (
                32_u8,
                "6465666768696a6b6c6d6e6f2323ad66599a39f35b163781b4024a8e36ad\
                 746fefd3c8f804028e9fd966210e2fee60ac94",
            ),
        ] {
            let secret: Vec<u8> = (0..length).collect();
            let cipher = Cipher::aes_gcm(&secret).expect("a key");
            let plain = cipher.open(&bytes(sealed), "/registry/secrets/default/token");
            assert_eq!(plain.as_deref(), Ok(&b"k8s\0 something stored"[..]));
            let moved = cipher.open(&bytes(sealed), "/registry/secrets/default/other");
            assert_eq!(moved, Err(NotAuthentic));
        }
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_alone() {
        let long = [7; 100_000];
        for secret in [vec![1; 16], vec![1; 24], vec![1; 32]] {
            let cipher = Cipher::aes_gcm(&secret).expect("a key");
            for plain in [&b""[..], b"value", &long] {
                let sealed = cipher.seal(plain, "/k").expect("sealed");
                assert_eq!(sealed.len(), 12 + plain.len() + 16);
                assert_eq!(cipher.open(&sealed, "/k").as_deref(), Ok(plain));
                assert_eq!(cipher.open(&sealed, "/other"), Err(NotAuthentic));
                let again = cipher.seal(plain, "/k").expect("sealed");
                assert_ne!(sealed, again, "nonces differ");
            }
        }
        let one = Cipher::secretbox(&[1; 32]).expect("a key");
        let other = Cipher::secretbox(&[2; 32]).expect("a key");
        let sealed = one.seal(b"value", "/k").expect("sealed");
        assert_eq!(sealed.len(), 24 + 16 + 5);
        assert_eq!(one.open(&sealed, "/any").as_deref(), Ok(&b"value"[..]));
        assert_eq!(other.open(&sealed, "/k"), Err(NotAuthentic));
        for short in 0..sealed.len() {
            assert_eq!(one.open(&sealed[..short], "/k"), Err(NotAuthentic));
        }
    }

    /// The example of AES-CBC with 256 bits in NIST SP 800-38A, F.2.5, followed by a block of padding.
    #[test]
    fn aes_cbc_makes_the_blocks_of_the_standard() {
        let secret = bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let vector = bytes("000102030405060708090a0b0c0d0e0f");
        let plain = bytes(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        );
        let blocks = bytes(
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
             39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        );
        let keys = Cipher::aes_cbc(&secret).expect("a key");
        let sealed = keys.seal(&plain, "/k").expect("sealed");
        assert_eq!(sealed.len(), BLOCK_BYTES + plain.len() + BLOCK_BYTES);
        let Cipher::AesCbc(made) = &keys else {
            panic!("another cipher")
        };
        let iv: [u8; BLOCK_BYTES] = vector.clone().try_into().expect("16 bytes");
        let context = aws_lc_rs::cipher::EncryptionContext::Iv128(iv.into());
        let mut padded = plain.clone();
        let encrypted = made.encrypting.less_safe_encrypt(&mut padded, context);
        encrypted.expect("encrypted");
        assert_eq!(padded[..blocks.len()], blocks[..]);
        let stored = [vector, padded].concat();
        assert_eq!(keys.open(&stored, "/any"), Ok(plain));
    }

    #[test]
    fn aes_cbc_pads_to_whole_blocks() {
        for secret in [vec![1; 16], vec![1; 24], vec![1; 32]] {
            let cipher = Cipher::aes_cbc(&secret).expect("a key");
            for length in 0..50 {
                let plain = vec![7; length];
                let sealed = cipher.seal(&plain, "/k").expect("sealed");
                assert_eq!(sealed.len() % BLOCK_BYTES, 0);
                assert!(sealed.len() > BLOCK_BYTES + length);
                assert_eq!(cipher.open(&sealed, "/k"), Ok(plain));
            }
            let sealed = cipher.seal(b"value", "/k").expect("sealed");
            let again = cipher.seal(b"value", "/k").expect("sealed");
            assert_ne!(sealed, again, "vectors differ");
            for short in 0..sealed.len() {
                assert_eq!(cipher.open(&sealed[..short], "/k"), Err(NotAuthentic));
            }
        }
    }

    #[test]
    fn keys_have_their_length() {
        for length in 0..40 {
            let secret = vec![0; length];
            let (aes, secretbox) = (Cipher::aes_gcm(&secret), Cipher::secretbox(&secret));
            assert_eq!(aes.is_some(), matches!(length, 16 | 24 | 32));
            assert_eq!(Cipher::aes_cbc(&secret).is_some(), aes.is_some());
            assert_eq!(secretbox.is_some(), length == 32);
        }
    }
}
