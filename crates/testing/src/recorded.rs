//! Material recorded from Kubernetes, with which tests compare: found, or the test is named as skipped.
//!
//! It is no part of this repository. Environment variables name the folders; by default they are looked
//! for beside the checkout.

use std::env;
use std::path::{Path, PathBuf};

/// The place of the folders beside the checkout, unless the environment names them.
const BESIDE: &str = "../shared";

/// Returns the root of this checkout.
#[must_use]
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reports that a case cannot run here. `scripts/test` counts these lines.
pub fn skipped(case: &str, why: &str) {
    eprintln!("SKIPPED {case}: {why}");
}

/// Kubernetes' serialized objects, one of each kind as JSON and protobuf, if this machine has them.
pub fn testdata(case: &str) -> Option<PathBuf> {
    folder(case, "RINGWATCH_TESTDATA", "testdata/v1.36")
}

/// Kubernetes' published OpenAPI v2 document, if this machine has it.
pub fn open_api(case: &str) -> Option<PathBuf> {
    let file = testdata(case)?.join("../openapi/swagger-1.36.json");
    if file.is_file() {
        return Some(file);
    }
    skipped(case, &format!("there is no {}", file.display()));
    None
}

/// Kubernetes' protobuf definitions and what its Go types say of their fields, if this machine has them.
pub fn definitions(case: &str) -> Option<PathBuf> {
    folder(case, "RINGWATCH_DEFINITIONS", "definitions-1.36")
}

/// Returns the recorded answers of kube-apiserver, one file each, if this machine has them.
pub fn answers(case: &str) -> Option<PathBuf> {
    folder(case, "RINGWATCH_GOLDEN", "golden").map(|it| it.join("cases"))
}

/// Returns Kubernetes' pods that pass and fail the Pod Security Standards, in a folder for each level and version, if
/// this machine has them.
pub fn pod_security(case: &str) -> Option<PathBuf> {
    folder(case, "RINGWATCH_POD_SECURITY", "pod-security")
}

/// Returns the repository of CEL's specification, with its conformance files, if this machine has it.
pub fn cel_spec(case: &str) -> Option<PathBuf> {
    folder(case, "RINGWATCH_CEL_SPEC", "cel-spec")
}

fn folder(case: &str, variable: &str, beside: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let folder = named.unwrap_or_else(|| checkout().join(BESIDE).join(beside));
    if folder.is_dir() {
        return Some(folder);
    }
    let why = format!("there is no {}; {variable} may name it", folder.display());
    skipped(case, &why);
    None
}
