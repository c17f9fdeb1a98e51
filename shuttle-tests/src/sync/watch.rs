//! tokio's `watch` channel, as far as the cacher uses it. Each use of the sender is a step of the
//! schedule.

use super::Step;

pub use real_tokio::sync::watch::{Receiver, Ref};

#[derive(Debug)]
pub struct Sender<T> {
    inner: real_tokio::sync::watch::Sender<T>,
    step: Step,
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Self {
        Self {
            inner: real_tokio::sync::watch::Sender::new(value),
            step: Step::default(),
        }
    }

    pub fn borrow(&self) -> Ref<'_, T> {
        self.step.take();
        self.inner.borrow()
    }

    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.step.take();
        self.inner.send_modify(modify);
    }

    pub fn subscribe(&self) -> Receiver<T> {
        self.step.take();
        self.inner.subscribe()
    }
}
