//! Encodes objects, lists and watch events as JSON, YAML, protobuf and tables.

mod cache;
mod encoder;
mod events;
pub(crate) mod frame;
mod gzip;
mod gzip_list;
pub(crate) mod indent;
mod list;
mod piecewise;
pub(crate) mod protobuf;
mod table;
pub(crate) mod yaml;

pub use cache::{ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache};
pub(super) use encoder::Encoder;
pub(super) use events::{EventEncoder, EventType};
pub(super) use gzip::{GZIP_MIN_BYTES, GzipBody};
pub(super) use gzip_list::GzipListBody;
pub(super) use indent::indent;
pub(super) use list::ListBody;
pub(super) use piecewise::{Items, PiecewiseBody};
pub(super) use protobuf::protobuf;
pub(super) use table::Tables;
pub(super) use yaml::yaml;
