//! gnostic's messages, as far as Kubernetes' documents have them: names in JSON, numbers, types.

use serde_json::Value;

use self::MessageFieldType::{Bool, Double, Integer, Many, Map, One, Text, Texts, Yaml};

/// A message of gnostic's protobuf definitions, which says how an object of a document is encoded.
pub(super) enum Message {
    /// An object with known members; others are kept as extensions under the number `extensions` if their names begin
    /// with `x-`.
    Fields {
        fields: &'static [(&'static str, u32, MessageFieldType)],
        extensions: u32,
    },
    /// An object that is a map, encoded as a list of names and values under this number.
    Members(u32, &'static Self),
    /// A oneof: the field is chosen by the value.
    OneOf(fn(&Value) -> Option<(u32, MessageFieldType)>),
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum MessageFieldType {
    Text,
    /// A string or a list of strings.
    Texts,
    Bool,
    Integer,
    Double,
    /// Any JSON value, kept as YAML text.
    Yaml,
    One(&'static Message),
    Many(&'static Message),
    /// An object that is a map, encoded as a list of names and values under this number.
    Map(u32, &'static Message),
}

impl std::fmt::Debug for Message {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Message")
    }
}

const fn fields(
    fields: &'static [(&'static str, u32, MessageFieldType)],
    extensions: u32,
) -> Message {
    Message::Fields { fields, extensions }
}

/// Chooses the field of a reference or of something else, by what the value is.
fn reference_or(
    value: &Value,
    reference: (u32, MessageFieldType),
    other: (u32, MessageFieldType),
) -> Option<(u32, MessageFieldType)> {
    let is_reference = value.get("$ref").is_some();
    Some(if is_reference { reference } else { other })
}

/// gnostic's `Any`: a value of any type, kept as YAML text.
pub(super) static ANY: Message = Message::OneOf(|_| Some((2, Yaml)));

static TEXT_LIST: Message = Message::OneOf(|_| Some((1, Texts)));

static SECURITY_REQUIREMENT: Message = Message::Members(1, &TEXT_LIST);

static REFERENCE: Message = fields(&[("$ref", 1, Text)], 0);

static V2_INFO: Message = fields(&[("title", 1, Text), ("version", 2, Text)], 7);

/// gnostic's v2 `Document`, without paths and schemas.
pub(super) static V2_DOCUMENT: Message = fields(
    &[
        ("swagger", 1, Text),
        ("info", 2, One(&V2_INFO)),
        ("parameters", 10, Map(1, &V2_PARAMETER)),
        ("security", 12, Many(&SECURITY_REQUIREMENT)),
        ("securityDefinitions", 13, Map(1, &V2_SECURITY_DEFINITION)),
    ],
    16,
);

static V2_SECURITY_DEFINITION: Message = Message::OneOf(|_| Some((2, One(&V2_API_KEY))));

static V2_API_KEY: Message = fields(
    &[
        ("type", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("description", 4, Text),
    ],
    5,
);

/// gnostic's v2 `PathItem`: the operations at a path.
pub(super) static V2_PATH_ITEM: Message = fields(
    &[
        ("get", 2, One(&V2_OPERATION)),
        ("put", 3, One(&V2_OPERATION)),
        ("post", 4, One(&V2_OPERATION)),
        ("delete", 5, One(&V2_OPERATION)),
        ("options", 6, One(&V2_OPERATION)),
        ("head", 7, One(&V2_OPERATION)),
        ("patch", 8, One(&V2_OPERATION)),
        ("parameters", 9, Many(&V2_PARAMETER_OR_REFERENCE)),
    ],
    10,
);

static V2_OPERATION: Message = fields(
    &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Many(&V2_PARAMETER_OR_REFERENCE)),
        ("responses", 9, Map(1, &V2_RESPONSE_VALUE)),
        ("schemes", 10, Texts),
    ],
    13,
);

static V2_PARAMETER_OR_REFERENCE: Message =
    Message::OneOf(|value| reference_or(value, (2, One(&REFERENCE)), (1, One(&V2_PARAMETER))));

static V2_PARAMETER: Message = Message::OneOf(|value| {
    Some(match value.get("in").and_then(Value::as_str) {
        Some("body") => (1, One(&V2_BODY)),
        _ => (2, One(&V2_NON_BODY)),
    })
});

static V2_BODY: Message = fields(
    &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Bool),
        ("schema", 5, One(&V2_SCHEMA)),
    ],
    6,
);

static V2_NON_BODY: Message = Message::OneOf(|value| {
    Some(match value.get("in").and_then(Value::as_str) {
        Some("path") => (4, One(&V2_PATH_PARAMETER)),
        _ => (3, One(&V2_QUERY_PARAMETER)),
    })
});

static V2_QUERY_PARAMETER: Message = fields(
    &[
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("uniqueItems", 20, Bool),
    ],
    23,
);

static V2_PATH_PARAMETER: Message = fields(
    &[
        ("required", 1, Bool),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("uniqueItems", 19, Bool),
    ],
    22,
);

static V2_RESPONSE_VALUE: Message = Message::OneOf(|_| Some((1, One(&V2_RESPONSE))));

static V2_RESPONSE: Message = fields(
    &[
        ("description", 1, Text),
        ("schema", 2, One(&V2_SCHEMA_ITEM)),
    ],
    5,
);

static V2_SCHEMA_ITEM: Message = Message::OneOf(|_| Some((1, One(&V2_SCHEMA))));

/// gnostic's v2 `Schema`.
pub(super) static V2_SCHEMA: Message = fields(
    &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, One(&ANY)),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Bool),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Bool),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Bool),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Many(&ANY)),
        ("additionalProperties", 21, One(&V2_ADDITIONAL)),
        ("type", 22, One(&TEXT_LIST)),
        ("items", 23, One(&V2_ITEMS)),
        ("allOf", 24, Many(&V2_SCHEMA)),
        ("properties", 25, Map(1, &V2_SCHEMA)),
    ],
    31,
);

static V2_ADDITIONAL: Message = Message::OneOf(|value| {
    Some(if value.is_boolean() {
        (2, Bool)
    } else {
        (1, One(&V2_SCHEMA))
    })
});

static V2_ITEMS: Message = Message::OneOf(|_| Some((1, One(&V2_SCHEMA))));

static V3_INFO: Message = fields(&[("title", 1, Text), ("version", 6, Text)], 7);

/// gnostic's v3 `Document`, without paths and components.
pub(super) static V3_DOCUMENT: Message =
    fields(&[("openapi", 1, Text), ("info", 2, One(&V3_INFO))], 9);

/// gnostic's v3 `Components`, without schemas.
pub(super) static V3_COMPONENTS: Message = fields(
    &[(
        "securitySchemes",
        7,
        Map(1, &V3_SECURITY_SCHEME_OR_REFERENCE),
    )],
    10,
);

static V3_SECURITY_SCHEME_OR_REFERENCE: Message =
    Message::OneOf(|_| Some((1, One(&V3_SECURITY_SCHEME))));

static V3_SECURITY_SCHEME: Message = fields(
    &[
        ("type", 1, Text),
        ("description", 2, Text),
        ("name", 3, Text),
        ("in", 4, Text),
    ],
    9,
);

/// gnostic's v3 `PathItem`: the operations at a path.
pub(super) static V3_PATH_ITEM: Message = fields(
    &[
        ("get", 4, One(&V3_OPERATION)),
        ("put", 5, One(&V3_OPERATION)),
        ("post", 6, One(&V3_OPERATION)),
        ("delete", 7, One(&V3_OPERATION)),
        ("options", 8, One(&V3_OPERATION)),
        ("head", 9, One(&V3_OPERATION)),
        ("patch", 10, One(&V3_OPERATION)),
        ("parameters", 13, Many(&V3_PARAMETER_OR_REFERENCE)),
    ],
    14,
);

static V3_OPERATION: Message = fields(
    &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, Many(&V3_PARAMETER_OR_REFERENCE)),
        ("requestBody", 7, One(&V3_REQUEST_BODY_OR_REFERENCE)),
        ("responses", 8, Map(2, &V3_RESPONSE_OR_REFERENCE)),
    ],
    13,
);

static V3_PARAMETER_OR_REFERENCE: Message = Message::OneOf(|_| Some((1, One(&V3_PARAMETER))));

static V3_PARAMETER: Message = fields(
    &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Bool),
        ("schema", 10, One(&V3_SCHEMA_OR_REFERENCE)),
    ],
    14,
);

static V3_REQUEST_BODY_OR_REFERENCE: Message = Message::OneOf(|_| Some((1, One(&V3_REQUEST_BODY))));

static V3_REQUEST_BODY: Message = fields(
    &[
        ("content", 2, Map(1, &V3_MEDIA_TYPE)),
        ("required", 3, Bool),
    ],
    4,
);

static V3_RESPONSE_OR_REFERENCE: Message = Message::OneOf(|_| Some((1, One(&V3_RESPONSE))));

static V3_RESPONSE: Message = fields(
    &[
        ("description", 1, Text),
        ("content", 3, Map(1, &V3_MEDIA_TYPE)),
    ],
    5,
);

static V3_MEDIA_TYPE: Message = fields(&[("schema", 1, One(&V3_SCHEMA_OR_REFERENCE))], 5);

/// gnostic's v3 `SchemaOrReference`.
pub(super) static V3_SCHEMA_OR_REFERENCE: Message =
    Message::OneOf(|value| reference_or(value, (2, One(&REFERENCE)), (1, One(&V3_SCHEMA))));

static V3_SCHEMA: Message = fields(
    &[
        ("nullable", 1, Bool),
        ("title", 9, Text),
        ("multipleOf", 10, Double),
        ("maximum", 11, Double),
        ("exclusiveMaximum", 12, Bool),
        ("minimum", 13, Double),
        ("exclusiveMinimum", 14, Bool),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Bool),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, Texts),
        ("enum", 24, Many(&ANY)),
        ("type", 25, Text),
        ("allOf", 26, Many(&V3_SCHEMA_OR_REFERENCE)),
        ("oneOf", 27, Many(&V3_SCHEMA_OR_REFERENCE)),
        ("anyOf", 28, Many(&V3_SCHEMA_OR_REFERENCE)),
        ("not", 29, One(&V3_SCHEMA)),
        ("items", 30, One(&V3_ITEMS)),
        ("properties", 31, Map(1, &V3_SCHEMA_OR_REFERENCE)),
        ("additionalProperties", 32, One(&V3_ADDITIONAL)),
        ("default", 33, One(&V3_DEFAULT)),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    36,
);

static V3_ITEMS: Message = Message::OneOf(|_| Some((1, One(&V3_SCHEMA_OR_REFERENCE))));

static V3_ADDITIONAL: Message = Message::OneOf(|value| {
    Some(if value.is_boolean() {
        (2, Bool)
    } else {
        (1, One(&V3_SCHEMA_OR_REFERENCE))
    })
});

/// gnostic's v3 `DefaultType`, which knows scalars alone; other defaults are encoded without a value.
static V3_DEFAULT: Message = Message::OneOf(|value| match value {
    Value::Number(_) => Some((1, Double)),
    Value::Bool(_) => Some((2, Bool)),
    Value::String(_) => Some((3, Text)),
    _ => None,
});
