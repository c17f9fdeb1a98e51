//! Verifiers of servers' certificates: of those that an authority has signed or that are trusted themselves, and of any
//! server that holds the key of the certificate that it presents.
//!
//! Webhooks often have one self-signed certificate that is also their authority's. Go accepts such a trust in the
//! certificate itself, and webpki does not.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::chain::{self, Purpose, Rules};
use super::handshake_signature;

/// The trusted certificates of authorities and servers.
#[derive(Debug)]
pub struct Authorities {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Default for Authorities {
    fn default() -> Self {
        Self {
            roots: RootCertStore::empty(),
            certificates: Vec::new(),
        }
    }
}

impl Authorities {
    /// Adds a certificate, of an authority or of a server itself.
    ///
    /// # Errors
    /// It cannot be understood.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        self.roots.add(certificate.clone())?;
        self.certificates.push(certificate);
        Ok(())
    }

    /// Returns what webpki trusts, and the certificates themselves.
    pub(crate) fn into_parts(self) -> (RootCertStore, Vec<CertificateDer<'static>>) {
        (self.roots, self.certificates)
    }

    /// Returns true if no certificate is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }
}

/// Verifies the certificates of servers: accepts trusted ones, or any whose key the server holds.
#[derive(Debug)]
pub struct ServerVerifier {
    /// The accepted servers; `None` for any.
    trusted: Option<TrustedServers>,
    /// The algorithms of signatures by which a server proves that it holds its key.
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    /// Creates a verifier that accepts any certificate whose key the server holds.
    #[must_use]
    pub fn any(provider: &CryptoProvider) -> Self {
        Self {
            trusted: None,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    /// Creates a verifier that accepts certificates of these authorities, and these certificates themselves as a
    /// server's.
    ///
    /// # Errors
    /// Fails when no certificate is trusted.
    pub(crate) fn trusting(
        authorities: Authorities,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let algorithms = provider.signature_verification_algorithms;
        let roots = Arc::new(authorities.roots);
        let vouched = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self {
            trusted: Some(TrustedServers {
                certificates: authorities.certificates,
                vouched,
            }),
            algorithms,
        })
    }
}

/// The servers that a verifier accepts.
#[derive(Debug)]
struct TrustedServers {
    /// The certificates of servers and of authorities.
    certificates: Vec<CertificateDer<'static>>,
    /// Verifies chains that end in one of the authorities.
    vouched: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let refused = if trusted.certificates.iter().any(|it| it == certificate) {
            None
        } else {
            let vouched = &trusted.vouched;
            match vouched.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
                Ok(verified) => return Ok(verified),
                Err(error) => Some(error),
            }
        };
        let rules = Rules {
            authorities: &trusted.certificates,
            algorithms: self.algorithms,
            purpose: Purpose::Server,
            now,
        };
        chain::verify(certificate, intermediates, rules)
            .map_err(|why| refused.unwrap_or_else(|| why.into()))?;
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        handshake_signature::verify_tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        handshake_signature::verify_tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    /// Returns a certificate of an authority for the name `hook`, good from the day 10,000 to the day 10,010.
    fn own_authority(usage: ExtendedKeyUsagePurpose) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["hook".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(1997, 5, 19);
        params.not_after = rcgen::date_time_ymd(1997, 5, 29);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").into()
    }

    #[test]
    fn a_trusted_server_may_be_its_own_authority() {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let [trusted, of_clients] = [ServerAuth, ClientAuth].map(own_authority);
        let mut authorities = Authorities::default();
        for certificate in [&trusted, &of_clients] {
            authorities.add(certificate.clone()).expect("an authority");
        }
        let servers = ServerVerifier::trusting(authorities, provider).expect("trust");
        let takes = |certificate: &CertificateDer<'_>, name: &'static str, day: u32| {
            let name = ServerName::try_from(name).expect("a name");
            let now = UnixTime::since_unix_epoch(DAY * day);
            let taken = servers.verify_server_cert(certificate, &[], &name, &[], now);
            taken.is_ok()
        };
        assert!(takes(&trusted, "hook", 10_005));
        assert!(!takes(&trusted, "other", 10_005));
        assert!(!takes(&trusted, "hook", 9_999));
        assert!(!takes(&trusted, "hook", 10_011));
        assert!(!takes(&of_clients, "hook", 10_005));
        assert!(
            !takes(&own_authority(ServerAuth), "hook", 10_005),
            "another of the same name"
        );
    }

    #[test]
    fn a_server_may_have_a_certificate_that_webpki_does_not_take() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let root: CertificateDer<'_> = params.self_signed(&key).expect("a certificate").into();
        let issuer = rcgen::Issuer::new(params, key);
        let mut authorities = Authorities::default();
        authorities.add(root).expect("an authority");
        let servers = ServerVerifier::trusting(authorities, provider).expect("trust");
        let takes = |change: fn(&mut CertificateParams), name: &'static str| {
            let mut params = CertificateParams::new(["hook".to_owned()]).expect("a name");
            change(&mut params);
            let key = KeyPair::generate().expect("a key");
            let leaf = params.signed_by(&key, &issuer).expect("a certificate");
            let name = ServerName::try_from(name).expect("a name");
            let now = UnixTime::since_unix_epoch(DAY * 20_000);
            let taken = servers.verify_server_cert(leaf.der(), &[], &name, &[], now);
            taken.is_ok()
        };
        for change in [
            (|it: &mut CertificateParams| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
                as fn(&mut CertificateParams),
            |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any],
        ] {
            assert!(takes(change, "hook"));
            assert!(!takes(change, "other"));
        }
        let of_clients: fn(&mut CertificateParams) =
            |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        assert!(!takes(of_clients, "hook"));
    }
}
