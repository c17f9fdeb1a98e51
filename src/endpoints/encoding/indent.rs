//! JSON for people: the same bytes with two spaces of indentation.

/// Indents JSON as Go's `MarshalIndent` does. The bytes must be valid JSON.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut quoted = false;
    let mut escaped = false;
    let mut rest = json.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if quoted {
            out.push(byte);
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                out.push(byte);
                let close = if byte == b'{' { b'}' } else { b']' };
                if rest.peek() == Some(&close) {
                    out.push(close);
                    rest.next();
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                quoted = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
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
    }
}
