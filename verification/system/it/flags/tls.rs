//! Versions, suites, key exchanges and certificates of TLS.

use rcgen::{CertificateParams, DnType, KeyPair};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ClientConfig, DEFAULT_VERSIONS, ProtocolVersion, RootCertStore};

use super::{Folder, anyone, dial, port};

#[tokio::test]
async fn clients_of_older_versions_are_refused() {
    let folder = Folder::new();
    let server = folder.serve(&["--tls-min-version=VersionTLS13"]).await;
    dial(port(&server), "localhost", anyone(&[&TLS12]))
        .await
        .unwrap_err();
    let stream = dial(port(&server), "localhost", anyone(DEFAULT_VERSIONS))
        .await
        .unwrap();
    let version = stream.get_ref().1.protocol_version();
    assert_eq!(version, Some(ProtocolVersion::TLSv1_3));
}

#[tokio::test]
async fn the_chosen_suite_is_used_by_clients_of_tls_12() {
    let folder = Folder::new();
    let server = folder
        .serve(&["--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"])
        .await;
    let stream = dial(port(&server), "localhost", anyone(&[&TLS12]))
        .await
        .unwrap();
    let suite = stream
        .get_ref()
        .1
        .negotiated_cipher_suite()
        .unwrap()
        .suite();
    assert_eq!(suite, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    let stream = dial(port(&server), "localhost", anyone(&[&TLS13]))
        .await
        .unwrap();
    assert!(stream.get_ref().1.negotiated_cipher_suite().is_some());
    // The server's key is none of RSA.
    let server = folder
        .serve(&["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
        .await;
    dial(port(&server), "localhost", anyone(&[&TLS12]))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn the_chosen_key_exchange_is_used() {
    let folder = Folder::new();
    let server = folder.serve(&["--tls-curve-preferences=24"]).await;
    for version in [&TLS12, &TLS13] {
        let stream = dial(port(&server), "localhost", anyone(&[version]))
            .await
            .unwrap();
        let group = stream.get_ref().1.negotiated_key_exchange_group().unwrap();
        assert_eq!(u16::from(group.name()), 24);
    }
}

#[tokio::test]
async fn http2_is_not_offered_if_it_is_disabled() {
    let folder = Folder::new();
    for (flags, expected) in [
        (&[][..], Some(&b"h2"[..])),
        (&["--disable-http2-serving"], Some(b"http/1.1")),
    ] {
        let server = folder.serve(flags).await;
        let mut config = anyone(DEFAULT_VERSIONS);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = dial(port(&server), "localhost", config).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected);
    }
}

/// Writes a certificate with its key, and returns it with the value of the flag.
fn certificate(folder: &Folder, file: &str, common_name: &str, names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let certificate = folder.write(&format!("{file}.crt"), &pem);
    let key = folder.write(&format!("{file}.key"), &key.serialize_pem());
    (pem, format!("{},{}", certificate.display(), key.display()))
}

async fn shown(port: u16, name: &str) -> CertificateDer<'static> {
    let stream = dial(port, name, anyone(DEFAULT_VERSIONS)).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0]
        .clone()
        .into_owned()
}

#[tokio::test]
async fn a_name_has_its_own_certificate() {
    let folder = Folder::new();
    let (one, one_files) = certificate(&folder, "one", "one.example", &["*.one.example"]);
    let (two, two_files) = certificate(&folder, "two", "two", &[]);
    let server = folder
        .serve(&[
            &format!("--tls-sni-cert-key={one_files}"),
            &format!("--tls-sni-cert-key={two_files}:two.example,127.0.0.1"),
        ])
        .await;
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    for (name, expected) in [
        ("one.example", &one),
        ("a.one.example", &one),
        ("two.example", &two),
        // A client that connects to an address asks for no name.
        ("127.0.0.1", &two),
    ] {
        assert_eq!(shown(port(&server), name).await, der(expected), "{name}");
    }
    let default = shown(port(&server), "localhost").await;
    assert!(default != der(&one) && default != der(&two));
    assert_eq!(shown(port(&server), "a.a.one.example").await, default);
}

#[tokio::test]
async fn the_certificate_of_a_name_changes_with_its_files() {
    let folder = Folder::new();
    let (old, files) = certificate(&folder, "one", "one.example", &[]);
    let server = folder
        .serve(&[&format!("--tls-sni-cert-key={files}")])
        .await;
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let port = port(&server);
    assert_eq!(shown(port, "one.example").await, der(&old));
    let default = shown(port, "two.example").await;
    let (new, _) = certificate(&folder, "one", "two.example", &[]);
    let replaced = eventually(DEADLINE, "the new certificate is shown", async || {
        shown(port, "two.example").await == der(&new)
    });
    replaced.await;
    assert_eq!(shown(port, "one.example").await, default);
}

#[tokio::test]
async fn the_generated_certificate_has_the_names_in_the_cluster() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let flag = format!("--data-dir={}", data.display());
    let server = folder
        .serve(&[&flag, "--advertise-address=192.0.2.7"])
        .await;
    let authority = std::fs::read(data.join("pki/ca.crt")).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&authority).unwrap())
        .unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for name in [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "10.0.0.1",
        "192.0.2.7",
        "localhost",
    ] {
        ServerName::try_from(name).unwrap();
        dial(port(&server), name, config.clone()).await.expect(name);
    }
    dial(port(&server), "192.0.2.8", config).await.unwrap_err();
}

#[tokio::test]
async fn a_pair_in_the_directory_of_certificates_is_served_and_nothing_there_changes() {
    let folder = Folder::new();
    let directory = folder.path().join("certificates");
    std::fs::create_dir(&directory).unwrap();
    let (given, _) = certificate(
        &folder,
        "certificates/apiserver",
        "theirs",
        &["theirs.example"],
    );
    for name in ["ca.crt", "ca.key", "sa.key", "admin.crt", "admin.key"] {
        std::fs::write(directory.join(name), "theirs").unwrap();
    }
    let content = || {
        let entries = std::fs::read_dir(&directory).unwrap();
        let files = entries.map(|it| it.unwrap().path());
        files
            .map(|it| (it.clone(), std::fs::read(it).unwrap()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = content();
    let flag = format!("--cert-dir={}", directory.display());
    let server = folder.serve(&[&flag]).await;
    let der = CertificateDer::from_pem_slice(given.as_bytes()).unwrap();
    assert_eq!(shown(port(&server), "localhost").await, der);
    assert_eq!(content(), before);
}

#[tokio::test]
async fn a_missing_pair_is_generated_once_and_alone() {
    let folder = Folder::new();
    let directory = folder.path().join("certificates");
    let flags = [
        format!("--cert-dir={}", directory.display()),
        format!("--data-dir={}", folder.path().join("data").display()),
    ];
    let flags = [flags[0].as_str(), flags[1].as_str()];
    let server = folder.serve(&flags).await;
    let first = shown(port(&server), "localhost").await;
    drop(server);
    let server = folder.serve(&flags).await;
    assert_eq!(shown(port(&server), "localhost").await, first);
    let entries = std::fs::read_dir(&directory).unwrap();
    let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["apiserver.crt", "apiserver.key"]);
}
