//! Checks of PriorityLevelConfigurations.
//!
//! Follows pkg/apis/flowcontrol/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use super::schema_validation::conditions;
use crate::validation::field::{Errors, Field};

/// The one level whose requests never wait.
const EXEMPT: &str = "exempt";
/// The level of the requests that no other level takes.
const CATCH_ALL: &str = "catch-all";
/// The only spec of that level, as Go writes it.
const CATCH_ALL_SPEC: &str = r#"{"Type":"Limited","Limited":{"NominalConcurrencyShares":5,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}"#;
/// Maximum number of queues of a level.
const QUEUES_MAX: i64 = 10_000_000;
/// Number of bits of a flow's hash that choose its queues.
const HASH_BITS: f64 = 60.0;

/// The annotation by which conversion from v1beta3 tells zero shares from none. No object may have it itself.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// Checks a PriorityLevelConfiguration. Follows `ValidatePriorityLevelConfiguration`.
pub(crate) fn priority_level(object: &Field<'_, '_>, errors: &mut Errors) {
    let annotations = object.at("metadata.annotations");
    if annotations.value().get(ZERO_SHARES).is_some() {
        let why = format!("annotation '{ZERO_SHARES}' is forbidden");
        errors.push(annotations.forbidden(why));
    }
    let spec = object.at("spec");
    let (kind, limited, exempt) = (spec.at("type"), spec.at("limited"), spec.at("exempt"));
    if (object.at("metadata.name").text() == EXEMPT) != (kind.text() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.text() {
        "Exempt" => {
            limited.must_be_unset("must be nil if the type is not Limited", errors);
            shares(&exempt, errors);
        }
        "Limited" => {
            exempt.must_be_unset("must be nil if the type is Limited", errors);
            if limited.is_set() {
                self::limited(&limited, errors);
            } else {
                errors.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => errors.push(kind.unsupported(&["Exempt", "Limited"])),
    }
    mandatory(object.at("metadata.name").text(), &spec, errors);
    conditions(object, errors);
}

/// Checks that the two levels that every server has keep their specs, but for the shares of the exempt one.
fn mandatory(name: &str, spec: &Field<'_, '_>, errors: &mut Errors) {
    let shown = as_go_writes(spec);
    let (is_fixed, but) = match name {
        EXEMPT => (
            spec.at("type").text() == "Exempt" && !spec.at("limited").is_set(),
            " except the 'spec.exempt' field",
        ),
        CATCH_ALL => (shown == CATCH_ALL_SPEC, ""),
        _ => return,
    };
    if !is_fixed {
        let detail = format!("{shown}: spec of '{name}'{but} must equal the fixed value");
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            spec.field(),
            detail,
        ));
    }
}

/// Returns the spec of a level as Go writes Kubernetes' internal type, which errors show.
fn as_go_writes(spec: &Field<'_, '_>) -> String {
    let word = |at: &Field<'_, '_>| json!(at.at("type").text());
    let number = |at: &Field<'_, '_>, member| at.at(member).number().unwrap_or(0);
    let pointer = |at: &Field<'_, '_>, member| at.at(member).value().clone();
    let or_null = |at: &Field<'_, '_>, text: String| {
        if at.is_set() { text } else { "null".to_owned() }
    };
    let (limited, exempt) = (spec.at("limited"), spec.at("exempt"));
    let response = limited.at("limitResponse");
    let queuing = response.at("queuing");
    let queues = format!(
        "{{\"Queues\":{},\"HandSize\":{},\"QueueLengthLimit\":{}}}",
        number(&queuing, "queues"),
        number(&queuing, "handSize"),
        number(&queuing, "queueLengthLimit"),
    );
    let limits = format!(
        "{{\"NominalConcurrencyShares\":{},\"LimitResponse\":{{\"Type\":{},\"Queuing\":{}}},\"LendablePercent\":{},\"BorrowingLimitPercent\":{}}}",
        number(&limited, "nominalConcurrencyShares"),
        word(&response),
        or_null(&queuing, queues),
        pointer(&limited, "lendablePercent"),
        pointer(&limited, "borrowingLimitPercent"),
    );
    let shares = format!(
        "{{\"NominalConcurrencyShares\":{},\"LendablePercent\":{}}}",
        pointer(&exempt, "nominalConcurrencyShares"),
        pointer(&exempt, "lendablePercent"),
    );
    format!(
        "{{\"Type\":{},\"Limited\":{},\"Exempt\":{}}}",
        word(spec),
        or_null(&limited, limits),
        or_null(&exempt, shares),
    )
}

/// Checks the nominal shares and the percentages that may be lent and borrowed.
fn shares(at: &Field<'_, '_>, errors: &mut Errors) {
    nominal_shares(at, errors);
    at.at("lendablePercent").must_be_between(0, 100, errors);
}

fn nominal_shares(at: &Field<'_, '_>, errors: &mut Errors) {
    let shares = at.at("nominalConcurrencyShares");
    if shares.number() < Some(0) && shares.is_set() {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
}

fn limited(at: &Field<'_, '_>, errors: &mut Errors) {
    nominal_shares(at, errors);
    limit_response(&at.at("limitResponse"), errors);
    at.at("lendablePercent").must_be_between(0, 100, errors);
    let borrowed = at.at("borrowingLimitPercent");
    if borrowed.is_set() && borrowed.number() < Some(0) {
        errors.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
}

/// Checks the treatment of requests that cannot run at once.
fn limit_response(at: &Field<'_, '_>, errors: &mut Errors) {
    let queuing = at.at("queuing");
    match at.at("type").text() {
        "Reject" => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            queuing.must_be_unset(why, errors);
        }
        "Queue" if queuing.is_set() => queues(&queuing, errors),
        "Queue" => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(queuing.required(why));
        }
        _ => errors.push(at.at("type").unsupported(&["Queue", "Reject"])),
    }
}

/// Checks the number of queues, the size of a flow's hand, and the length of a queue.
fn queues(at: &Field<'_, '_>, errors: &mut Errors) {
    let [length, queues, hand] =
        ["queueLengthLimit", "queues", "handSize"].map(|member| at.at(member));
    let number = |at: &Field<'_, '_>| at.number().unwrap_or(0);
    if number(&length) <= 0 {
        errors.push(length.invalid_value(number(&length), "must be positive"));
    }
    let (deck, dealt) = (number(&queues), number(&hand));
    if deck <= 0 {
        errors.push(queues.invalid_value(deck, "must be positive"));
    } else if deck > QUEUES_MAX {
        let why = format!("must not be greater than {QUEUES_MAX}");
        errors.push(queues.invalid(why));
    }
    if dealt <= 0 {
        errors.push(hand.invalid_value(dealt, "must be positive"));
    } else if dealt > deck {
        let why = format!("should not be greater than queues ({deck})");
        errors.push(hand.invalid(why));
    } else if ((deck as f64).log2() * dealt as f64).ceil() > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {deck} and handSize {dealt} should not be greater than {HASH_BITS}"
        );
        errors.push(hand.invalid(why));
    }
}
