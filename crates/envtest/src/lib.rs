//! `ringwatch envtest-assets`: the programs that envtest starts, kube-apiserver and etcd, out of this one.
//!
//! Here belongs what such a folder needs: laying it out, telling by the name of the program what it is to be, and the
//! stand-in for etcd. Serving the API is `ringwatch-server`'s, and nothing here knows objects or stores: the stand-in
//! keeps none. It tells a kube-apiserver beside it where its data folder is, and that one keeps its store there. So an
//! API server that is started again with the same etcd finds its objects, and everything ends with the folder that the
//! suite removes.

mod answers;
mod assets;
mod error;
pub mod etcd;
mod etcd_flags;
mod etcd_servers;
mod kube_apiserver;
mod program;

pub use assets::{AssetsFlags, lay_out};
pub use error::EnvtestError;
pub use etcd_flags::{EtcdCommand, EtcdFlags};
pub use kube_apiserver::keep_store_at_etcd;
pub use program::Program;
