//! Keys that sign tokens, and the public keys that tokens are verified with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use rcgen::{KeyPair, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{PemObject, SectionKind};
use sha2::{Digest, Sha256};
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no PEM, or its content no DER of a key.
    #[error("there is no readable key in PEM")]
    Unreadable,
    /// Keys of this type sign no tokens.
    #[error("tokens need RSA keys of 2048 bits or more, or ECDSA keys on P-256 or P-384")]
    Unsupported,
    /// The library cannot generate or encode the key.
    #[error("{0}")]
    Failed(String),
}

/// The least size of RSA keys, in bytes.
const RSA_BYTES_MIN: usize = 256;

/// A public key that verifies tokens, and the one algorithm that it is for: a token cannot choose another.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    /// The id by which tokens name it: a digest of the key itself, as in kube-apiserver.
    pub(super) id: String,
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
    /// The key in the JSON Web Key Set.
    pub(super) jwk: Jwk,
}

impl VerifyingKey {
    /// Reads all keys in a file: public ones, those of certificates, and the public half of private ones.
    ///
    /// # Errors
    /// [`KeyError`], also when there is none.
    pub fn all_in(pem: &str) -> Result<Vec<Self>, KeyError> {
        let sections = <(SectionKind, Vec<u8>) as PemObject>::pem_slice_iter(pem.as_bytes());
        let mut keys = Vec::new();
        for section in sections {
            let (kind, der) = section.map_err(|_| KeyError::Unreadable)?;
            keys.push(match kind {
                SectionKind::PublicKey => Self::of_public_key_info(&der)?,
                SectionKind::Certificate => {
                    let (_, certificate) =
                        X509Certificate::from_der(&der).map_err(|_| KeyError::Unreadable)?;
                    Self::of_public_key_info(certificate.public_key().raw)?
                }
                SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey
                | SectionKind::EcPrivateKey => {
                    let der = PrivateKeyDer::from_pem(kind, der).ok_or(KeyError::Unreadable)?;
                    let pair = KeyPair::try_from(&der).map_err(|_| KeyError::Unreadable)?;
                    Self::of_public_key_info(&pair.subject_public_key_info())?
                }
                _ => continue,
            });
        }
        if keys.is_empty() {
            return Err(KeyError::Unreadable);
        }
        Ok(keys)
    }

    fn of_public_key_info(der: &[u8]) -> Result<Self, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::Unreadable)?;
        let curve = info.algorithm.parameters.as_ref();
        let curve = curve.and_then(|it| it.as_oid().ok());
        let (key, algorithm) = match info.parsed().map_err(|_| KeyError::Unreadable)? {
            PublicKey::RSA(rsa) => {
                let zeros = rsa.modulus.iter().take_while(|byte| **byte == 0).count();
                let modulus = &rsa.modulus[zeros..];
                if modulus.len() < RSA_BYTES_MIN {
                    return Err(KeyError::Unsupported);
                }
                let key = DecodingKey::from_rsa_raw_components(modulus, rsa.exponent);
                (key, Algorithm::RS256)
            }
            PublicKey::EC(point) => {
                let algorithm = match curve {
                    Some(curve) if curve == OID_EC_P256 => Algorithm::ES256,
                    Some(curve) if curve == OID_NIST_EC_P384 => Algorithm::ES384,
                    _ => return Err(KeyError::Unsupported),
                };
                (DecodingKey::from_ec_der(point.data()), algorithm)
            }
            _ => return Err(KeyError::Unsupported),
        };
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        let mut jwk = Jwk::from_decoding_key(&key, Some(algorithm))
            .map_err(|error| KeyError::Failed(error.to_string()))?;
        jwk.common.key_id = Some(id.clone());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok(Self {
            id,
            algorithm,
            key,
            jwk,
        })
    }
}

/// A private key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    pub(super) key: EncodingKey,
    pub(super) public: VerifyingKey,
}

/// Keeps the key out of logs.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("id", &self.public.id)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Generates a key, in PEM. It is RSA, since tokens are verified far more often than they are signed.
    ///
    /// # Errors
    /// [`KeyError::Failed`] if the library cannot generate one.
    pub fn generate_pem() -> Result<String, KeyError> {
        KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
            .map(|pair| pair.serialize_pem())
            .map_err(|error| KeyError::Failed(error.to_string()))
    }

    /// Returns a new ECDSA key, in PEM. It is made far faster than an RSA key, which matters to servers that start
    /// often and verify few tokens.
    ///
    /// # Errors
    /// [`KeyError::Failed`]
    pub fn generate_ecdsa_pem() -> Result<String, KeyError> {
        KeyPair::generate()
            .map(|pair| pair.serialize_pem())
            .map_err(|error| KeyError::Failed(error.to_string()))
    }

    /// Reads the key in a file: PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// [`KeyError`] if the PEM cannot be read, or is a key of a type that signs no tokens.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::Unreadable)?;
        let pair = KeyPair::try_from(&der).map_err(|_| KeyError::Unreadable)?;
        let public = VerifyingKey::of_public_key_info(&pair.subject_public_key_info())?;
        let key = match public.algorithm {
            Algorithm::ES256 => ecdsa(
                &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING,
                der.secret_der(),
            ),
            Algorithm::ES384 => ecdsa(
                &aws_lc_rs::signature::ECDSA_P384_SHA384_FIXED_SIGNING,
                der.secret_der(),
            ),
            _ => EncodingKey::from_rsa_pem(pem.as_bytes()).map_err(|_| KeyError::Unreadable),
        };
        Ok(Self { key: key?, public })
    }
}

/// Converts an ECDSA key to the one form in which it is signed with.
fn ecdsa(
    algorithm: &'static aws_lc_rs::signature::EcdsaSigningAlgorithm,
    der: &[u8],
) -> Result<EncodingKey, KeyError> {
    let pair = aws_lc_rs::signature::EcdsaKeyPair::from_private_key_der(algorithm, der)
        .map_err(|_| KeyError::Unreadable)?;
    let pkcs8 = pair.to_pkcs8v1().map_err(|_| KeyError::Unreadable)?;
    Ok(EncodingKey::from_ec_der(pkcs8.as_ref()))
}
