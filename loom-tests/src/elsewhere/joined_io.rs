//! The joined writes of a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;

use real_tokio::io::{AsyncRead, AsyncWrite};

// rustfmt would look for its tests beside it.
#[rustfmt::skip]
#[path = "../../../crates/apiserver/src/transport/joined_io.rs"]
mod included;

/// Drives a connection turn by turn, and flushes after each.
#[derive(Debug)]
pub struct Turns<T>(included::Turns<T>);

/// Wraps an I/O object: the first half goes to the connection, the second drives it.
pub fn join<T>(inner: T) -> (impl AsyncRead + AsyncWrite + Unpin, Turns<T>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (io, turns) = included::join(inner);
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
