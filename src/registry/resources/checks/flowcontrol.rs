//! Priority levels of requests.

use super::at::{At, Errors};

/// The one level whose requests never wait.
const EXEMPT: &str = "exempt";
/// How many queues a level may have.
const QUEUES_MAX: i64 = 10_000_000;
/// How many bits of a flow's hash choose its queues.
const HASH_BITS: f64 = 60.0;

/// A priority level, after Kubernetes' `ValidatePriorityLevelConfigurationSpec`.
pub(in crate::registry::resources) fn priority_level(object: &At<'_, '_>, errors: &mut Errors) {
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
}

/// How many requests run at once, and how much of that may be lent.
fn shares(at: &At<'_, '_>, errors: &mut Errors) {
    nominal_shares(at, errors);
    at.at("lendablePercent").must_be_between(0, 100, errors);
}

fn nominal_shares(at: &At<'_, '_>, errors: &mut Errors) {
    let shares = at.at("nominalConcurrencyShares");
    if shares.number() < Some(0) && shares.is_set() {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
}

fn limited(at: &At<'_, '_>, errors: &mut Errors) {
    nominal_shares(at, errors);
    limit_response(&at.at("limitResponse"), errors);
    at.at("lendablePercent").must_be_between(0, 100, errors);
    let borrowed = at.at("borrowingLimitPercent");
    if borrowed.is_set() && borrowed.number() < Some(0) {
        errors.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
}

/// The treatment of requests that cannot run at once.
fn limit_response(at: &At<'_, '_>, errors: &mut Errors) {
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

/// How many queues there are, how many a flow may choose from, and how long each may be.
fn queues(at: &At<'_, '_>, errors: &mut Errors) {
    let [length, queues, hand] =
        ["queueLengthLimit", "queues", "handSize"].map(|member| at.at(member));
    let number = |at: &At<'_, '_>| at.number().unwrap_or(0);
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
