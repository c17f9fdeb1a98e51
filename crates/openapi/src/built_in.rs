//! The schemas of the built-in types.
//!
//! They are Kubernetes' own (Apache-2.0), converted by `openapi-schemas`: a line for each type with its name, its kinds
//! and its schema in OpenAPI v3. They are compressed in the binary and decompressed for each document that is built,
//! which takes milliseconds.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use ringwatch_apimachinery::GroupVersion;

/// The generated schemas of built-in types, compressed.
pub(super) const COMPRESSED: &[u8] = include_bytes!("schemas.txt.gz");

/// Number of bytes that are decompressed before the task yields.
const STEP_BYTES: usize = 128 << 10;

/// The text of the built-in schemas, decompressed: one line for each type.
#[derive(Debug)]
pub(super) struct BuiltIn {
    text: String,
}

/// The schemas by name and by kind.
#[derive(Debug, Default)]
pub(super) struct Index<'a> {
    schemas: BTreeMap<&'a str, Entry<'a>>,
    /// Names by group, version and kind, as `apps/v1/Deployment`.
    kinds: BTreeMap<&'a str, &'a str>,
}

/// The schema of one built-in type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    /// The schema in OpenAPI v3's form, as JSON text.
    pub(super) json: &'a str,
    /// True if the kind belongs to every group, as DeleteOptions does; the schema names all of them.
    pub(super) of_many: bool,
}

impl BuiltIn {
    /// Decompresses [`COMPRESSED`], with other tasks between steps of [`STEP_BYTES`].
    pub(super) async fn unpack() -> Self {
        let mut text = Vec::new();
        let mut unpacked = GzDecoder::new(COMPRESSED);
        loop {
            let step = unpacked.by_ref().take(STEP_BYTES as u64);
            // The data is part of the binary and tested, so it can be decompressed.
            match { step }.read_to_end(&mut text) {
                Ok(0) | Err(_) => break,
                Ok(_) => tokio::task::yield_now().await,
            }
        }
        Self {
            text: String::from_utf8(text).unwrap_or_default(),
        }
    }

    /// Finds the schemas in the text.
    pub(super) fn index(&self) -> Index<'_> {
        let mut index = Index::default();
        for line in self.text.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(name), Some(kinds), Some(json)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let of_many = kinds.contains(',');
            index.schemas.insert(name, Entry { json, of_many });
            if !of_many {
                index.kinds.insert(kinds, name);
            }
        }
        index
    }
}

impl<'a> Index<'a> {
    /// Returns the schema of a name.
    pub(super) fn schema(&self, name: &str) -> Option<Entry<'a>> {
        self.schemas.get(name).copied()
    }

    /// Returns the name of a kind's schema.
    pub(super) fn name(&self, group_version: &GroupVersion, kind: &str) -> Option<&'a str> {
        let GroupVersion { group, version } = group_version;
        let key = format!("{group}/{version}/{kind}");
        self.kinds.get(key.as_str()).copied()
    }
}
