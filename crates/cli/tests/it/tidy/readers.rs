//! The few places that read whole documents, each with the reason why no worker waits for it.
//!
//! A worker serves others (ARCHITECTURE). Reading a document that clients chose is the first step of all long work on it, so whoever
//! adds such work comes past this list: either the request asks to leave first (`crate::work`), or the document is small.

use super::{is_for_tests, read, relative, sources, without_tests};

/// Calls that read a whole document, wait for a body, or hold a thread.
const READS: [&str; 6] = [
    "serde_saphyr::",
    "serde_json::from_slice",
    "codec::tree(",
    ".frame()",
    "block_in_place",
    "spawn_blocking",
];

/// The request has asked to leave, as every one that reads a body or converts an object for its answer has.
const HAS_LEFT: &[&str] = &[
    "endpoints/decode/mod.rs",
    "endpoints/decode/yaml.rs",
    "endpoints/response.rs",
    "registry/admission/judge.rs",
    "registry/admission/policies/params.rs",
    "registry/admission/webhooks/answer.rs",
    "registry/admission/webhooks/mutating.rs",
    "registry/custom_resources/conversion/mod.rs",
    "registry/custom_resources/conversion/storage.rs",
    "registry/store/read.rs",
    "registry/write_guards/policy_parameters.rs",
];

/// One stored object at a time, which is no larger than a store takes: some milliseconds (PERF.md). Lists and watches give way between two.
const ONE_OBJECT: &[&str] = &[
    "endpoints/encoding/encoder.rs",
    "endpoints/encoding/frame.rs",
    "endpoints/encoding/piecewise.rs",
    "endpoints/encoding/protobuf.rs",
    "endpoints/encoding/table.rs",
    "endpoints/handlers/eviction.rs",
    "endpoints/handlers/eviction/budget.rs",
    "endpoints/handlers/proxy/target.rs",
    "endpoints/handlers/relaying.rs",
    "endpoints/handlers/scale.rs",
    "registry/admission/claim_resize.rs",
    "registry/admission/default_class.rs",
    "registry/admission/limit_ranger.rs",
    "registry/admission/namespace_lifecycle.rs",
    "registry/admission/node_restriction/mod.rs",
    "registry/admission/priority.rs",
    "registry/admission/resource_quota.rs",
    "registry/admission/runtime_class.rs",
    "registry/admission/scene.rs",
    "registry/admission/service_account.rs",
    "registry/admission/topology_labels.rs",
    "registry/write_guards/escalation.rs",
];

/// Tasks of the server, on threads of their own or before it serves.
const BACKGROUND: &[&str] = &[
    "endpoints/aggregation/discovery.rs",
    "registry/allocation/addresses.rs",
    "registry/allocation/node_ports.rs",
    "registry/allocation/repair.rs",
    "registry/api_endpoints.rs",
    "registry/api_services.rs",
    "registry/bootstrap/role_reconciliation.rs",
    "registry/server_leases.rs",
    "registry/service_addresses.rs",
    "server/aggregation/inquiry.rs",
    "server/aggregation/mod.rs",
    "server/authorization_config.rs",
    "server/backend_factory.rs",
    "server/credentials.rs",
    "server/webhook_kubeconfig.rs",
];

/// Tokens, which fit into a header, answers of servers that the operator named, of limited size, and bytes that are passed on unread.
const SMALL: &[&str] = &[
    "authentication/oidc/configuration.rs",
    "authentication/oidc/keys.rs",
    "authentication/service_accounts/tokens.rs",
    "endpoints/handlers/pod_log.rs",
    "endpoints/relay/exchange.rs",
    "registry/authorization/webhook/mod.rs",
    "server/unread_body.rs",
];

#[test]
fn whole_documents_are_read_where_no_worker_waits() {
    let mut known: Vec<&str> = [HAS_LEFT, ONE_OBJECT, BACKGROUND, SMALL].concat();
    known.sort_unstable();
    let mut found = Vec::new();
    for folder in [
        "src/authentication",
        "src/endpoints",
        "src/registry",
        "src/server",
    ] {
        for file in sources(folder).iter().filter(|file| !is_for_tests(file)) {
            let text = without_tests(&read(file));
            let mut code = text.lines().filter(|line| !line.starts_with("use "));
            if code.any(|line| READS.iter().any(|call| line.contains(call))) {
                found.push(relative(file).trim_start_matches("src/").to_owned());
            }
        }
    }
    found.sort_unstable();
    assert_eq!(
        found,
        known,
        "does a request ask to leave before it does this (crate::work)? Then it belongs on a list of {}",
        file!()
    );
}
