//! Tables of ConfigMaps, Secrets, ServiceAccounts and ResourceQuotas.

use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

/// Table of ConfigMaps, with the number of their entries.
pub(crate) static CONFIG_MAPS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Data", field_docs::CONFIG_MAP_DATA),
        Column::AGE,
    ],
    |map| {
        let data = map.count("data") + map.count("binaryData");
        cells![map.name(), data, map.age()]
    },
);

/// Table of Secrets, with type and number of entries.
pub(crate) static SECRETS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Type", field_docs::SECRET_TYPE),
        Column::text("Data", field_docs::SECRET_DATA),
        Column::AGE,
    ],
    |secret| {
        cells![
            secret.name(),
            secret.text("type"),
            secret.count("data"),
            secret.age()
        ]
    },
);

/// Table of ServiceAccounts.
pub(crate) static SERVICE_ACCOUNTS: TableConvertor =
    TableConvertor::new(&[Column::NAME, Column::AGE], |account| {
        cells![account.name(), account.age()]
    });

/// Table of ResourceQuotas, with used and hard quantities.
pub(crate) static RESOURCE_QUOTAS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text(
            "Request",
            "What is used and what may be used, limits aside.",
        ),
        Column::text(
            "Limit",
            "What limits add up to and what they may add up to.",
        ),
        Column::AGE,
    ],
    |quota| {
        let (limits, requests) = usage(quota);
        cells![quota.name(), requests, limits, quota.age()]
    },
);

/// Returns used and hard quantities of `limits.` resources, and those of all others, as `name: used/hard`.
fn usage(quota: &RowSubject<'_>) -> (String, String) {
    let (limits, requests): (Vec<_>, Vec<_>) = quota
        .pairs("status.hard")
        .partition(|(name, _)| name.starts_with("limits."));
    let text = |resources: Vec<(&str, &str)>| {
        let parts = resources.into_iter().map(|(name, hard)| {
            let used = quota.member("status.used", name).unwrap_or("0");
            format!("{name}: {used}/{hard}")
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    (text(limits), text(requests))
}
