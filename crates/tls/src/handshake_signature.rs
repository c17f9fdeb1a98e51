//! The signature by which the other side of a handshake proves that it holds the key of its certificate.
//!
//! rustls verifies it by webpki's certificate, which must be of version 3; this takes the key of any certificate.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies a signature of TLS 1.2 by any of the algorithms that its scheme stands for.
pub(crate) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let mut schemes = algorithms.mapping.iter();
    let known = schemes.find(|(scheme, _)| *scheme == signature.scheme);
    let (_, possible) = known.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let spki = public_key(certificate)?;
    let key = RawPublicKeyEntity::try_from(&spki).map_err(|_| CertificateError::BadEncoding)?;
    let is_good = possible.iter().any(|algorithm| {
        let verified = key.verify_signature(*algorithm, message, signature.signature());
        verified.is_ok()
    });
    match is_good {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

/// Verifies a signature of TLS 1.3.
pub(crate) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature_with_raw_key(message, &public_key(certificate)?, signature, algorithms)
}

/// Returns the key of a certificate.
pub(crate) fn public_key(
    certificate: &CertificateDer<'_>,
) -> Result<SubjectPublicKeyInfoDer<'static>, Error> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, certificate) = parsed.map_err(|_| CertificateError::BadEncoding)?;
    Ok(certificate.public_key().raw.to_vec().into())
}
