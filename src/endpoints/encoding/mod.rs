//! How answers become bytes.

pub(super) mod frame;
mod gzip;
mod indent;
mod list;
mod protobuf;
mod yaml;

pub(super) use gzip::{GZIP_MIN_BYTES, GzipBody};
pub(super) use indent::indent;
pub(super) use list::{JSON_LIST, ListBody, PROTOBUF_LIST};
pub(super) use protobuf::protobuf;
pub(super) use yaml::yaml;
