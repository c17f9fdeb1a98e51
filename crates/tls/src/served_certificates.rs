//! The certificates of a server: a default one, and others for the names that clients ask for (SNI).
//!
//! Ported from Kubernetes 1.36, apiserver/pkg/server/dynamiccertificates/named_certificates.go
//! `BuildNamedCertificates`, with the choice of Go's crypto/tls: an exact name before a wildcard of one label, and the
//! default certificate for unknown names.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, Validity, X509Certificate};

use super::certificates::Identity;
use super::client_identity::certified_key;
use super::pem;

/// A certificate should be replaced so many seconds before it expires: a week.
const REPLACED_BEFORE_SECONDS_MAX: i64 = 7 * 86_400;

/// The part of its validity that is left then at most. Whoever renews short-lived certificates does so before: kubelets
/// when a tenth to three tenths are left, cert-manager at a third.
const REPLACED_BEFORE_PART: i64 = 10;

/// A certificate for clients that ask for certain names.
#[derive(Clone, Debug)]
pub struct NamedCertificate {
    /// The certificate and its key.
    pub identity: Identity,
    /// The names, in lower case: host names, host names that begin with `*.`, and addresses of this machine. If there
    /// are none, those in the certificate.
    pub names: Vec<String>,
}

/// The times at which a certificate expires and should have been replaced, in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The time at which the certificate expires, in seconds since the epoch.
    pub until_seconds: i64,
    /// The time at which the certificate should have been replaced, in seconds since the epoch: a week before it
    /// expires, or at the last tenth of its validity if that is later.
    pub replace_by_seconds: i64,
}

impl Expiry {
    /// Returns the most urgent of several at this time, in seconds since the epoch: of those that should have been
    /// replaced the one that expires first, or else the one that should be replaced first. `None` if there is none.
    #[must_use]
    pub fn most_urgent(all: &[Self], now_seconds: i64) -> Option<Self> {
        let urgency = |it: &&Self| match it.replace_by_seconds <= now_seconds {
            true => (0, it.until_seconds),
            false => (1, it.replace_by_seconds),
        };
        all.iter().min_by_key(urgency).copied()
    }

    fn of(validity: &Validity) -> Self {
        let until = validity.not_after.timestamp();
        let seconds = until.saturating_sub(validity.not_before.timestamp());
        let before = REPLACED_BEFORE_SECONDS_MAX.min(seconds / REPLACED_BEFORE_PART);
        Self {
            until_seconds: until,
            replace_by_seconds: until - before,
        }
    }
}

/// The certificates of a server.
#[derive(Clone, Debug)]
pub struct ServedCertificates {
    default: Arc<CertifiedKey>,
    by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
}

impl ServedCertificates {
    /// Reads the certificate for all names.
    ///
    /// # Errors
    /// A line that says why it cannot be used.
    pub fn new(default: &Identity) -> Result<Self, String> {
        let default = certified_key(&default.certificate, default.key.as_bytes())?;
        Ok(Self {
            default: Arc::new(default),
            by_name: Arc::default(),
        })
    }

    /// Adds certificates for some names. Given names count before those in certificates, and earlier certificates
    /// before later ones.
    ///
    /// # Errors
    /// The place in the list of a certificate that cannot be used, and a line that says why.
    pub fn with_named(self, named: &[NamedCertificate]) -> Result<Self, (usize, String)> {
        let (mut given, mut own) = (HashMap::new(), HashMap::new());
        for (place, certificate) in named.iter().enumerate() {
            let identity = &certificate.identity;
            let key = certified_key(&identity.certificate, identity.key.as_bytes())
                .map_err(|why| (place, why))?;
            let key = Arc::new(key);
            let (names, by_name) = if certificate.names.is_empty() {
                let names = names_in(&identity.certificate).map_err(|why| (place, why))?;
                (names, &mut own)
            } else {
                (certificate.names.clone(), &mut given)
            };
            for name in names {
                by_name.entry(name).or_insert_with(|| Arc::clone(&key));
            }
        }
        own.extend(given);
        Ok(Self {
            by_name: Arc::new(own),
            ..self
        })
    }

    /// Returns when each of the certificates expires.
    #[must_use]
    pub fn expiries(&self) -> Vec<Expiry> {
        let all = self.by_name.values().chain([&self.default]);
        let leaves = all.filter_map(|key| key.cert.first());
        let expiries = leaves.filter_map(|leaf| {
            let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
            Some(Expiry::of(certificate.validity()))
        });
        expiries.collect()
    }

    /// Returns the resolver by which rustls chooses among them.
    #[must_use]
    pub fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::new(Resolver {
            certificates: self.clone(),
            without_name: Arc::clone(&self.default),
        })
    }

    /// Returns the addresses among the names, each with the resolver for connections to it, which serves the
    /// certificate of the address to clients that ask for no name.
    #[must_use]
    pub fn by_address(&self) -> Vec<(IpAddr, Arc<dyn ResolvesServerCert>)> {
        let named = self.by_name.iter();
        let addresses = named.filter_map(|(name, key)| Some((name.parse::<IpAddr>().ok()?, key)));
        addresses
            .map(|(address, key)| {
                let resolver = Resolver {
                    certificates: self.clone(),
                    without_name: Arc::clone(key),
                };
                (address, Arc::new(resolver) as Arc<dyn ResolvesServerCert>)
            })
            .collect()
    }

    /// Returns the certificate for a name.
    fn named(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcard = || {
            let parent = name.find('.').map_or("", |dot| &name[dot..]);
            self.by_name.get(&format!("*{parent}"))
        };
        let found = self.by_name.get(&name).or_else(wildcard);
        found.unwrap_or(&self.default)
    }
}

/// The certificates, and the one for clients that ask for no name.
#[derive(Debug)]
struct Resolver {
    certificates: ServedCertificates,
    without_name: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = match hello.server_name() {
            Some(name) => self.certificates.named(name),
            None => &self.without_name,
        };
        Some(Arc::clone(key))
    }
}

/// Returns the names in a certificate: its common name, if that is a host name, and its DNS names. Addresses do not
/// count, since no client asks for one by name.
fn names_in(certificate: &str) -> Result<Vec<String>, String> {
    let chain = pem::certificates(certificate)?;
    let leaf = chain.first().ok_or("there is no certificate in it")?;
    let (_, certificate) = X509Certificate::from_der(leaf)
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let mut names = Vec::new();
    let common = certificate.subject().iter_common_name().last();
    let common = common.and_then(|name| name.as_str().ok());
    names.extend(common.filter(|name| is_host_name(name)).map(str::to_owned));
    if let Ok(Some(extension)) = certificate.subject_alternative_name() {
        for name in &extension.value.general_names {
            if let GeneralName::DNSName(name) = name {
                names.push(name.to_ascii_lowercase());
            }
        }
    }
    Ok(names)
}

/// Returns true for `*`, and for a DNS subdomain, which may begin with `*.`.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let inner = !label.starts_with('-') && !label.ends_with('-');
        !label.is_empty() && inner && label.bytes().all(plain)
    };
    let plain = name.strip_prefix("*.").unwrap_or(name);
    name == "*" || plain.split('.').all(label) && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn identity(common_name: &str, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("a key");
        Identity {
            certificate: params.self_signed(&key).expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    fn named(identity: &Identity, names: &[&str]) -> NamedCertificate {
        NamedCertificate {
            identity: identity.clone(),
            names: names.iter().map(ToString::to_string).collect(),
        }
    }

    fn same(key: &CertifiedKey, identity: &Identity) -> bool {
        key.cert == pem::certificates(&identity.certificate).expect("a certificate")
    }

    #[test]
    fn the_most_specific_name_of_the_earliest_certificate_counts() {
        let default = identity("default", &[]);
        let own = identity("own.example", &["both.example", "*.example"]);
        let given = identity("x", &["unused.example"]);
        let later = identity("x", &[]);
        let served = ServedCertificates::new(&default).expect("a certificate");
        let served = served.with_named(&[
            named(&own, &[]),
            named(&given, &["both.example", "10.0.0.1", "*.a.example"]),
            named(&later, &["*.a.example", "b.a.example"]),
        ]);
        let served = served.expect("certificates");
        for (name, expected) in [
            ("own.example", &own),
            ("OWN.example.", &own),
            ("other.example", &own),
            ("both.example", &given),
            ("x.a.example", &given),
            ("b.a.example", &later),
            ("y.x.a.example", &default),
            ("unused.example", &own),
            ("localhost", &default),
        ] {
            assert!(same(served.named(name), expected), "{name}");
        }
        let addresses: Vec<IpAddr> = served.by_address().into_iter().map(|it| it.0).collect();
        assert_eq!(addresses, [IpAddr::from([10, 0, 0, 1])]);
    }

    /// Returns a certificate that is valid between the beginnings of two days.
    fn valid(from: (i32, u8, u8), until: (i32, u8, u8)) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
        params.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
        let key = KeyPair::generate().expect("a key");
        Identity {
            certificate: params.self_signed(&key).expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    #[test]
    fn the_most_urgent_certificate_counts() {
        const DAY: i64 = 86_400;
        const BEGIN_OF_2030: i64 = 1_893_456_000;
        let year = valid((2029, 1, 1), (2030, 1, 8));
        let day = named(&valid((2030, 1, 2), (2030, 1, 3)), &["a"]);
        let served = ServedCertificates::new(&year).expect("a certificate");
        let served = served.with_named(&[day]).expect("certificates");
        let all = served.expiries();
        assert_eq!(all.len(), 2);
        let expiry = |day: i64, before| Expiry {
            until_seconds: BEGIN_OF_2030 + day * DAY,
            replace_by_seconds: BEGIN_OF_2030 + day * DAY - before,
        };
        let (year, day) = (expiry(7, 7 * DAY), expiry(2, DAY / 10));
        let at = |days_of_2030: f64| {
            let now = BEGIN_OF_2030 + (days_of_2030 * 86_400.0) as i64;
            Expiry::most_urgent(&all, now).expect("one")
        };
        assert_eq!(at(-1.0), year, "it should be replaced first");
        assert_eq!(at(1.5), year, "it alone should have been");
        assert_eq!(at(1.95), day, "so should both, and it expires first");
        assert_eq!(Expiry::most_urgent(&[], 0), None);
    }

    #[test]
    fn a_certificate_without_its_key_is_named_by_its_place() {
        let (one, two) = (identity("one", &[]), identity("two", &[]));
        let mixed = Identity {
            key: one.key.clone(),
            ..two
        };
        let served = ServedCertificates::new(&one).expect("a certificate");
        let error = served.with_named(&[named(&one, &[]), named(&mixed, &["a"])]);
        assert_eq!(error.expect_err("another key").0, 1);
    }

    #[test]
    fn common_names_that_are_no_host_names_are_left_out() {
        for (common_name, expected) in [
            ("a.example", &["a.example"][..]),
            ("*.example", &["*.example"]),
            ("10.0.0.1", &[]),
            ("Some One", &[]),
            ("a@1700000000", &[]),
        ] {
            let names = names_in(&identity(common_name, &[]).certificate);
            assert_eq!(names.expect("names"), expected, "{common_name}");
        }
    }
}
