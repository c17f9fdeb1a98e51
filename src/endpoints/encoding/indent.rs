//! JSON for people: the same bytes with two spaces of indentation.

/// Indents JSON as Go's `MarshalIndent` does. The bytes must be valid JSON.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    Indenter::default().write(json, &mut out);
    out
}

/// Indents JSON that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    quoted: bool,
    escaped: bool,
    /// True right after an opening bracket, which may be closed on the same line.
    opened: bool,
}

impl Indenter {
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
