//! Indents JSON by two spaces a level, for clients that show it to people.

/// Maximum factor by which indentation, for people and in YAML, may lengthen a value. Definitions grow by four; a list
/// of numbers a hundred levels deep would grow by a hundred.
pub(super) const INDENTED_FACTOR_MAX: usize = 8;

/// The length, in bytes, up to which any value may grow by indentation.
pub(super) const INDENTED_BYTES_MIN: usize = 64 << 10;

/// Number of bytes of a value that are indented before its length is checked.
const PIECE_BYTES: usize = 1 << 10;

/// Indents JSON as Go's `MarshalIndent` does, unless that makes it much longer. The bytes must be valid JSON.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    Indenter::default().write_value(json, &mut out);
    out
}

/// Returns the maximum length after indentation of JSON of this length.
pub(super) fn indented_max(json_bytes: usize) -> usize {
    json_bytes
        .saturating_mul(INDENTED_FACTOR_MAX)
        .saturating_add(INDENTED_BYTES_MIN)
}

/// Indents JSON that comes in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    quoted: bool,
    escaped: bool,
    /// True right after an opening bracket, which may be closed on the same line.
    opened: bool,
}

impl Indenter {
    /// Writes a whole value: on one line if indentation would make it much longer.
    pub(crate) fn write_value(&mut self, json: &[u8], out: &mut Vec<u8>) {
        let (before, start) = (self.clone(), out.len());
        let end_max = start + indented_max(json.len());
        for piece in json.chunks(PIECE_BYTES) {
            self.write(piece, out);
            if out.len() > end_max {
                *self = before;
                out.truncate(start);
                self.begin(out);
                out.extend_from_slice(json);
                return;
            }
        }
    }

    /// Writes the next piece.
    pub(crate) fn write(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for byte in json.iter().copied() {
            if self.quoted {
                out.push(byte);
                self.quoted = self.escaped || byte != b'"';
                self.escaped = byte == b'\\' && !self.escaped;
                continue;
            }
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => {}
                b'{' | b'[' => {
                    self.begin(out);
                    out.push(byte);
                    self.depth += 1;
                    self.opened = true;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if !std::mem::take(&mut self.opened) {
                        new_line(out, self.depth);
                    }
                    out.push(byte);
                }
                b',' => {
                    out.push(byte);
                    new_line(out, self.depth);
                }
                b':' => out.extend_from_slice(b": "),
                _ => {
                    self.begin(out);
                    self.quoted = byte == b'"';
                    out.push(byte);
                }
            }
        }
    }

    /// Begins a line if the value is the first one in its bracket.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.opened) {
            new_line(out, self.depth);
        }
    }
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + depth * 2, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_become_much_longer_stays_on_one_line() {
        let deep = (0..90).fold(serde_json::json!(vec![1; 10_000]), |inner, _| {
            serde_json::json!([inner])
        });
        let deep = deep.to_string();
        assert_eq!(indent(deep.as_bytes()), deep.as_bytes());
        let mut indenter = Indenter::default();
        let mut found = Vec::new();
        indenter.write(b"[", &mut found);
        indenter.write_value(deep.as_bytes(), &mut found);
        indenter.write(b",", &mut found);
        indenter.write_value(b"[2]", &mut found);
        indenter.write(b"]", &mut found);
        let expected = format!("[\n  {deep},\n  [\n    2\n  ]\n]");
        assert_eq!(String::from_utf8_lossy(&found), expected);
    }

    #[test]
    fn agrees_with_serde() {
        let value = serde_json::json!({"a": [1, {"b\\\"{": "x,:y"}, [], {}], "c": {"d": null}});
        let expected = serde_json::to_string_pretty(&value).expect("json");
        let found = indent(value.to_string().as_bytes());
        assert_eq!(String::from_utf8_lossy(&found), expected);
        let (mut indenter, mut found) = (Indenter::default(), Vec::new());
        for byte in value.to_string().bytes() {
            indenter.write(&[byte], &mut found);
        }
        assert_eq!(String::from_utf8_lossy(&found), expected);
    }
}
