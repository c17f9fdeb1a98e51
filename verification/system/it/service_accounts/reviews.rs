//! Reviews of tokens.

use super::*;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn review(fixture: &Fixture, spec: Value) -> Value {
    let answer = ask(
        &fixture.admin,
        Method::POST,
        REVIEWS,
        &json!({"spec": spec}),
    )
    .await;
    let answer: Value = serde_json::from_str(&answer.expect("an answer")).expect("JSON");
    answer["status"].clone()
}

#[tokio::test]
async fn a_review_says_whose_a_token_is_and_for_whom() {
    let fixture = Fixture::start(&["--api-audiences=api,other-api"]).await;
    let own = fixture.token(json!({})).await;
    let answer = review(&fixture, json!({"token": own})).await;
    assert_eq!(answer["authenticated"], true);
    assert_eq!(answer["audiences"], json!(["api", "other-api"]));
    let user = &answer["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(user["groups"][2], "system:authenticated");

    let vault = fixture.token(json!({"audiences": ["vault", "api"]})).await;
    let asked = json!({"token": vault, "audiences": ["vault", "bank"]});
    let answer = review(&fixture, asked).await;
    assert_eq!(answer["audiences"], json!(["vault"]));
    let asked = json!({"token": vault, "audiences": ["bank"]});
    let why = r#"token audiences ["vault" "api"] is invalid for the target audiences ["bank"]"#;
    assert_eq!(
        review(&fixture, asked).await,
        json!({"user": {}, "error": why})
    );
}

#[tokio::test]
async fn a_review_says_why_a_token_is_not_good() {
    let fixture = Fixture::start(&[]).await;
    let nobodys = review(&fixture, json!({"token": "nobodys"})).await;
    let why = "invalid bearer token";
    assert_eq!(nobodys, json!({"user": {}, "error": why}));

    fixture.create_secret("s").await;
    let token = fixture.token(bound("Secret", "s")).await;
    fixture.delete(&format!("{CORE}/secrets/s")).await;
    fixture.until_refused(&token).await;
    let why = "service account token has been invalidated";
    let answer = review(&fixture, json!({"token": token})).await;
    assert_eq!(answer, json!({"user": {}, "error": why}));

    let refused = ask(&fixture.admin, Method::POST, REVIEWS, &json!({"spec": {}})).await;
    let why = "400 token is required for TokenReview in authentication";
    assert_eq!(refused, Err(why.to_owned()));
}
