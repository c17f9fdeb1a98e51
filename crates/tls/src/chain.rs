//! Chains of certificates that Go's verifier accepts and webpki refuses.
//!
//! webpki takes only certificates of version 3, no authority's certificate as that of a client or server, and no
//! `anyExtendedKeyUsage`. Kubernetes' clients have such certificates: `openssl x509 -req` makes version 1 where it is
//! told no extensions. This verifier is asked after webpki. It follows `Certificate.Verify` of Go's crypto/x509 and
//! takes the signatures that webpki takes (none with SHA-1, no RSA key of fewer than 2048 bits); a certificate that
//! constrains names or policies is left to webpki.

use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, Error, OtherError};
use webpki::RawPublicKeyEntity;
use x509_parser::oid_registry::{
    OID_X509_EXT_BASIC_CONSTRAINTS, OID_X509_EXT_EXTENDED_KEY_USAGE,
    OID_X509_EXT_INHIBIT_ANY_POLICY, OID_X509_EXT_KEY_USAGE, OID_X509_EXT_NAME_CONSTRAINTS,
    OID_X509_EXT_POLICY_CONSTRAINTS, OID_X509_EXT_POLICY_MAPPINGS, OID_X509_EXT_SUBJECT_ALT_NAME,
    Oid,
};
use x509_parser::prelude::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Maximum number of signatures that are verified for one certificate, as in Go.
const SIGNATURES_MAX: u32 = 100;

/// The tag of an object identifier in DER.
const OBJECT_IDENTIFIER: u8 = 6;

/// The purpose for which a certificate is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A server shows it to its clients.
    Server,
    /// A client shows it to a server.
    Client,
}

/// The reason why a chain is refused, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChainError {
    /// A certificate cannot be read; make it again.
    #[error("x509: malformed certificate")]
    Malformed,
    /// The certificate is too old or too new; renew it.
    #[error("x509: certificate has expired or is not yet valid")]
    Expired,
    /// The certificate has a critical extension that is not known; make it without that.
    #[error("x509: unhandled critical extension")]
    CriticalExtension,
    /// The certificate is for another purpose; make one for this.
    #[error("x509: certificate specifies an incompatible key usage")]
    Usage,
    /// No authority has signed it, or none by a signature that is safe; show one of a known authority.
    #[error("x509: certificate signed by unknown authority")]
    UnknownAuthority,
    /// The chain constrains names or policies, which webpki judges.
    #[error("x509: names or policies are constrained")]
    Constrained,
}

impl From<ChainError> for Error {
    fn from(error: ChainError) -> Self {
        CertificateError::Other(OtherError(Arc::new(error))).into()
    }
}

/// The extensions that this verifier knows.
const KNOWN: [Oid<'static>; 4] = [
    OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_EXTENDED_KEY_USAGE,
    OID_X509_EXT_SUBJECT_ALT_NAME,
];

/// The extensions that constrain names or policies.
const CONSTRAINTS: [Oid<'static>; 4] = [
    OID_X509_EXT_NAME_CONSTRAINTS,
    OID_X509_EXT_POLICY_CONSTRAINTS,
    OID_X509_EXT_POLICY_MAPPINGS,
    OID_X509_EXT_INHIBIT_ANY_POLICY,
];

/// The trust and the circumstances by which chains are verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// The certificates of the authorities.
    pub(crate) authorities: &'a [CertificateDer<'static>],
    /// The algorithms of signatures.
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
    pub(crate) purpose: Purpose,
    pub(crate) now: UnixTime,
}

/// Verifies that an authority vouches for a certificate, directly or by some of the intermediates.
///
/// # Errors
/// [`ChainError`]
pub(crate) fn verify(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    rules: Rules<'_>,
) -> Result<(), ChainError> {
    let parsed = parse(leaf)?;
    check_validity(&parsed, rules.now)?;
    if rules.authorities.iter().any(|it| it == leaf) {
        // It constrains what it signs, and not itself.
        return check_purpose(&[&parsed], rules.purpose);
    }
    check_unconstrained(&parsed)?;
    // One that cannot be read vouches for nothing.
    let roots: Vec<_> = rules.authorities.iter().flat_map(|it| parse(it)).collect();
    let intermediates: Vec<_> = intermediates.iter().flat_map(|it| parse(it)).collect();
    let mut search = Search {
        roots: &roots,
        intermediates: &intermediates,
        signatures_left: SIGNATURES_MAX,
        rules,
    };
    search.complete(&mut vec![&parsed])
}

/// The search for a chain from a certificate to an authority.
struct Search<'a> {
    roots: &'a [X509Certificate<'a>],
    intermediates: &'a [X509Certificate<'a>],
    signatures_left: u32,
    rules: Rules<'a>,
}

impl<'a> Search<'a> {
    /// Completes a chain, the leaf first, by certificates up to an authority's. The first reason counts if there is no
    /// chain.
    fn complete(&mut self, chain: &mut Vec<&'a X509Certificate<'a>>) -> Result<(), ChainError> {
        let (roots, intermediates) = (self.roots, self.intermediates);
        let roots = roots.iter().map(|it| (it, true));
        let candidates = roots.chain(intermediates.iter().map(|it| (it, false)));
        let mut failure = ChainError::UnknownAuthority;
        for (parent, is_root) in candidates {
            let Some(child) = chain.last() else { break };
            if parent.subject().as_raw() != child.issuer().as_raw() {
                continue;
            }
            let Some(left) = self.signatures_left.checked_sub(1) else {
                break;
            };
            self.signatures_left = left;
            if is_in(chain, parent)
                || !may_sign(parent, is_root, chain.len() - 1)
                || !has_signed(parent, child, self.rules.algorithms)
            {
                continue;
            }
            let tried = check_validity(parent, self.rules.now).and_then(|()| {
                check_unconstrained(parent)?;
                chain.push(parent);
                let completed = match is_root {
                    true => check_purpose(chain, self.rules.purpose),
                    false => self.complete(chain),
                };
                chain.pop();
                completed
            });
            match tried {
                Ok(()) => return Ok(()),
                Err(why) if failure == ChainError::UnknownAuthority => failure = why,
                Err(_) => {}
            }
        }
        Err(failure)
    }
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, ChainError> {
    let parsed = X509Certificate::from_der(certificate);
    let (rest, parsed) = parsed.map_err(|_| ChainError::Malformed)?;
    let is_signed_as_said = parsed.signature_algorithm == parsed.tbs_certificate.signature;
    (rest.is_empty() && is_signed_as_said)
        .then_some(parsed)
        .ok_or(ChainError::Malformed)
}

/// Checks the times of a certificate, and that all of its critical extensions are known. Follows `Certificate.isValid`.
fn check_validity(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), ChainError> {
    for extension in certificate.extensions() {
        if CONSTRAINTS.contains(&extension.oid) {
            continue;
        }
        let is_read = !matches!(
            extension.parsed_extension(),
            ParsedExtension::UnsupportedExtension { .. } | ParsedExtension::ParseError { .. }
        );
        if extension.critical && !(is_read && KNOWN.contains(&extension.oid)) {
            return Err(ChainError::CriticalExtension);
        }
    }
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let (from, until) = (validity.not_before, validity.not_after);
    if !(from.timestamp()..=until.timestamp()).contains(&seconds) {
        return Err(ChainError::Expired);
    }
    Ok(())
}

/// Checks that a certificate constrains neither names nor policies.
fn check_unconstrained(certificate: &X509Certificate<'_>) -> Result<(), ChainError> {
    let mut extensions = certificate.extensions().iter();
    match extensions.any(|it| CONSTRAINTS.contains(&it.oid)) {
        true => Err(ChainError::Constrained),
        false => Ok(()),
    }
}

/// Checks that no certificate of a chain is for other purposes alone. Follows `checkChainForKeyUsage`.
fn check_purpose(chain: &[&X509Certificate<'_>], purpose: Purpose) -> Result<(), ChainError> {
    let is_for_it = |certificate: &X509Certificate<'_>| match certificate.extended_key_usage() {
        Ok(None) => true,
        Ok(Some(usages)) => {
            let named = match purpose {
                Purpose::Server => usages.value.server_auth,
                Purpose::Client => usages.value.client_auth,
            };
            usages.value.any || named
        }
        Err(_) => false,
    };
    match chain.iter().all(|it| is_for_it(it)) {
        true => Ok(()),
        false => Err(ChainError::Usage),
    }
}

/// Returns true if a chain has a certificate of this subject and key.
fn is_in(chain: &[&X509Certificate<'_>], certificate: &X509Certificate<'_>) -> bool {
    chain.iter().any(|it| {
        it.subject().as_raw() == certificate.subject().as_raw()
            && it.public_key().raw == certificate.public_key().raw
    })
}

/// Returns true if a certificate is an authority's that may have so many intermediates below it. Follows
/// `Certificate.CheckSignatureFrom` and `Certificate.isValid`.
fn may_sign(parent: &X509Certificate<'_>, is_root: bool, intermediates: usize) -> bool {
    let is_authority = match parent.basic_constraints() {
        Ok(Some(constraints)) => {
            let most = constraints.value.path_len_constraint;
            let is_short = most
                .is_none_or(|most| usize::try_from(most).is_ok_and(|most| intermediates <= most));
            constraints.value.ca && is_short
        }
        Ok(None) => is_root && parent.version() != X509Version::V3,
        Err(_) => false,
    };
    let may_certify = match parent.key_usage() {
        Ok(Some(usage)) => usage.value.flags == 0 || usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    is_authority && may_certify
}

/// Returns true if the key of a certificate has made the signature of another.
fn has_signed(
    parent: &X509Certificate<'_>,
    child: &X509Certificate<'_>,
    algorithms: WebPkiSupportedAlgorithms,
) -> bool {
    let spki = SubjectPublicKeyInfoDer::from(parent.public_key().raw);
    let Ok(key) = RawPublicKeyEntity::try_from(&spki) else {
        return false;
    };
    let named = child.signature_algorithm.algorithm.as_bytes();
    let message = child.tbs_certificate.as_ref();
    // The parameters of an algorithm are not compared: they make no other signature good.
    let algorithms = algorithms.all.iter().filter(|algorithm| {
        let id = algorithm.signature_alg_id();
        let id = id.as_ref().strip_prefix(&[OBJECT_IDENTIFIER]);
        let id = id.and_then(|it| it.split_first());
        id.is_some_and(|(length, id)| id.get(..usize::from(*length)) == Some(named))
    });
    algorithms.into_iter().any(|algorithm| {
        let signature = &child.signature_value.data;
        key.verify_signature(*algorithm, message, signature).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose,
        IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
    };
    use ringwatch_testing::certificates as openssl;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    /// A time at which all certificates of the tests are valid.
    const NOW_SECONDS: u64 = 2_000_000_000;

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
    }

    fn judge(
        leaf: &CertificateDer<'static>,
        between: &[CertificateDer<'static>],
        authorities: &[CertificateDer<'static>],
    ) -> Result<(), ChainError> {
        judge_at(NOW_SECONDS, Purpose::Client, leaf, between, authorities)
    }

    fn judge_at(
        seconds: u64,
        purpose: Purpose,
        leaf: &CertificateDer<'static>,
        between: &[CertificateDer<'static>],
        authorities: &[CertificateDer<'static>],
    ) -> Result<(), ChainError> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let rules = Rules {
            authorities,
            algorithms: provider.signature_verification_algorithms,
            purpose,
            now: UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
        };
        verify(leaf, between, rules)
    }

    struct Signer {
        der: CertificateDer<'static>,
        issuer: Issuer<'static, KeyPair>,
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    fn authority(name: &str) -> CertificateParams {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    fn root(params: CertificateParams) -> Signer {
        let key = KeyPair::generate().expect("a key");
        Signer {
            der: params.self_signed(&key).expect("a certificate").into(),
            issuer: Issuer::new(params, key),
        }
    }

    impl Signer {
        fn sign(&self, params: CertificateParams) -> Self {
            let key = KeyPair::generate().expect("a key");
            Self {
                der: params
                    .signed_by(&key, &self.issuer)
                    .expect("a certificate")
                    .into(),
                issuer: Issuer::new(params, key),
            }
        }

        fn leaf(&self, change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
            let mut params = params("ann");
            change(&mut params);
            self.sign(params).der
        }
    }

    #[test]
    fn certificates_of_version_1_are_accepted() {
        let root = der(openssl::AUTHORITY);
        for (certificate, _) in [openssl::VERSION_1, openssl::RSA_2048, openssl::RSA_1024] {
            assert_eq!(judge(&der(certificate), &[], from_ref(&root)), Ok(()));
        }
        let old = der(openssl::ROOT_1);
        assert_eq!(
            judge(&der(openssl::UNDER_ROOT_1), &[], from_ref(&old)),
            Ok(())
        );
        let unknown = Err(ChainError::UnknownAuthority);
        assert_eq!(
            judge(&der(openssl::UNDER_ROOT_1), &[], from_ref(&root)),
            unknown
        );
        assert_eq!(judge(&der(openssl::SHA_1), &[], &[root]), unknown);
        // An authority of version 1 is none unless it is trusted itself.
        assert_eq!(judge(&der(openssl::UNDER_ROOT_1), &[old], &[]), unknown);
    }

    #[test]
    fn a_signature_of_another_key_counts_for_nothing() {
        let forged = root(authority("authority"));
        let root = der(openssl::AUTHORITY);
        let leaf = forged.leaf(|_| {});
        assert_eq!(
            judge(&leaf, &[], from_ref(&root)),
            Err(ChainError::UnknownAuthority)
        );
        let mut changed = der(openssl::VERSION_1.0).to_vec();
        let end = changed.len() - 1;
        changed[end] ^= 1;
        assert_eq!(
            judge(&changed.into(), &[], &[root]),
            Err(ChainError::UnknownAuthority)
        );
    }

    #[test]
    fn a_certificate_that_was_changed_anywhere_is_refused() {
        let (root, whole) = (der(openssl::AUTHORITY), der(openssl::VERSION_1.0));
        let signed = parse(&whole).expect("a certificate");
        let signed = signed.tbs_certificate.as_ref().len();
        // What is signed follows the head of the whole, of four bytes.
        for place in 4..4 + signed {
            for bit in [0x01, 0x80] {
                let mut damaged = whole.to_vec();
                damaged[place] ^= bit;
                let judged = judge(&damaged.into(), &[], from_ref(&root));
                assert!(judged.is_err(), "{place} {bit}");
            }
        }
    }

    #[test]
    fn leaves_may_be_authorities_themselves_and_for_any_purpose() {
        let root = root(authority("root"));
        let roots = [root.der.clone()];
        for leaf in [
            root.leaf(|it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
            root.leaf(|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]),
            root.leaf(|it| it.serial_number = Some(SerialNumber::from(vec![0x7f; 40]))),
            root.leaf(|it| it.key_usages = vec![KeyUsagePurpose::KeyEncipherment]),
            root.der.clone(),
        ] {
            assert_eq!(judge(&leaf, &[], &roots), Ok(()));
        }
        let server =
            root.leaf(|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
        assert_eq!(judge(&server, &[], &roots), Err(ChainError::Usage));
        let as_server = judge_at(NOW_SECONDS, Purpose::Server, &server, &[], &roots);
        assert_eq!(as_server, Ok(()));
    }

    #[test]
    fn intermediates_must_be_authorities_in_the_bounds_of_theirs() {
        let root = root(authority("root"));
        let roots = [root.der.clone()];
        let mut bounded = authority("one");
        bounded.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let one = root.sign(bounded);
        assert_eq!(judge(&one.leaf(|_| {}), from_ref(&one.der), &roots), Ok(()));
        assert_eq!(
            judge(&one.leaf(|_| {}), &[], &roots),
            Err(ChainError::UnknownAuthority)
        );
        let two = one.sign(authority("two"));
        let chain = [one.der.clone(), two.der.clone()];
        assert_eq!(
            judge(&two.leaf(|_| {}), &chain, &roots),
            Err(ChainError::UnknownAuthority)
        );
        let mut of_servers = authority("three");
        of_servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let three = root.sign(of_servers);
        assert_eq!(
            judge(&three.leaf(|_| {}), from_ref(&three.der), &roots),
            Err(ChainError::Usage)
        );
        for powerless in [
            root.sign(params("four")),
            root.sign({
                let mut params = authority("five");
                params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
                params
            }),
        ] {
            let leaf = powerless.leaf(|_| {});
            let judged = judge(&leaf, from_ref(&powerless.der), &roots);
            assert_eq!(judged, Err(ChainError::UnknownAuthority));
        }
    }

    #[test]
    fn times_and_extensions_are_judged_up_to_the_authority() {
        let mut old = authority("root");
        old.not_before = rcgen::date_time_ymd(2000, 1, 1);
        old.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let root = root(old);
        let roots = [root.der.clone()];
        let leaf = root.leaf(|_| {});
        assert_eq!(judge(&leaf, &[], &roots), Err(ChainError::Expired), "2033");
        let earlier = judge_at(1_700_000_000, Purpose::Client, &leaf, &[], &roots);
        assert_eq!(earlier, Ok(()));
        let before = judge_at(1_000_000_000, Purpose::Client, &leaf, &[], &roots);
        assert_eq!(before, Ok(()), "the leaf is older");
        let with = |oid: &[u64]| {
            let mut extension = CustomExtension::from_oid_content(oid, vec![5, 0]);
            extension.set_criticality(true);
            root.leaf(|it| it.custom_extensions.push(extension))
        };
        let critical = judge_at(
            1_700_000_000,
            Purpose::Client,
            &with(&[1, 2, 3]),
            &[],
            &roots,
        );
        assert_eq!(critical, Err(ChainError::CriticalExtension));
        let constrained = with(&[2, 5, 29, 30]);
        let constrained = judge_at(1_700_000_000, Purpose::Client, &constrained, &[], &roots);
        assert_eq!(constrained, Err(ChainError::Constrained));
    }

    #[test]
    fn the_search_for_a_chain_ends() {
        let root = root(authority("same"));
        let others: Vec<_> = (0..12).map(|_| root.sign(authority("same")).der).collect();
        let stranger = self::root(authority("same")).leaf(|_| {});
        assert_eq!(
            judge(&stranger, &others, &[root.der]),
            Err(ChainError::UnknownAuthority)
        );
    }
}
