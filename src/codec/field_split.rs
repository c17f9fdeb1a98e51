//! A message split at one of its fields.
//!
//! The bytes before the field and those after it are mostly slices of the message, since writers keep to the order of
//! the fields' numbers. A field out of order is appended to a copy of its side; to readers the order makes no
//! difference.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::error::WireError;
use super::wire::{Content, Fields};

/// A message split at a field number: the fields with lower numbers, the field itself, and those with higher numbers.
#[derive(Debug)]
pub(super) struct FieldSplit<'a> {
    /// The fields with lower numbers, with their tags.
    pub(super) below: Cow<'a, [u8]>,
    /// The content of each occurrence of the field; empty if there is none.
    pub(super) found: Vec<&'a [u8]>,
    /// The fields with higher numbers, with their tags.
    pub(super) above: Cow<'a, [u8]>,
}

/// The fields on one side.
#[derive(Debug, Default)]
struct Side {
    /// The range of the fields in the message, as long as they are contiguous.
    run: Range<usize>,
    /// A copy of the fields, if they are not contiguous.
    gathered: Option<Vec<u8>>,
}

/// Splits a message at the field of a number, whose content must be bytes.
///
/// # Errors
/// [`WireError`] when the bytes are broken or the field has another wire type.
pub(super) fn split_at<'a>(
    message: &'a [u8],
    number: u32,
    name: &'static str,
) -> Result<FieldSplit<'a>, WireError> {
    let (mut below, mut found, mut above) = (Side::default(), Vec::new(), Side::default());
    let mut fields = Fields::new(message);
    loop {
        let start = message.len() - fields.bytes_left();
        let Some((at, content)) = fields.next_field()? else {
            break;
        };
        let run = start..message.len() - fields.bytes_left();
        match (at.cmp(&number), content) {
            (Ordering::Less, _) => below.add(message, run),
            (Ordering::Equal, Content::Bytes(bytes)) => found.push(bytes),
            (Ordering::Equal, other) => {
                return Err(WireError::WrongType {
                    wire_type: other.wire_type(),
                    field: name,
                });
            }
            (Ordering::Greater, _) => above.add(message, run),
        }
    }
    Ok(FieldSplit {
        below: below.finish(message),
        found,
        above: above.finish(message),
    })
}

impl Side {
    fn add(&mut self, message: &[u8], run: Range<usize>) {
        if let Some(gathered) = &mut self.gathered {
            gathered.extend_from_slice(&message[run]);
        } else if self.run.is_empty() {
            self.run = run;
        } else if self.run.end == run.start {
            self.run.end = run.end;
        } else {
            self.gathered = Some([&message[self.run.clone()], &message[run]].concat());
        }
    }

    fn finish(self, message: &[u8]) -> Cow<'_, [u8]> {
        match self.gathered {
            Some(gathered) => Cow::Owned(gathered),
            None => Cow::Borrowed(&message[self.run]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::wire::{put_bytes, put_number};

    fn message(fields: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        for (place, number) in fields.iter().enumerate() {
            put_bytes(&mut out, *number, &[place as u8]);
        }
        out
    }

    #[test]
    fn parts_in_order_are_not_copied() {
        let message = message(&[1, 2, 2, 6, 7, 8]);
        let split = split_at(&message, 6, "version").expect("fields");
        assert!(matches!(split.below, Cow::Borrowed(run) if run == &message[..9]));
        assert!(matches!(split.above, Cow::Borrowed(run) if run == &message[12..]));
        assert_eq!(split.found, [[3]]);
    }

    #[test]
    fn fields_out_of_order_are_gathered() {
        let message = message(&[7, 6, 1, 8, 6, 2]);
        let split = split_at(&message, 6, "version").expect("fields");
        assert_eq!(*split.below, [&message[6..9], &message[15..]].concat());
        assert_eq!(*split.above, [&message[..3], &message[9..12]].concat());
        assert_eq!(split.found, [[1], [4]]);
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        let mut message = Vec::new();
        put_number(&mut message, 6, 1);
        let error = split_at(&message, 6, "version").expect_err("a number");
        assert_eq!(
            error.to_string(),
            "proto: wrong wireType = 0 for field version"
        );
        assert!(split_at(&[0x32, 9], 6, "version").is_err());
        assert!(
            split_at(&[], 6, "version")
                .expect("nothing")
                .found
                .is_empty()
        );
    }
}
