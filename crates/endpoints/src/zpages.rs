//! `/statusz` and `/flagz`: what runs here, and with which flags; as text, or as JSON or YAML for clients that name the
//! kind. Follows `apiserver/pkg/server/statusz` and `flagz` of Kubernetes 1.36.

use std::collections::{BTreeMap, BTreeSet};

use http::header::{CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use ringwatch_http::ResponseBody;
use serde_json::{Value, json};

use super::errors::Failure;
use super::negotiation::{self, Format, status_format};
use super::respond::plain;
use super::response;
use super::version::VersionInfo;

/// The path of the status.
pub const STATUSZ: &str = "/statusz";
/// The path of the flags.
pub const FLAGZ: &str = "/flagz";

/// The name under which the server tells of itself, as kube-apiserver does.
const COMPONENT: &str = "apiserver";
/// The group of both kinds.
const GROUP: &str = "config.k8s.io";
/// The media types of both documents.
const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", "text/plain"];
/// The paths that are no help in looking for faults.
const NOT_LISTED: [&str; 5] = ["/api", "/apis", "/openapi", "/openid", "/.well-known"];

/// The facts that both documents tell.
#[derive(Debug)]
pub struct Zpages {
    /// The version of the program.
    pub version: VersionInfo,
    /// The time at which the process started.
    pub started: Timestamp,
    /// The paths that the server has besides those of resources.
    pub paths: Vec<String>,
    /// The values of the flags, by their names without dashes.
    pub flags: BTreeMap<String, String>,
}

/// A document, without what all of them have.
struct ZpageDocument {
    kind: &'static str,
    members: Value,
    text: String,
}

/// The form in which a client wants a document.
enum ZpageForm {
    Text,
    Structured(Format, &'static str),
}

impl Zpages {
    /// Answers a request for one of the documents at some time; `None` for another path.
    #[must_use]
    pub fn answer(
        &self,
        path: &str,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Option<Response<ResponseBody>> {
        let document = match path {
            STATUSZ => self.status(now),
            FLAGZ => self.flags(),
            _ => return None,
        };
        let answer = wanted(headers, document.kind).and_then(|wanted| document.answer(wanted));
        Some(
            answer.unwrap_or_else(|failure| {
                response::failure(status_format(headers, false), &failure)
            }),
        )
    }

    fn status(&self, now: Timestamp) -> ZpageDocument {
        let VersionInfo {
            git_version,
            go_version,
            emulation_major,
            emulation_minor,
            ..
        } = &self.version;
        let binary = git_version.trim_start_matches('v');
        let binary = binary.split('+').next().unwrap_or_default();
        let emulated = format!("{emulation_major}.{emulation_minor}");
        let folders = self.paths.iter().filter_map(|path| {
            let folder = path.split('/').nth(1).filter(|it| !it.is_empty())?;
            Some(format!("/{folder}"))
        });
        let paths: BTreeSet<_> = folders
            .filter(|it| !NOT_LISTED.contains(&it.as_str()))
            .collect();
        let paths: Vec<_> = paths.into_iter().collect();
        let up = (now.as_second() - self.started.as_second()).max(0);
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        let text = format!(
            "Started: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nGo version: {go_version}\n\
             Binary version: {binary}\nEmulation version: {emulated}\nPaths: {}\n",
            self.started.strftime("%a %b %e %H:%M:%S UTC %Y"),
            paths.join(" "),
        );
        let started = self.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        ZpageDocument {
            kind: "Statusz",
            members: json!({"startTime": started, "uptimeSeconds": up, "goVersion": go_version,
                "binaryVersion": binary, "emulationVersion": emulated, "paths": paths}),
            text: format!("\n{text}"),
        }
    }

    fn flags(&self) -> ZpageDocument {
        let lines = self.flags.iter();
        ZpageDocument {
            kind: "Flagz",
            members: json!({"flags": self.flags}),
            text: lines
                .map(|(name, value)| format!("{name} {value}\n"))
                .collect(),
        }
    }
}

impl ZpageDocument {
    fn answer(self, wanted: ZpageForm) -> Result<Response<ResponseBody>, Failure> {
        let kind = self.kind;
        let page = kind.to_ascii_lowercase();
        let (format, version) = match wanted {
            ZpageForm::Text => {
                return Ok(plain(format!(
                    "\n{COMPONENT} {page}\nWarning: This endpoint is not meant to be machine parseable, has no \
                     formatting compatibility guarantees and is for debugging purposes only.\n{}",
                    self.text
                )));
            }
            ZpageForm::Structured(format, version) => (format, version),
        };
        let mut object = json!({"kind": kind, "apiVersion": format!("{GROUP}/{version}"),
            "metadata": {"name": COMPONENT}});
        if let (Some(object), Value::Object(members)) = (object.as_object_mut(), self.members) {
            object.extend(members);
        }
        let mut response = response::serialized(StatusCode::OK, format, &object)?;
        let headers = response.headers_mut();
        let media_type = format!("{};g={GROUP};v={version};as={kind}", format.media_type());
        let media_type = HeaderValue::from_str(&media_type).map_err(Failure::internal)?;
        headers.insert(CONTENT_TYPE, media_type);
        if version == "v1alpha1" {
            let warning = format!(
                "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
            );
            let warning = HeaderValue::from_str(&warning).map_err(Failure::internal)?;
            headers.insert(WARNING, warning);
        }
        Ok(response)
    }
}

/// Returns the first form that the client accepts. Only text needs no kind.
///
/// # Errors
/// 406 when there is none.
fn wanted(headers: &HeaderMap, kind: &str) -> Result<ZpageForm, Failure> {
    for clause in negotiation::clauses(headers) {
        let structured =
            clause.parameter("as") == Some(kind) && clause.parameter("g") == Some(GROUP);
        let version = ["v1alpha1", "v1beta1"]
            .into_iter()
            .find(|it| clause.parameter("v") == Some(*it));
        match (clause.format(), version) {
            (Some(Format::Protobuf), _) => {}
            (Some(Format::Json), Some(version)) if structured => {
                return Ok(ZpageForm::Structured(Format::PrettyJson, version));
            }
            (Some(format), Some(version)) if structured => {
                return Ok(ZpageForm::Structured(format, version));
            }
            _ if clause.accepts("text", &["plain"]) && clause.parameter("as").is_none() => {
                return Ok(ZpageForm::Text);
            }
            _ => {}
        }
    }
    Err(Failure::not_acceptable(&MEDIA_TYPES))
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;
    use http_body_util::BodyExt;

    use super::*;

    async fn asked(path: &str, accept: &str) -> (Response<()>, String) {
        let zpages = Zpages {
            version: VersionInfo::kubernetes_1_36(),
            started: Timestamp::from_second(1_000_000).expect("a time"),
            paths: ["/", "/api/v1", "/metrics", "/healthz", "/healthz/ping"]
                .map(str::to_owned)
                .into(),
            flags: [("v", "2"), ("admission-control", "[]")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(ACCEPT, accept.parse().expect("a header"));
        }
        let now = Timestamp::from_second(1_003_725).expect("a time");
        let answer = zpages.answer(path, &headers, now).expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        (Response::from_parts(head, ()), text)
    }

    #[tokio::test]
    async fn people_get_text() {
        for accept in ["", "*/*", "text/plain", "text/html, text/*"] {
            let (head, text) = asked(STATUSZ, accept).await;
            assert_eq!(head.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
            assert!(text.starts_with("\napiserver statusz\nWarning: "), "{text}");
            assert!(
                text.ends_with(
                    "only.\n\nStarted: Mon Jan 12 13:46:40 UTC 1970\nUp: 1 hr 02 min 05 sec\n\
                     Go version: none\nBinary version: 1.36.2\nEmulation version: 1.36\n\
                     Paths: /healthz /metrics\n"
                ),
                "{text}"
            );
            let (_, text) = asked(FLAGZ, accept).await;
            assert!(
                text.ends_with("only.\nadmission-control []\nv 2\n"),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn programs_that_name_the_kind_get_it() {
        let accept = "application/json;as=Statusz;v=v1beta1;g=config.k8s.io";
        let (head, text) = asked(STATUSZ, accept).await;
        let media_type = "application/json;g=config.k8s.io;v=v1beta1;as=Statusz";
        assert_eq!(head.headers()[CONTENT_TYPE], media_type);
        assert!(!head.headers().contains_key(WARNING));
        let status: Value = serde_json::from_str(&text).expect("JSON");
        let expected = json!({"kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1",
            "metadata": {"name": "apiserver"}, "startTime": "1970-01-12T13:46:40Z",
            "uptimeSeconds": 3725, "goVersion": "none", "binaryVersion": "1.36.2",
            "emulationVersion": "1.36", "paths": ["/healthz", "/metrics"]});
        assert_eq!(status, expected);
        let accept = "application/yaml;as=Flagz;v=v1alpha1;g=config.k8s.io";
        let (head, text) = asked(FLAGZ, accept).await;
        assert!(head.headers().contains_key(WARNING));
        assert!(
            text.contains("flags:\n  admission-control: '[]'\n")
                || text.contains("flags:\n  admission-control: \"[]\"\n"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn other_forms_are_not_acceptable() {
        for accept in [
            "application/json",
            "application/json;as=Flagz;v=v1beta1;g=config.k8s.io",
            "application/json;as=Statusz;v=v1;g=config.k8s.io",
            "application/vnd.kubernetes.protobuf;as=Statusz;v=v1beta1;g=config.k8s.io",
            "text/plain;as=Statusz;v=v1beta1;g=config.k8s.io",
            "text/html",
        ] {
            let (head, text) = asked(STATUSZ, accept).await;
            assert_eq!(head.status(), 406, "{accept}");
            let words = "only the following media types are accepted: application/json, application/yaml, text/plain";
            assert!(text.contains(words), "{text}");
        }
    }
}
