//! Every connection is an open file, and shells allow few of them by default: the limit is raised
//! to what the system lets a process have, and some are kept for everything else.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of files that are kept for the store, certificates, webhooks and kubelets.
const RESERVED: u64 = 512;
/// The part of the limit that is kept where it is small: one in so many.
const RESERVED_PART: u64 = 4;

/// Returns how many files the connections of clients may have.
#[must_use]
pub fn for_connections() -> usize {
    without_reserve(getrlimit(Resource::Nofile).current)
}

fn without_reserve(limit: Option<u64>) -> usize {
    let left = limit.map(|files| files - RESERVED.min(files / RESERVED_PART));
    left.and_then(|left| usize::try_from(left).ok())
        .unwrap_or(usize::MAX)
}

/// Raises the limit. If that fails the server goes on with what it has.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_kept_for_everything_else() {
        assert_eq!(without_reserve(None), usize::MAX);
        assert_eq!(without_reserve(Some(65_536)), 65_024);
        assert_eq!(without_reserve(Some(1_024)), 768);
        assert_eq!(without_reserve(Some(16)), 12);
    }

    #[test]
    fn the_limit_is_what_the_system_allows() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
