//! Requests whose answers kube-apiserver gave are answered in the same way here. `verification/system/answers/record`
//! records them, and tells what a line of the file is.

use std::time::{Duration, Instant};

use http::Request;
use http::header::{CONTENT_TYPE, WARNING};
use kube::Client;
use kube::client::Body;
use ringwatch_server::InProcessServer;
use serde::Deserialize;
use serde_json::Value;

use crate::support::in_process::client;
use crate::support::requests;

const ANSWERS: &str = include_str!("../answers/answers.jsonl");

/// Maximum time until a definition is served.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// A request and the answer that was recorded.
#[derive(Deserialize)]
struct Recorded {
    /// The method and the path.
    ask: String,
    body: Value,
    #[serde(rename = "type", default = "json")]
    media_type: String,
    /// True if the request is sent until the answer is not 404.
    #[serde(default)]
    again: bool,
    /// The JSON pointers of the values that were recorded.
    #[serde(default)]
    look: Vec<String>,
    answer: Answer,
}

/// The parts of an answer that are compared.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Answer {
    code: u16,
    message: String,
    causes: Vec<(Option<String>, Option<String>)>,
    warnings: Vec<String>,
    values: Vec<Value>,
}

fn json() -> String {
    "application/json".to_owned()
}

impl Answer {
    /// Puts what comes in the order of Go's maps, which is none, in one: causes, their messages, and warnings.
    fn sorted(mut self) -> Self {
        let message = self.message.replace(['[', ']'], "");
        let mut parts: Vec<&str> = message.split(", ").collect();
        parts.sort_unstable();
        self.message = parts.join(", ");
        self.causes.sort_unstable();
        self.warnings.sort_unstable();
        self
    }
}

async fn ask(client: &Client, recorded: &Recorded) -> Answer {
    let (method, path) = recorded.ask.split_once(' ').expect("a method and a path");
    let body = match &recorded.body {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        document => document.to_string().into_bytes(),
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, &recorded.media_type);
    let request = request.body(Body::from(body)).expect("a request");
    let (head, body) = requests::send(client, request).await.into_parts();
    // It is plain text where nothing is served.
    let document: Value = match body.starts_with(b"{") {
        true => serde_json::from_slice(&body).expect("JSON"),
        false => serde_json::json!({"message": String::from_utf8_lossy(&body)}),
    };
    let mut answer = Answer {
        code: head.status.as_u16(),
        ..Answer::default()
    };
    if head.status.is_client_error() || head.status.is_server_error() {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        answer.message = text(&document["message"]).unwrap_or_default();
        let causes = document
            .pointer("/details/causes")
            .and_then(Value::as_array);
        let causes = causes.into_iter().flatten();
        answer.causes = causes
            .map(|cause| (text(&cause["reason"]), text(&cause["field"])))
            .collect();
    }
    let warnings = head.headers.get_all(WARNING).iter();
    answer.warnings = warnings
        .map(|it| it.to_str().expect("a text").to_owned())
        .collect();
    let look = recorded.look.iter();
    answer.values = look
        .map(|pointer| document.pointer(pointer).cloned().unwrap_or_default())
        .collect();
    answer
}

/// Returns the answer to a request, which is sent again as long as it asks for that.
async fn last_answer(client: &Client, recorded: &Recorded) -> Answer {
    let until = Instant::now() + TIMEOUT;
    loop {
        let answer = ask(client, recorded).await;
        if !recorded.again || answer.code != 404 || Instant::now() > until {
            return answer;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn answers_are_those_that_were_recorded() {
    let server = InProcessServer::builder().flag("--allow-privileged=true");
    let server = server.start().await.expect("a server");
    let client = client(&server).await;
    let mut wrong = Vec::new();
    assert!(ANSWERS.lines().count() > 110, "the record is not whole");
    for line in ANSWERS.lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a recorded answer");
        let found = last_answer(&client, &recorded).await.sorted();
        let request = format!("{} {}", recorded.ask, recorded.body);
        let expected = recorded.answer.sorted();
        if found != expected {
            wrong.push(format!(
                "{request}\n  expected {expected:?}\n  found    {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
