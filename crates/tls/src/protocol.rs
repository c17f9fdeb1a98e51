//! The versions, cipher suites and key exchanges that the server offers, by the names and numbers that Go has for them.
//!
//! rustls has the suites of TLS 1.2 with forward secrecy and authenticated encryption, and no older version. Names of
//! others are known, so that a command line made for kube-apiserver is understood, but they cannot be offered. The
//! suites of TLS 1.3 are always offered, as in Go.

use rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, default_provider};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedProtocolVersion};

/// The minimum version of TLS that clients may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2, the oldest supported version.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl MinVersion {
    /// Reads Go's name of a version. The older two mean TLS 1.2: a client that has nothing newer cannot connect.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(Self::Tls12),
            "VersionTLS13" => Ok(Self::Tls13),
            _ => Err(format!("unknown tls version {name:?}")),
        }
    }
}

/// A cipher suite, by Go's name of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherSuiteName {
    name: &'static str,
    kind: SuiteKind,
}

/// The use of a cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuiteKind {
    /// It belongs to TLS 1.3 and is always offered.
    Always,
    /// It is offered to clients of TLS 1.2 if `--tls-cipher-suites` names it, or is not set.
    Chosen(CipherSuite),
    /// It is not supported.
    Missing,
    /// It is not supported, and Go lists it as insecure.
    Insecure,
}

/// The suites that RFC 9113 requires of HTTP/2 over TLS 1.2, of which Go's server wants one.
const HTTP2_SUITES: [CipherSuite; 2] = [
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
];

/// The suites that Go knows.
const SUITES: &[(&str, SuiteKind)] = &[
    ("TLS_AES_128_GCM_SHA256", SuiteKind::Always),
    ("TLS_AES_256_GCM_SHA384", SuiteKind::Always),
    ("TLS_CHACHA20_POLY1305_SHA256", SuiteKind::Always),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        SuiteKind::Chosen(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", SuiteKind::Missing),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", SuiteKind::Missing),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", SuiteKind::Missing),
    ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", SuiteKind::Missing),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        SuiteKind::Insecure,
    ),
    ("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", SuiteKind::Insecure),
    ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", SuiteKind::Insecure),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", SuiteKind::Insecure),
    ("TLS_ECDHE_RSA_WITH_RC4_128_SHA", SuiteKind::Insecure),
    ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", SuiteKind::Insecure),
    ("TLS_RSA_WITH_AES_128_CBC_SHA", SuiteKind::Insecure),
    ("TLS_RSA_WITH_AES_128_CBC_SHA256", SuiteKind::Insecure),
    ("TLS_RSA_WITH_AES_128_GCM_SHA256", SuiteKind::Insecure),
    ("TLS_RSA_WITH_AES_256_CBC_SHA", SuiteKind::Insecure),
    ("TLS_RSA_WITH_AES_256_GCM_SHA384", SuiteKind::Insecure),
    ("TLS_RSA_WITH_RC4_128_SHA", SuiteKind::Insecure),
];

impl CipherSuiteName {
    /// Reads Go's name of a suite.
    ///
    /// # Errors
    /// A sentence for the user if Go has no such suite.
    pub fn parse(text: &str) -> Result<Self, String> {
        let known = SUITES.iter().find(|(name, _)| *name == text);
        let (name, kind) =
            known.ok_or_else(|| format!("Cipher suite {text} not supported or doesn't exist"))?;
        Ok(Self { name, kind: *kind })
    }

    /// Returns the suite to offer to clients of TLS 1.2; `None` if it is not supported there.
    fn chosen(&self) -> Option<CipherSuite> {
        match self.kind {
            SuiteKind::Chosen(suite) => Some(suite),
            SuiteKind::Always | SuiteKind::Missing | SuiteKind::Insecure => None,
        }
    }
}

/// A key exchange, by its number among TLS's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve(u16);

/// The key exchanges that Go knows: P-256, P-384, P-521, X25519, and the three that combine one with ML-KEM.
const CURVES: [u16; 7] = [23, 24, 25, 29, 4587, 4588, 4589];

impl Curve {
    /// Reads the number of a key exchange. Ported from Kubernetes 1.36, component-base/cli/flag/curves_flag.go
    /// `TLSCurvePreferences`.
    ///
    /// # Errors
    /// A sentence for the user if Go has no such key exchange.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number: i32 = text.parse().map_err(|_| "not a number".to_owned())?;
        let curve = u16::try_from(number).ok().filter(|curve| *curve > 0);
        let curve = curve.ok_or_else(|| {
            format!("curve preference {number} is out of range (must be 1-65535)")
        })?;
        if !CURVES.contains(&curve) {
            return Err(format!("curve preference {curve} is not supported"));
        }
        Ok(Self(curve))
    }
}

static SINCE_12: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
static SINCE_13: [&SupportedProtocolVersion; 1] = [&TLS13];

/// The settings of the protocol, besides certificates.
#[derive(Clone, Debug)]
pub struct TlsProtocol {
    /// The minimum version.
    pub min_version: MinVersion,
    /// The suites of TLS 1.2; empty for all that are supported.
    pub suites: Vec<CipherSuiteName>,
    /// The key exchanges; empty for the default ones.
    pub curves: Vec<Curve>,
    /// True if HTTP/2 is offered besides HTTP/1.1.
    pub http2: bool,
}

impl Default for TlsProtocol {
    fn default() -> Self {
        Self {
            min_version: MinVersion::default(),
            suites: Vec::new(),
            curves: Vec::new(),
            http2: true,
        }
    }
}

impl TlsProtocol {
    /// Checks that clients of each offered version can connect.
    ///
    /// # Errors
    /// A line for the user.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = Vec::new();
        for Curve(curve) in &self.curves {
            if seen.contains(curve) {
                return Err(format!("duplicate curve preference {curve}"));
            }
            seen.push(*curve);
        }
        if self.groups().is_empty() {
            let numbers: Vec<String> = seen.iter().map(ToString::to_string).collect();
            return Err(format!(
                "no key exchange of --tls-curve-preferences={} is available here; add 23, 24, 29, 4587 or 4588",
                numbers.join(",")
            ));
        }
        if self.suites.is_empty() || self.min_version == MinVersion::Tls13 {
            return Ok(());
        }
        let chosen: Vec<CipherSuite> = self
            .suites
            .iter()
            .filter_map(CipherSuiteName::chosen)
            .collect();
        if self.http2 && !HTTP2_SUITES.iter().any(|suite| chosen.contains(suite)) {
            return Err(
                "--tls-cipher-suites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of \
                 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"
                    .to_owned(),
            );
        }
        if chosen.is_empty() {
            return Err(
                "no suite of --tls-cipher-suites is available here to clients of TLS 1.2; add \
                 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 and TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, or set \
                 --tls-min-version=VersionTLS13"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Returns the versions to offer.
    #[must_use]
    pub fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.min_version {
            MinVersion::Tls12 => &SINCE_12,
            MinVersion::Tls13 => &SINCE_13,
        }
    }

    /// Returns the suites and key exchanges to offer.
    #[must_use]
    pub fn provider(&self) -> CryptoProvider {
        let mut provider = default_provider();
        if !self.suites.is_empty() {
            let chosen: Vec<CipherSuite> = self
                .suites
                .iter()
                .filter_map(CipherSuiteName::chosen)
                .collect();
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() || chosen.contains(&suite.suite()));
        }
        provider.kx_groups = self.groups();
        provider
    }

    /// Returns a line for each chosen suite and key exchange that is not supported.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let suites = self.suites.iter().filter_map(|suite| match suite.kind {
            SuiteKind::Missing => {
                Some(format!("cipher suite {} is not available here", suite.name))
            }
            SuiteKind::Insecure => Some(format!(
                "cipher suite {} is insecure, and not available here",
                suite.name
            )),
            SuiteKind::Always | SuiteKind::Chosen(_) => None,
        });
        let there = |curve: &&Curve| ALL_KX_GROUPS.iter().any(|group| number(*group) == curve.0);
        let missing = self.curves.iter().filter(|curve| !there(curve));
        let curves =
            missing.map(|Curve(curve)| format!("key exchange {curve} is not available here"));
        suites.chain(curves).collect()
    }

    /// Returns the key exchanges to offer, the preferred one first.
    fn groups(&self) -> Vec<&'static dyn SupportedKxGroup> {
        if self.curves.is_empty() {
            return default_provider().kx_groups;
        }
        let groups = ALL_KX_GROUPS.iter().copied();
        groups
            .filter(|group| self.curves.contains(&Curve(number(*group))))
            .collect()
    }
}

fn number(group: &dyn SupportedKxGroup) -> u16 {
    group.name().into()
}

#[cfg(test)]
mod tests {
    use rustls::SupportedCipherSuite;

    use super::*;

    fn protocol(suites: &[&str], min_version: MinVersion) -> TlsProtocol {
        let suites = suites
            .iter()
            .map(|name| CipherSuiteName::parse(name).expect("a suite"));
        TlsProtocol {
            suites: suites.collect(),
            min_version,
            ..TlsProtocol::default()
        }
    }

    #[test]
    fn chosen_suites_are_offered_beside_those_of_tls_13() {
        let one = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let protocol = protocol(&[one, "TLS_RSA_WITH_RC4_128_SHA"], MinVersion::Tls12);
        protocol.check().expect("usable");
        let suites = protocol.provider().cipher_suites;
        let (new, old): (Vec<SupportedCipherSuite>, Vec<_>) =
            suites.into_iter().partition(|it| it.tls13().is_some());
        assert_eq!(new.len(), 3);
        assert_eq!(old.len(), 1);
        assert_eq!(
            old[0].suite(),
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        );
        assert_eq!(
            protocol.notices(),
            ["cipher suite TLS_RSA_WITH_RC4_128_SHA is insecure, and not available here"]
        );
    }

    #[test]
    fn a_server_that_nobody_could_use_is_refused() {
        let cbc = ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"];
        let mut old = protocol(&cbc, MinVersion::Tls12);
        assert!(old.check().expect_err("HTTP/2").contains("HTTP/2-required"));
        old.http2 = false;
        assert!(old.check().expect_err("1.2").contains("TLS 1.2"));
        protocol(&cbc, MinVersion::Tls13).check().expect("TLS 1.3");
        let mut chacha = protocol(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"], MinVersion::Tls12);
        chacha.check().expect_err("HTTP/2");
        chacha.http2 = false;
        chacha.check().expect("HTTP/1.1");
    }

    #[test]
    fn chosen_key_exchanges_are_offered() {
        let curves = |numbers: &[&str]| TlsProtocol {
            curves: numbers
                .iter()
                .map(|it| Curve::parse(it).expect("a curve"))
                .collect(),
            ..TlsProtocol::default()
        };
        let some = curves(&["23", "25", "4588"]);
        some.check().expect("usable");
        let mut offered: Vec<u16> = some.groups().into_iter().map(number).collect();
        offered.sort_unstable();
        assert_eq!(offered, [23, 4588]);
        assert_eq!(some.notices(), ["key exchange 25 is not available here"]);
        assert!(
            curves(&["25"])
                .check()
                .expect_err("none")
                .contains("add 23")
        );
        curves(&["29", "29"]).check().expect_err("twice");
    }

    #[test]
    fn versions_have_gos_names() {
        assert_eq!(MinVersion::parse("VersionTLS10"), Ok(MinVersion::Tls12));
        let newest = protocol(&[], MinVersion::parse("VersionTLS13").expect("a version"));
        assert_eq!(newest.versions().len(), 1);
        MinVersion::parse("1.3").expect_err("no name");
    }
}
