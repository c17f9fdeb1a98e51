//! Finding a marker in objects that are much alike: where it was the last time.

use std::cell::Cell;

/// A marker whose value is digits.
#[derive(Debug)]
pub(crate) struct DigitField {
    marker: &'static [u8],
    last: Cell<usize>,
}

impl DigitField {
    /// Returns the search for a marker, which may stand anywhere the first time.
    pub(crate) const fn new(marker: &'static [u8]) -> Self {
        Self {
            marker,
            last: Cell::new(0),
        }
    }

    /// Returns the bytes after the first marker.
    ///
    /// A marker that stands where the last one stood is taken for the first. So this is for markers
    /// of which objects that are alike have one, or have the first at the same place.
    pub(crate) fn after<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let here = |at: usize| bytes.get(at..)?.strip_prefix(self.marker);
        here(self.last.get()).or_else(|| {
            let at = position(bytes, self.marker)?;
            self.last.set(at);
            here(at)
        })
    }
}

/// Returns where the first occurrence begins.
pub(crate) fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// Returns the number whose digits come first, up to what is no digit.
pub(crate) fn leading_number(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    let mut number: Option<u64> = None;
    for byte in digits {
        let digit = u64::from(byte - b'0');
        let more = number.unwrap_or_default().checked_mul(10)?;
        number = Some(more.checked_add(digit)?);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_found_where_it_was_and_where_it_went() {
        let field = DigitField::new(b"\"v\":\"");
        for (text, number) in [
            (&b"{\"v\":\"12\"}"[..], Some(12)),
            (b"{\"v\":\"13\"}", Some(13)),
            (b"{\"a\":1,\"v\":\"14\"}", Some(14)),
            (b"{\"v\":\"15\"}", Some(15)),
            (b"{\"w\":\"16\"}", None),
            (b"{\"v\":\"\"}", None),
            (b"{\"v\":\"99999999999999999999\"}", None),
            (b"", None),
        ] {
            assert_eq!(field.after(text).and_then(leading_number), number);
        }
    }
}
