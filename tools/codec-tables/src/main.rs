//! Writes the codec's tables from Kubernetes' protobuf definitions and what Go says of its types.
//!
//! The hard part is what the definitions leave out: JSON names that differ, pointers, and fields
//! that are written though empty. Facts from Go are looked up by package, type and field number.

mod facts;
mod merging;

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use facts::{Facts, Form};
use merging::merging;

/// Packages that no API server serves.
const LEFT_OUT: &[&str] = &[
    "apimachinery.pkg.apis.testapigroup",
    "apimachinery.pkg.runtime.schema",
    "api.imagepolicy",
];

/// The API groups whose names are not their package with `.k8s.io`.
const GROUPS: &[(&str, &str)] = &[
    ("core", ""),
    ("apps", "apps"),
    ("autoscaling", "autoscaling"),
    ("batch", "batch"),
    ("extensions", "extensions"),
    ("policy", "policy"),
    ("apiserverinternal", "internal.apiserver.k8s.io"),
    ("flowcontrol", "flowcontrol.apiserver.k8s.io"),
    ("rbac", "rbac.authorization.k8s.io"),
];

/// Messages whose JSON is not an object of their fields.
const SPECIAL: &[&str] = &[
    "apimachinery.pkg.api.resource.Quantity",
    "apimachinery.pkg.apis.meta.v1.Duration",
    "apimachinery.pkg.apis.meta.v1.FieldsV1",
    "apimachinery.pkg.apis.meta.v1.MicroTime",
    "apimachinery.pkg.apis.meta.v1.Time",
    "apimachinery.pkg.runtime.RawExtension",
    "apimachinery.pkg.util.intstr.IntOrString",
];

/// The same, in the packages of apiextensions.
const SPECIAL_SCHEMA: &[&str] = &[
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
];

/// The only kind of which Go's type has neither kind nor version.
const WATCH_EVENT: &str = "apimachinery.pkg.apis.meta.v1.WatchEvent";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(set), Some(go_types)) = (arguments.next(), arguments.next()) else {
        return Err("usage: codec-tables DESCRIPTOR-SET GO-TYPES".into());
    };
    let set = FileDescriptorSet::decode(&*std::fs::read(set)?)?;
    let facts = Facts::read(&go_types)?;
    print!("{}", tables(set, &facts)?);
    Ok(())
}

/// Returns the text of the tables of all definitions.
fn tables(mut set: FileDescriptorSet, facts: &Facts) -> Result<String, Box<dyn Error>> {
    set.file
        .sort_by(|one, other| one.package().cmp(other.package()));
    let mut out = String::from("# Written by codec-tables; do not edit.\n");
    for file in &set.file {
        let package = within_kubernetes(file.package());
        if !LEFT_OUT.iter().any(|left| package.starts_with(left)) {
            write_package(&mut out, package, file, facts)?;
        }
    }
    Ok(out)
}

/// Returns the name of a package or of a message without the prefix that all of Kubernetes' names have.
fn within_kubernetes(name: &str) -> &str {
    name.strip_prefix("k8s.io.").unwrap_or(name)
}

fn write_package(
    out: &mut String,
    package: &str,
    file: &FileDescriptorProto,
    facts: &Facts,
) -> Result<(), Box<dyn Error>> {
    writeln!(out, "package {package} {}", api_version(package))?;
    for (index, message) in file.message_type.iter().enumerate() {
        let comments = |field: Option<usize>| comment(file, index, field);
        write_message(out, package, message, facts, &comments)?;
    }
    Ok(())
}

/// Returns the API version of a package's kinds.
fn api_version(package: &str) -> String {
    let mut words = package.rsplit('.');
    let version = words.next().unwrap_or_default();
    let group = words.next().unwrap_or_default();
    if package == "apimachinery.pkg.apis.meta.v1" {
        return "meta.k8s.io/v1".to_owned();
    }
    let known = GROUPS.iter().find(|(name, _)| *name == group);
    match known.map(|(_, name)| *name) {
        Some("") => version.to_owned(),
        Some(group) => format!("{group}/{version}"),
        None if version.starts_with('v') => format!("{group}.k8s.io/{version}"),
        None => "-".to_owned(),
    }
}

/// Returns the comment above a message, or above a field of it.
fn comment(file: &FileDescriptorProto, message: usize, field: Option<usize>) -> String {
    let mut path = vec![4, message as i32];
    path.extend(field.iter().flat_map(|field| [2, *field as i32]));
    file.source_code_info
        .iter()
        .flat_map(|info| &info.location)
        .find(|location| location.path == path)
        .map(|location| location.leading_comments().to_owned())
        .unwrap_or_default()
}

fn write_message(
    out: &mut String,
    package: &str,
    message: &DescriptorProto,
    facts: &Facts,
    comments: &dyn Fn(Option<usize>) -> String,
) -> Result<(), Box<dyn Error>> {
    let full = format!("{package}.{}", message.name());
    let schema =
        package.starts_with("apiextensions_apiserver") && SPECIAL_SCHEMA.contains(&message.name());
    let mark = if schema || SPECIAL.contains(&full.as_str()) {
        format!(" ={}", message.name())
    } else if is_list_wrapper(message) {
        " =Items".to_owned()
    } else if is_kind(message, &full, facts) {
        " kind".to_owned()
    } else {
        String::new()
    };
    let merging_whole = merging(&comments(None));
    writeln!(out, "message {}{mark}{merging_whole}", message.name())?;
    let mut fields: Vec<(usize, &FieldDescriptorProto)> =
        message.field.iter().enumerate().collect();
    fields.sort_by_key(|(_, field)| field.number());
    for (index, field) in fields {
        let comment = comments(Some(index));
        let form = facts.find(&full, field);
        let kind = field_type(package, message, field)?;
        write_field(out, field.number(), &form, &kind, &merging(&comment))?;
    }
    Ok(())
}

/// Returns true if the message stands for a list of strings, which JSON has without the message around it.
fn is_list_wrapper(message: &DescriptorProto) -> bool {
    matches!(message.field.as_slice(), [only] if only.name() == "items" && only.r#type() == Type::String)
}

fn is_kind(message: &DescriptorProto, full: &str, facts: &Facts) -> bool {
    let has_metadata = message.field.iter().any(|field| {
        let meta = field.type_name().rsplit('.').next();
        field.number() == 1 && matches!(meta, Some("ObjectMeta" | "ListMeta"))
    });
    facts.is_kind(full) || full == WATCH_EVENT || has_metadata && !message.name().ends_with("TemplateSpec")
}

fn field_type(
    package: &str,
    message: &DescriptorProto,
    field: &FieldDescriptorProto,
) -> Result<String, Box<dyn Error>> {
    let name = field.type_name();
    if let Some(entry) = message
        .nested_type
        .iter()
        .find(|nested| name.rsplit('.').next() == Some(nested.name()))
    {
        let value = entry.field.get(1).ok_or("a map without values")?;
        return Ok(format!("{{{}", field_type(package, entry, value)?));
    }
    let one = match field.r#type() {
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Double => "double",
        Type::Message => {
            let name = within_kubernetes(name.trim_start_matches('.'));
            let near = name
                .strip_prefix(package)
                .filter(|rest| rest.rfind('.') == Some(0));
            near.unwrap_or(name)
        }
        other => return Err(format!("{}: {other:?}", field.name()).into()),
    };
    let many = if field.label() == Label::Repeated {
        "["
    } else {
        ""
    };
    Ok(format!("{many}{one}"))
}

fn write_field(
    out: &mut String,
    number: i32,
    form: &Form,
    kind: &str,
    merging: &str,
) -> std::fmt::Result {
    write!(out, "{number} {} {kind}", form.json_name)?;
    if form.flags != "-" {
        write!(out, " {}", form.flags)?;
    }
    writeln!(out, "{merging}")
}
