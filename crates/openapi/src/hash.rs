//! The hashes of documents in the index, by which clients notice changes. They are computed from the inputs of a
//! document, not from its text.
//!
//! kube-apiserver hashes the documents and so builds all of them for the index. Hashing the inputs is equivalent: this
//! program with its built-in schemas, the resources, and the definitions of custom ones.

use std::sync::LazyLock;

use ringwatch_registry::Resource;
use sha2::{Digest, Sha512};

use super::{OpenApi, Root};
use super::{built_in, parameters};

/// The hash of the built-in schemas.
static BUILT_IN: LazyLock<Vec<u8>> =
    LazyLock::new(|| Sha512::digest(built_in::COMPRESSED).to_vec());

impl OpenApi {
    /// Returns the hash of the document at a root.
    pub(super) async fn hash_of(&self, path: &str, root: &Root) -> String {
        let mut digest = self.digest();
        self.digest_root(&mut digest, path, root).await;
        hex(digest)
    }

    /// Returns the hash of the document of everything.
    pub(super) async fn hash_of_all(&self) -> String {
        let mut digest = self.digest();
        for (path, root) in &self.roots {
            self.digest_root(&mut digest, path, root).await;
        }
        hex(digest)
    }

    fn digest(&self) -> Sha512 {
        let program = (env!("CARGO_PKG_VERSION"), &self.build);
        let mut digest = Sha512::new_with_prefix(format!("{program:?}"));
        digest.update(&*BUILT_IN);
        digest.update(parameters::TEXTS);
        digest
    }

    async fn digest_root(&self, digest: &mut Sha512, path: &str, root: &Root) {
        digest.update(path);
        let Root::Version(_, resources) = root else {
            return;
        };
        for resource in resources {
            digest.update(shape(resource));
            if resource.is_custom() {
                digest.update(self.custom.version(resource).await.to_be_bytes());
            }
        }
    }
}

/// Returns all properties of a resource that a document shows, as text to be hashed.
fn shape(resource: &Resource) -> String {
    let Resource {
        plural,
        kind,
        list_kind,
        namespaced,
        verbs,
        subresources,
        ..
    } = resource;
    format!(
        "{:?}",
        (plural, kind, list_kind, namespaced, verbs, subresources)
    )
}

fn hex(digest: Sha512) -> String {
    let bytes = digest.finalize();
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
