//! Tables of dynamic resource allocation: ResourceClaims and ResourceSlices.

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

/// Table of ResourceClaims, with the state of their allocation.
pub(crate) static RESOURCE_CLAIMS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("State", "Whether devices are allocated, and reserved."),
        Column::AGE,
    ],
    |claim| cells![claim.name(), state(claim), claim.age()],
);

/// Table of ResourceSlices, with node, driver and pool.
pub(crate) static RESOURCE_SLICES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Node", "The node that has the devices."),
        Column::text("Driver", "The driver that manages them."),
        Column::text("Pool", "The pool to which they belong."),
        Column::AGE,
    ],
    |slice| {
        cells![
            slice.name(),
            slice.text("spec.nodeName"),
            slice.text("spec.driver"),
            slice.text("spec.pool.name"),
            slice.age(),
        ]
    },
);

fn state(claim: &RowSubject<'_>) -> &'static str {
    let allocated = claim.has("status.allocation");
    let reserved = allocated && claim.count("status.reservedFor") > 0;
    match (claim.is_being_deleted(), allocated, reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}
