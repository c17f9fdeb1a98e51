//! Heap profiles, which jemalloc takes if it was built to: the crate's feature `heap-profiles`.

use ringwatch_server::ProfileError;

/// Returns the memory in use by the stacks that allocated it, in pprof's format, gzipped.
#[cfg(feature = "heap-profiles")]
pub(crate) fn take() -> Result<Vec<u8>, ProfileError> {
    let Some(control) = jemalloc_pprof::PROF_CTL.as_ref() else {
        return Err(ProfileError::NotPrepared(
            "allocations are not sampled; start the server with the environment variable _RJEM_MALLOC_CONF=prof:true",
        ));
    };
    let profile = control.blocking_lock().dump_pprof();
    profile.map_err(|error| ProfileError::Failed(error.to_string()))
}

/// Says how heap profiles are to be had.
#[cfg(not(feature = "heap-profiles"))]
pub(crate) fn take() -> Result<Vec<u8>, ProfileError> {
    Err(ProfileError::NotPrepared(
        "this server was built without heap profiles, since they make all allocations slower; build it with \
         --features ringwatch-cli/heap-profiles, and start it with the environment variable _RJEM_MALLOC_CONF=prof:true",
    ))
}
