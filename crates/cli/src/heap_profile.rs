//! Heap profiles, which jemalloc takes if it was built to: the crate's feature `heap-profiles`.

use ringwatch_server::ProfileError;

/// True if jemalloc was built to take profiles. The code here is compiled either way.
const IS_BUILT_IN: bool = cfg!(feature = "heap-profiles");

/// Returns the memory in use by the stacks that allocated it, in pprof's format, gzipped.
pub(crate) fn take() -> Result<Vec<u8>, ProfileError> {
    // A jemalloc that was not built for them does not know the option that is read below.
    if !IS_BUILT_IN {
        return Err(ProfileError::NotPrepared(
            "this server was built without heap profiles, since they make all allocations slower; build it with \
             --features ringwatch-cli/heap-profiles, and start it with the environment variable _RJEM_MALLOC_CONF=prof:true",
        ));
    }
    let Some(control) = jemalloc_pprof::PROF_CTL.as_ref() else {
        return Err(ProfileError::NotPrepared(
            "allocations are not sampled; start the server with the environment variable _RJEM_MALLOC_CONF=prof:true",
        ));
    };
    let profile = control.blocking_lock().dump_pprof();
    profile.map_err(|error| ProfileError::Failed(error.to_string()))
}
