//! Puts a message in order: its fields by number and the entries of maps by key, each once.
//!
//! Readers of protobuf must accept fields in any order, and several times: the last number or string counts, lists are
//! concatenated, and a message that occurs twice is one message in two parts. So a message is read here as the sequence
//! of its parts; their fields are sorted by number, then by position, and the occurrences of a field are joined into
//! one.
//!
//! ```text
//! 3:x  1:{a}  9:?  1:{b}  3:y      becomes      1:{a b, in order}  3:y  9:?
//! ```
//!
//! All unknown fields are kept, in their order.

use super::envelope;
use super::error::WireError;
use super::message::{Arity, Field, FieldType, Message, Shape};
use super::wire::{Content, Fields, NESTING_MAX, entry_of, put_bytes, put_nested};

/// An occurrence of a field, as a range of the root's bytes.
#[derive(Clone, Copy, Debug)]
struct Occurrence {
    number: u32,
    start: u32,
    end: u32,
}

/// The parts of a message, in order.
#[derive(Clone, Copy, Debug)]
enum MessageParts<'p> {
    /// All bytes of the root.
    All,
    /// The contents of these fields, one after the other.
    Fields(&'p [Occurrence]),
}

/// The bytes that contain all parts.
#[derive(Clone, Copy, Debug)]
struct Root<'a>(&'a [u8]);

/// Returns the message in order.
///
/// # Errors
/// [`WireError`] when the bytes are broken or nested too deeply.
pub(super) fn ordered(message: &Message, bytes: &[u8], depth: usize) -> Result<Vec<u8>, WireError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(WireError::TooLong);
    }
    let mut out = Vec::new();
    Root(bytes).message(&mut out, message, MessageParts::All, depth)?;
    Ok(out)
}

impl<'a> Root<'a> {
    /// Writes a message in order.
    fn message(
        self,
        out: &mut Vec<u8>,
        message: &Message,
        parts: MessageParts<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        if depth >= NESTING_MAX {
            return Err(WireError::TooDeep);
        }
        match (message.shape, parts) {
            (
                Shape::Object | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts,
                _,
            ) => self.fields(out, message, parts, depth),
            (Shape::RawExtension, _) => self.raw_extension(out, parts, depth),
            // Go does not merge times, but reads each.
            (Shape::Time | Shape::MicroTime, MessageParts::Fields([before @ .., last])) => {
                self.scan(MessageParts::Fields(before), &mut |_| {})?;
                self.copy_contents(out, MessageParts::Fields(&[*last]))
            }
            // The other shapes are read in any order.
            _ => self.copy_contents(out, parts),
        }
    }

    fn fields(
        self,
        out: &mut Vec<u8>,
        message: &Message,
        parts: MessageParts<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        let mut occurrences = self.occurrences(parts)?;
        occurrences.sort_unstable_by_key(|it| (it.number, it.start));
        for group in occurrences.chunk_by_mut(|a, b| a.number == b.number) {
            match message.field(group[0].number) {
                Some(field) => self.field(out, field, group, depth + 1)?,
                None => self.copy(out, group),
            }
        }
        Ok(())
    }

    /// Writes a field that occurs once or several times.
    fn field(
        self,
        out: &mut Vec<u8>,
        field: &Field,
        group: &mut [Occurrence],
        depth: usize,
    ) -> Result<(), WireError> {
        match (field.arity, field.kind) {
            (Arity::Map, kind) => self.map(out, field, kind, group, depth)?,
            (Arity::One, FieldType::Message(id)) => {
                self.check(field, group)?;
                nested(out, field.number, |out| {
                    self.message(out, id.message(), MessageParts::Fields(group), depth)
                })?;
            }
            (Arity::List, FieldType::Message(id)) => {
                self.check(field, group)?;
                for item in group.chunks(1) {
                    nested(out, field.number, |out| {
                        self.message(out, id.message(), MessageParts::Fields(item), depth)
                    })?;
                }
            }
            (Arity::List, _) => self.copy(out, group),
            (Arity::One, _) => {
                self.check(field, group)?;
                self.copy(out, &group[group.len() - 1..]);
            }
        }
        Ok(())
    }

    /// Writes the entries of a map by their keys; the last one of each key counts, and the others may not be broken.
    fn map(
        self,
        out: &mut Vec<u8>,
        field: &Field,
        kind: FieldType,
        group: &mut [Occurrence],
        depth: usize,
    ) -> Result<(), WireError> {
        self.check(field, group)?;
        for entry in &*group {
            entry_of(self.run(*entry))?;
        }
        let entry = |at: &Occurrence| entry_of(self.run(*at)).unwrap_or_default();
        group.sort_unstable_by(|a, b| (entry(a).0, a.start).cmp(&(entry(b).0, b.start)));
        for same in group.chunk_by(|a, b| entry(a).0 == entry(b).0) {
            let start = out.len();
            for (key, value) in same.iter().map(entry) {
                out.truncate(start);
                nested(out, field.number, |out| {
                    put_bytes(out, 1, key);
                    match (kind, value) {
                        (_, None) => {}
                        (FieldType::Message(id), Some(mut value)) => {
                            put_bytes(out, 2, &ordered(id.message(), value.run()?, depth)?);
                        }
                        (_, Some(mut value)) => put_bytes(out, 2, value.run()?),
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Writes a message that may contain an object with an envelope of its own.
    fn raw_extension(
        self,
        out: &mut Vec<u8>,
        parts: MessageParts<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        let occurrences = self.occurrences(parts)?;
        let raw = occurrences.iter().rfind(|it| it.number == 1);
        match raw.map(|it| self.run(*it)) {
            Some(raw) if raw.starts_with(&envelope::MAGIC) => {
                put_bytes(out, 1, &enveloped(raw, depth)?);
                Ok(())
            }
            _ => self.copy_contents(out, parts),
        }
    }

    /// Returns the occurrences of the fields of all parts.
    fn occurrences(self, parts: MessageParts<'_>) -> Result<Vec<Occurrence>, WireError> {
        // Counted first: a vector that grows by doubling could take too much memory for a request.
        let mut count = 0;
        self.scan(parts, &mut |_| count += 1)?;
        let mut occurrences = Vec::with_capacity(count);
        self.scan(parts, &mut |it| occurrences.push(it))?;
        Ok(occurrences)
    }

    fn scan(
        self,
        parts: MessageParts<'_>,
        found: &mut dyn FnMut(Occurrence),
    ) -> Result<(), WireError> {
        self.contents(parts, &mut |part, mut start| {
            let end = start + part.len();
            let mut fields = Fields::new(part);
            while let Some((number, _)) = fields.next_field()? {
                let next = end - fields.bytes_left();
                // The root is shorter than 4 GiB.
                let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
                found(Occurrence {
                    number,
                    start: place(start),
                    end: place(next),
                });
                start = next;
            }
            Ok(())
        })
    }

    /// Calls a function with every part and its offset.
    fn contents(
        self,
        parts: MessageParts<'_>,
        give: &mut dyn FnMut(&'a [u8], usize) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        match parts {
            MessageParts::All => give(self.0, 0),
            MessageParts::Fields(fields) => fields.iter().try_for_each(|it| {
                let run = self.run(*it);
                give(run, it.end as usize - run.len())
            }),
        }
    }

    fn copy_contents(self, out: &mut Vec<u8>, parts: MessageParts<'_>) -> Result<(), WireError> {
        self.contents(parts, &mut |part, _| {
            out.extend_from_slice(part);
            Ok(())
        })
    }

    fn copy(self, out: &mut Vec<u8>, fields: &[Occurrence]) {
        for field in fields {
            out.extend_from_slice(self.field_bytes(*field));
        }
    }

    fn field_bytes(self, field: Occurrence) -> &'a [u8] {
        let range = field.start as usize..field.end as usize;
        self.0.get(range).unwrap_or_default()
    }

    /// Returns the content of a field that is bytes; empty if it has another wire type.
    fn run(self, field: Occurrence) -> &'a [u8] {
        match Fields::new(self.field_bytes(field)).next_field() {
            Ok(Some((_, Content::Bytes(run)))) => run,
            _ => &[],
        }
    }

    /// Checks that every occurrence of a field has its wire type, those too that a later one replaces.
    fn check(self, field: &Field, group: &[Occurrence]) -> Result<(), WireError> {
        for occurrence in group {
            let tag = Fields::new(self.field_bytes(*occurrence)).varint()?;
            if tag != u64::from(field.tag) {
                return Err(field.wrong_tag(tag));
            }
        }
        Ok(())
    }
}

/// Returns an object with an envelope of its own, with its fields in order.
fn enveloped(bytes: &[u8], depth: usize) -> Result<Vec<u8>, WireError> {
    let (unknown, found) = envelope::typed(bytes)?;
    let raw = ordered(found.0, unknown.raw, depth + 1)?;
    let mut out = envelope::begin(&unknown.api_version, &unknown.kind);
    put_bytes(&mut out, 2, &raw);
    Ok(out)
}

/// Appends a field whose bytes `write` appends.
fn nested(
    out: &mut Vec<u8>,
    number: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut done = Ok(());
    put_nested(out, number, |out| done = write(out));
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tables::kind;
    use crate::codec::wire::{put_bytes, put_number};
    use crate::codec::{decode, envelope::begin};

    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, number, content);
        out
    }

    fn number(number: u32, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, number, value);
        out
    }

    fn read(name: &str, raw: &[u8]) -> serde_json::Value {
        let mut bytes = begin("v1", name);
        put_bytes(&mut bytes, 2, raw);
        decode(&bytes, ("", "")).expect(name)
    }

    #[test]
    fn what_comes_twice_is_merged() {
        let label = |key: &str, value: &str| {
            field(
                11,
                &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat(),
            )
        };
        let first = [label("b", "1"), field(1, b"old")].concat();
        let second = [
            label("a", "2"),
            field(99, b"?"),
            label("b", "3"),
            field(1, b"new"),
        ];
        let bytes = [field(1, &first), field(1, &second.concat())].concat();
        let map = read("ConfigMap", &bytes);
        assert_eq!(
            map["metadata"],
            serde_json::json!({"name": "new", "labels": {"a": "2", "b": "3"}})
        );
        let message = kind("v1", "ConfigMap").expect("a kind").0;
        let once = ordered(message, &bytes, 0).expect("in order");
        assert_eq!(once, ordered(message, &once, 0).expect("in order"));
        let unknown = field(99, b"?");
        assert!(once.windows(unknown.len()).any(|it| it == unknown));
    }

    #[test]
    fn lists_keep_their_order_among_other_fields() {
        let container = |name: &[u8]| field(2, &[field(2, b"i"), field(1, name)].concat());
        let spec = [
            container(b"x"),
            field(3, b"Never"),
            container(b"y"),
            field(3, b"Always"),
        ];
        let pod = read("Pod", &[field(2, &spec.concat()), field(1, &[])].concat());
        assert_eq!(pod["spec"]["containers"][0]["name"], "x");
        assert_eq!(pod["spec"]["containers"][1]["name"], "y");
        assert_eq!(pod["spec"]["containers"][1]["image"], "i");
        assert_eq!(pod["spec"]["restartPolicy"], "Always");
    }

    #[test]
    fn what_a_later_one_replaces_is_checked() {
        let map = |metadata: &[Vec<u8>]| {
            let mut bytes = begin("v1", "ConfigMap");
            put_bytes(&mut bytes, 2, &field(1, &metadata.concat()));
            decode(&bytes, ("", ""))
        };
        let label = |value: Vec<u8>| field(11, &[field(1, b"a"), value].concat());
        let (late, early) = (number(1, 253_402_300_800), number(1, 0));
        let broken = vec![8];
        let cases = [
            ([number(1, 7), field(1, b"a")], false),
            ([label(number(2, 7)), label(field(2, b"b"))], false),
            ([field(8, &broken), field(8, &early)], false),
            // It cannot be JSON, but Go does not write it.
            ([field(8, &late), field(8, &early)], true),
        ];
        for (twice, is_read) in cases {
            let first = map(&twice);
            assert_eq!(first.is_ok(), is_read, "{first:?}");
            let (before, after) = (field(3, b"default"), field(4, b""));
            let [a, b] = twice;
            let behind = map(&[after.clone(), before.clone(), a.clone(), b.clone()]);
            assert_eq!(behind.is_ok(), is_read, "{behind:?}");
            assert_eq!(behind, map(&[a, b, after, before]));
        }
    }

    #[test]
    fn a_wrong_type_is_an_error_in_any_order() {
        let message = kind("v1", "Pod").expect("a kind").0;
        let bytes = [field(2, &[]), number(1, 7)].concat();
        assert!(matches!(
            ordered(message, &bytes, 0),
            Err(WireError::WrongType { .. })
        ));
    }
}
