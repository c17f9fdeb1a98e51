//! Conversion between the types of [`crate::storage::backend`] and those of etcd's protocol.

use bytes::Bytes;
use etcd_client::proto::{PbEvent, PbKeyValue, PbResponseHeader, PbTxnOpResponse};
use etcd_client::{
    Compare as PbCompare, CompareOp, EventType, GetOptions, GetResponse, PutOptions, TxnOp,
};

use crate::storage::backend::{
    Compare, Event, EventKind, KeyRange, KeyValue, LeaseId, Op, RangeContent, RangeRequest,
    RangeResponse, Txn, TxnResponse,
};

/// Returns the key and the options of a read.
pub(super) fn request(request: &RangeRequest) -> (String, GetOptions) {
    let mut options = GetOptions::new()
        .with_revision(signed(request.revision))
        .with_limit(signed(request.limit));
    match request.content {
        RangeContent::Values => {}
        RangeContent::Keys => options = options.with_keys_only(),
        RangeContent::Count => options = options.with_count_only(),
    }
    match &request.range {
        KeyRange::Key(key) => (key.clone(), options),
        KeyRange::Span(start, end) => (start.clone(), options.with_range(end.as_str())),
    }
}

pub(super) fn range_response(response: GetResponse) -> RangeResponse {
    let response = response.0;
    RangeResponse {
        revision: revision(response.header.as_ref()),
        kvs: response.kvs.into_iter().map(key_value).collect(),
        more: response.more,
        count: unsigned(response.count),
    }
}

pub(super) fn transaction(txn: &Txn) -> etcd_client::Txn {
    let compare = match &txn.compare {
        Compare::ModRevision(key, revision) => {
            PbCompare::mod_revision(key.as_str(), CompareOp::Equal, signed(*revision))
        }
        Compare::Version(key, version) => {
            PbCompare::version(key.as_str(), CompareOp::Equal, signed(*version))
        }
    };
    let request = etcd_client::Txn::new()
        .when([compare])
        .and_then([operation(&txn.then)]);
    match &txn.otherwise {
        Some(otherwise) => request.or_else([operation(otherwise)]),
        None => request,
    }
}

pub(super) fn txn_response(response: etcd_client::TxnResponse) -> TxnResponse {
    let response = response.0;
    let found = response.responses.into_iter().find_map(|operation| {
        let Some(PbTxnOpResponse::ResponseRange(range)) = operation.response else {
            return None;
        };
        range.kvs.into_iter().next().map(key_value)
    });
    TxnResponse {
        revision: revision(response.header.as_ref()),
        succeeded: response.succeeded,
        found,
    }
}

/// Converts an event; `None` for one without a key, which etcd does not send.
pub(super) fn event(event: PbEvent) -> Option<Event> {
    let kind = if event.r#type == EventType::Delete as i32 {
        EventKind::Delete
    } else {
        EventKind::Put
    };
    Some(Event {
        kind,
        kv: key_value(event.kv?),
        previous: event.prev_kv.map(key_value),
    })
}

/// Returns the store's revision in the header of a response.
pub(super) fn revision(header: Option<&PbResponseHeader>) -> u64 {
    header.map_or(0, |header| unsigned(header.revision))
}

/// Converts to etcd's numbers, which are signed but never negative.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn operation(operation: &Op) -> TxnOp {
    match operation {
        Op::Put { key, value, lease } => {
            let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
            TxnOp::put(key.as_str(), value.to_vec(), options)
        }
        Op::Delete { key } => TxnOp::delete(key.as_str(), None),
        Op::Get { key } => TxnOp::get(key.as_str(), None),
    }
}

fn key_value(kv: PbKeyValue) -> KeyValue {
    KeyValue {
        // A key that is not text was written by another program; it names none of our objects.
        key: String::from_utf8(kv.key)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        value: Bytes::from(kv.value),
        create_revision: unsigned(kv.create_revision),
        mod_revision: unsigned(kv.mod_revision),
        version: unsigned(kv.version),
        lease: Some(LeaseId(kv.lease)).filter(|lease| lease.0 != 0),
    }
}
