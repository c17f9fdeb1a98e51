//! Responses with objects and lists of a resource, in the negotiated encoding and form.

use std::sync::Arc;

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use ringwatch::codec;
use ringwatch::meta::{Object, StoredForm};
use ringwatch::storage::List;
use ringwatch_http::{ResponseBody, full};
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_registry::{Resource, Verb};
use serde_json::{Value, json};

use super::call::Call;
use super::encoding::{
    GZIP_MIN_BYTES, GzipListBody, Items, ListBody, PiecewiseBody, Tables, frame,
};
use super::errors::Failure;
use super::memory_gate::ResponseMemory;
use super::negotiation::{Format, ObjectForm, Output, accepts_gzip};
use super::respond::respond;
use super::response::{document, mark_compressed};
use super::spans;

/// Responds with an object in the negotiated form.
///
/// # Errors
/// 406 for a form that only lists have; 500 when the object cannot be converted.
pub(super) async fn object(
    code: StatusCode,
    output: Output,
    call: &Call<'_>,
    object: Arc<Object>,
) -> Result<Response<ResponseBody>, Failure> {
    let _span = spans::of_encoding(call, output);
    offload_if_large(Work::Object, object.stored()).await;
    let served = || {
        let served = call.store.to_served(Arc::clone(&object));
        served.map_err(Failure::internal)
    };
    let json = |object: Arc<Object>| codec::json(&object).map_err(Failure::internal);
    let json = match output.form {
        ObjectForm::Whole => {
            let served = served()?;
            if let (StoredForm::Protobuf, Format::Protobuf) = (served.form(), output.format) {
                let body = full(served.bytes());
                return Ok(respond(code, output.format.media_type(), body));
            }
            json(served)?
        }
        ObjectForm::Table(form) => call.tables(form).object_table(&object, true)?.into(),
        ObjectForm::Metadata => frame::partial_metadata(&json(served()?)?, "v1")
            .map_err(Failure::internal)?
            .into(),
        ObjectForm::MetadataList => {
            let resource = call.store.resource();
            return Err(Failure::not_convertible(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 ({})",
                go_type(resource, &resource.kind)
            )));
        }
    };
    document(code, output.format, &json)
}

/// Responds with a list in the negotiated form.
///
/// # Errors
/// 406 for a form that only objects have; 500 when an object cannot be converted.
pub(super) async fn list(
    output: Output,
    call: &Call<'_>,
    list: List,
) -> Result<Response<ResponseBody>, Failure> {
    let _span = spans::of_encoding(call, output);
    let resource = call.store.resource();
    if output.form == ObjectForm::Metadata {
        return Err(Failure::not_convertible(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            go_type(resource, &resource.list_kind)
        )));
    }
    if let ObjectForm::Table(form) = output.form {
        return table(output.format, call.tables(form), list);
    }
    if output.form == ObjectForm::MetadataList
        && output.format != Format::Protobuf
        && list.items.is_empty()
    {
        // Of no objects Go appends nothing to a list that is not there; protobuf does not tell them apart.
        let head = list_head(resource, true, &list).json();
        let json = [head.strip_suffix(b"[").unwrap_or(&head), b"null}"].concat();
        return document(StatusCode::OK, output.format, &json);
    }
    // The memory of the items is counted with the cache, the encodings, or the list already.
    let bytes = (list.items.len() * size_of::<Arc<Object>>()) as u64;
    let objects = list.memory.clone();
    let head = list_head(resource, output.form != ObjectForm::Whole, &list);
    if matches!(output.format, Format::PrettyJson | Format::Yaml) {
        let items = Items::Objects(call.encoder(output));
        return in_pieces(items, output.format, head.json(), list);
    }
    let encoder = call.encoder(output);
    let head = |items_bytes| match output.format {
        Format::Protobuf => head.protobuf(items_bytes),
        Format::Json | Format::PrettyJson | Format::Yaml => head.json(),
    };
    let is_compressed = call.verb == Verb::List
        && accepts_gzip(call.headers)
        && has_blocks(resource, output)
        && encoder.items_reach(&list.items, GZIP_MIN_BYTES).await?;
    let media_type = output.format.media_type();
    let mut response = if is_compressed {
        let head = match output.format {
            // The head tells the length.
            Format::Protobuf => head(encoder.items_length(&list.items).await?.bytes),
            Format::Json | Format::PrettyJson | Format::Yaml => head(0),
        };
        let body = GzipListBody::new(encoder, list.items, head);
        let mut response = respond(StatusCode::OK, media_type, body.into_body());
        mark_compressed(&mut response);
        response
    } else {
        let body = ListBody::new(encoder, list.items, head).await?;
        respond(StatusCode::OK, media_type, body.boxed_unsync())
    };
    response
        .extensions_mut()
        .insert(ResponseMemory { bytes, objects });
    Ok(response)
}

/// Returns true if a list may be compressed in blocks that are kept. Those of custom resources may not: a webhook may
/// have converted their objects, in another way than the last time. Nor are protobuf's items encoded twice, since its
/// length is sent first.
fn has_blocks(resource: &Resource, output: Output) -> bool {
    let is_stored_form = output.format == Format::Protobuf && output.form == ObjectForm::Whole;
    !resource.is_custom() && (output.format == Format::Json || is_stored_form)
}

/// Responds with a list as a table.
fn table(format: Format, tables: Tables, list: List) -> Result<Response<ResponseBody>, Failure> {
    let head = tables.head(&list_metadata(&list), true)?;
    // Tables have no protobuf form.
    let format = match format {
        Format::Protobuf => Format::Json,
        other => other,
    };
    in_pieces(Items::Rows(tables), format, head, list)
}

/// Responds with a list that is encoded while it is sent, after the JSON before its items.
fn in_pieces(
    items: Items,
    format: Format,
    head: Vec<u8>,
    list: List,
) -> Result<Response<ResponseBody>, Failure> {
    let items_bytes = (list.items.len() * size_of::<Arc<Object>>()) as u64;
    let body = PiecewiseBody::new(items, format, list.items, head)?;
    let held = ResponseMemory {
        bytes: items_bytes + body.size_hint().lower(),
        objects: list.memory,
    };
    let mut response = respond(StatusCode::OK, format.media_type(), body.boxed_unsync());
    response.extensions_mut().insert(held);
    Ok(response)
}

/// The parts of a list before its items.
struct ListHead {
    kind: String,
    api_version: String,
    /// The ListMeta, as JSON.
    metadata: Value,
}

impl ListHead {
    fn json(&self) -> Vec<u8> {
        let Self {
            kind,
            api_version,
            metadata,
        } = self;
        format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
        )
        .into_bytes()
    }

    fn protobuf(&self, items_bytes: usize) -> Vec<u8> {
        codec::list_head(&self.api_version, &self.kind, &self.metadata, items_bytes)
    }
}

fn list_head(resource: &Resource, partial: bool, list: &List) -> ListHead {
    let (kind, api_version) = if partial {
        ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned())
    } else {
        (
            resource.list_kind.as_str(),
            resource.group_version.to_string(),
        )
    };
    ListHead {
        kind: kind.to_owned(),
        api_version,
        metadata: match (resource.is_custom(), partial) {
            (_, true) => list_metadata(list),
            (true, false) => custom_list_metadata(list),
            (false, false) => built_in_list_metadata(list),
        },
    }
}

/// Returns the ListMeta of built-in resources. It alone names the shard: kube-apiserver copies the other fields one by
/// one for tables and partial metadata, and its lists of custom resources have no place for this one.
fn built_in_list_metadata(list: &List) -> Value {
    let mut metadata = list_metadata(list);
    if !list.shard.is_empty() {
        metadata["shardInfo"] = json!({"selector": list.shard.to_string()});
    }
    metadata
}

/// Returns the ListMeta of custom resources, which always has `continue`.
fn custom_list_metadata(list: &List) -> Value {
    let mut metadata = list_metadata(list);
    if metadata.get("continue").is_none() {
        metadata["continue"] = "".into();
    }
    metadata
}

fn list_metadata(list: &List) -> Value {
    let mut metadata = json!({});
    if list.revision > 0 {
        metadata["resourceVersion"] = list.revision.to_string().into();
    }
    if let Some(token) = list.continue_token.as_deref().filter(|it| !it.is_empty()) {
        metadata["continue"] = token.into();
    }
    if let Some(count) = list.remaining_item_count.filter(|count| *count > 0) {
        metadata["remainingItemCount"] = count.into();
    }
    metadata
}

/// Returns the name of a kind's Go type in kube-apiserver.
fn go_type(resource: &Resource, kind: &str) -> String {
    if resource.is_custom() {
        let list = if kind == resource.list_kind {
            "List"
        } else {
            ""
        };
        return format!("*unstructured.Unstructured{list}");
    }
    format!(
        "*{}.{kind}",
        super::decode::go_package(&resource.group_version.group)
    )
}

#[cfg(test)]
mod tests {
    use ringwatch::budget::{Account, Ledger};
    use ringwatch::clock::Clock;

    use super::*;
    use crate::encoding::{Encoder, EncodingCache};
    use crate::memory_gate::MemoryGate;
    use crate::metrics::Metrics;
    use crate::negotiation::{IncludeObject, TableForm};
    use crate::testing::{config_map, config_maps};

    /// The objects are read again for each piece, so they are held until the last one is made.
    #[tokio::test]
    async fn a_list_in_pieces_holds_the_memory_of_its_objects_until_it_is_sent() {
        const OBJECTS_BYTES: u64 = 1 << 20;
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let store = config_maps(&clock);
        let form = TableForm {
            version: "v1",
            include: IncludeObject::Object,
        };
        for (format, is_table) in [
            (Format::Json, true),
            (Format::PrettyJson, true),
            (Format::Yaml, true),
            (Format::PrettyJson, false),
            (Format::Yaml, false),
        ] {
            let ledger = Ledger::new(64 << 20);
            let gate = MemoryGate::new(ledger.clone(), Metrics::new());
            let mut memory = ledger.share(Account::Requests);
            memory.set(OBJECTS_BYTES);
            let list = List {
                revision: 9,
                items: (0..50).map(|it| config_map(it + 1, 10_000)).collect(),
                memory: Some(Arc::new(memory)),
                ..List::default()
            };
            let response = if is_table {
                table(
                    format,
                    Tables::new(Arc::clone(&store), form, clock.clone()),
                    list,
                )
            } else {
                let output = Output {
                    format,
                    form: ObjectForm::Whole,
                };
                let cache = EncodingCache::new(usize::MAX, &Ledger::unlimited());
                let encoder = Encoder::new(cache, Arc::clone(&store), output);
                let head = list_head(store.resource(), false, &list).json();
                in_pieces(Items::Objects(encoder), format, head, list)
            };
            let share = gate.list().expect("room");
            let response = gate.send_list(share, response.expect("a list"));
            let mut body = response.expect("room").into_body();
            let mut frames = 0;
            while let Some(frame) = body.frame().await {
                frame.expect("a piece");
                frames += 1;
                assert!(
                    ledger.spent(Account::Requests) > OBJECTS_BYTES,
                    "{format:?}"
                );
            }
            assert!(frames > 10, "{frames}");
            drop(body);
            assert_eq!(ledger.total(), 0);
        }
    }
}
