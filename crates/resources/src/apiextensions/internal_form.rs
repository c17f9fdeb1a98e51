//! The form in which errors of definitions show them: kube-apiserver's internal types in JSON, which have all members,
//! under the names of Go's fields.

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::go_text;
use serde_json::{Map, Value, json};

/// The form of a member.
#[derive(Clone, Copy)]
enum MemberForm {
    /// A text, empty if it is not said.
    Text,
    /// A flag, false if it is not said.
    Flag,
    /// Any value, null if it is not said.
    Any,
    /// A schema.
    Schema,
    /// Schemas in a list.
    Schemas,
    /// Schemas by names.
    NamedSchemas,
    /// One schema, or several in a list.
    SchemaOrList,
    /// A schema or a flag.
    SchemaOrFlag,
    /// Schemas or names, by names.
    Dependencies,
    /// A description and an address.
    Documents,
    /// Rules in a list.
    Rules,
}

use MemberForm::{
    Any, Dependencies, Documents, Flag, NamedSchemas, Rules, Schema, SchemaOrFlag, SchemaOrList,
    Schemas, Text,
};

/// The members of a schema: the name of Go's field, ours and the form.
const SCHEMA: [(&str, &str, MemberForm); 44] = [
    ("ID", "id", Text),
    ("Schema", "$schema", Text),
    ("Ref", "$ref", Any),
    ("Description", "description", Text),
    ("Type", "type", Text),
    ("Nullable", "nullable", Flag),
    ("Format", "format", Text),
    ("Title", "title", Text),
    ("Default", "default", Any),
    ("Maximum", "maximum", Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Flag),
    ("Minimum", "minimum", Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Flag),
    ("MaxLength", "maxLength", Any),
    ("MinLength", "minLength", Any),
    ("Pattern", "pattern", Text),
    ("MaxItems", "maxItems", Any),
    ("MinItems", "minItems", Any),
    ("UniqueItems", "uniqueItems", Flag),
    ("MultipleOf", "multipleOf", Any),
    ("Enum", "enum", Any),
    ("MaxProperties", "maxProperties", Any),
    ("MinProperties", "minProperties", Any),
    ("Required", "required", Any),
    ("Items", "items", SchemaOrList),
    ("AllOf", "allOf", Schemas),
    ("OneOf", "oneOf", Schemas),
    ("AnyOf", "anyOf", Schemas),
    ("Not", "not", Schema),
    ("Properties", "properties", NamedSchemas),
    ("AdditionalProperties", "additionalProperties", SchemaOrFlag),
    ("PatternProperties", "patternProperties", NamedSchemas),
    ("Dependencies", "dependencies", Dependencies),
    ("AdditionalItems", "additionalItems", SchemaOrFlag),
    ("Definitions", "definitions", NamedSchemas),
    ("ExternalDocs", "externalDocs", Documents),
    ("Example", "example", Any),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Any,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Any),
    ("XListType", "x-kubernetes-list-type", Any),
    ("XMapType", "x-kubernetes-map-type", Any),
    ("XValidations", "x-kubernetes-validations", Rules),
];

/// The members of a rule.
const RULE: [(&str, &str, MemberForm); 6] = [
    ("Rule", "rule", Text),
    ("Message", "message", Text),
    ("MessageExpression", "messageExpression", Text),
    ("Reason", "reason", Any),
    ("FieldPath", "fieldPath", Text),
    ("OptionalOldSelf", "optionalOldSelf", Any),
];

/// Returns a schema in JSON, as much of it as is told.
pub(super) fn schema(schema: &Value) -> String {
    let mut writer = DefinitionWriter::default();
    writer.schema(schema);
    writer.text
}

/// Returns the versions of a definition in JSON, as much of them as is told.
pub(super) fn versions(versions: Option<&Vec<Value>>) -> String {
    let mut writer = DefinitionWriter::default();
    writer.list(versions.map(Vec::as_slice), DefinitionWriter::version);
    writer.text
}

/// The text that is written so far. Beyond the bound of errors nothing more is.
#[derive(Default)]
struct DefinitionWriter {
    text: String,
}

impl DefinitionWriter {
    fn is_full(&self) -> bool {
        self.text.len() >= ERROR_BYTES_MAX
    }

    fn write(&mut self, text: &str) {
        if !self.is_full() {
            self.text.push_str(text);
        }
    }

    fn value(&mut self, value: &Value) {
        if !self.is_full() {
            self.text.push_str(&go_text::json(value));
        }
    }

    /// Writes a list, or null if there is none.
    fn list(&mut self, items: Option<&[Value]>, write: fn(&mut Self, &Value)) {
        let Some(items) = items else {
            return self.write("null");
        };
        self.write("[");
        for (place, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.write(if place == 0 { "" } else { "," });
            write(self, item);
        }
        self.write("]");
    }

    fn named(&mut self, named: Option<&Map<String, Value>>, write: fn(&mut Self, &Value)) {
        let Some(named) = named else {
            return self.write("null");
        };
        self.write("{");
        let mut names: Vec<&String> = named.keys().collect();
        names.sort();
        for (place, name) in names.into_iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.write(if place == 0 { "" } else { "," });
            self.value(&json!(name));
            self.write(":");
            write(self, &named[name]);
        }
        self.write("}");
    }

    /// Writes an object with these members.
    fn members(&mut self, members: &[(&str, &str, MemberForm)], of: &Value) {
        self.first_members(members, of);
        self.write("}");
    }

    /// Writes the first members of an object.
    fn first_members(&mut self, members: &[(&str, &str, MemberForm)], of: &Value) {
        for (place, (go_name, name, form)) in members.iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.write(if place == 0 { "{" } else { "," });
            self.write(&format!("\"{go_name}\":"));
            let value = of.get(name).filter(|it| !it.is_null());
            self.member(value, *form);
        }
    }

    fn member(&mut self, value: Option<&Value>, form: MemberForm) {
        let items = value.and_then(Value::as_array).map(Vec::as_slice);
        let named = value.and_then(Value::as_object);
        match (form, value) {
            (Text, None) => self.write("\"\""),
            (Flag, None) => self.write("false"),
            (Schemas, _) => self.list(items, Self::schema),
            (Rules, _) => self.list(items, Self::rule),
            (NamedSchemas, _) => self.named(named, Self::schema),
            (Dependencies, _) => self.named(named, Self::dependency),
            (_, None) => self.write("null"),
            (Text | Flag | Any, Some(value)) => self.value(value),
            (Schema, Some(value)) => self.schema(value),
            (Documents, Some(value)) => self.members(
                &[("Description", "description", Text), ("URL", "url", Text)],
                value,
            ),
            (SchemaOrList, Some(value)) => self.schema_or(value, "JSONSchemas"),
            (SchemaOrFlag, Some(value)) => {
                let allows = *value != json!(false);
                self.write(&format!("{{\"Allows\":{allows},\"Schema\":"));
                match value.is_object() {
                    true => self.schema(value),
                    false => self.write("null"),
                }
                self.write("}");
            }
        }
    }

    fn schema_or(&mut self, value: &Value, list: &str) {
        self.write("{\"Schema\":");
        match value.is_object() {
            true => self.schema(value),
            false => self.write("null"),
        }
        self.write(&format!(",\"{list}\":"));
        match value.as_array() {
            Some(_) if list == "Property" => self.value(value),
            items => self.list(items.map(Vec::as_slice), Self::schema),
        }
        self.write("}");
    }

    fn dependency(&mut self, value: &Value) {
        self.schema_or(value, "Property");
    }

    fn rule(&mut self, rule: &Value) {
        self.members(&RULE, rule);
    }

    fn schema(&mut self, schema: &Value) {
        self.members(&SCHEMA, schema);
    }

    fn version(&mut self, version: &Value) {
        let start = [
            ("Name", "name", Text),
            ("Served", "served", Flag),
            ("Storage", "storage", Flag),
            ("Deprecated", "deprecated", Flag),
            ("DeprecationWarning", "deprecationWarning", Any),
        ];
        self.first_members(&start, version);
        self.write(",\"Schema\":");
        match version.get("schema").filter(|it| it.is_object()) {
            Some(holder) => self.members(&[("OpenAPIV3Schema", "openAPIV3Schema", Schema)], holder),
            None => self.write("null"),
        }
        self.write(",\"Subresources\":");
        self.subresources(version.get("subresources").unwrap_or(&Value::Null));
        let items = |name: &str| {
            let items = version.get(name).and_then(Value::as_array);
            items.map(Vec::as_slice)
        };
        self.write(",\"AdditionalPrinterColumns\":");
        self.list(items("additionalPrinterColumns"), Self::column);
        self.write(",\"SelectableFields\":");
        self.list(items("selectableFields"), |writer, field| {
            writer.members(&[("JSONPath", "jsonPath", Text)], field);
        });
        self.write("}");
    }

    fn subresources(&mut self, subresources: &Value) {
        if !subresources.is_object() {
            return self.write("null");
        }
        let has_status = subresources.get("status").is_some_and(|it| !it.is_null());
        self.write("{\"Status\":");
        self.write(if has_status { "{}" } else { "null" });
        self.write(",\"Scale\":");
        match subresources.get("scale").filter(|it| it.is_object()) {
            Some(scale) => self.members(
                &[
                    ("SpecReplicasPath", "specReplicasPath", Text),
                    ("StatusReplicasPath", "statusReplicasPath", Text),
                    ("LabelSelectorPath", "labelSelectorPath", Any),
                ],
                scale,
            ),
            None => self.write("null"),
        }
        self.write("}");
    }

    fn column(&mut self, column: &Value) {
        let start = [
            ("Name", "name", Text),
            ("Type", "type", Text),
            ("Format", "format", Text),
            ("Description", "description", Text),
        ];
        self.first_members(&start, column);
        let path = column.get("JSONPath").or_else(|| column.get("jsonPath"));
        self.write(",\"Priority\":");
        match column.get("priority") {
            Some(priority) => self.value(priority),
            None => self.write("0"),
        }
        self.write(",\"JSONPath\":");
        self.member(path, Text);
        self.write("}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_all_members_of_their_type() {
        let said = json!({"type": "object", "nullable": true, "items": [], "required": ["<"],
            "additionalProperties": {"type": "string"}, "properties": {"b": {}, "a": {}},
            "dependencies": {"d": ["e"]}, "x-kubernetes-validations": [{"rule": "true"}]});
        let shown = schema(&said);
        let parsed: Value = serde_json::from_str(&shown).expect("JSON");
        let members = parsed.as_object().expect("an object");
        assert_eq!(members.len(), SCHEMA.len());
        assert_eq!(parsed["Items"], json!({"Schema": null, "JSONSchemas": []}));
        assert_eq!(
            parsed["AdditionalProperties"]["Schema"]["Type"],
            json!("string")
        );
        assert_eq!(
            parsed["Dependencies"],
            json!({"d": {"Schema": null, "Property": ["e"]}})
        );
        assert_eq!(parsed["XValidations"][0]["OptionalOldSelf"], Value::Null);
        assert!(shown.starts_with(
            r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":true,"#
        ));
        assert!(shown.contains(r#""Required":["\u003c"]"#), "{shown}");
    }

    #[test]
    fn versions_are_shown_as_go_has_them() {
        let version = json!({"name": "v1", "storage": true, "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "A", "type": "date", "JSONPath": ".a"}]});
        assert_eq!(
            versions(Some(&vec![version])),
            r#"[{"Name":"v1","Served":false,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":{"Status":{},"Scale":null},"AdditionalPrinterColumns":[{"Name":"A","Type":"date","Format":"","Description":"","Priority":0,"JSONPath":".a"}],"SelectableFields":null}]"#
        );
        assert_eq!(versions(Some(&Vec::new())), "[]");
        assert_eq!(versions(None), "null");
    }

    #[test]
    fn no_more_is_shown_than_is_told() {
        let many = vec![json!({"schema": {"openAPIV3Schema": {}}}); 10_000];
        assert!(versions(Some(&many)).len() < ERROR_BYTES_MAX + (4 << 10));
    }
}
