//! A list that is compressed with gzip, in blocks that are kept for the next list of the same objects.
//!
//! A block is the compressed text of some items that follow each other. It is cached as an encoding of its first
//! object, with a digest of the versions of all its objects, so that it is used only for exactly these. Where a block
//! begins depends on the objects alone: an object that comes, goes or changes is in one or two blocks, and all others
//! stay.
//!
//! ```text
//! gzip head | head of the list | block | block | ... | end of the list | checksum, length
//! ```
//!
//! Each part is a run of deflate blocks that ends at a whole byte and refers to nothing before it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress};
use futures::stream;
use ringwatch::meta::Object;
use ringwatch_http::{BoxError, ResponseBody, streamed};
use sha2::{Digest, Sha256};

use super::cache::ListRoom;
use super::encoder::Encoder;
use super::gzip::{GZIP_CHUNK_BYTES, GZIP_LEVEL};
use super::list::Punctuation;
use crate::errors::Failure;

/// The magic number, deflate, no flags, no time, the fastest level, an unknown system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// A block begins at an object whose revision is a multiple of this, so it has about so many objects.
const BLOCK_ITEMS: u64 = 32;
/// A block has at most so many objects.
const BLOCK_ITEMS_MAX: usize = 128;
/// A block ends with the object that brings it to so many stored bytes.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// A deflate block without text that is the last one.
const LAST_DEFLATE_BLOCK: [u8; 2] = [3, 0];
/// The room that any text gets when it is compressed.
const DEFLATE_BYTES_MIN: usize = 64;

const DIGEST_BYTES: usize = 32;
/// The digest, the checksum and the length of the text.
const BLOCK_HEAD_BYTES: usize = DIGEST_BYTES + 4 + 8;

/// A list's response body, which is compressed while it is sent. Its length is not known before.
#[derive(Debug)]
pub(crate) struct GzipListBody {
    encoder: Encoder,
    items: Vec<Arc<Object>>,
    /// The position of the next item.
    next: usize,
    around: Punctuation,
    /// The room in the cache for the list's blocks.
    room: ListRoom,
    phase: Phase,
    /// The checksum and the length of all text so far.
    checksum: Hasher,
    length: u64,
}

#[derive(Debug)]
enum Phase {
    /// The text before the items is to be sent.
    Head(Vec<u8>),
    Items,
    Ended,
}

/// Compressed text, with what the end of the stream tells of it.
struct Block {
    checksum: u32,
    length: u64,
    deflated: Bytes,
}

impl GzipListBody {
    /// Creates the body of a list of these objects, with the text that comes before them.
    pub(crate) fn new(encoder: Encoder, items: Vec<Arc<Object>>, head: Vec<u8>) -> Self {
        Self {
            around: Punctuation::of(encoder.format()),
            room: encoder.list_room(),
            encoder,
            items,
            next: 0,
            phase: Phase::Head(head),
            checksum: Hasher::new(),
            length: 0,
        }
    }

    /// Sends the list chunk by chunk.
    pub(crate) fn into_body(mut self) -> ResponseBody {
        let chunks = std::iter::from_fn(move || match self.next_chunk() {
            Ok(chunk) => (!chunk.is_empty()).then(|| Ok(chunk.into())),
            Err(error) => Some(Err(error)),
        });
        streamed(stream::iter(chunks))
    }

    /// Returns the next compressed bytes; empty at the end. At most one block is compressed for them.
    fn next_chunk(&mut self) -> Result<Vec<u8>, BoxError> {
        let mut out = Vec::new();
        match &mut self.phase {
            Phase::Head(head) => {
                let block = Block::of(&std::mem::take(head))?;
                out.extend(GZIP_HEAD);
                self.append(&block, &mut out);
                self.phase = Phase::Items;
            }
            Phase::Items => {
                while self.next < self.items.len() && out.len() < GZIP_CHUNK_BYTES {
                    let (block, is_kept) = self.next_block()?;
                    self.append(&block, &mut out);
                    if !is_kept {
                        break;
                    }
                }
                if self.next == self.items.len() {
                    self.append(&Block::of(self.around.end)?, &mut out);
                    self.append_trailer(&mut out);
                    self.phase = Phase::Ended;
                }
            }
            Phase::Ended => {}
        }
        Ok(out)
    }

    fn append(&mut self, block: &Block, out: &mut Vec<u8>) {
        let checksum = Hasher::new_with_initial_len(block.checksum, block.length);
        self.checksum.combine(&checksum);
        self.length += block.length;
        out.extend_from_slice(&block.deflated);
    }

    fn append_trailer(&self, out: &mut Vec<u8>) {
        out.extend(LAST_DEFLATE_BLOCK);
        out.extend(self.checksum.clone().finalize().to_le_bytes());
        // The length is sent modulo 2^32.
        out.extend((self.length as u32).to_le_bytes());
    }

    /// Returns the next block, and whether it was in the cache.
    fn next_block(&mut self) -> Result<(Block, bool), BoxError> {
        let is_first = self.next == 0;
        let from = self.next;
        self.next = self.block_end();
        let items = &self.items[from..self.next];
        let digest = digest(items);
        if let Some(kept) = self.encoder.kept_block(&items[0], is_first)
            && let Some(block) = Block::read(&kept, &digest)
        {
            self.room.take(kept.len());
            return Ok((block, true));
        }
        let mut text = Vec::new();
        for (position, object) in items.iter().enumerate() {
            text.extend(if is_first && position == 0 {
                self.around.first
            } else {
                self.around.next
            });
            let appended = self.encoder.append_item(object, &mut text);
            appended.map_err(|failure: Failure| failure.status().message.clone())?;
        }
        let block = Block::of(&text)?;
        if self.room.is_left() {
            let kept = block.write(&digest);
            self.room.take(kept.len());
            self.encoder.keep_block(&items[0], is_first, kept);
        }
        Ok((block, false))
    }

    /// Returns the position behind the block that begins at the next item.
    fn block_end(&self) -> usize {
        let rest = &self.items[self.next..];
        let mut bytes = 0;
        let items = rest.iter().take(BLOCK_ITEMS_MAX).enumerate();
        let items = items.take_while(|(position, object)| {
            let begins_next = object.revision().is_multiple_of(BLOCK_ITEMS);
            let stays = *position == 0 || (!begins_next && bytes < BLOCK_BYTES_MAX);
            bytes += object.stored().len();
            stays
        });
        self.next + items.count()
    }
}

impl Block {
    fn of(text: &[u8]) -> io::Result<Self> {
        Ok(Self {
            checksum: crc32fast::hash(text),
            length: text.len() as u64,
            // It may be kept for long, so its spare capacity is freed.
            deflated: deflate(text)?.into_boxed_slice().into(),
        })
    }

    /// Writes the block as it is kept for the objects of this digest.
    fn write(&self, digest: &[u8; DIGEST_BYTES]) -> Bytes {
        let (checksum, length) = (self.checksum.to_be_bytes(), self.length.to_be_bytes());
        let parts = [&digest[..], &checksum, &length, &self.deflated];
        parts.concat().into()
    }

    /// Reads a block as it is kept; `None` if it is one of other objects.
    fn read(kept: &Bytes, digest: &[u8; DIGEST_BYTES]) -> Option<Self> {
        let rest = kept.strip_prefix(digest)?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let (length, _) = rest.split_first_chunk()?;
        Some(Self {
            checksum: u32::from_be_bytes(*checksum),
            length: u64::from_be_bytes(*length),
            deflated: kept.slice(BLOCK_HEAD_BYTES..),
        })
    }
}

/// Returns a digest of which objects these are, in which versions. An object of a version is always the same, unless a
/// webhook converts it.
fn digest(objects: &[Arc<Object>]) -> [u8; DIGEST_BYTES] {
    let mut digest = Sha256::new();
    for object in objects {
        for name in [object.namespace(), object.name()] {
            digest.update((name.len() as u64).to_be_bytes());
            digest.update(name);
        }
        digest.update(object.revision().to_be_bytes());
    }
    digest.finalize().into()
}

/// Compresses text by itself, up to a whole byte.
fn deflate(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut compress = Compress::new(Compression::new(GZIP_LEVEL), false);
    let mut out = Vec::with_capacity(text.len() / 4 + DEFLATE_BYTES_MIN);
    let mut taken = 0;
    loop {
        let before = compress.total_in();
        compress.compress_vec(&text[taken..], &mut out, FlushCompress::Sync)?;
        taken += (compress.total_in() - before) as usize;
        // Room that is left means that nothing more is to come.
        if out.len() < out.capacity() {
            return Ok(out);
        }
        out.reserve(out.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use ringwatch::budget::Ledger;
    use ringwatch::clock::Clock;

    use super::*;
    use crate::encoding::cache::EncodingCache;
    use crate::negotiation::{Format, ObjectForm, Output};
    use crate::testing::{config_map, config_maps};

    const HEAD: &[u8] = b"head";

    /// Returns the text of a list that is compressed.
    fn compressed(encoder: Encoder, items: &[Arc<Object>]) -> Vec<u8> {
        let mut body = GzipListBody::new(encoder, items.to_vec(), HEAD.to_vec());
        let chunks = std::iter::from_fn(|| {
            let chunk = body.next_chunk().expect("a chunk");
            (!chunk.is_empty()).then_some(chunk)
        });
        let compressed = chunks.collect::<Vec<_>>().concat();
        let mut text = Vec::new();
        let read = GzDecoder::new(&*compressed).read_to_end(&mut text);
        read.expect("gzip");
        text
    }

    /// Returns the same text, of which nothing is kept.
    fn plain(encoder: &Encoder, items: &[Arc<Object>]) -> Vec<u8> {
        let around = Punctuation::of(encoder.format());
        let mut text = HEAD.to_vec();
        for (position, object) in items.iter().enumerate() {
            text.extend(if position == 0 {
                around.first
            } else {
                around.next
            });
            encoder.append_item(object, &mut text).expect("an item");
        }
        text.extend(around.end);
        text
    }

    /// The first object of a list is in the middle of others, and a block has what stands before its first object.
    #[test]
    fn a_list_has_the_same_text_whichever_lists_were_compressed_before() {
        let store = config_maps(&Clock::manual(jiff::Timestamp::UNIX_EPOCH));
        for format in [Format::Json, Format::Protobuf] {
            for is_reversed in [false, true] {
                let revisions = BLOCK_ITEMS - 2..2 * BLOCK_ITEMS + 2;
                let objects: Vec<_> = revisions.map(|it| config_map(it, 0)).collect();
                let cache = EncodingCache::new(usize::MAX, &Ledger::unlimited());
                let mut firsts = [0, 1, 2, 3, objects.len() - 3, objects.len() - 1];
                if is_reversed {
                    firsts.reverse();
                }
                for first in firsts {
                    let form = ObjectForm::Whole;
                    let output = Output { format, form };
                    let encoder = || Encoder::new(cache.clone(), Arc::clone(&store), output);
                    let items = &objects[first..];
                    let text = compressed(encoder(), items);
                    assert!(text == plain(&encoder(), items), "{format:?} from {first}");
                }
            }
        }
    }
}
