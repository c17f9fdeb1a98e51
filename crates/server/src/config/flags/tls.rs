//! The flags of the server's side of TLS.

use std::path::PathBuf;

use clap::Args;
use ringwatch_tls::protocol::{CipherSuiteName, Curve, MinVersion, TlsProtocol};

/// Flags of the server's certificates and of TLS.
#[derive(Args, Clone, Debug)]
pub struct TlsFlags {
    /// Directory of the server's certificate and key, apiserver.crt and apiserver.key, which are generated if they are
    /// missing. The default is `pki` in the data directory.
    #[arg(long, value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,

    /// The server's certificate, followed by intermediates. The default is that in --cert-dir.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,

    /// Private key of the server's certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Certificate and key for clients that ask for one of these names, which may begin with `*.` or be addresses of
    /// this machine. Without names, those in the certificate. May be given several times.
    #[arg(long, value_name = "CERT,KEY[:NAMES]", value_parser = SniFlag::parse)]
    pub tls_sni_cert_key: Vec<SniFlag>,

    /// Least version of TLS: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 mean VersionTLS12.
    #[arg(long, value_name = "VERSION", default_value = "", value_parser = MinVersion::parse)]
    pub tls_min_version: MinVersion,

    /// Cipher suites of TLS 1.2, comma-separated, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. The default are all
    /// that are safe; those of TLS 1.3 cannot be chosen.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = CipherSuiteName::parse)]
    pub tls_cipher_suites: Vec<CipherSuiteName>,

    /// Key exchanges, as numbers of TLS groups, comma-separated: 23 (P-256), 24 (P-384), 29 (X25519), 4587 and 4588
    /// (with ML-KEM-768).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Curve::parse,
          allow_negative_numbers = true)]
    pub tls_curve_preferences: Vec<Curve>,
}

impl TlsFlags {
    /// Returns the settings of the protocol.
    #[must_use]
    pub fn protocol(&self, without_http2: bool) -> TlsProtocol {
        TlsProtocol {
            min_version: self.tls_min_version,
            suites: self.tls_cipher_suites.clone(),
            curves: self.tls_curve_preferences.clone(),
            http2: !without_http2,
        }
    }

    /// Checks combinations of flags.
    pub(super) fn check(&self, without_http2: bool) -> Result<(), String> {
        self.protocol(without_http2).check()
    }
}

/// The files of a certificate and its key, and the names that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniFlag {
    /// The file of the certificate, followed by intermediates.
    pub certificate: PathBuf,
    /// The file of its private key.
    pub key: PathBuf,
    /// The names; those of the certificate if it is empty.
    pub names: Vec<String>,
}

impl SniFlag {
    /// Reads `CERT,KEY[:NAME,...]`. Ported from Kubernetes 1.36, component-base/cli/flag/namedcertkey_flag.go
    /// `NamedCertKey.Set`.
    fn parse(text: &str) -> Result<Self, String> {
        let (files, names) = match text.split_once(':') {
            Some((_, names)) if names.trim().is_empty() => {
                return Err("empty names list is not allowed".to_owned());
            }
            Some((files, names)) => (files, names),
            None => (text, ""),
        };
        let files: Vec<&str> = files.split(',').map(str::trim).collect();
        let [certificate, key] = files[..] else {
            return Err("expected comma separated certificate and key file paths".to_owned());
        };
        let names = names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        Ok(Self {
            certificate: certificate.into(),
            key: key.into(),
            names: names.map(str::to_ascii_lowercase).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: TlsFlags,
    }

    fn parse(flags: &[&str]) -> Result<TlsFlags, String> {
        let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags))
            .map_err(|error| error.to_string())?;
        line.flags.check(false)?;
        Ok(line.flags)
    }

    #[test]
    fn certificates_have_files_and_perhaps_names() {
        let flags = parse(&[
            "--tls-sni-cert-key=a.crt,a.key",
            "--tls-sni-cert-key=b.crt,b.key:*.B.example, 10.0.0.1",
        ]);
        let [a, b] = &flags.expect("flags").tls_sni_cert_key[..] else {
            panic!("two certificates");
        };
        assert_eq!(a.certificate, PathBuf::from("a.crt"));
        assert!(a.names.is_empty());
        assert_eq!(b.key, PathBuf::from("b.key"));
        assert_eq!(b.names, ["*.b.example", "10.0.0.1"]);
    }

    #[test]
    fn values_that_cannot_be_used_are_named() {
        for (flag, words) in [
            ("--tls-sni-cert-key=a.crt", "expected comma separated"),
            ("--tls-sni-cert-key=a,b:", "empty names list"),
            ("--tls-min-version=TLS13", "unknown tls version \"TLS13\""),
            ("--tls-cipher-suites=X", "Cipher suite X not supported"),
            (
                "--tls-curve-preferences=0",
                "out of range (must be 1-65535)",
            ),
            ("--tls-curve-preferences=-1", "out of range"),
            (
                "--tls-curve-preferences=29,29",
                "duplicate curve preference 29",
            ),
            ("--tls-curve-preferences=28", "curve preference 28 is not"),
        ] {
            let error = parse(&[flag]).expect_err(flag);
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}
