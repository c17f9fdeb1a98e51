//! Shard selectors: ranges of the hash of an object's uid or namespace, by which the replicas of a controller divide
//! the objects of a type among themselves.
//!
//! The hash is FNV-1a with 64 bits, so that clients and all servers agree on the shard of an object. It spreads uids
//! evenly and looks at nothing else, so an object stays in its shard for as long as it lives.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::meta::Attributes;

/// The hash of the empty text.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// The factor of the hash for each byte.
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// A shard selector: an object is selected if the hash of its uid or namespace lies in one of the ranges. The default
/// selects everything.
///
/// ```
/// use ringwatch::meta::{ShardField, ShardSelector, shard_hash};
///
/// let text = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
/// let lower = ShardSelector::parse(text)?;
/// assert_eq!(lower.field(), Some(ShardField::Uid));
/// assert!(!lower.contains(shard_hash("")));
/// assert_eq!(lower.to_string(), text);
/// assert!(ShardSelector::parse("shardRange(object.metadata.name, '0x0', '0x8')").is_err());
/// # Ok::<(), ringwatch::meta::ParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShardSelector(Option<Arc<Ranges>>);

/// The part of an object that is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardField {
    /// `metadata.uid`.
    Uid,
    /// `metadata.namespace`.
    Namespace,
}

/// A range of hashes, which is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardRange {
    /// The lowest hash.
    pub first: u64,
    /// The highest hash: the end of the range in selectors, which is exclusive and may be 2^64, less one.
    pub last: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ranges {
    field: ShardField,
    /// The ranges as they were given.
    given: Box<[ShardRange]>,
    /// The same hashes as ranges in order, with a gap between each two.
    joined: Box<[ShardRange]>,
}

/// Returns the hash of a uid or namespace.
#[must_use]
pub fn shard_hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    text.bytes().fold(FNV_OFFSET, step)
}

impl ShardSelector {
    /// Creates a selector of the objects whose field has a hash in one of the ranges; of everything if there is no
    /// range.
    #[must_use]
    pub fn new(field: ShardField, ranges: &[ShardRange]) -> Self {
        if ranges.is_empty() {
            return Self::default();
        }
        Self(Some(Arc::new(Ranges {
            field,
            given: ranges.into(),
            joined: join(ranges.to_vec()).into(),
        })))
    }

    /// Returns true if it selects everything because it has no range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the field that is hashed; `None` if everything is selected.
    #[must_use]
    pub fn field(&self) -> Option<ShardField> {
        self.0.as_ref().map(|it| it.field)
    }

    /// Returns true if an object is selected.
    // Inlined because nearly every selector is of no shard, and a list asks it for each object.
    #[inline]
    #[must_use]
    pub fn matches(&self, attributes: Attributes<'_>) -> bool {
        self.field()
            .is_none_or(|field| self.contains(shard_hash(field.value(attributes))))
    }

    /// Returns true if objects with this hash are selected.
    #[must_use]
    pub fn contains(&self, hash: u64) -> bool {
        self.0.as_ref().is_none_or(|it| {
            let at = it.joined.partition_point(|range| range.last < hash);
            it.joined.get(at).is_some_and(|range| range.first <= hash)
        })
    }

    /// Returns the selected hashes as ranges in order, which neither overlap nor touch.
    #[must_use]
    pub fn ranges(&self) -> &[ShardRange] {
        self.0.as_ref().map_or(&[], |it| &it.joined)
    }
}

/// Writes the selector in canonical form, its ranges in the order in which they were given.
impl Display for ShardSelector {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Some(ranges) = &self.0 else {
            return Ok(());
        };
        let field = ranges.field.path();
        for (index, range) in ranges.given.iter().enumerate() {
            let separator = if index > 0 { " || " } else { "" };
            let (first, end) = (range.first, u128::from(range.last) + 1);
            write!(
                formatter,
                "{separator}shardRange({field}, '0x{first:016x}', '0x{end:016x}')"
            )?;
        }
        Ok(())
    }
}

impl ShardField {
    /// All fields that can be hashed.
    pub const ALL: [Self; 2] = [Self::Uid, Self::Namespace];

    /// Returns the path by which selectors name the field.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }

    /// Returns an object's value of the field; empty if it has none.
    #[must_use]
    pub fn value(self, attributes: Attributes<'_>) -> &str {
        match self {
            Self::Uid => attributes.uid(),
            Self::Namespace => attributes.namespace(),
        }
    }
}

/// Sorts ranges, and joins those that overlap or touch.
fn join(mut ranges: Vec<ShardRange>) -> Vec<ShardRange> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let joins = next.first <= range.last.saturating_add(1);
        if joins {
            range.last = range.last.max(next.last);
        }
        joins
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::OwnedAttributes;

    fn selector(ranges: &[(u64, u64)]) -> ShardSelector {
        let range = |(first, last): &(u64, u64)| ShardRange {
            first: *first,
            last: *last,
        };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        ShardSelector::new(ShardField::Uid, &ranges)
    }

    /// The values are those of Go's `fnv.New64a`; the first three are in the specification of FNV as well.
    #[test]
    fn hashes_are_those_of_fnv_1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
            ("abc", 0xe71f_a219_0541_574b),
        ] {
            assert_eq!(shard_hash(text), hash, "{text:?}");
        }
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_one() {
        let joined = selector(&[(40, 50), (0, 9), (10, 19), (15, 30), (u64::MAX, u64::MAX)]);
        let range = |first, last| ShardRange { first, last };
        let expected = [range(0, 30), range(40, 50), range(u64::MAX, u64::MAX)];
        assert_eq!(joined.ranges(), expected);
        for (hash, inside) in [
            (0, true),
            (30, true),
            (31, false),
            (39, false),
            (40, true),
            (50, true),
            (51, false),
            (u64::MAX, true),
        ] {
            assert_eq!(joined.contains(hash), inside, "{hash}");
        }
        assert!(selector(&[]).contains(7) && selector(&[]).is_empty());
    }

    #[test]
    fn the_field_of_the_selector_is_hashed() {
        let object = OwnedAttributes::new("space", "a", []);
        let hash = shard_hash("space");
        let range = ShardRange {
            first: hash,
            last: hash,
        };
        assert!(ShardSelector::new(ShardField::Namespace, &[range]).matches(object.get()));
        assert!(!ShardSelector::new(ShardField::Uid, &[range]).matches(object.get()));
        assert!(ShardSelector::default().matches(object.get()));
    }
}
