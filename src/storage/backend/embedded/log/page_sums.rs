//! Checksums of what a file has, by which damage to it is found while the process still has everything in memory.
//!
//! redb verifies pages when it opens a file and not when it reads them, and a server reads back little of what it
//! writes. So without these, damage would be found at the next start.

/// The bytes of a page. redb writes whole ones, but for its header.
const PAGE_BYTES: u64 = 4_096;

/// The sum of a page of which nothing is known.
const UNKNOWN: u32 = 0;

/// The checksums of the pages that were read or written, by their number.
#[derive(Debug, Default)]
pub(super) struct PageSums(Vec<u32>);

impl PageSums {
    /// Notes what was written. Of a page that was written in part nothing is known any more.
    pub(super) fn written(&mut self, offset: u64, data: &[u8]) {
        for (page, whole) in pages(offset, data) {
            self.set(page, whole.map_or(UNKNOWN, sum));
        }
    }

    /// Notes what was read, of pages of which nothing was known.
    pub(super) fn read(&mut self, offset: u64, data: &[u8]) {
        for (page, whole) in pages(offset, data) {
            if let Some(whole) = whole
                && self.get(page) == UNKNOWN
            {
                self.set(page, sum(whole));
            }
        }
    }

    /// Forgets the pages that do not lie within a length.
    pub(super) fn cut_off(&mut self, len: u64) {
        self.0.truncate(index(len / PAGE_BYTES));
    }

    /// Returns the end of the last known page.
    pub(super) fn end(&self) -> u64 {
        self.0.len() as u64 * PAGE_BYTES
    }

    /// Returns the place of the first page that differs from what is known of it.
    pub(super) fn difference(&self, offset: u64, data: &[u8]) -> Option<u64> {
        let differs = |page: usize, whole: &[u8]| {
            let known = self.get(page);
            known != UNKNOWN && known != sum(whole)
        };
        let mut pages = pages(offset, data);
        let found = pages.find(|(page, whole)| whole.is_some_and(|it| differs(*page, it)));
        found.map(|(page, _)| page as u64 * PAGE_BYTES)
    }

    fn get(&self, page: usize) -> u32 {
        self.0.get(page).copied().unwrap_or(UNKNOWN)
    }

    fn set(&mut self, page: usize, sum: u32) {
        if self.0.len() <= page {
            self.0.resize(page + 1, UNKNOWN);
        }
        self.0[page] = sum;
    }
}

/// Returns the numbers of the pages in a part of a file, with the bytes of those that it has whole.
fn pages(offset: u64, data: &[u8]) -> impl Iterator<Item = (usize, Option<&[u8]>)> {
    let end = offset + data.len() as u64;
    (offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| {
        let (from, to) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
        let is_whole = offset <= from && to <= end;
        let whole = is_whole.then(|| &data[index(from - offset)..index(to - offset)]);
        (index(page), whole)
    })
}

fn sum(page: &[u8]) -> u32 {
    crc32fast::hash(page).max(UNKNOWN + 1)
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_change_behind_our_back_are_found() {
        let mut sums = PageSums::default();
        let mut file = vec![1; 5 * 4_096];
        sums.written(4_096, &file[4_096..3 * 4_096]);
        assert_eq!((sums.end(), sums.difference(0, &file)), (3 * 4_096, None));
        file[100] = 2;
        file[3 * 4_096] = 2;
        assert_eq!(sums.difference(0, &file), None, "nothing is known of these");
        sums.read(3 * 4_096, &file[3 * 4_096..4 * 4_096]);
        file[2 * 4_096 + 9] = 2;
        file[3 * 4_096] = 3;
        assert_eq!(sums.difference(0, &file), Some(2 * 4_096));
        sums.read(2 * 4_096, &file[2 * 4_096..3 * 4_096]);
        assert_eq!(sums.difference(0, &file), Some(2 * 4_096), "it was known");
        sums.written(2 * 4_096 + 9, &[2]);
        assert_eq!(sums.difference(0, &file), Some(3 * 4_096));
        assert_eq!(sums.difference(3 * 4_096 + 1, &file[3 * 4_096 + 1..]), None);
        sums.cut_off(3 * 4_096);
        assert_eq!(sums.difference(0, &file), None);
    }
}
