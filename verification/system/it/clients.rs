//! Stock clients against a real server: kubectl, kube-rs, the Python client.

mod in_process;
mod kube_rs;
mod kubectl;
mod operator;
mod python;
mod restarts;
mod writer;
