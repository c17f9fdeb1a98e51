//! Rewrites the links of an HTML page that comes through the proxy, while it is passed on: `rewriteResponse` and
//! `rewriteHTML` of Kubernetes 1.36 (`apimachinery/pkg/util/proxy/transport.go`).
//!
//! ```text
//!   backend --> unpack (gzip, deflate) --> Links --> pack --> client
//! ```
//!
//! A page is never held as a whole. The hard part is that a few packed bytes may be very many: they are unpacked in
//! slices of [`SLICE_BYTES_MAX`], and each is passed on before the next.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use encoding_rs::{Encoding, X_USER_DEFINED};
use flate2::Compression;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzEncoder, MultiGzDecoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use lol_html::errors::RewritingError;
use lol_html::send::{HtmlRewriter, Settings};
use lol_html::{AsciiCompatibleEncoding, MemorySettings, element};
use ringwatch_http::{BoxError, ResponseBody};

use super::location::Links;

/// Maximum number of packed bytes that are unpacked at once. They may be about a thousand times as many then.
const SLICE_BYTES_MAX: usize = 1 << 10;

/// Maximum number of bytes of a tag, and of what is remembered of the tags around it. The rest of a page with more is
/// passed on as it is.
const TAG_BYTES_MAX: usize = 1 << 20;

/// The attributes that hold links, by element.
const ATTRIBUTES: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// The encoding in which pages are read, whatever theirs is. It has a character for each byte, so that links keep all
/// of theirs.
static BYTES: &Encoding = X_USER_DEFINED;

/// The packing of a page.
#[derive(Clone, Copy)]
enum Packing {
    Plain,
    Gzip,
    /// Without zlib's frame, as Go's library writes it.
    Deflate,
}

/// Has the links of an answer rewritten if it is an HTML page.
pub(super) fn rewrite(
    answer: Response<ResponseBody>,
    method: &Method,
    links: Links,
) -> Response<ResponseBody> {
    let Some(packing) = page(answer.headers()).filter(|_| *method != Method::HEAD) else {
        return answer;
    };
    let mut answer = answer.map(|body| Page::new(body, packing, links).boxed_unsync());
    answer.headers_mut().remove(CONTENT_LENGTH);
    answer
}

/// Returns the packing of an HTML page; `None` for anything else, and for a packing that is not known.
fn page(headers: &HeaderMap) -> Option<Packing> {
    let text = |name| headers.get(name).map_or(Some(""), |it| it.to_str().ok());
    let media_type = text(CONTENT_TYPE)?.split(';').next()?;
    if media_type.trim() != "text/html" {
        return None;
    }
    match text(CONTENT_ENCODING)? {
        "" => Some(Packing::Plain),
        "gzip" => Some(Packing::Gzip),
        "deflate" => Some(Packing::Deflate),
        _ => None,
    }
}

/// The body of a page whose links are rewritten.
struct Page {
    body: ResponseBody,
    /// Bytes of the backend that have not been unpacked.
    unread: Bytes,
    /// `None` once the page has ended.
    unpacker: Option<Unpacker>,
    rewritten: Rewritten,
    packer: Packer,
}

impl Page {
    fn new(body: ResponseBody, packing: Packing, links: Links) -> Self {
        let rewritten = Rewritten::default();
        let rewriter = Rewriter::new(links, rewritten.clone());
        let level = Compression::default();
        let (unpacker, packer) = match packing {
            Packing::Plain => (Unpacker::Plain(rewriter), Packer::Plain(Vec::new())),
            Packing::Gzip => (
                Unpacker::Gzip(MultiGzDecoder::new(rewriter)),
                Packer::Gzip(GzEncoder::new(Vec::new(), level)),
            ),
            Packing::Deflate => (
                Unpacker::Deflate(DeflateDecoder::new(rewriter)),
                Packer::Deflate(DeflateEncoder::new(Vec::new(), level)),
            ),
        };
        Self {
            body,
            unread: Bytes::new(),
            unpacker: Some(unpacker),
            rewritten,
            packer,
        }
    }

    /// Takes some of the unread bytes, and returns what the client gets of them.
    fn step(&mut self, unpacker: &mut Unpacker) -> io::Result<Vec<u8>> {
        let length = self.unread.len().min(SLICE_BYTES_MAX);
        let slice = self.unread.split_to(length);
        unpacker.writer().write_all(&slice)?;
        let rewritten = std::mem::take(&mut *self.rewritten.lock());
        if rewritten.is_empty() {
            return Ok(rewritten);
        }
        self.packer.pack(&rewritten)
    }

    /// Returns the last bytes that the client gets.
    fn finish(&mut self, unpacker: Unpacker) -> io::Result<Vec<u8>> {
        unpacker.finish()?.finish()?;
        let rewritten = std::mem::take(&mut *self.rewritten.lock());
        self.packer.finish(&rewritten)
    }
}

impl Body for Page {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        while let Some(mut unpacker) = this.unpacker.take() {
            let bytes = if this.unread.is_empty() {
                match Pin::new(&mut this.body).poll_frame(context) {
                    Poll::Pending => {
                        this.unpacker = Some(unpacker);
                        return Poll::Pending;
                    }
                    Poll::Ready(Some(frame)) => {
                        this.unread = frame?.into_data().unwrap_or_default();
                        this.unpacker = Some(unpacker);
                        continue;
                    }
                    Poll::Ready(None) => this.finish(unpacker)?,
                }
            } else {
                let bytes = this.step(&mut unpacker)?;
                this.unpacker = Some(unpacker);
                bytes
            };
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
            }
        }
        Poll::Ready(None)
    }
}

/// The bytes of a page that have been rewritten, and not been passed on.
#[derive(Clone, Default)]
struct Rewritten(Arc<Mutex<Vec<u8>>>);

impl Rewritten {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rewrites the links of the HTML that is written to it.
struct Rewriter {
    /// `None` for the rest of a page of which no more can be remembered.
    inner: Option<HtmlRewriter<'static, Sink>>,
    rewritten: Rewritten,
}

type Sink = Box<dyn FnMut(&[u8]) + Send>;

impl Rewriter {
    fn new(links: Links, rewritten: Rewritten) -> Self {
        let links = links.map(characters);
        let selectors = ATTRIBUTES.iter().flat_map(|(element, attributes)| {
            let of = move |attribute: &&str| format!("{element}[{attribute}]");
            attributes.iter().map(of)
        });
        let selectors: Vec<_> = selectors.collect();
        let handler = element!(selectors.join(", "), move |element| {
            let name = element.tag_name();
            let attributes = ATTRIBUTES.iter().find(|(known, _)| *known == name);
            for attribute in attributes.map_or(&[][..], |(_, attributes)| attributes) {
                let value = element.get_attribute(attribute);
                if let Some(link) = value.and_then(|it| links.through_the_proxy(it.trim_ascii())) {
                    element.set_attribute(attribute, &link)?;
                }
            }
            Ok(())
        });
        let memory = MemorySettings::new()
            .with_max_allowed_memory_usage(TAG_BYTES_MAX)
            .with_graceful_bail_out_on_memory_limit_exceeded(true);
        let bytes = AsciiCompatibleEncoding::new(BYTES);
        let settings = Settings::new_send()
            .with_encoding(bytes.unwrap_or_else(AsciiCompatibleEncoding::utf_8))
            .with_strict(false)
            .with_memory_settings(memory)
            .append_element_content_handler(handler);
        let sink: Sink = Box::new({
            let rewritten = rewritten.clone();
            move |bytes| rewritten.lock().extend_from_slice(bytes)
        });
        Self {
            inner: Some(HtmlRewriter::new(settings, sink)),
            rewritten,
        }
    }

    fn finish(self) -> io::Result<()> {
        let ended = self.inner.map_or(Ok(()), HtmlRewriter::end);
        ended.or_else(passed_on)
    }
}

/// Returns the text that the rewriter has for a text of this server.
fn characters(text: &str) -> String {
    let (characters, _) = BYTES.decode_without_bom_handling(text.as_bytes());
    characters.into_owned()
}

/// Returns the outcome of an error of the rewriter: where too much would have to be remembered, it has passed on
/// everything as it was.
fn passed_on(error: RewritingError) -> io::Result<()> {
    match error {
        RewritingError::MemoryLimitExceeded(_) => Ok(()),
        other => Err(io::Error::other(other)),
    }
}

impl Write for Rewriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.inner.take() {
            Some(mut inner) => match inner.write(bytes) {
                Ok(()) => self.inner = Some(inner),
                Err(error) => passed_on(error)?,
            },
            None => self.rewritten.lock().extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unpacks a page.
enum Unpacker {
    Plain(Rewriter),
    Gzip(MultiGzDecoder<Rewriter>),
    Deflate(DeflateDecoder<Rewriter>),
}

impl Unpacker {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(writer) => writer,
            Self::Gzip(writer) => writer,
            Self::Deflate(writer) => writer,
        }
    }

    fn finish(self) -> io::Result<Rewriter> {
        match self {
            Self::Plain(rewriter) => Ok(rewriter),
            Self::Gzip(decoder) => decoder.finish(),
            Self::Deflate(decoder) => decoder.finish(),
        }
    }
}

/// Packs a page as it was.
enum Packer {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Deflate(DeflateEncoder<Vec<u8>>),
}

impl Packer {
    /// Returns the packed form of some bytes, of which none is held back.
    fn pack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let writer: &mut dyn Write = match self {
            Self::Plain(packed) => packed,
            Self::Gzip(encoder) => encoder,
            Self::Deflate(encoder) => encoder,
        };
        writer.write_all(bytes)?;
        writer.flush()?;
        Ok(std::mem::take(match self {
            Self::Plain(packed) => packed,
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Deflate(encoder) => encoder.get_mut(),
        }))
    }

    /// Returns the packed form of the last bytes.
    fn finish(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut packed = self.pack(bytes)?;
        match self {
            Self::Plain(_) => {}
            Self::Gzip(encoder) => {
                encoder.try_finish()?;
                packed.append(encoder.get_mut());
            }
            Self::Deflate(encoder) => {
                encoder.try_finish()?;
                packed.append(encoder.get_mut());
            }
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests;
