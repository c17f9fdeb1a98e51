//! How answers become bytes.

mod cache;
mod encoder;
mod events;
pub(super) mod frame;
mod gzip;
mod indent;
mod list;
mod piecewise;
mod protobuf;
mod table;
mod yaml;

pub use cache::{ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache};
pub(super) use encoder::Encoder;
pub(super) use events::{EventEncoder, EventType};
pub(super) use gzip::{GZIP_MIN_BYTES, GzipBody};
pub(super) use indent::indent;
pub(super) use list::ListBody;
pub(super) use piecewise::{Items, PiecewiseBody};
pub(super) use protobuf::protobuf;
pub(super) use table::Tables;
pub(super) use yaml::yaml;
