//! Configurations that make sense, and those that do not.

use super::*;

fn parse(jwt: &str) -> Result<AuthenticationConfig, String> {
    let text = format!("apiVersion: {GROUP}/v1\nkind: {KIND}\n{jwt}");
    AuthenticationConfig::parse(&text, &["https://own".to_owned()])
        .map_err(|error| error.to_string())
}

/// Returns one issuer, with what is usual replaced.
fn issuer(issuer: &str, rest: &str) -> String {
    format!("jwt:\n- {{issuer: {{{issuer}}}, {rest}}}")
}

const USUAL: &str = "url: https://a, audiences: [x]";
const NAMED: &str = "claimMappings: {username: {claim: sub, prefix: ''}}";

/// Invalid issuers, and the errors about them.
const WRONG_ISSUERS: [(&str, &str); 7] = [
    (
        "audiences: [x]",
        "jwt[0].issuer.url: Required value: URL is required",
    ),
    ("url: http://a, audiences: [x]", "URL scheme must be https"),
    (
        "url: https://a?b, audiences: [x]",
        "must not contain a query",
    ),
    ("url: https://own, audiences: [x]", "disallowed issuers"),
    ("url: https://a", "jwt[0].issuer.audiences: Required value"),
    (
        "url: https://a, audiences: [x, y]",
        "must be MatchAny for multiple",
    ),
    (
        "url: https://a, discoveryURL: https://a/, audiences: [x]",
        "must be different",
    ),
];

/// Invalid mappings of users, and the errors about them.
const WRONG_USERS: [(&str, &str); 7] = [
    ("{}", "claim or expression is required"),
    (
        "{username: {claim: sub}}",
        "prefix is required when claim is set",
    ),
    (
        "{username: {claim: sub, expression: claims.sub}}",
        "can't both be set",
    ),
    ("{username: {expression: 'claims.'}}", "compilation failed"),
    (
        "{username: {expression: other.sub}}",
        "undeclared reference",
    ),
    (
        "{username: {expression: claims.email}}",
        "claims.email_verified must be used",
    ),
    (
        "{username: {expression: claims.sub}, extra: [{key: a, valueExpression: claims.a}]}",
        "domain-prefixed",
    ),
];

#[test]
fn issuers_are_read_with_their_rules() {
    let config = parse(&issuer(
        "url: https://a, discoveryURL: https://b/.well-known/openid-configuration, \
         audiences: [x, y], audienceMatchPolicy: MatchAny, certificateAuthority: pem",
        "claimMappings: {username: {expression: claims.sub}, groups: {claim: g, prefix: 'a:'}, \
         uid: {claim: id}, extra: [{key: acme.io/a, valueExpression: claims.a}]}, \
         claimValidationRules: [{claim: a, requiredValue: b}, {expression: claims.c == 1, message: no}], \
         userValidationRules: [{expression: user.username != 'x'}]",
    ));
    let config = config.expect("a configuration");
    let [issuer] = &config.issuers[..] else {
        panic!("one issuer");
    };
    assert_eq!(issuer.audiences, ["x", "y"]);
    assert_eq!(issuer.certificate_authority.as_deref(), Some("pem"));
    let mapping = &issuer.mapping;
    assert_eq!(mapping.required, [("a".to_owned(), "b".to_owned())]);
    assert_eq!(
        mapping.claim_rules[0].message,
        "validation expression 'claims.c == 1' failed: no"
    );
    assert_eq!((mapping.extra.len(), mapping.user_rules.len()), (1, 1));
    assert_eq!(config.anonymous, None);
    let paths = parse("anonymous: {enabled: true, conditions: [{path: /livez}]}");
    let anonymous = paths.expect("a configuration").anonymous;
    let anonymous = anonymous.expect("it is said");
    assert!(anonymous.serves("/livez") && !anonymous.serves("/livez/x"));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let twice =
        format!("jwt:\n- {{issuer: {{{USUAL}}}, {NAMED}}}\n- {{issuer: {{{USUAL}}}, {NAMED}}}");
    let rules = |rules: &str| issuer(USUAL, &format!("{NAMED}, {rules}"));
    let issuers = WRONG_ISSUERS.map(|(text, words)| (issuer(text, NAMED), words));
    let users = WRONG_USERS.map(|(text, words)| {
        let mappings = format!("claimMappings: {text}");
        (issuer(USUAL, &mappings), words)
    });
    let others = [
        ("jwt: 1".to_owned(), "jwt"),
        ("other: 1".to_owned(), "other"),
        (twice, "jwt[1].issuer.url: Duplicate value"),
        (
            rules("claimValidationRules: [{}]"),
            "claim or expression is required",
        ),
        (
            rules("userValidationRules: [{expression: claims.a}]"),
            "undeclared reference",
        ),
        (
            rules("claimValidationRules: [{expression: claims.a}]"),
            "must evaluate to bool",
        ),
        (
            "anonymous: {enabled: false, conditions: [{path: /a}]}".to_owned(),
            "enabled should be set to true",
        ),
    ];
    for (text, words) in issuers.into_iter().chain(users).chain(others) {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(words), "{text}: {error}");
    }
    for other in ["apiVersion: v1\nkind: Pod", "[", ""] {
        assert!(AuthenticationConfig::parse(other, &[]).is_err(), "{other}");
    }
}
