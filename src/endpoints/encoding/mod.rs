//! How answers become bytes.

mod cache;
mod encoder;
pub(super) mod frame;
mod gzip;
mod indent;
mod list;
mod protobuf;
mod yaml;

pub use cache::{ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache};
pub(super) use encoder::{Encoder, What};
pub(super) use gzip::{GZIP_MIN_BYTES, GzipBody};
pub(super) use indent::indent;
pub(super) use list::ListBody;
pub(super) use protobuf::protobuf;
pub(super) use yaml::yaml;
