//! The formats that Kubernetes names, and what they say about texts. Follows `library/format.go` of kube-apiserver.

use std::borrow::Cow;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Opaque;
use ringwatch_apimachinery::go_url::Url;
use ringwatch_apimachinery::validation::formats;

use super::failure::{Failure, ValueResult};
use super::functions::in_library;
use super::optional;

/// The names of the formats.
const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// A format as a value of expressions.
#[derive(Debug, PartialEq, Eq)]
struct NamedFormat(&'static str);

impl Opaque for NamedFormat {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

/// Calls a function of formats; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let found = match (name, values) {
        ("format.named", [CelValue::String(name)]) => {
            format(name).map_or_else(optional::none, optional::some)
        }
        ("validate", [CelValue::Opaque(opaque), CelValue::String(text)]) => {
            let NamedFormat(name) = opaque.downcast_ref::<NamedFormat>()?;
            match wrong(name, text) {
                Ok(wrong) if wrong.is_empty() => optional::none(),
                Ok(wrong) => {
                    let wrong = wrong.into_iter().map(CelValue::from);
                    optional::some(CelValue::List(Arc::new(wrong.collect())))
                }
                Err(failure) => return Some(Err(failure)),
            }
        }
        (name, []) => format(name.strip_prefix("format.")?)?,
        _ => return None,
    };
    Some(Ok(found))
}

/// Returns the cost of validating a text of so many characters: a walk through it for each part of a pattern, which is
/// as long as the format's is said to be.
pub(super) fn cost(format: &CelValue, length: u64) -> u64 {
    let name = match format {
        CelValue::Opaque(opaque) => opaque.downcast_ref::<NamedFormat>().map(|it| it.0),
        _ => None,
    };
    let pattern: u64 = match name.unwrap_or_default() {
        "dns1123Subdomain" | "dns1123SubdomainPrefix" | "qualifiedName" => 60,
        "labelValue" => 40,
        "uri" => 1103,
        "uuid" => 70,
        "byte" => 84,
        "date" | "datetime" => 71,
        _ => 30,
    };
    length
        .saturating_add(1)
        .div_ceil(10)
        .saturating_mul(pattern.div_ceil(4))
}

fn format(name: &str) -> Option<CelValue> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    Some(CelValue::Opaque(Arc::new(NamedFormat(name))))
}

/// Returns what is wrong with a text of this format.
fn wrong(name: &str, text: &str) -> Result<Vec<String>, Failure> {
    let (base, text) = match name.strip_suffix("Prefix") {
        Some(base) => (base, Cow::Owned(formats::mask_trailing_dash(text))),
        None => (name, Cow::Borrowed(text)),
    };
    Ok(match base {
        "dns1123Label" => formats::dns_label(&text),
        "dns1123Subdomain" => formats::dns_subdomain(&text),
        "dns1035Label" => formats::dns_1035_label(&text),
        "qualifiedName" => formats::label_key(&text),
        "labelValue" => formats::label_value(&text),
        "uri" => {
            let error = Url::parse_request(&text).err();
            error.iter().map(ToString::to_string).collect()
        }
        "uuid" => in_words(name, &text, "does not match the UUID format")?,
        "byte" => in_words(name, &text, "invalid base64")?,
        "date" => in_words(name, &text, "invalid date")?,
        _ => in_words(name, &text, "invalid datetime")?,
    })
}

/// Returns these words if the library says that a text is not of a format.
fn in_words(name: &str, text: &str, words: &str) -> Result<Vec<String>, Failure> {
    let format = in_library(&format!("format.{name}"), None, Vec::new())?;
    let found = in_library("validate", Some(format), vec![CelValue::from(text)])?;
    let is_wrong = optional::of_value(&found)?.is_some();
    Ok(is_wrong.then(|| words.to_owned()).into_iter().collect())
}
