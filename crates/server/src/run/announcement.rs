//! The lines that a server or relay prints once it serves: what runs, how to talk to it, and what is not protected.

use std::fmt::Display;
use std::path::Path;

use ringwatch_authorization::AuthorizationMode;

use crate::config::flags::{ModeFlag, RelayFlags, ServeFlags, StorageBackend};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the announcement of a server.
pub(crate) fn of_server(
    flags: &ServeFlags,
    url: impl Display,
    data_dir: &Path,
    kubeconfig: &Path,
) -> String {
    let kubeconfig = kubeconfig.display();
    let controllers = match flags.cluster.test_cluster.is_on() {
        true => "controllers  those of a test cluster (--test-cluster), not for production\n  ",
        false => "",
    };
    format!(
        "ringwatch {VERSION} serves the Kubernetes API at {url}\n  \
         store        {}\n  {controllers}\
         kubeconfig   {kubeconfig}, whose owner may do everything\n  \
         unprotected  {}\n  \
         try          kubectl --kubeconfig {kubeconfig} get namespaces",
        store(flags, data_dir),
        listed(&unprotected(flags)),
    )
}

/// Returns the announcement of a relay.
pub(crate) fn of_relay(flags: &RelayFlags, url: impl Display, kubeconfig: &Path) -> String {
    let kubeconfig = kubeconfig.display();
    let secrets = flags.cache_secrets;
    let secrets = secrets.then_some("Secrets are kept in memory (--cache-secrets)");
    let kept = "rights that are taken away and tokens that are revoked count for minutes longer";
    let unprotected: Vec<_> = secrets.into_iter().chain([kept]).collect();
    format!(
        "ringwatch {VERSION} relays a Kubernetes API at {url}\n  \
         upstream     the server of {}\n  \
         kubeconfig   {kubeconfig}, whose owner may do what this relay's credentials allow\n  \
         unprotected  {}\n  \
         try          kubectl --kubeconfig {kubeconfig} get pods --all-namespaces --watch",
        flags.kubeconfig.display(),
        listed(&unprotected),
    )
}

fn store(flags: &ServeFlags, data_dir: &Path) -> String {
    match flags.backend() {
        StorageBackend::Embedded => format!("embedded, in {}", data_dir.display()),
        StorageBackend::Memory => "in memory; nothing is kept when the server ends".to_owned(),
        StorageBackend::Etcd3 => format!("etcd at {}", flags.etcd.etcd_servers.join(", ")),
    }
}

/// Returns what these flags leave open to others, most dangerous first, each with the flag that closes it.
fn unprotected(flags: &ServeFlags) -> Vec<&'static str> {
    let modes = flags.authorization_modes();
    let allows_all = modes.contains(&ModeFlag::Mode(AuthorizationMode::AlwaysAllow));
    let plain_etcd = flags
        .etcd
        .etcd_servers
        .iter()
        .any(|it| it.starts_with("http://"));
    let in_plain =
        flags.encryption_provider_config.is_none() && flags.backend() != StorageBackend::Memory;
    let audit = &flags.audit;
    let has_backend =
        audit.log.audit_log_path.is_some() || audit.webhook.audit_webhook_config_file.is_some();
    let records = audit.audit_policy_file.is_some() && has_backend;
    let kubelets = flags.kubelets.kubelet_certificate_authority.is_some();
    let all = [
        (
            allows_all,
            "everybody may do everything (--authorization-mode)",
        ),
        (plain_etcd, "etcd is spoken to without TLS (--etcd-servers)"),
        (
            in_plain,
            "objects are stored unencrypted (--encryption-provider-config)",
        ),
        (!records, "nobody records requests (--audit-policy-file)"),
        (
            !kubelets,
            "any kubelet is trusted (--kubelet-certificate-authority)",
        ),
    ];
    let open = all.into_iter().filter(|(is_open, _)| *is_open);
    open.map(|(_, what)| what).collect()
}

fn listed(parts: &[&str]) -> String {
    match parts {
        [] => "nothing that flags could protect".to_owned(),
        parts => parts.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ServeFlags,
    }

    fn announced(flags: &[&str]) -> String {
        let line = [&["serve"], flags].concat();
        let flags = Line::parse_from(line).flags;
        let kubeconfig = Path::new("/data/kubeconfig");
        of_server(
            &flags,
            "https://127.0.0.1:6443",
            Path::new("/data"),
            kubeconfig,
        )
    }

    #[test]
    fn five_lines_say_what_runs_how_to_talk_to_it_and_what_is_open() {
        let text = announced(&[]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let [runs, store, kubeconfig, unprotected, attempt] = lines[..] else {
            panic!("{text}");
        };
        assert!(runs.ends_with("serves the Kubernetes API at https://127.0.0.1:6443"));
        assert_eq!(store, "store        embedded, in /data");
        assert!(kubeconfig.contains("/data/kubeconfig") && kubeconfig.contains("everything"));
        for flag in [
            "--encryption-provider-config",
            "--audit-policy-file",
            "--kubelet-certificate-authority",
        ] {
            assert!(unprotected.contains(flag), "{unprotected}");
        }
        assert!(
            !unprotected.contains("--authorization-mode"),
            "{unprotected}"
        );
        assert!(attempt.ends_with("kubectl --kubeconfig /data/kubeconfig get namespaces"));
    }

    #[test]
    fn a_test_cluster_is_no_secret() {
        let text = announced(&["--test-cluster"]);
        let controllers = text.lines().find(|it| it.trim().starts_with("controllers"));
        assert!(
            controllers.is_some_and(|it| it.contains("not for production")),
            "{text}"
        );
    }

    #[test]
    fn a_flag_that_protects_takes_its_words_away_and_one_that_opens_adds_them() {
        let text = announced(&[
            "--encryption-provider-config=e",
            "--audit-policy-file=p",
            "--audit-log-path=-",
            "--kubelet-certificate-authority=k",
        ]);
        assert!(text.contains("nothing that flags could protect"), "{text}");
        let text = announced(&[
            "--authorization-mode=AlwaysAllow",
            "--etcd-servers=http://127.0.0.1:2379",
            "--audit-log-path=-",
        ]);
        for words in ["everybody may do", "without TLS", "nobody records"] {
            assert!(text.contains(words), "{text}");
        }
        let text = announced(&["--storage-backend=memory"]);
        assert!(!text.contains("--encryption-provider-config"), "{text}");
    }
}
