//! Negotiates the media type and form of a response: the Accept header against what can be written.
//!
//! The hard part is that two layers of kube-apiserver refuse with different messages: a media type that the path does
//! not produce, and a known one with unsupported parameters.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};

use super::errors::Failure;
use super::params::Query;

/// The media type of Kubernetes' protobuf encoding.
pub(super) const PROTOBUF_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a watch whose events are protobuf frames.
const PROTOBUF_STREAM_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The media types in which objects are written.
pub(super) const OBJECT_MEDIA_TYPES: &[&str] =
    &["application/json", "application/yaml", PROTOBUF_MEDIA_TYPE];

/// The media types of lists, which may also be watched.
pub(super) const LIST_MEDIA_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    PROTOBUF_MEDIA_TYPE,
    "application/json;stream=watch",
    PROTOBUF_STREAM_MEDIA_TYPE,
];

/// The media types of watches.
const STREAM_MEDIA_TYPES: &[&str] = &["application/json;stream=watch", PROTOBUF_STREAM_MEDIA_TYPE];

/// The prefixes of user agents of browsers and command line tools, for which the response is indented.
const HUMAN_AGENTS: &[&str] = &["curl", "Wget", "Mozilla/5.0"];

/// Maximum number of clauses of an Accept header that are used.
const ACCEPT_CLAUSES_MAX: usize = 64;

/// The encoding and the form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    /// The encoding: JSON, YAML or protobuf.
    pub(super) format: Format,
    /// The part of the object that is written.
    pub(super) form: ObjectForm,
}

/// The syntax of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// On one line, with a line feed.
    Json,
    /// JSON with indentation.
    PrettyJson,
    /// YAML, block style.
    Yaml,
    /// Kubernetes' protobuf, in its envelope.
    Protobuf,
}

/// The part of an object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectForm {
    /// The whole object.
    Whole,
    /// Its metadata, as PartialObjectMetadata.
    Metadata,
    /// The metadata of a list's items, as PartialObjectMetadataList.
    MetadataList,
    /// Its printer columns, as a Table.
    Table(TableForm),
}

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableForm {
    /// The version of `meta.k8s.io` of the Table, such as `v1`.
    pub(super) version: &'static str,
    /// The part of the objects that comes with the rows.
    pub(super) include: IncludeObject,
}

/// The part of an object that comes with its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IncludeObject {
    /// The rows carry no object.
    None,
    /// The rows carry the object's metadata, as PartialObjectMetadata.
    #[default]
    Metadata,
    /// The rows carry the whole object.
    Object,
}

/// One clause of an Accept header.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    kind: String,
    subtype: String,
    parameters: Vec<(String, String)>,
    quality: f32,
}

impl Format {
    /// Returns the value of the Content-Type header.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => PROTOBUF_MEDIA_TYPE,
        }
    }

    /// Returns the Content-Type of a watch.
    pub(super) fn stream_media_type(self) -> &'static str {
        match self {
            Self::Protobuf => PROTOBUF_STREAM_MEDIA_TYPE,
            other => other.media_type(),
        }
    }
}

impl Clause {
    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns true if the clause names this media type itself, not by a wildcard.
    pub(super) fn names(&self, kind: &str, subtype: &str) -> bool {
        self.kind == kind && self.subtype == subtype
    }

    /// Returns true if the clause accepts one of these subtypes.
    pub(super) fn accepts(&self, kind: &str, subtypes: &[&str]) -> bool {
        let subtype = self.subtype.as_str();
        matches!(&self.kind, it if it == "*" || it == kind)
            && (subtype == "*" || subtypes.contains(&subtype))
    }

    /// Returns the first of the known syntaxes that the clause accepts.
    pub(super) fn format(&self) -> Option<Format> {
        if self.kind != "*" && self.kind != "application" {
            return None;
        }
        match self.subtype.as_str() {
            "*" | "json" => Some(Format::Json),
            "yaml" if self.kind == "application" => Some(Format::Yaml),
            "vnd.kubernetes.protobuf" if self.kind == "application" => Some(Format::Protobuf),
            _ => None,
        }
    }

    /// Returns the form that the parameters ask for; `None` for one that is not known here, or not in the clause's
    /// syntax.
    fn form(&self) -> Option<ObjectForm> {
        let Some(kind) = self.parameter("as") else {
            return Some(ObjectForm::Whole);
        };
        let meta = self.parameter("g") == Some("meta.k8s.io")
            && matches!(self.parameter("v"), Some("v1" | "v1beta1"));
        match kind {
            "PartialObjectMetadata" if meta => Some(ObjectForm::Metadata),
            "PartialObjectMetadataList" if meta => Some(ObjectForm::MetadataList),
            "Table" if meta && self.format() != Some(Format::Protobuf) => {
                Some(ObjectForm::Table(TableForm {
                    version: match self.parameter("v") {
                        Some("v1beta1") => "v1beta1",
                        _ => "v1",
                    },
                    include: IncludeObject::default(),
                }))
            }
            _ => None,
        }
    }
}

impl Output {
    /// Adds the query's options of tables to a form that is one.
    ///
    /// # Errors
    /// 400 when there is a table, and the query asks for something else than its rows can have.
    pub(super) fn with_table_options(mut self, query: &Query) -> Result<Self, Failure> {
        if let ObjectForm::Table(table) = &mut self.form {
            table.include = match query.first("includeObject") {
                "" | "Metadata" => IncludeObject::Metadata,
                "None" => IncludeObject::None,
                "Object" => IncludeObject::Object,
                other => {
                    return Err(Failure::bad_request(format!(
                        "Unable to convert to Table as requested: includeObject: Invalid value: \
                         {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                    )));
                }
            };
        }
        Ok(self)
    }
}

/// Returns the clauses of the Accept header, best first; everything is accepted if there is none.
pub(super) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .filter(|value| !value.trim().is_empty())
        .unwrap_or("*/*");
    let mut clauses: Vec<Clause> = accept
        .split(',')
        .take(ACCEPT_CLAUSES_MAX)
        .filter_map(parse_clause)
        .collect();
    let specificity =
        |clause: &Clause| u8::from(clause.kind != "*") + u8::from(clause.subtype != "*");
    clauses.sort_by(|one, other| {
        other
            .quality
            .total_cmp(&one.quality)
            .then(specificity(other).cmp(&specificity(one)))
    });
    clauses
}

/// Decides how an object or a list is written. Its metadata alone can always be `in_protobuf`.
///
/// # Errors
/// 406 when nothing that is accepted can be written.
pub(super) fn negotiate(
    headers: &HeaderMap,
    pretty: bool,
    produced: &[&str],
    in_protobuf: bool,
) -> Result<Output, Failure> {
    choose(headers, pretty, produced, |format, form| {
        in_protobuf || format != Format::Protobuf || form != ObjectForm::Whole
    })
}

/// Chooses the form of a response that is no object of a resource, so that there is no table of it.
///
/// # Errors
/// 406 when nothing that is accepted can be written.
pub(super) fn negotiate_whole(
    headers: &HeaderMap,
    pretty: bool,
    in_protobuf: bool,
) -> Result<Output, Failure> {
    choose(headers, pretty, OBJECT_MEDIA_TYPES, |format, form| {
        (in_protobuf || format != Format::Protobuf) && !matches!(form, ObjectForm::Table(_))
    })
}

/// Chooses the first accepted clause that fits.
fn choose(
    headers: &HeaderMap,
    pretty: bool,
    produced: &[&str],
    fits: impl Fn(Format, ObjectForm) -> bool,
) -> Result<Output, Failure> {
    let clauses = clauses(headers);
    if !clauses.iter().any(|clause| clause.format().is_some()) {
        return Err(Failure::not_produced(produced));
    }
    for clause in clauses {
        let streams = clause.parameter("stream").is_some_and(|it| !it.is_empty());
        if let (Some(format), Some(form), false) = (clause.format(), clause.form(), streams) {
            if !fits(format, form) {
                continue;
            }
            let format =
                if format == Format::Json && (pretty || clause.parameter("pretty") == Some("1")) {
                    Format::PrettyJson
                } else {
                    format
                };
            return Ok(Output { format, form });
        }
    }
    Err(Failure::not_acceptable(OBJECT_MEDIA_TYPES))
}

/// Decides how the events of a watch are written, which is JSON or protobuf.
///
/// # Errors
/// 406 when nothing that is accepted can be written.
pub(super) fn negotiate_stream(headers: &HeaderMap, in_protobuf: bool) -> Result<Output, Failure> {
    let clauses = clauses(headers);
    if !clauses.iter().any(|clause| clause.format().is_some()) {
        return Err(Failure::not_produced(LIST_MEDIA_TYPES));
    }
    clauses
        .iter()
        .filter(|clause| matches!(clause.parameter("stream"), None | Some("" | "watch")))
        .find_map(|clause| {
            let form = clause.form()?;
            match clause.format()? {
                Format::Json | Format::PrettyJson => Some(Output {
                    format: Format::Json,
                    form,
                }),
                Format::Protobuf if in_protobuf || form != ObjectForm::Whole => Some(Output {
                    format: Format::Protobuf,
                    form,
                }),
                Format::Protobuf | Format::Yaml => None,
            }
        })
        .ok_or_else(|| Failure::not_acceptable(STREAM_MEDIA_TYPES))
}

/// Chooses the encoding of a failure's Status: indented JSON if nothing accepted fits.
pub(super) fn status_format(headers: &HeaderMap, pretty: bool) -> Format {
    let accepted = clauses(headers)
        .into_iter()
        .filter(|clause| clause.parameter("as").is_none())
        .find_map(|clause| clause.format());
    match accepted {
        Some(Format::Json) if !pretty => Format::Json,
        Some(format @ (Format::Yaml | Format::Protobuf)) => format,
        _ => Format::PrettyJson,
    }
}

/// Returns true if the response is to be indented for people.
pub(super) fn wants_pretty(query: &Query, headers: &HeaderMap) -> bool {
    let said = query.first("pretty");
    if !said.is_empty() {
        return matches!(said, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = user_agent(headers);
    HUMAN_AGENTS.iter().any(|human| agent.starts_with(human))
}

/// Returns the User-Agent header; empty if there is none or it is not ASCII.
pub(super) fn user_agent(headers: &HeaderMap) -> &str {
    headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Returns true if the client accepts gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0")
        })
}

fn parse_clause(text: &str) -> Option<Clause> {
    let mut parts = text.split(';');
    let (kind, subtype) = match parts.next()?.trim() {
        "*" => ("*", "*"),
        other => other.split_once('/')?,
    };
    let mut clause = Clause {
        kind: kind.trim().to_ascii_lowercase(),
        subtype: subtype.trim().to_ascii_lowercase(),
        parameters: Vec::new(),
        quality: 1.0,
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        if name == "q" {
            clause.quality = value.parse().unwrap_or(1.0);
        } else {
            clause.parameters.push((name.to_owned(), value.to_owned()));
        }
    }
    Some(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().expect("a header"));
        headers
    }

    fn chosen(value: &str) -> Output {
        negotiate(&accept(value), false, OBJECT_MEDIA_TYPES, true).expect(value)
    }

    fn message(value: &str) -> String {
        let failure =
            negotiate(&accept(value), false, LIST_MEDIA_TYPES, true).expect_err("not acceptable");
        failure.status().message.clone()
    }

    #[test]
    fn the_best_clause_wins() {
        assert_eq!(chosen("*/*").format, Format::Json);
        assert_eq!(
            chosen("application/json;q=0.5, application/yaml").format,
            Format::Yaml
        );
        assert_eq!(
            chosen("application/yaml;q=0.1,*/*;q=0.2").format,
            Format::Json
        );
        assert_eq!(
            chosen("application/xml, application/json").format,
            Format::Json
        );
    }

    #[test]
    fn forms_follow_the_parameters() {
        let form = |text| chosen(text).form;
        let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        assert_eq!(form(metadata), ObjectForm::Metadata);
        let unknown = "application/json;as=Table;v=v2;g=meta.k8s.io";
        assert_eq!(
            form(&format!("{unknown},application/json")),
            ObjectForm::Whole
        );
        assert!(message(unknown).starts_with("only the following media types are accepted"));
    }

    #[test]
    fn tables_are_json_or_yaml() {
        let table = |kind: &str, version: &str| {
            format!("application/{kind};as=Table;v={version};g=meta.k8s.io")
        };
        let version = |text: &str| match chosen(text).form {
            ObjectForm::Table(table) => table.version,
            other => panic!("{other:?}"),
        };
        let (new, old) = (table("json", "v1"), table("json", "v1beta1"));
        assert_eq!(version(&format!("{new},{old},application/json")), "v1");
        assert_eq!(version(&format!("{old},application/json")), "v1beta1");
        assert_eq!(chosen(&table("yaml", "v1")).format, Format::Yaml);
        let protobuf = table("vnd.kubernetes.protobuf", "v1");
        assert!(message(&protobuf).starts_with("only the following media types are accepted"));
        assert_eq!(version(&format!("{protobuf},{old}")), "v1beta1");
        let stream = negotiate_stream(&accept(&format!("{protobuf},{new}")), true);
        assert_eq!(stream.expect("JSON").format, Format::Json);
        assert!(negotiate_stream(&accept(&table("yaml", "v1")), true).is_err());
    }

    #[test]
    fn the_query_says_what_comes_with_the_rows() {
        let included = |query: &str| {
            let output = chosen("application/json;as=Table;v=v1;g=meta.k8s.io");
            output
                .with_table_options(&Query::parse(query))
                .map(|it| it.form)
        };
        for (query, include) in [
            ("", IncludeObject::Metadata),
            ("includeObject=Metadata", IncludeObject::Metadata),
            ("includeObject=None", IncludeObject::None),
            ("includeObject=Object", IncludeObject::Object),
        ] {
            let version = "v1";
            let expected = ObjectForm::Table(TableForm { version, include });
            assert_eq!(included(query).expect(query), expected);
        }
        let failure = included("includeObject=All").expect_err("refused");
        assert_eq!(
            failure.status().message,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must \
             be 'Metadata', 'Object', 'None', or empty"
        );
        let plain = chosen("application/json").with_table_options(&Query::parse("includeObject=x"));
        assert_eq!(plain.expect("no table").form, ObjectForm::Whole);
    }

    #[test]
    fn unknown_types_are_told_what_there_is() {
        assert_eq!(
            message("application/xml"),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        );
    }

    #[test]
    fn streams_are_json_or_protobuf() {
        let stream = |text: &str| negotiate_stream(&accept(text), true).expect(text);
        let json = stream("application/json;stream=watch");
        assert_eq!((json.format, json.form), (Format::Json, ObjectForm::Whole));
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(stream(both).format, Format::Protobuf);
        let plain = negotiate_stream(&accept(both), false).expect("JSON");
        assert_eq!(plain.format, Format::Json);
        assert!(negotiate_stream(&accept("application/yaml"), true).is_err());
    }

    #[test]
    fn kinds_without_protobuf_fall_back() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        assert_eq!(chosen(protobuf).format, Format::Protobuf);
        let without = |text: &str| negotiate(&accept(text), false, OBJECT_MEDIA_TYPES, false);
        let found = without(&format!("{protobuf},application/json")).expect("JSON");
        assert_eq!(found.format, Format::Json);
        let metadata = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let found = without(&format!("{protobuf}{metadata}")).expect("metadata");
        assert_eq!(found.format, Format::Protobuf);
        let failure = without(protobuf).expect_err("not acceptable");
        assert!(
            failure
                .status()
                .message
                .starts_with("only the following media types")
        );
    }

    #[test]
    fn people_get_indented_json() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "curl/8.0".parse().expect("a header"));
        assert!(wants_pretty(&Query::parse(""), &headers));
        assert!(!wants_pretty(&Query::parse("pretty=false"), &headers));
        assert!(wants_pretty(
            &Query::parse("pretty=true"),
            &HeaderMap::new()
        ));
        assert_eq!(
            status_format(&accept("application/xml"), false),
            Format::PrettyJson
        );
    }

    #[test]
    fn gzip_can_be_refused() {
        let mut headers = HeaderMap::new();
        assert!(!accepts_gzip(&headers));
        headers.insert(ACCEPT_ENCODING, "br, gzip;q=0".parse().expect("a header"));
        assert!(!accepts_gzip(&headers));
        headers.insert(ACCEPT_ENCODING, "br, gzip".parse().expect("a header"));
        assert!(accepts_gzip(&headers));
    }
}
