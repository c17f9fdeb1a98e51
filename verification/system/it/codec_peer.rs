//! The codec's output, read by a decoder that knows nothing of it: protoc, with Kubernetes'
//! definitions. Each of Kubernetes' test objects is written by the codec, read and written again by that
//! decoder, which refuses what it does not know, and must then be the same.
//!
//! Without those objects, the definitions or protoc the test is named as skipped.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_pb::apimachinery::pkg::runtime::Unknown;
use prost::Message;
use ringwatch::codec;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{recorded, tell_kinds_of_claims, tools};

/// The least number of objects that the decoder must read.
const OBJECTS_MIN: usize = 134;
/// The package of kinds that belong to no group.
const META: &str = "apimachinery.pkg.apis.meta.v1";

/// The other decoder.
pub(crate) struct Peer {
    protoc: PathBuf,
    /// Has the definitions as protoc understands them.
    folder: TempDir,
}

impl Peer {
    /// Has protoc read the definitions, or says that the test is skipped.
    pub(crate) fn find(test: &str) -> Option<Self> {
        let definitions = recorded::definitions(test)?.join("proto");
        let named = std::env::var_os("PROTOC").map(PathBuf::from);
        let Some(protoc) = named.or_else(|| tools::find("protoc")) else {
            tools::skipped(test, "no protoc");
            return None;
        };
        let peer = Self {
            protoc,
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let mut paths = Vec::new();
        proto_files(&definitions, &mut paths);
        let mut command = Command::new(&peer.protoc);
        command
            .arg(format!("--proto_path=k8s.io={}", definitions.display()))
            .arg(format!("--descriptor_set_out={}", peer.known().display()))
            .args(paths);
        let output = tools::run(&mut command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        Some(peer)
    }

    fn known(&self) -> PathBuf {
        self.folder.path().join("definitions.pb")
    }

    /// An object as the peer writes it, and as it is read here. The version is that of its file.
    pub(crate) fn written(
        &self,
        object: &Value,
        version: &str,
        kind: &str,
    ) -> Result<(Vec<u8>, Value), Box<dyn Error>> {
        let ours = codec::encode_value(object).ok_or("a kind without a message")?;
        let theirs = self.again(&ours, version, kind)?;
        let read = codec::decode(&theirs, ("", ""))?;
        Ok((theirs, read))
    }

    /// Decodes an object that this codec has written as the peer understands it.
    pub(crate) fn understood(
        &self,
        written: &[u8],
        version: &str,
        kind: &str,
    ) -> Result<Value, Box<dyn Error>> {
        let bytes = self.again(written, version, kind)?;
        Ok(codec::decode(&bytes, ("", ""))?)
    }

    /// An object after the peer has read and written it.
    fn again(&self, written: &[u8], version: &str, kind: &str) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut envelope = Unknown::decode(&written[codec::MAGIC.len()..])?;
        let raw = envelope.raw.take().unwrap_or_default();
        let own = format!("k8s.io.{}.{kind}", package(version));
        let meta = format!("k8s.io.{META}.{kind}");
        // Options and answers go by the core's version, and are not in its package.
        let (message, text) = match self.run("--decode", &own, &raw) {
            Err(_) if version == "core.v1" => {
                let text = self.run("--decode", &meta, &raw)?;
                (meta, text)
            }
            text => (own, text?),
        };
        envelope.raw = Some(self.run("--encode", &message, &text)?);
        Ok([&codec::MAGIC[..], &envelope.encode_to_vec()].concat())
    }

    /// Has protoc turn bytes of a message into text, or text into bytes. Text with fields that are not in the
    /// definitions cannot be turned.
    fn run(&self, way: &str, message: &str, input: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut child = Command::new(&self.protoc)
            .arg(format!("--descriptor_set_in={}", self.known().display()))
            .arg(format!("{way}={message}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // It reads everything before it writes anything. When it ends early, its error says more than the pipe's.
        let sent = child.stdin.take().map(|mut pipe| pipe.write_all(input));
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        sent.transpose()?;
        Ok(output.stdout)
    }
}

/// All definitions below a folder.
fn proto_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            proto_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "proto") {
            found.push(path);
        }
    }
}

/// The package of the kinds of a version, below `k8s.io`.
fn package(version: &str) -> String {
    let (group, version) = version.rsplit_once('.').expect("a group and a version");
    let group = match group.split('.').next() {
        Some("internal") => "apiserverinternal",
        Some(first) => first,
        None => group,
    };
    format!("api.{group}.{version}")
}

#[test]
fn another_decoder_reads_what_is_written() {
    let test = "a decoder beside the codec";
    let (Some(folder), Some(peer)) = (recorded::testdata(test), Peer::find(test)) else {
        return;
    };
    let (mut read, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy();
        let (version, kind) = name.rsplit_once('.').expect("a kind");
        // It is never in an envelope of its own.
        if kind == "WatchEvent" {
            continue;
        }
        let mut expected: Value =
            serde_json::from_slice(&fs::read(&path).expect("JSON")).expect("JSON");
        tell_kinds_of_claims(&mut expected);
        match peer.written(&expected, version, kind) {
            Ok((_, found)) if found == expected => read += 1,
            Ok((_, found)) => wrong.push(format!("{name}: {found} instead of {expected}")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read >= OBJECTS_MIN, "{read} objects");
}
