//! The metadata of a list, read without its items.

use super::Encoding;
use super::field::{leading_number, position};
use super::protobuf::{ListMeta, ListWithoutItems, decode_enveloped};

/// The metadata of a list in JSON end within this many bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The metadata of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ListHead {
    /// The version that it is of.
    pub(crate) revision: u64,
    /// The token of the next page; `None` on the last.
    pub(crate) next: Option<String>,
}

impl ListHead {
    /// Reads the head of a list; `None` if it is none.
    pub(crate) fn read(list: &[u8], encoding: Encoding) -> Option<Self> {
        match encoding {
            Encoding::Json => Self::json(list),
            Encoding::Protobuf => Self::binary(list),
        }
    }

    /// Reads the metadata in JSON, which come before the items and hold no braces.
    fn json(list: &[u8]) -> Option<Self> {
        let list = &list[..list.len().min(HEAD_BYTES_MAX)];
        let at = position(list, br#""metadata":{"#)?;
        let end = list[at..].iter().position(|byte| *byte == b'}')?;
        let head = &list[at..at + end];
        let after = |marker: &[u8]| Some(&head[position(head, marker)? + marker.len()..]);
        let next = after(br#""continue":""#).and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b'"')?;
            String::from_utf8(rest[..end].to_vec()).ok()
        });
        Some(Self {
            revision: leading_number(after(br#""resourceVersion":""#)?)?,
            next: next.filter(|next| !next.is_empty()),
        })
    }

    fn binary(list: &[u8]) -> Option<Self> {
        let list: ListWithoutItems = decode_enveloped(list)?;
        Self::from_metadata(list.metadata?)
    }

    /// Reads the decoded metadata of a list.
    pub(crate) fn from_metadata(metadata: ListMeta) -> Option<Self> {
        let next = metadata.r#continue;
        Some(Self {
            revision: leading_number(metadata.resource_version.as_bytes())?,
            next: (!next.is_empty()).then_some(next),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protobuf::envelope;

    fn head(revision: u64, next: Option<&str>) -> Option<ListHead> {
        let next = next.map(str::to_owned);
        Some(ListHead { revision, next })
    }

    #[test]
    fn heads_are_read() {
        let list = br#"{"kind":"L","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[
            {"metadata":{"resourceVersion":"4","continue":"no"}}]}"#;
        assert_eq!(ListHead::read(list, Encoding::Json), head(5, None));
        let list =
            br#"{"metadata":{"resourceVersion":"5","continue":"on","remainingItemCount":1}}"#;
        assert_eq!(ListHead::read(list, Encoding::Json), head(5, Some("on")));
        let list = ListWithoutItems {
            metadata: Some(ListMeta {
                resource_version: "5".to_owned(),
                r#continue: "on".to_owned(),
            }),
        };
        let list = envelope("v1", "L", &list);
        assert_eq!(
            ListHead::read(&list, Encoding::Protobuf),
            head(5, Some("on"))
        );
        assert_eq!(ListHead::read(b"{}", Encoding::Json), None);
    }
}
