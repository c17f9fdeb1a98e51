//! A socket that measures how long the server waits for its client, until the client has been authenticated.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::ClientStanding;
use super::standing::Direction;
use crate::layered_io::{IoLayer, LayeredIo};

/// A socket whose reads and writes count as waiting for the client while they are pending.
pub(crate) type ClientIo<T> = LayeredIo<T, ClientStanding>;

impl IoLayer for ClientStanding {
    fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        inner: Pin<&mut T>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = |context: &mut Context<'_>| inner.poll_read(context, buffer);
        self.poll_socket(Direction::In, context, poll)
    }

    fn poll_out<R>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.poll_socket(Direction::Out, context, poll)
    }
}
