//! Printer columns of CertificateSigningRequests, as in pkg/printers/internalversion/printers.go of Kubernetes 1.36.

use jiff::SignedDuration;
use ringwatch_registry::human_duration::human;

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

const NONE: &str = "<none>";

/// Table of CertificateSigningRequests, with signer, requestor, requested duration and conditions.
pub(crate) static SIGNING_REQUESTS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::AGE,
        Column::text("SignerName", "Who is asked to sign."),
        Column::text("Requestor", "Who asks."),
        Column::text(
            "RequestedDuration",
            "For how long the certificate should be valid.",
        ),
        Column::text("Condition", "What has become of the request."),
    ],
    |request| {
        let valid = "spec.expirationSeconds";
        let valid = request
            .has(valid)
            .then(|| human(SignedDuration::from_secs(request.number(valid))));
        cells![
            request.name(),
            request.age(),
            request.text_or("spec.signerName", NONE),
            request.text("spec.username"),
            valid.unwrap_or_else(|| NONE.to_owned()),
            condition(request),
        ]
    },
);

/// Returns the state of a request, such as `Approved,Issued`. A denial takes precedence over an approval.
fn condition(request: &RowSubject<'_>) -> String {
    let is = |kind| {
        let mut conditions = request.list("status.conditions");
        conditions.any(|condition| condition.text("type") == kind)
    };
    let mut words = vec![if is("Denied") {
        "Denied"
    } else if is("Approved") {
        "Approved"
    } else {
        "Pending"
    }];
    if is("Failed") {
        words.push("Failed");
    }
    if !request.text("status.certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
