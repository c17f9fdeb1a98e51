//! The file of the embedded store, with bytes that are others. It is refused, or opened as it was but for its last
//! batch.
//!
//! An input is changes of four bytes: three for the place among the blocks that are not zero, and the byte to write
//! there. A last one that is cut short is the place, in units of a block, at which the file ends.

use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use futures::executor::block_on;
use futures::future::join;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::{CommitLoop, Disk, Embedded, OpenError};
use ringwatch::storage::backend::{
    Backend, Compare, KeyRange, KeyValue, Op, RangeContent, RangeRequest, Txn,
};
use ringwatch_testing::disk;

/// The size of the blocks of which the file is looked at as a whole.
const BLOCK_BYTES: usize = 512;

/// Number of writes to the file, each a batch of its own.
const WRITES: u64 = 12;

/// A file with some keys.
static WHOLE: LazyLock<Whole> = LazyLock::new(Whole::new);

struct Whole {
    disk: disk::Disk,
    /// The offsets of the blocks that are not zero.
    blocks: Vec<u64>,
    /// The content at each revision, from the newest.
    contents: Vec<(u64, Vec<KeyValue>)>,
}

pub(crate) fn run(bytes: &[u8]) -> bool {
    let whole = &*WHOLE;
    let mut damaged = whole.disk.after_power_loss();
    for change in bytes.chunks(4) {
        let number = change.iter().take(3).rev();
        let number = number.fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        if let [.., byte] = change
            && change.len() == 4
        {
            let place = number % (whole.blocks.len() * BLOCK_BYTES);
            let block = whole.blocks[place / BLOCK_BYTES];
            let offset = block + (place % BLOCK_BYTES) as u64;
            // Behind an end that was cut off nothing is written.
            let _ = damaged.write(offset, &[*byte]);
        } else {
            damaged = damaged.cut_off(number * BLOCK_BYTES);
        }
    }
    // An empty file is that of a new store.
    if damaged.size_bytes().unwrap() == 0 {
        return false;
    }
    let Some((revision, found)) = content(&damaged, 0) else {
        return false;
    };
    let near = whole.contents.iter().take(2);
    let is_near = near
        .clone()
        .any(|(at, then)| *at == revision && *then == found);
    assert!(is_near, "the store opens at revision {revision}: {found:?}");
    true
}

impl Whole {
    fn new() -> Self {
        let disk = disk::Disk::new(1);
        let (store, mut commits) = open(&disk).unwrap();
        for number in 0..WRITES {
            let key = format!("/registry/{}", number % 4);
            let then = match number % 5 {
                4 => Op::Delete { key: key.clone() },
                _ => Op::Put {
                    key: key.clone(),
                    value: vec![b'v'; 40 << number].into(),
                    lease: None,
                },
            };
            let txn = Txn {
                compare: Compare::ModRevision(key, 0),
                then: then.clone(),
                otherwise: None,
            };
            let (written, _) = block_on(join(store.txn(txn), commits.write_batch()));
            written.unwrap();
        }
        drop((store, commits));
        let (newest, now) = content(&disk, 0).unwrap();
        let before = content(&disk, newest - 1).map(|(_, before)| (newest - 1, before));
        let contents = [Some((newest, now)), before]
            .into_iter()
            .flatten()
            .collect();
        let size = disk.size_bytes().unwrap();
        let is_used = |offset: &u64| {
            let mut block = [0; BLOCK_BYTES];
            disk.read(*offset, &mut block).unwrap();
            block.iter().any(|byte| *byte != 0)
        };
        let blocks = (0..size).step_by(BLOCK_BYTES).filter(is_used).collect();
        Self {
            disk,
            blocks,
            contents,
        }
    }
}

/// The disk, as the store takes it.
#[derive(Clone, Debug)]
struct FileDisk(disk::Disk);

impl Disk for FileDisk {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.0.forget_cached()
    }
}

fn open(disk: &disk::Disk) -> Result<(Arc<Embedded>, CommitLoop), OpenError> {
    let disk = FileDisk(disk.clone());
    let opened = Embedded::open_on(Path::new("the disk"), disk, Clock::real());
    opened.map(|(store, commits)| (Arc::new(store), commits))
}

/// Returns the revision and the content of a store, now or at a revision; `None` if it is refused.
fn content(disk: &disk::Disk, revision: u64) -> Option<(u64, Vec<KeyValue>)> {
    let (store, _commits) = open(disk).ok()?;
    let request = RangeRequest {
        range: KeyRange::prefix("/"),
        revision,
        limit: 0,
        content: RangeContent::Values,
    };
    let response = block_on(store.range(request)).ok()?;
    Some((response.revision, response.kvs))
}
