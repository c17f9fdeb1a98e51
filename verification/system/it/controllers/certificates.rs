//! A request for a certificate is approved and signed, by those who may.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::{Actor, Cluster};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const KUBELET_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

pub(super) async fn play(cluster: &Cluster) {
    let controller = cluster.controller("certificate-controller", REQUESTS).await;
    let admin = cluster.admin();
    let (pem, certificate) = asked_of("system:nodes");
    let spec = json!({"request": STANDARD.encode(pem), "signerName": KUBELET_SIGNER,
        "usages": ["digital signature", "client auth"]});
    refuse_new(&admin, &spec).await;

    let request = json!({"metadata": {"generateName": "csr-"}, "spec": spec});
    let asked = admin.post(REQUESTS, &request).await.object();
    let path = format!("{REQUESTS}/{}", super::name(&asked));
    let (approval, status) = (format!("{path}/approval"), format!("{path}/status"));
    let with = |of: &Value, status: Value| {
        let mut all = of.clone();
        all["status"] = status;
        all
    };
    let approved =
        json!([{"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "m"}]);
    let issued = |pem: &str| json!({"conditions": approved, "certificate": STANDARD.encode(pem)});
    let what = format!(
        "CertificateSigningRequest.certificates.k8s.io {:?} is invalid",
        super::name(&asked)
    );

    // Whoever signs does not approve.
    let early = controller
        .put(&status, &with(&asked, issued(&certificate)))
        .await;
    let why = r#"status.conditions: Forbidden: updates may not add a condition of type "Approved""#;
    early.refused(422, &format!("{what}: {why}"));
    for (conditions, why) in [
        (
            json!([{"type": "Approved", "status": "False"}]),
            r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#,
        ),
        (
            json!([{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]),
            r#"status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive"#,
        ),
    ] {
        let decided = with(&asked, json!({"conditions": conditions}));
        let refused = controller.put(&approval, &decided).await;
        refused.refused(422, &format!("{what}: {why}"));
    }
    let decided = with(&asked, json!({"conditions": approved}));
    let decided = controller.put(&approval, &decided).await.object();
    let undecided = controller.put(&approval, &with(&decided, json!({}))).await;
    let why =
        r#"status.conditions: Forbidden: updates may not remove a condition of type "Approved""#;
    undecided.refused(422, &format!("{what}: {why}"));

    let junk = controller
        .put(&status, &with(&decided, issued("junk")))
        .await;
    let why = r#"status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block"#;
    junk.refused(422, &format!("{what}: {why}"));
    let signed = controller
        .put(&status, &with(&decided, issued(&certificate)))
        .await;
    let signed = signed.object();
    let (_, other) = asked_of("other");
    let again = controller
        .put(&status, &with(&signed, issued(&other)))
        .await;
    let why = "status.certificate: Forbidden: updates may not modify existing certificate content";
    again.refused(422, &format!("{what}: {why}"));
    may_not(cluster, &admin).await;
}

/// Requests that no signer could sign are refused.
async fn refuse_new(admin: &Actor, spec: &Value) {
    for (member, value, why) in [
        (
            "request",
            json!("eA=="),
            r#"spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST"#,
        ),
        (
            "usages",
            json!(["client auth", "client auth"]),
            r#"spec.usages[1]: Duplicate value: "client auth""#,
        ),
        (
            "signerName",
            json!("mine"),
            "spec.signerName: Invalid value: \"mine\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
        (
            "expirationSeconds",
            json!(599),
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
        ),
    ] {
        let mut spec = spec.clone();
        spec[member] = value;
        let request = json!({"metadata": {"name": "wrong"}, "spec": spec});
        let refused = admin.post(REQUESTS, &request).await;
        refused.refused(
            422,
            &format!("CertificateSigningRequest.certificates.k8s.io \"wrong\" is invalid: {why}"),
        );
    }
}

/// A signer's requests are for those who may decide about them, and no certificate makes a master.
async fn may_not(cluster: &Cluster, admin: &Actor) {
    let controller = cluster.controller("certificate-controller", REQUESTS).await;
    let (pem, _) = asked_of("system:masters");
    let request = |signer: &str| {
        json!({"metadata": {"name": "other"}, "spec": {"request": STANDARD.encode(&pem), "signerName": signer,
            "usages": ["client auth"]}})
    };
    let what = r#"certificatesigningrequests.certificates.k8s.io "other" is forbidden"#;
    let master = admin
        .post(REQUESTS, &request("kubernetes.io/kube-apiserver-client"))
        .await;
    let why = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    master.refused(403, &format!("{what}: {why}"));
    let mut other = admin
        .post(REQUESTS, &request("example.com/signer"))
        .await
        .object();
    other["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    let decided = controller
        .put(&format!("{REQUESTS}/other/approval"), &other)
        .await;
    let why = r#"user not permitted to approve requests with signerName "example.com/signer""#;
    decided.refused(403, &format!("{what}: {why}"));
    other["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    let failed = controller
        .put(&format!("{REQUESTS}/other/status"), &other)
        .await;
    let why = r#"user not permitted to sign requests with signerName "example.com/signer""#;
    failed.refused(403, &format!("{what}: {why}"));
    let decided = admin.put(&format!("{REQUESTS}/other/status"), &other).await;
    decided.object();
}

/// A request in PEM for somebody of an organization, and a certificate.
fn asked_of(organization: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    let request = params.serialize_request(&key).expect("a request");
    let certificate = params.self_signed(&key).expect("a certificate");
    (request.pem().expect("PEM"), certificate.pem())
}
