//! The volume mounts and volume devices of containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::{BTreeSet, HashSet};

use super::TemplateClaims;
use crate::core::volume::validation::Volumes;
use crate::validation::field::{Errors, Field};
use crate::validation::values::below;

/// Checks the volume mounts and volume devices of a container. Follows `ValidateVolumeMounts` and
/// `ValidateVolumeDevices`.
pub(super) fn mounts(
    container: &Field<'_, '_>,
    volumes: &Volumes<'_, '_>,
    claims: &TemplateClaims<'_>,
    errors: &mut Errors,
) {
    let devices_by = |member| all_of(container, "volumeDevices", member);
    let (device_names, device_paths) = (devices_by("name"), devices_by("devicePath"));
    let mut paths = BTreeSet::new();
    let mounts = container.at("volumeMounts");
    for mount in container.items("volumeMounts") {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        name.must_be_set(errors);
        if !volumes.contains_key(name.text()) && !claims.contains(name.text()) {
            errors.push(name.not_found());
        }
        path.must_be_set(errors);
        if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if device_names.contains(name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if device_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        sub_paths(&mounts, &mount, errors);
        propagation(container, &mount, errors);
        read_only(container, &mount, errors);
    }
    devices(container, volumes, claims, errors);
}

/// Checks the paths in a volume that are mounted.
fn sub_paths(mounts: &Field<'_, '_>, mount: &Field<'_, '_>, errors: &mut Errors) {
    let (plain, with_variables) = (mount.at("subPath"), mount.at("subPathExpr"));
    // Kubernetes blames the list for these, not its element.
    let check = |member: &str, errors: &mut Errors| {
        let path = mount.at(member).text();
        let wrong = below(path).into_iter();
        let list = mounts.at(member);
        errors.extend(wrong.map(|why| list.invalid_value(path, why)));
    };
    check("subPath", errors);
    if !plain.is_empty() && !with_variables.is_empty() {
        let why = "subPathExpr and subPath are mutually exclusive";
        errors.push(with_variables.invalid(why));
    }
    check("subPathExpr", errors);
}

fn propagation(container: &Field<'_, '_>, mount: &Field<'_, '_>, errors: &mut Errors) {
    const WORDS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
    let mounts = container.at("volumeMounts");
    let blamed = mounts.at("mountPropagation");
    let wanted = mount.at("mountPropagation");
    if wanted.is_set() && !WORDS.contains(&wanted.text()) {
        let mut error = wanted.unsupported(WORDS);
        error.field = blamed.field();
        errors.push(error);
    }
    let privileged = container.at("securityContext.privileged").is_true();
    if wanted.text() == "Bidirectional" && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(blamed.forbidden(why));
    }
}

/// Checks that what is mounted below a mount is read-only only if the mount is. Follows
/// `validateMountRecursiveReadOnly`.
fn read_only(container: &Field<'_, '_>, mount: &Field<'_, '_>, errors: &mut Errors) {
    const WORDS: &[&str] = &["Disabled", "Enabled", "IfPossible"];
    let mounts = container.at("volumeMounts");
    let (blamed, wanted) = (
        mounts.at("recursiveReadOnly"),
        mount.at("recursiveReadOnly"),
    );
    if !wanted.is_set() || wanted.text() == "Disabled" {
        return;
    }
    if !WORDS.contains(&wanted.text()) {
        errors.push(blamed.unsupported_value(wanted.text(), WORDS));
        return;
    }
    if !mount.at("readOnly").is_true() {
        errors.push(blamed.forbidden("may only be specified when readOnly is true"));
    }
    let propagation = mount.at("mountPropagation");
    if propagation.is_set() && propagation.text() != "None" {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(blamed.forbidden(why));
    }
}

fn devices(
    container: &Field<'_, '_>,
    volumes: &Volumes<'_, '_>,
    claims: &TemplateClaims<'_>,
    errors: &mut Errors,
) {
    let mounts_by = |member| all_of(container, "volumeMounts", member);
    let (mount_names, mount_paths) = (mounts_by("name"), mounts_by("mountPath"));
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.items("volumeDevices") {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        name.must_be_set(errors);
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        match volumes.get(name.text()) {
            None if claims.contains(name.text()) => {}
            None => errors.push(name.not_found()),
            Some(volume) => {
                let claimed = ["persistentVolumeClaim", "ephemeral"];
                if !claimed.iter().any(|source| volume.at(source).is_set()) {
                    let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    errors.push(name.invalid(why));
                }
            }
        }
        path.must_be_set(errors);
        if path.text().split('/').any(|step| step == "..") {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if mount_names.contains(name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mount_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

/// Returns the texts that the elements of a list have as a member.
fn all_of<'v>(container: &Field<'v, '_>, list: &str, member: &str) -> HashSet<&'v str> {
    let items = container.items(list);
    items.map(|it| it.at(member).text()).collect()
}
