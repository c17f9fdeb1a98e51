//! Kubeconfig files. Every context that is found has the cluster of its name; files that it names are not read.

use std::path::Path;

use ringwatch_tls::kubeconfig::Kubeconfig;

use crate::memory::within;

/// Bytes of memory for a byte of a file, and for its aliases.
const FACTOR: usize = 2_000;
const ALIASES_BYTES: usize = 16 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let memory = FACTOR * text.len() + ALIASES_BYTES;
    let read = within(memory, "a file", || {
        Kubeconfig::parse(&text, Path::new("/nowhere/config"))
    });
    let Ok(config) = read else {
        return false;
    };
    for context in [None, Some("a"), Some("b")] {
        if let Ok(selection) = config.select(context)
            && let Some(user) = selection.user
        {
            let _ = user.unread_sign_in();
        }
    }
    true
}
