//! The joined writes of a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;

use real_tokio::io::{AsyncRead, AsyncWrite};

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "its items are visible to the module that includes it alone; the models of it are elsewhere"
)]
#[path = "../../../crates/http/src/doorbell.rs"]
mod doorbell;

/// The watches of an HTTP/2 connection, of which the connections of the models have none.
mod watch_streams {
    use std::convert::Infallible;
    use std::io;
    use std::task::Context;

    pub(super) mod body {
        use std::convert::Infallible;

        #[derive(Debug)]
        pub(in crate::elsewhere::joined_io) struct Handovers(pub(super) Infallible);
    }

    #[derive(Debug)]
    pub(super) struct ConnectionWatches(Infallible);

    #[derive(Debug, Eq, PartialEq)]
    pub(super) enum FrameProgress {
        Done,
    }

    impl ConnectionWatches {
        pub(super) fn new(handovers: body::Handovers) -> Self {
            match handovers.0 {}
        }

        pub(super) fn are_few(&self) -> bool {
            match self.0 {}
        }

        pub(super) fn pass(&mut self, _: &[u8], _: &mut Vec<u8>, _: usize) -> usize {
            match self.0 {}
        }

        pub(super) fn receive(&mut self, _: &[u8], _: &mut Vec<u8>) -> io::Result<()> {
            match self.0 {}
        }

        pub(super) fn refill(&mut self, _: &mut Vec<u8>) {
            match self.0 {}
        }

        pub(super) fn has_turn(&self) -> bool {
            match self.0 {}
        }

        pub(super) fn h2_flushed(&self) {
            match self.0 {}
        }

        pub(super) fn take_refill_due(&mut self) -> bool {
            match self.0 {}
        }

        pub(super) fn write(
            &mut self,
            _: &mut Context<'_>,
            _: &mut Vec<u8>,
            _: usize,
        ) -> FrameProgress {
            match self.0 {}
        }
    }
}

// rustfmt would look for its tests beside it.
#[rustfmt::skip]
#[path = "../../../crates/http/src/joined_io.rs"]
mod included;

/// Drives a connection turn by turn, and flushes after each.
#[derive(Debug)]
pub struct Turns<T>(included::Turns<T>);

/// Wraps an I/O object: the first half goes to the connection, the second drives it.
pub fn join<T>(inner: T) -> (impl AsyncRead + AsyncWrite + Unpin, Turns<T>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (io, turns) = included::join(inner, None);
    (io, Turns(turns))
}

impl<T: AsyncWrite + Unpin> Turns<T> {
    /// Polls the connection to its end.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub async fn drive<C: Future>(&mut self, connection: Pin<&mut C>) -> io::Result<C::Output> {
        self.0.drive(connection).await
    }
}
