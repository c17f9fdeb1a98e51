//! The few places that read whole documents, each with the reason why no worker waits for it.
//!
//! A worker serves others (ARCHITECTURE). Reading a document that clients chose is the first step of all long work on
//! it, so whoever adds such work comes past this list: either the request asks to be offloaded first
//! (`ringwatch_offload`), or the document is small.

use super::{is_for_tests, package_folders, read, relative, root, sources, without_tests};

/// Calls that read a whole document, wait for a body, or hold a thread.
const READS: [&str; 7] = [
    "serde_saphyr::",
    "Parser::new_from_str",
    "serde_json::from_slice",
    "codec::tree(",
    ".frame()",
    "block_in_place",
    "spawn_blocking",
];

/// Crates that are no part of a server: clients and tests.
const OTHERS: [&str; 6] = ["cli", "envtest", "load", "store", "testing", "top"];

/// The request has asked to be offloaded, as every one that reads a body or converts an object for its answer has.
const HAS_OFFLOADED: &[&str] = &[
    "admission/src/authorizer_check.rs",
    "admission/src/policies/params.rs",
    "admission/src/webhooks/answer.rs",
    "admission/src/webhooks/mutating.rs",
    "apiextensions/src/conversion/served_version.rs",
    "apiextensions/src/conversion/storage.rs",
    "endpoints/src/decode.rs",
    "endpoints/src/response.rs",
    "plugins/src/pod_security/existing_pods.rs",
    "plugins/src/write_guards/policy_parameters.rs",
    "registry/src/store/read.rs",
    "relay/src/discovery.rs",
    "relay/src/kinds.rs",
    // Bodies, and answers of webhooks.
    "apimachinery/src/yaml.rs",
    // Answers of admission and of conversion; those of other reviews are of limited size.
    "webhook/src/review_document.rs",
];

/// One stored object at a time, which is no larger than a store takes: some milliseconds (PERF.md). Lists and watches
/// give way between two.
const ONE_OBJECT: &[&str] = &[
    "admission/src/lookup.rs",
    "endpoints/src/encoding/encoder.rs",
    "endpoints/src/encoding/frame.rs",
    "endpoints/src/encoding/piecewise.rs",
    "endpoints/src/encoding/protobuf.rs",
    "endpoints/src/encoding/table.rs",
    "endpoints/src/handlers/eviction.rs",
    "endpoints/src/handlers/eviction/budget.rs",
    "endpoints/src/handlers/proxy/target.rs",
    "endpoints/src/handlers/kubelet_target.rs",
    "endpoints/src/handlers/scale.rs",
    "plugins/src/claim_resize.rs",
    "plugins/src/default_class.rs",
    "plugins/src/limit_ranger.rs",
    "plugins/src/namespace_lifecycle.rs",
    "plugins/src/priority.rs",
    "plugins/src/resource_quota.rs",
    "plugins/src/write_guards/escalation.rs",
    "relay/src/event.rs",
    "relay/src/object_head.rs",
    "relay/src/store.rs",
    "relay/src/stream.rs",
    "relay/src/writes.rs",
];

/// Tasks of the server, on threads of their own or before it serves.
const BACKGROUND: &[&str] = &[
    "endpoints/src/aggregation/discovery.rs",
    "endpoints/src/service_addresses.rs",
    "audit/src/body.rs",
    "audit/src/policy/read.rs",
    "controllers/src/aggregation/inquiry.rs",
    "controllers/src/aggregation.rs",
    "controllers/src/api_endpoints/addresses.rs",
    "controllers/src/api_endpoints/server_leases.rs",
    "relay/src/list_page.rs",
    "resources/src/allocation/addresses.rs",
    "resources/src/allocation/node_ports.rs",
    "resources/src/allocation/repair.rs",
    "resources/src/apiregistration/registrations.rs",
    "resources/src/default_objects/role_reconciliation.rs",
    "resources/src/default_objects/service_range.rs",
    "server/src/build/backend.rs",
    "server/src/build/store_snapshot.rs",
    "server/src/config/admission_file.rs",
    "server/src/config/authorization_file.rs",
    "server/src/config/config_file/document.rs",
    "server/src/config/config_file/field.rs",
    "server/src/config/credentials.rs",
    "server/src/config/tracing_file.rs",
    "server/src/config/upstream_kubeconfig.rs",
    "server/src/debug/profiles.rs",
    "server/src/run/audit.rs",
    "server/src/run/backend.rs",
    "tls/src/kubeconfig.rs",
];

/// Tokens, which fit into a header, answers of servers that the operator named, of limited size, and bytes that are
/// passed on unread.
const SMALL: &[&str] = &[
    "endpoints/src/handlers/pod_log.rs",
    "endpoints/src/translation/remote_command.rs",
    "endpoints/src/translation/status.rs",
    "endpoints/src/websocket.rs",
    "authentication/src/oidc/configuration.rs",
    "authentication/src/oidc/keys.rs",
    "authentication/src/stored.rs",
    "http/src/client/exchange.rs",
    "http/src/unread_body.rs",
    "relay/src/refusal.rs",
    "relay/src/upstream.rs",
    "server/src/debug/log_level.rs",
    "webhook/src/network_client.rs",
];

#[test]
fn whole_documents_are_read_where_no_worker_waits() {
    let mut known: Vec<&str> = [HAS_OFFLOADED, ONE_OBJECT, BACKGROUND, SMALL].concat();
    known.sort_unstable();
    let mut found = Vec::new();
    for package in package_folders() {
        let is_server = package.starts_with(root().join("crates"));
        let name = package.file_name().unwrap_or_default();
        if !is_server || OTHERS.iter().any(|other| name == *other) {
            continue;
        }
        for file in sources(&package.join("src")) {
            if is_for_tests(&file) {
                continue;
            }
            let text = without_tests(&read(&file));
            let mut code = text.lines().filter(|line| !line.starts_with("use "));
            if code.any(|line| READS.iter().any(|call| line.contains(call))) {
                found.push(relative(&file).trim_start_matches("crates/").to_owned());
            }
        }
    }
    found.sort_unstable();
    assert_eq!(
        found,
        known,
        "does a request ask to be offloaded before it does this (ringwatch_offload)? Then it belongs on a list of {}",
        file!()
    );
}
