//! Containers may not unmask `/proc`, not even in a user namespace of the pod's own. Before 1.35 the check of the
//! baseline level says the same.

use super::{PodCheck, Revision, proc_mount_baseline};
use crate::pod_security::level::Level;

pub(super) const CHECK: PodCheck = PodCheck {
    id: "procMount_restricted",
    level: Level::Restricted,
    replaces: Some(proc_mount_baseline::ID),
    revisions: &[Revision::since(35, proc_mount_baseline::check)],
};
