//! How answers become bytes.

pub(super) mod frame;
mod gzip;
mod indent;
mod list;

pub(super) use gzip::{GZIP_MIN_BYTES, GzipBody};
pub(super) use indent::indent;
pub(super) use list::ListBody;
