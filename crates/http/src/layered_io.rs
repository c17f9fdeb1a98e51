//! An I/O object with a layer that sees what is read and written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A layer on an I/O object. Without methods of its own it passes everything through.
pub(crate) trait IoLayer: Unpin {
    /// Reads from the I/O object below, as [`AsyncRead::poll_read`] does.
    ///
    /// # Errors
    /// Those of the I/O object and the layer's own.
    fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        inner: Pin<&mut T>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inner.poll_read(context, buffer)
    }

    /// Lets a write, a flush or a shutdown reach the I/O object below by `poll`.
    ///
    /// # Errors
    /// The error of `poll`.
    fn poll_out<R>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        poll(context)
    }
}

/// An I/O object with a layer on it.
#[derive(Debug)]
pub(crate) struct LayeredIo<T, L> {
    inner: T,
    layer: L,
}

impl<T, L> LayeredIo<T, L> {
    /// Puts a layer on an I/O object.
    pub(crate) fn new(inner: T, layer: L) -> Self {
        Self { inner, layer }
    }

    /// Returns the I/O object below the layer.
    pub(crate) fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the I/O object without the layer.
    pub(crate) fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: AsyncRead + Unpin, L: IoLayer> AsyncRead for LayeredIo<T, L> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        this.layer.poll_read(inner, context, buffer)
    }
}

impl<T: AsyncWrite + Unpin, L: IoLayer> AsyncWrite for LayeredIo<T, L> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        this.layer
            .poll_out(context, |context| inner.poll_write(context, data))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        this.layer
            .poll_out(context, |context| inner.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        this.layer
            .poll_out(context, |context| inner.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        this.layer
            .poll_out(context, |context| inner.poll_shutdown(context))
    }
}
