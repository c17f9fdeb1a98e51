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
    /// Returns the last value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .rfind(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns true if the clause names this media type itself, not by a wildcard.
    pub(super) fn names(&self, kind: &str, subtype: &str) -> bool {
        self.kind == kind && self.subtype == subtype
    }

    /// Returns true if the clause accepts one of these subtypes.
    pub(super) fn accepts(&self, kind: &str, subtypes: &[&str]) -> bool {
        let subtype = self.subtype.as_str();
        match (self.kind.as_str(), subtype) {
            ("*", subtype) => subtype == "*",
            (known, subtype) => known == kind && (subtype == "*" || subtypes.contains(&subtype)),
        }
    }

    /// Returns the first of the known syntaxes that the clause accepts.
    pub(super) fn format(&self) -> Option<Format> {
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*" | "application", "*") | ("application", "json") => Some(Format::Json),
            ("application", "yaml") => Some(Format::Yaml),
            ("application", "vnd.kubernetes.protobuf") => Some(Format::Protobuf),
            _ => None,
        }
    }

    /// Returns true if the clause asks for another object than that of the path.
    fn converts(&self) -> bool {
        ["as", "g", "v"]
            .iter()
            .any(|it| self.parameter(it).is_some())
    }

    /// Returns true if the parameters that tell neither form nor indentation are such that the clause can be used.
    fn is_allowed(&self, format: Format) -> bool {
        let streams = match self.parameter("stream") {
            None | Some("") => true,
            Some(stream) => stream == "watch" && format != Format::Yaml,
        };
        streams && matches!(self.parameter("sv"), None | Some("" | "v1"))
    }

    /// Returns the form that the parameters ask for; `None` for one that is not known here, or not in the clause's
    /// syntax.
    fn form(&self) -> Option<ObjectForm> {
        if !self.converts() {
            return Some(ObjectForm::Whole);
        }
        let kind = self.parameter("as").unwrap_or_default();
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
    /// Returns how the events of a watch are written if its list would be written in this way, which is JSON or
    /// protobuf.
    ///
    /// # Errors
    /// 406 for YAML, which has no streams.
    pub(super) fn of_stream(self) -> Result<Self, Failure> {
        let format = match self.format {
            Format::Json | Format::PrettyJson => Format::Json,
            Format::Protobuf => Format::Protobuf,
            Format::Yaml => return Err(Failure::not_acceptable(STREAM_MEDIA_TYPES)),
        };
        Ok(Self { format, ..self })
    }

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

/// Returns the first Accept header; everything is accepted if there is none.
fn accepted(headers: &HeaderMap) -> &str {
    headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .filter(|value| !value.is_empty())
        .unwrap_or("*/*")
}

/// Returns the clauses of the Accept header, best first; everything is accepted if there is none.
pub(super) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = accepted(headers)
        .split(',')
        .take(ACCEPT_CLAUSES_MAX)
        .filter_map(parse_clause)
        .collect();
    // The order is that of Go's insertion sort, since its comparison is no order: wildcards go back whatever their
    // quality is.
    for next in 1..clauses.len() {
        let mut at = next;
        while at > 0 && goes_before(&clauses[at], &clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn goes_before(one: &Clause, other: &Clause) -> bool {
    one.quality > other.quality
        || one.kind != "*" && other.kind == "*"
        || one.subtype != "*" && other.subtype == "*"
}

/// Returns true if a media type of the Accept header is one that the path produces, letter by letter. Wildcards are
/// known only as `*/*` here.
pub(super) fn is_produced(headers: &HeaderMap, produced: &[&str]) -> bool {
    let mut types = accepted(headers).split(',');
    types.any(|it| {
        let kind = it.split(';').next().unwrap_or_default().trim_matches(' ');
        kind == "*/*" || produced.contains(&kind)
    })
}

/// Decides how an object or a list is written. Its metadata alone can always be `in_protobuf`. The media types that the
/// path has are `produced`; there are none for custom resources, whose paths are not known by them.
///
/// # Errors
/// 406 when nothing that is accepted can be written.
pub(super) fn negotiate(
    headers: &HeaderMap,
    pretty: bool,
    produced: Option<&[&str]>,
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
    produced: Option<&[&str]>,
    in_protobuf: bool,
) -> Result<Output, Failure> {
    choose(headers, pretty, produced, |format, form| {
        (in_protobuf || format != Format::Protobuf) && !matches!(form, ObjectForm::Table(_))
    })
}

/// Chooses the first accepted clause that fits.
fn choose(
    headers: &HeaderMap,
    pretty: bool,
    produced: Option<&[&str]>,
    fits: impl Fn(Format, ObjectForm) -> bool,
) -> Result<Output, Failure> {
    if let Some(produced) = produced.filter(|it| !is_produced(headers, it)) {
        return Err(Failure::not_produced(produced));
    }
    for clause in clauses(headers) {
        let (Some(format), Some(form)) = (clause.format(), clause.form()) else {
            continue;
        };
        if !clause.is_allowed(format) || !fits(format, form) {
            continue;
        }
        let is_pretty = pretty || clause.parameter("pretty") == Some("1");
        let format = match format {
            Format::Json if is_pretty => Format::PrettyJson,
            other => other,
        };
        return Ok(Output { format, form });
    }
    Err(Failure::not_acceptable(OBJECT_MEDIA_TYPES))
}

/// Chooses the encoding of a failure's Status: indented JSON if nothing accepted fits.
pub(super) fn status_format(headers: &HeaderMap, pretty: bool) -> Format {
    let accepted = clauses(headers).into_iter().find_map(|clause| {
        let format = clause.format().filter(|it| clause.is_allowed(*it))?;
        let is_pretty = pretty || clause.parameter("pretty") == Some("1");
        (!clause.converts()).then_some((format, is_pretty))
    });
    match accepted {
        Some((Format::Json, false)) => Format::Json,
        Some((format @ (Format::Yaml | Format::Protobuf), _)) => format,
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

/// Parses a clause as goautoneg does: it knows no quotes, and forgets parameters without a value or with another `=`.
fn parse_clause(text: &str) -> Option<Clause> {
    let mut parts = text.trim_matches(' ').split(';');
    let media_type = parts.next()?;
    let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
    let (kind, subtype) = match (kind.trim_matches(' '), subtype) {
        ("*", "") => ("*", "*"),
        (_, "") => return None,
        (kind, subtype) => (kind, subtype.trim_matches(' ')),
    };
    if subtype.contains('/') {
        return None;
    }
    let mut clause = Clause {
        kind: kind.to_owned(),
        subtype: subtype.to_owned(),
        parameters: Vec::new(),
        quality: 1.0,
    };
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            continue;
        };
        if value.is_empty() || value.contains('=') {
            continue;
        }
        let name = name.trim_matches(' ');
        if name == "q" {
            clause.quality = value.parse().unwrap_or(0.0);
        } else {
            let value = value.trim_matches(' ');
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
        negotiate(&accept(value), false, Some(OBJECT_MEDIA_TYPES), true).expect(value)
    }

    fn message(value: &str) -> String {
        let failure = negotiate(&accept(value), false, Some(LIST_MEDIA_TYPES), true)
            .expect_err("not acceptable");
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
            chosen("*/*;q=0.2,application/yaml;q=0.1").format,
            Format::Yaml
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
        let stream = chosen(&format!("{protobuf},{new}")).of_stream();
        assert_eq!(stream.expect("JSON").format, Format::Json);
        assert!(chosen(&table("yaml", "v1")).of_stream().is_err());
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
    fn parameters_are_read_as_goautoneg_does() {
        let json = "application/json";
        let table = format!("{json};as=Table;v=v1;g=meta.k8s.io");
        for text in [
            format!("{json};as=;v=;g="),
            format!("{json};AS=Table;V=v1;G=meta.k8s.io"),
            format!("{json};as=Table=x"),
            format!("{json};stream=watch"),
            format!("{json};sv=v1"),
            format!("{json};q=x"),
        ] {
            assert_eq!(chosen(&text).form, ObjectForm::Whole, "{text}");
        }
        assert!(matches!(
            chosen(&format!("{table};x=y")).form,
            ObjectForm::Table(_)
        ));
        let last = chosen(&format!("{table};as=PartialObjectMetadata"));
        assert_eq!(last.form, ObjectForm::Metadata);
        for text in [
            format!("{json};v=v1"),
            format!("{json};g=meta.k8s.io"),
            format!("{json};as=\"Table\";v=\"v1\";g=\"meta.k8s.io\""),
            format!("{json};stream=x"),
            format!("{json};sv=v2"),
            "application/yaml;stream=watch".to_owned(),
        ] {
            assert!(message(&text).starts_with("only the following"), "{text}");
        }
    }

    #[test]
    fn paths_know_their_media_types_letter_by_letter() {
        for text in [
            "*",
            "application/*",
            "APPLICATION/JSON",
            "*/json",
            ",",
            "json",
        ] {
            assert!(message(text).starts_with("406: Not Acceptable"), "{text}");
            let custom = negotiate(&accept(text), false, None, true);
            assert_eq!(custom.is_ok(), text.ends_with('*'), "{text}");
        }
        assert_eq!(chosen("application/xml,*/*;q=0.1").format, Format::Json);
    }

    #[test]
    fn streams_are_json_or_protobuf() {
        let stream = |text: &str| chosen(text).of_stream().expect(text);
        let json = stream("application/json;stream=watch");
        assert_eq!((json.format, json.form), (Format::Json, ObjectForm::Whole));
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(stream(both).format, Format::Protobuf);
        let plain = negotiate(&accept(both), false, None, false).expect("JSON");
        assert_eq!(plain.format, Format::Json);
        assert!(
            chosen("application/yaml,application/json")
                .of_stream()
                .is_err()
        );
    }

    #[test]
    fn kinds_without_protobuf_fall_back() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        assert_eq!(chosen(protobuf).format, Format::Protobuf);
        let without = |text: &str| negotiate(&accept(text), false, Some(OBJECT_MEDIA_TYPES), false);
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
