//! Bodies as they were sent, which become JSON only when an event is written.

use std::io::Read;

use bytes::Bytes;
use ringwatch::codec;
use ringwatch::meta::json_text;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum number of bytes that compressed bodies are unpacked to; longer ones are not recorded.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// Bytes of a body in which the kind Status is looked for, and how such a body begins in JSON without white space.
const STATUS_LOOK_BYTES: usize = 4 << 10;
const STATUS_IN_JSON: [u8; 17] = *b"{\"kind\":\"Status\",";

/// The form of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, perhaps indented.
    #[default]
    Json,
    /// YAML; JSON is YAML too.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

impl Encoding {
    /// Returns the encoding of a media type; `None` for one that has no object of Kubernetes.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let plain = media_type.split(';').next().unwrap_or_default().trim();
        match plain {
            "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}

/// A body as it was sent. Clones share the bytes.
#[derive(Clone, Debug, Default)]
pub struct AuditBody {
    /// The pieces in which it was sent.
    pieces: Vec<Bytes>,
    encoding: Encoding,
    is_gzip: bool,
}

impl AuditBody {
    /// Makes an empty body of this encoding, to which pieces are added.
    #[must_use]
    pub fn new(encoding: Encoding, is_gzip: bool) -> Self {
        Self {
            pieces: Vec::new(),
            encoding,
            is_gzip,
        }
    }

    /// Makes a body of one piece.
    #[must_use]
    pub fn whole(encoding: Encoding, content: Bytes) -> Self {
        let mut body = Self::new(encoding, false);
        body.push(content);
        body
    }

    /// Adds a piece.
    pub fn push(&mut self, piece: Bytes) {
        self.pieces.push(piece);
    }

    /// Returns the number of its bytes as they were sent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|it| it.len() as u64).sum()
    }

    /// Returns true if its first piece begins as a Status does, in JSON or protobuf.
    #[must_use]
    pub fn looks_like_status(&self) -> bool {
        let begin = self.pieces.first().map_or(&[][..], |piece| piece);
        let begin = &begin[..begin.len().min(STATUS_LOOK_BYTES)];
        if self.is_gzip {
            return false;
        }
        let holds = |wanted: &[u8]| begin.windows(wanted.len()).any(|it| it == wanted);
        match self.encoding {
            Encoding::Json => {
                let dense = begin.iter().copied().filter(|it| !it.is_ascii_whitespace());
                dense.take(STATUS_IN_JSON.len()).eq(STATUS_IN_JSON)
            }
            Encoding::Yaml => holds(b"kind: Status\n"),
            Encoding::Protobuf => holds(b"\x12\x06Status"),
        }
    }

    /// Returns the body in JSON on one line; what is neither JSON nor YAML becomes a JSON string.
    ///
    /// # Errors
    /// A message if it cannot be unpacked or decoded.
    pub(crate) fn json(&self) -> Result<Box<RawValue>, String> {
        let content = self.unpacked()?;
        let content = content.as_slice();
        let in_json = match self.encoding {
            Encoding::Protobuf => {
                let json = codec::to_json(content, ("", "")).map_err(|error| error.to_string())?;
                return raw(json);
            }
            Encoding::Json | Encoding::Yaml => content.trim_ascii(),
        };
        let is_one_line = !in_json.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        if is_one_line && let Ok(found) = serde_json::from_slice::<Box<RawValue>>(in_json) {
            return Ok(found);
        }
        if let Ok(value) = serde_json::from_slice::<Value>(in_json) {
            return raw(json_text(&value).into_bytes());
        }
        let value = serde_saphyr::from_slice::<Value>(in_json);
        let value = value.unwrap_or_else(|_| String::from_utf8_lossy(in_json).into());
        raw(json_text(&value).into_bytes())
    }

    fn unpacked(&self) -> Result<Vec<u8>, String> {
        let packed = self.pieces.concat();
        if !self.is_gzip {
            return Ok(packed);
        }
        let mut content = Vec::new();
        let mut unpacking =
            flate2::read::GzDecoder::new(packed.as_slice()).take(UNPACKED_BYTES_MAX);
        let read = unpacking.read_to_end(&mut content);
        let bytes = read.map_err(|error| error.to_string())?;
        if bytes as u64 == UNPACKED_BYTES_MAX {
            return Err(format!(
                "unpacked it has more than {UNPACKED_BYTES_MAX} bytes"
            ));
        }
        Ok(content)
    }
}

fn raw(json: Vec<u8>) -> Result<Box<RawValue>, String> {
    let text = String::from_utf8(json).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn json(encoding: Encoding, content: &str) -> String {
        let body = AuditBody::whole(encoding, Bytes::copy_from_slice(content.as_bytes()));
        body.json().expect("JSON").get().to_owned()
    }

    #[test]
    fn every_body_becomes_one_line_of_json() {
        for (content, line) in [
            ("{\"b\":1,\"a\":\"x y\"}\n", "{\"b\":1,\"a\":\"x y\"}"),
            ("{\n  \"a\": \"x y\"\n}\n", "{\"a\":\"x y\"}"),
            ("a: 1\nb: [x]\n", "{\"a\":1,\"b\":[\"x\"]}"),
            ("a: [", "\"a: [\""),
            ("[\r{\"kind\":\"Event\"}\r]", "[{\"kind\":\"Event\"}]"),
        ] {
            assert_eq!(json(Encoding::Yaml, content), line);
        }
        assert_eq!(json(Encoding::Json, "[1,2]"), "[1,2]");
    }

    #[test]
    fn pieces_and_compressed_bodies_are_joined() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"{\"kind\":\"List\"}").expect("written");
        let packed = packed.finish().expect("packed");
        let mut body = AuditBody::new(Encoding::Json, true);
        for piece in packed.chunks(5) {
            body.push(Bytes::copy_from_slice(piece));
        }
        assert_eq!(body.json().expect("JSON").get(), "{\"kind\":\"List\"}");
        let broken = AuditBody {
            is_gzip: true,
            ..AuditBody::whole(Encoding::Json, Bytes::from_static(b"no"))
        };
        assert!(broken.json().is_err());
    }

    #[test]
    fn statuses_are_told_by_their_beginning() {
        let is = |encoding, content: &'static str| {
            let body = AuditBody::whole(encoding, Bytes::from_static(content.as_bytes()));
            body.looks_like_status()
        };
        assert!(is(
            Encoding::Json,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}"
        ));
        assert!(is(Encoding::Json, "{\n  \"kind\": \"Status\",\n"));
        assert!(is(
            Encoding::Protobuf,
            "k8s\0\n\x0c\n\x02v1\x12\x06Status\x12"
        ));
        assert!(!is(Encoding::Json, "{\"kind\":\"Pod\",\"metadata\":{}}"));
        assert!(!is(
            Encoding::Protobuf,
            "k8s\0\n\x09\n\x02v1\x12\x03Pod\x12"
        ));
    }
}
