//! Pages as they come through the proxy, plain and packed, whole and cut.

use std::io::Read;

use futures::stream;
use http::HeaderValue;
use http_body_util::StreamBody;
use proptest::prelude::*;
use ringwatch_http::full;

use super::*;

const PAGE: &str = r#"<!DOCTYPE html><html manifest="/m"><head><base href='/b/'>
<link REL=stylesheet HREF=/style.css?a=1&amp;b=2><script src="/s.js">let a = '<a href="/not">';</script>
<!-- <a href="/not"> --></head><body><a title="/not" href="http://10.0.0.1:80/x">ä</a>
<a href="//elsewhere/x">b</a><a href="relative">c</a><img src="/i" longdesc="/l" alt="/not"/>
<form action="/f"><input formaction=/g></form><p cite="/not">/not</p><a href="/say%20&quot;">d</a>"#;

const REWRITTEN: &str = r#"<!DOCTYPE html><html manifest="/p/m"><head><base href="/p/b/">
<link REL=stylesheet HREF="/p/style.css?a=1&amp;b=2"><script src="/p/s.js">let a = '<a href="/not">';</script>
<!-- <a href="/not"> --></head><body><a title="/not" href="/p/x">ä</a>
<a href="//elsewhere/x">b</a><a href="relative">c</a><img src="/p/i" longdesc="/p/l" alt="/not" />
<form action="/p/f"><input formaction="/p/g"></form><p cite="/not">/not</p><a href="/p/say%20&quot;">d</a>"#;

fn links() -> Links {
    Links {
        prefix: "/p".to_owned(),
        authority: "10.0.0.1:80".to_owned(),
        host: "localhost".to_owned(),
    }
}

fn answer(body: ResponseBody, encoding: &'static str) -> Response<ResponseBody> {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    let media_type = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
    if !encoding.is_empty() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    answer
}

/// Returns a body that comes in pieces of some length.
fn pieces(bytes: &[u8], length: usize) -> ResponseBody {
    let pieces: Vec<_> = bytes.chunks(length).map(Bytes::copy_from_slice).collect();
    let frames = pieces.into_iter().map(|it| Ok(Frame::data(it)));
    StreamBody::new(stream::iter(frames)).boxed_unsync()
}

fn packed(text: &[u8], encoding: &str) -> Vec<u8> {
    let level = Compression::default();
    let mut packer = match encoding {
        "gzip" => Packer::Gzip(GzEncoder::new(Vec::new(), level)),
        "deflate" => Packer::Deflate(DeflateEncoder::new(Vec::new(), level)),
        _ => Packer::Plain(Vec::new()),
    };
    packer.finish(text).expect("packed")
}

fn unpacked(bytes: &[u8], encoding: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let read = match encoding {
        "gzip" => flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text),
        "deflate" => flate2::read::DeflateDecoder::new(bytes).read_to_end(&mut text),
        _ => (&mut &*bytes).read_to_end(&mut text),
    };
    read.expect("whole");
    text
}

async fn bytes(answer: Response<ResponseBody>) -> Result<Bytes, BoxError> {
    let collected = answer.into_body().collect().await;
    collected.map(http_body_util::Collected::to_bytes)
}

#[tokio::test]
async fn links_are_rewritten_however_a_page_is_packed_and_cut() {
    for encoding in ["", "gzip", "deflate"] {
        let packed = packed(PAGE.as_bytes(), encoding);
        for length in [1, 2, 7, 100, packed.len()] {
            let answer = answer(pieces(&packed, length), encoding);
            let rewritten = rewrite(answer, &Method::GET, links());
            assert!(!rewritten.headers().contains_key(CONTENT_LENGTH));
            let text = unpacked(&bytes(rewritten).await.expect("whole"), encoding);
            assert_eq!(
                String::from_utf8_lossy(&text),
                REWRITTEN,
                "{encoding} {length}"
            );
        }
    }
}

#[tokio::test]
async fn links_keep_their_bytes_in_whatever_encoding() {
    let page = |prefix: &str| {
        let link = |bytes: &[u8]| [b"<a href=\"", prefix.as_bytes(), bytes, b"\">"].concat();
        let mut page = b"<title>\xe9</title><a title=\"\xe9\" href=\"".to_vec();
        page.extend([prefix.as_bytes(), b"/there\">"].concat());
        page.extend(link(b"/caf\xe9?\x80=\xff"));
        page.extend(link("/é/日本".as_bytes()));
        page.extend(link(b"/\xff\xfe\xef\xbb\xbf"));
        page
    };
    let rewritten = rewrite(answer(full(page("")), ""), &Method::GET, links());
    let rewritten = bytes(rewritten).await.expect("whole");
    assert_eq!(rewritten, page("/p"), "{rewritten:?}");

    // A prefix that is not ASCII is not taken for another one.
    let links = Links {
        prefix: "/é".to_owned(),
        ..links()
    };
    let page = "<a href=\"/é/there\"><a href=\"//10.0.0.1:80/é/there\">";
    let rewritten = rewrite(answer(full(page), ""), &Method::GET, links);
    let expected = page.replace("//10.0.0.1:80", "");
    assert_eq!(bytes(rewritten).await.expect("whole"), expected);
}

#[tokio::test]
async fn other_answers_are_passed_on_as_they_are() {
    let link = r#"<a href="/x">"#;
    for (media_type, encoding, method) in [
        ("text/plain", "", Method::GET),
        ("application/xhtml+xml", "", Method::GET),
        ("text/html", "br", Method::GET),
        ("text/html", "", Method::HEAD),
        ("", "", Method::GET),
    ] {
        let mut answer = answer(full(link), encoding);
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        let rewritten = rewrite(answer, &method, links());
        assert!(rewritten.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(bytes(rewritten).await.expect("whole"), link, "{media_type}");
    }
}

#[tokio::test]
async fn what_is_not_packed_as_it_says_ends_the_answer() {
    for encoding in ["gzip", "deflate"] {
        let answer = answer(full("<a href=/x>"), encoding);
        let failed = bytes(rewrite(answer, &Method::GET, links())).await;
        assert!(failed.is_err(), "{encoding}");
    }
}

#[tokio::test]
async fn a_page_that_asks_for_too_much_memory_is_passed_on_as_it_is() {
    let long = format!(
        "<a href=\"/x\"><a title=\"{}\" href=\"/y\"><a href=\"/z\">",
        "x".repeat(3 << 20)
    );
    let rewritten = rewrite(
        answer(pieces(long.as_bytes(), 4096), ""),
        &Method::GET,
        links(),
    );
    let expected = long.replacen("/x", "/p/x", 1);
    assert_eq!(bytes(rewritten).await.expect("whole"), expected);
}

/// A few bytes that unpack to very many are passed on in pieces.
#[tokio::test]
async fn a_bomb_is_unpacked_bit_by_bit() {
    let zeros = vec![b'0'; 64 << 20];
    let packed = packed(&zeros, "gzip");
    let mut page = Page::new(full(packed), Packing::Gzip, links());
    let mut most = 0;
    while !page.unread.is_empty() || page.unpacker.is_some() {
        let Some(frame) = page.frame().await else {
            break;
        };
        frame.expect("a frame");
        most = most.max(page.rewritten.lock().capacity());
    }
    assert!(most <= 2 << 20, "{most} bytes at once");
}

proptest! {
    #[test]
    fn whatever_comes_is_passed_on(
        parts in proptest::collection::vec(prop::sample::select(vec![
            "<a href=", "\"/x\"", "'", "\"", ">", "</a>", "<", "<!--", "-->", "<script>", "</script>",
            "<svg>", "<title>", "&amp;", " ", "/", "=", "\0", "é", "<plaintext>", "<![CDATA[",
        ]), 0..40),
        length in 1..20_usize,
    ) {
        let page = parts.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let rewrite = |body| {
            let rewritten = rewrite(answer(body, ""), &Method::GET, links());
            runtime.block_on(bytes(rewritten)).expect("whole")
        };
        let whole = rewrite(full(page.clone()));
        let cut = rewrite(pieces(page.as_bytes(), length));
        prop_assert_eq!(&cut, &whole);
        let text = String::from_utf8(whole.to_vec()).expect("as it was");
        let letters = |text: &str| text.replace(['"', '\'', ' ', '/'], "").replace('p', "");
        if !text.contains("/p") {
            prop_assert_eq!(letters(&text), letters(&page));
        }
    }
}
