//! PEM of certificate requests (PKCS #10) and certificates.

use base64::engine::general_purpose::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use ringwatch_apimachinery::go_text::quoted;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest, X509Error};

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

/// Maximum number of PEM blocks of a chain that are checked.
const CERTIFICATES_MAX: usize = 1000;

/// One block of a PEM text.
struct PemBlock {
    label: String,
    has_headers: bool,
    contents: Vec<u8>,
}

/// Returns the blocks of a PEM text. What is no block is passed over, as `pem.Decode` of Go does.
fn blocks(text: &[u8]) -> impl Iterator<Item = PemBlock> {
    let lines = text.split(|byte| *byte == b'\n');
    let mut open: Option<PemBlock> = None;
    let mut coded: Vec<u8> = Vec::new();
    let mut in_headers = false;
    lines.filter_map(move |line| {
        let line = line.trim_ascii_end();
        if let Some(rest) = line.strip_prefix(b"-----BEGIN ") {
            open = rest.strip_suffix(b"-----").map(|label| PemBlock {
                label: String::from_utf8_lossy(label).into_owned(),
                has_headers: false,
                contents: Vec::new(),
            });
            coded.clear();
            in_headers = true;
            return None;
        }
        if let Some(end) = line.strip_prefix(b"-----END ") {
            let mut block = open.take()?;
            let same = end.strip_suffix(b"-----")? == block.label.as_bytes();
            block.contents = STANDARD.decode(&coded).ok().filter(|_| same)?;
            return Some(block);
        }
        let block = open.as_mut()?;
        in_headers &= line.contains(&b':');
        if in_headers {
            block.has_headers = true;
        } else {
            coded.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
        }
        None
    })
}

/// Decodes base64 as Go does, which ignores line breaks and excess bits. Other texts are refused before.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    LENIENT
        .decode(text.replace(['\r', '\n'], ""))
        .unwrap_or_default()
}

/// A PKCS #10 certificate request in DER.
#[derive(Debug)]
pub struct SigningRequest(Vec<u8>);

impl SigningRequest {
    /// Reads a request that is signed with its own key.
    ///
    /// # Errors
    /// A message if the PEM block is of another type, the DER is malformed or the signature is wrong.
    pub fn read(pem: &[u8]) -> Result<Self, String> {
        let block = blocks(pem).next();
        let Some(block) = block.filter(|block| block.label == REQUEST) else {
            return Err(format!("PEM block type must be {REQUEST}"));
        };
        let (_, request) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|error| format!("x509: {error}"))?;
        match request.verify_signature() {
            // Signatures of rare algorithms cannot be verified here and are accepted.
            Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => Ok(Self(block.contents)),
            Err(error) => Err(format!("x509: {error}")),
        }
    }

    /// Returns the common name of the subject: the last one if there are several, as Go reads it. Empty if there is
    /// none.
    pub fn common_name(&self) -> String {
        let Ok((_, request)) = X509CertificationRequest::from_der(&self.0) else {
            return String::new();
        };
        let subject = &request.certification_request_info.subject;
        let last = subject.iter_common_name().last();
        last.map(|it| text(it.attr_value())).unwrap_or_default()
    }

    /// Returns the organizations of the subject, which are the groups of a user with the certificate.
    pub fn organizations(&self) -> Vec<String> {
        let Ok((_, request)) = X509CertificationRequest::from_der(&self.0) else {
            return Vec::new();
        };
        let subject = &request.certification_request_info.subject;
        let organizations = subject.iter_organization();
        organizations.map(|it| text(it.attr_value())).collect()
    }
}

/// Decodes an attribute of a name from any of ASN.1's string types, so that no type hides what other readers see.
fn text(value: &Any<'_>) -> String {
    if value.tag() != Tag::BmpString {
        return String::from_utf8_lossy(value.data).into_owned();
    }
    let units = value.data.chunks_exact(2);
    let units = units.map(|it| u16::from_be_bytes([it[0], it[1]]));
    char::decode_utf16(units)
        .map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Checks that a PEM text has at least one certificate and no other blocks.
///
/// # Errors
/// A message about the first block that is no certificate or is malformed, or that there is none.
pub(super) fn check_certificates(pem: &[u8]) -> Result<(), String> {
    let mut found = false;
    for block in blocks(pem).take(CERTIFICATES_MAX) {
        if block.label != CERTIFICATE {
            return Err(format!(
                "only {CERTIFICATE} PEM blocks are allowed, found {}",
                quoted(&block.label)
            ));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        if block.contents.is_empty() {
            return Err(format!(
                "found {CERTIFICATE} PEM block containing 0 certificates"
            ));
        }
        let mut rest = &block.contents[..];
        while !rest.is_empty() {
            let (after, _) =
                X509Certificate::from_der(rest).map_err(|error| format!("x509: {error}"))?;
            rest = after;
        }
        found = true;
    }
    if found {
        Ok(())
    } else {
        Err(format!("must contain at least one {CERTIFICATE} PEM block"))
    }
}

/// Checks that a PEM text has a certificate that can be read, as those have by which servers are known.
///
/// # Errors
/// The words about the first certificate that is wrong, or that there is none.
pub(crate) fn check_authorities(pem: &[u8]) -> Result<(), &'static str> {
    let (mut has_blocks, mut is_malformed) = (false, false);
    for block in blocks(pem).take(CERTIFICATES_MAX) {
        has_blocks = true;
        if block.label != CERTIFICATE || block.has_headers {
            continue;
        }
        match X509Certificate::from_der(&block.contents) {
            Ok(_) => return Ok(()),
            Err(_) => is_malformed = true,
        }
    }
    Err(match (has_blocks, is_malformed) {
        (false, _) => "unable to parse bytes as PEM block",
        (true, true) => "failed to parse certificate: x509: malformed certificate",
        (true, false) => "no valid certificate authority data seen",
    })
}

#[cfg(test)]
mod tests {
    use rcgen::string::{BmpString, TeletexString};
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    #[test]
    fn requests_and_certificates_are_told_apart() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["n.example".to_owned()]).expect("a name");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "ops");
        let request = params.serialize_request(&key).expect("a request");
        let request = request.pem().expect("PEM");
        let certificate = params.self_signed(&key).expect("a certificate").pem();

        let read = SigningRequest::read(request.as_bytes()).expect("a request");
        assert_eq!(read.organizations(), ["ops"]);
        for other in [&certificate, "", "nothing"] {
            let error = SigningRequest::read(other.as_bytes()).expect_err("no request");
            assert_eq!(error, "PEM block type must be CERTIFICATE REQUEST");
        }
        let twice = format!("{certificate}{certificate}");
        let among = format!("words\n-----BEGIN X-----\n{certificate}-----BEGIN Y\n");
        for chain in [&certificate, &twice, &among] {
            assert_eq!(check_certificates(chain.as_bytes()), Ok(()));
            assert_eq!(check_authorities(chain.as_bytes()), Ok(()));
        }
        for (other, why) in [
            ("eA==", "unable to parse bytes as PEM block"),
            (&*request, "no valid certificate authority data seen"),
        ] {
            assert_eq!(check_authorities(other.as_bytes()), Err(why));
        }
        let both = format!("{certificate}{request}");
        for (other, why) in [
            (
                &*both,
                "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"",
            ),
            ("eA==", "must contain at least one CERTIFICATE PEM block"),
            (
                &*certificate.replacen("-----\n", "-----\nkey: value\n\n", 1),
                "no PEM block headers are permitted",
            ),
            (
                "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
                "found CERTIFICATE PEM block containing 0 certificates",
            ),
        ] {
            assert_eq!(check_certificates(other.as_bytes()), Err(why.to_owned()));
        }
    }

    #[test]
    fn organizations_are_read_in_every_kind_of_text() {
        let key = KeyPair::generate().expect("a key");
        let bmp = BmpString::try_from("system:masters").expect("a text");
        let teletex = TeletexString::try_from("system:masters").expect("a text");
        for value in [DnValue::BmpString(bmp), DnValue::TeletexString(teletex)] {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            let name = &mut params.distinguished_name;
            name.push(DnType::OrganizationName, value);
            let request = params.serialize_request(&key).expect("a request");
            let request = request.pem().expect("PEM");
            let read = SigningRequest::read(request.as_bytes()).expect("a request");
            assert_eq!(read.organizations(), ["system:masters"]);
        }
    }

    #[test]
    fn of_several_names_the_last_counts() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "a");
        name.push(DnType::CustomDnType(vec![2, 5, 4, 3]), "b");
        let request = params.serialize_request(&key).expect("a request");
        let request = request.pem().expect("PEM");
        let read = SigningRequest::read(request.as_bytes()).expect("a request");
        assert_eq!(read.common_name(), "b");
    }

    #[test]
    fn a_request_is_signed_with_its_own_key() {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["n.example".to_owned()]).expect("a name");
        let request = params.serialize_request(&key).expect("a request");
        let mut der = request.der().to_vec();
        // The name that was signed is another now.
        let at = der
            .windows(9)
            .position(|it| it == b"n.example")
            .expect("the name");
        der[at] = b'm';
        let pem = pem_of(&der);
        SigningRequest::read(pem.as_bytes()).expect_err("another's signature");
    }

    fn pem_of(der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        format!("-----BEGIN {REQUEST}-----\n{text}\n-----END {REQUEST}-----\n")
    }
}
