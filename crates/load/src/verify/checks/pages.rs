//! Rule: all pages of a list are of the first one's revision.

use super::{Facts, read_name};
use crate::verify::history::{At, ListRead};
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let reads = facts.history.reads.iter().enumerate();
    reads
        .filter_map(|(place, read)| mixed(place, read))
        .collect()
}

fn mixed(place: usize, read: &ListRead) -> Option<Violation> {
    let first = read.revision();
    let mut pages = (1..).zip(&read.pages);
    let (number, other) = pages.find(|(_, page)| page.revision != first)?;
    let message = format!(
        "page {number} is of revision {}, and the first is of {first}",
        other.revision
    );
    let shown = [(1, read.pages.first()?), (number, other)];
    let shown = shown.map(|(number, page)| {
        let (at, count, revision) = (At(page.answered), page.objects.len(), page.revision);
        format!("{at}: page {number} with {count} objects at revision {revision}")
    });
    Some(
        Violation::new(Promise::MixedPages, read_name(place), message)
            .shown_by(read)
            .shown_by_all(shown),
    )
}
