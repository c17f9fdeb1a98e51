//! Running a command.

use std::io::{self, Write};
use std::path::Path;

use ringwatch::storage::backend::embedded::maintenance::{self, CheckReport};
use ringwatch_tls::target::Target;
use tokio::runtime::Builder;

use super::command_line::{
    Action, CompactFlags, ReadFlags, RestoreFlags, SnapshotFlags, StoreFlags,
};
use super::copy_stores::{self, store_in};
use super::download::download;
use super::error::StoreError;
use super::new_file::{self, NewFile};
use super::output;
use super::progress::CopyLine;

/// Runs a command and prints its outcome. Returns false if a check has found something wrong.
///
/// # Errors
/// One line that says what is wrong and what to do.
pub fn run(flags: &StoreFlags) -> Result<bool, StoreError> {
    match &flags.action {
        Action::Status(flags) => status(flags)?,
        Action::Snapshot(flags) => snapshot(flags)?,
        Action::Restore(flags) => restore(flags)?,
        Action::Check(flags) => return check(flags),
        Action::Compact(flags) => compact(flags)?,
        Action::Copy(flags) => print(&copy_stores::copy(flags)?)?,
    }
    Ok(true)
}

fn status(flags: &ReadFlags) -> Result<(), StoreError> {
    let status = match &flags.snapshot {
        Some(snapshot) => maintenance::snapshot_status(snapshot)?,
        None => maintenance::status(&store_in(&flags.store.data_dir))?,
    };
    print(&output::status(&status, flags.output))
}

fn check(flags: &ReadFlags) -> Result<bool, StoreError> {
    let checked: CheckReport = match &flags.snapshot {
        Some(snapshot) => maintenance::check_snapshot(snapshot)?,
        None => maintenance::check(&store_in(&flags.store.data_dir))?,
    };
    print(&output::checked(&checked, flags.output))?;
    Ok(checked.findings.is_empty())
}

fn snapshot(flags: &SnapshotFlags) -> Result<(), StoreError> {
    let file = &flags.file;
    if file.try_exists().map_err(StoreError::io(file))? && !maintenance::is_snapshot(file)? {
        return Err(StoreError::OtherFile { path: file.clone() });
    }
    let progress = CopyLine::start("snapshot");
    let size = match &flags.kubeconfig {
        Some(kubeconfig) => {
            let target = Target::read(kubeconfig, flags.context.as_deref());
            let target = target.map_err(|error| StoreError::target(kubeconfig, error))?;
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(StoreError::io(&flags.file))?;
            runtime.block_on(download(&target, &flags.file, &progress))?
        }
        None => copy(&store_in(&flags.store.data_dir), &flags.file, &progress)?,
    };
    drop(progress);
    let (file, size) = (flags.file.display(), output::bytes(size));
    print(&format!("{file}: {size}\n"))
}

/// Writes a snapshot of a store that nothing serves to a file. Returns its size in bytes.
fn copy(store: &Path, path: &Path, progress: &CopyLine) -> Result<u64, StoreError> {
    let snapshot = maintenance::snapshot(store).map_err(|error| {
        StoreError::of_store(error, ", or ask it for a snapshot with --kubeconfig FILE")
    })?;
    let mut file = NewFile::create(path)?;
    let mut size = 0;
    for piece in snapshot.chunks() {
        file.write(&piece)?;
        size += piece.len() as u64;
        progress.add(piece.len());
    }
    file.replace()?;
    Ok(size)
}

fn restore(flags: &RestoreFlags) -> Result<(), StoreError> {
    let store = store_in(&flags.data_dir);
    if store.try_exists().map_err(StoreError::io(&store))? {
        return Err(StoreError::Exists { path: store });
    }
    new_file::create_folder(&flags.data_dir)?;
    let file = NewFile::create(&store)?.close();
    let status = maintenance::restore(&flags.snapshot, &file.temporary)?;
    file.name()?;
    let store = store.display();
    print(&format!(
        "{store}: revision {}, {} keys, digest {}\n",
        status.revision, status.keys, status.digest
    ))
}

fn compact(flags: &CompactFlags) -> Result<(), StoreError> {
    let store = store_in(&flags.store.data_dir);
    let compacted = maintenance::compact(&store, flags.revision)
        .map_err(|error| StoreError::of_store(error, "; a server compacts by itself"))?;
    print(&format!(
        "{}: {} records removed; {} before, {} now\n",
        store.display(),
        compacted.removed_records,
        output::bytes(compacted.before_bytes),
        output::bytes(compacted.after_bytes)
    ))
}

fn print(text: &str) -> Result<(), StoreError> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(StoreError::Output)
}
