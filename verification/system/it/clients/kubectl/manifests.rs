//! Manifests as users keep them: applied, applied again, compared, and taken away.

use super::*;

/// The manifests, in the order of their names.
const MANIFESTS: &[(&str, &str)] = &[
    ("access", include_str!("manifests/access.yaml")),
    ("batch", include_str!("manifests/batch.yaml")),
    (
        "configuration",
        include_str!("manifests/configuration.yaml"),
    ),
    ("daemonset", include_str!("manifests/daemonset.yaml")),
    ("deployment", include_str!("manifests/deployment.yaml")),
    ("network", include_str!("manifests/network.yaml")),
    ("pod", include_str!("manifests/pod.yaml")),
    ("policies", include_str!("manifests/policies.yaml")),
    ("statefulset", include_str!("manifests/statefulset.yaml")),
    ("storage", include_str!("manifests/storage.yaml")),
];

/// The objects that kubectl sends a patch for each time, whatever the server: it compares lists that are replaced as a
/// whole with the defaults in their items, and takes fields that are write-only (`stringData`), empty (`rules: []`) or
/// replaced by strategy (a budget's selector) for changes.
const ALWAYS_CONFIGURED: &[&str] = &[
    "clusterrole.rbac.authorization.k8s.io/shop-monitoring",
    "deployment.apps/storefront",
    "job.batch/import",
    "limitrange/shop",
    "networkpolicy.networking.k8s.io/storefront",
    "pod/toolbox",
    "poddisruptionbudget.policy/storefront",
    "rolebinding.rbac.authorization.k8s.io/config-reader",
    "secret/storefront",
    "statefulset.apps/ledger",
];

#[tokio::test]
async fn manifests_are_applied_and_stay_as_they_are() {
    // No controller here lets protected claims go.
    let flags = [
        "--disable-admission-plugins=StorageObjectInUseProtection",
        "--allow-privileged=true",
    ];
    over_each_store("manifests", &flags, |kubectl| {
        let files: Vec<_> = MANIFESTS
            .iter()
            .map(|(name, text)| kubectl.file(&format!("{name}.yaml"), text))
            .collect();
        for file in &files {
            kubectl.applies_again_without_a_change(file);
        }
        kubectl.describes_every_kind();
        for file in files.iter().rev() {
            kubectl.quietly(&format!("delete -f {file}"));
        }
        for file in &files {
            kubectl.applies_on_the_server_without_a_change(file);
        }
        for file in files.iter().rev() {
            kubectl.quietly(&format!("delete -f {file}"));
        }
    })
    .await;
}

impl Kubectl {
    fn applies_again_without_a_change(&self, file: &str) {
        for line in self.quietly(&format!("apply -f {file}")).lines() {
            assert!(line.ends_with(" created"), "{line}");
        }
        let before = self.versions(file);
        for line in self.quietly(&format!("apply -f {file}")).lines() {
            let (name, what) = line.split_once(' ').expect("a name and what was done");
            let sent = ALWAYS_CONFIGURED.contains(&name);
            let expected = if sent { "configured" } else { "unchanged" };
            assert_eq!(what, expected, "{line}");
        }
        assert_eq!(self.quietly(&format!("diff -f {file}")), "");
        assert_eq!(self.versions(file), before);
    }

    fn applies_on_the_server_without_a_change(&self, file: &str) {
        let apply = format!("apply --server-side -f {file}");
        for line in self.quietly(&apply).lines() {
            assert!(line.ends_with(" serverside-applied"), "{line}");
        }
        let before = self.versions(file);
        self.quietly(&apply);
        assert_eq!(self.quietly(&format!("diff --server-side -f {file}")), "");
        assert_eq!(self.versions(file), before);
    }

    /// Names, versions and generations of what is in a file.
    fn versions(&self, file: &str) -> String {
        let columns = "KIND:.kind,NAME:.metadata.name,VERSION:.metadata.resourceVersion,GENERATION:.metadata.generation";
        self.quietly(&format!("get -f {file} -o custom-columns={columns}"))
    }

    fn describes_every_kind(&self) {
        for (object, facts) in [
            (
                "deployment/storefront",
                "RollingUpdateStrategy:  0 max unavailable, 1 max surge",
            ),
            ("deployment/storefront", "Liveness:     grpc <pod>:9113"),
            ("statefulset/ledger", "StorageClass:  fast"),
            ("statefulset/ledger", "Capacity:      512Mi"),
            ("daemonset/node-agent", "Directory"),
            (
                "cronjob/nightly-report",
                "Concurrency Policy:            Forbid",
            ),
            ("job/import", "Completion Mode:  Indexed"),
            ("service/storefront", "30443/TCP"),
            (
                "service/payments",
                "External Name:     payments.example.com",
            ),
            (
                "ingress/storefront",
                "storefront-tls terminates shop.example.com",
            ),
            ("networkpolicy/storefront", "Except: 10.20.9.0/24"),
            (
                "hpa/storefront",
                "resource cpu on pods  (as a percentage of request):  <unknown> / 70%",
            ),
            (
                "hpa/storefront",
                "Type: Percent  Value: 50  Period: 60 seconds",
            ),
            ("pdb/storefront", "Min available:  50%"),
            ("quota/shop", "Scopes: NotTerminating"),
            ("limitrange/shop", "500m"),
            ("pod/toolbox", "cpu:        100m"),
            ("configmap/storefront", "listen 8080;"),
            ("secret/storefront", "api-key:  6 bytes"),
            ("serviceaccount/storefront", "Image pull secrets:  registry"),
            ("role/config-reader", "deployments.apps/scale"),
            ("rolebinding/config-reader", "jane@example.com"),
            ("clusterrole/shop-metrics", "/healthz/*"),
            (
                "clusterrolebinding/shop-metrics",
                "ServiceAccount  storefront  default",
            ),
            ("priorityclass/shop", "100000"),
            (
                "storageclass/fast",
                "VolumeBindingMode:     WaitForFirstConsumer",
            ),
            ("pv/archive", "vol-0815"),
            ("pvc/archive", "StorageClass:  slow"),
            ("ingressclass/edge", "example.com/edge"),
            ("namespace/default", "Status:       Active"),
        ] {
            let described = self.ok(&["describe", object]);
            assert!(
                plain(&described).contains(&plain(facts)),
                "{facts} in {described}"
            );
        }
    }
}

/// A text whose words are one space apart.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
