//! The names that the program is started by.

use std::ffi::OsStr;
use std::path::Path;

/// A program that this binary is, by the name that it is started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The program with its subcommands.
    Ringwatch,
    /// `ringwatch serve` in the place of kube-apiserver.
    KubeApiserver,
    /// The stand-in for etcd.
    Etcd,
}

impl Program {
    /// The name of kube-apiserver's file.
    pub(crate) const KUBE_APISERVER: &'static str = "kube-apiserver";
    /// The name of etcd's file.
    pub(crate) const ETCD: &'static str = "etcd";

    /// Returns the program of a command line that begins with this word.
    #[must_use]
    pub fn named(word: Option<&OsStr>) -> Self {
        let name = word.map(Path::new).and_then(Path::file_name);
        match name.and_then(OsStr::to_str) {
            Some(Self::KUBE_APISERVER) => Self::KubeApiserver,
            Some(Self::ETCD) => Self::Etcd,
            _ => Self::Ringwatch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_name_decides() {
        for (word, program) in [
            ("/assets/kube-apiserver", Program::KubeApiserver),
            ("kube-apiserver", Program::KubeApiserver),
            ("bin/etcd", Program::Etcd),
            ("/etcd/ringwatch", Program::Ringwatch),
            ("ringwatch", Program::Ringwatch),
            ("etcdctl", Program::Ringwatch),
            ("", Program::Ringwatch),
        ] {
            assert_eq!(Program::named(Some(OsStr::new(word))), program, "{word}");
        }
        assert_eq!(Program::named(None), Program::Ringwatch);
    }
}
