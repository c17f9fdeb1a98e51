//! Work that is done side by side.

use std::cell::RefCell;
use std::num::NonZero;
use std::thread;

use futures::future::try_join_all;

use crate::MutantsError;

/// Lanes beyond the number of cores: some tests wait most of their time.
const LANES_MORE: usize = 1;

/// Does the work of each item in lanes, whose number the work is told.
pub(crate) async fn work_off<T>(
    items: &[T],
    work: impl AsyncFn(usize, &T) -> Result<(), MutantsError>,
) -> Result<(), MutantsError> {
    let lanes = thread::available_parallelism().map_or(1, NonZero::get) + LANES_MORE;
    let items = RefCell::new(items.iter());
    let next = || items.borrow_mut().next();
    let (next, work) = (&next, &work);
    let lane = async |lane| {
        while let Some(item) = next() {
            work(lane, item).await?;
        }
        Ok(())
    };
    try_join_all((0..lanes).map(lane)).await.map(drop)
}
