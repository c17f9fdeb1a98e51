//! URLs as Go's `net/url` reads them, which decides what rules of Kubernetes accept.
//!
//! The crate `url` follows the browsers' standard instead: it accepts other texts, and rewrites those that it accepts.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use super::go_address::Address;
use super::go_text::quoted;

/// The bytes that a user's name and password have escaped.
const IN_USERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The bytes that a host has escaped.
const IN_HOSTS: &AsciiSet = &IN_USERS
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b':')
    .remove(b'[')
    .remove(b']')
    .remove(b'<')
    .remove(b'>')
    .remove(b'"');

/// The bytes that a path has escaped, as `URL.EscapedPath` writes it.
const IN_PATHS: &AsciiSet = &IN_USERS.remove(b'/').remove(b':').remove(b'@');

/// The bytes that a fragment has escaped, as `URL.EscapedFragment` writes it.
const IN_FRAGMENTS: &AsciiSet = &IN_PATHS
    .remove(b'?')
    .remove(b'!')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// The bytes that a path or a fragment may have unescaped, though Go itself escapes them.
const ALSO_VALID: &[u8] = b"!'()*[]%";

/// The bytes that a user's name and password may have, beside letters and digits.
const OF_USERS: &[u8] = b"-._:~!$&'()*+,;=%@";

/// Maximum number of parameters of a query that are read; of more, none is.
const QUERY_PARAMETERS_MAX: usize = 10_000;

/// A parsed URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The scheme in lower case; empty for a path.
    pub scheme: String,
    /// The text after the scheme if that does not begin with a slash, as it was written.
    opaque: String,
    /// The user and the host with escapes; `None` without the slashes before it.
    authority: Option<String>,
    /// The host without escapes, and the port if there is one.
    pub host: String,
    /// The path as it was written.
    written_path: String,
    /// The query as it was written; `None` without the question mark before it.
    query: Option<String>,
    /// The fragment as it was written.
    fragment: String,
}

/// The reason why a text is no URL, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {why}", quoted(.url))]
pub struct UrlError {
    url: String,
    why: String,
}

/// The part of a URL in which an escape stands.
#[derive(Clone, Copy, PartialEq)]
enum UrlComponent {
    Host,
    Zone,
    Other,
}

impl Url {
    /// Reads a URL, which may be relative. Follows `url.Parse`.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
        let error = |url: &str, why| UrlError {
            url: url.to_owned(),
            why,
        };
        let mut parsed = parse(url, false).map_err(|why| error(url, why))?;
        unescape(fragment, UrlComponent::Other).map_err(|why| error(text, why))?;
        fragment.clone_into(&mut parsed.fragment);
        Ok(parsed)
    }

    /// Reads a URL that is absolute, or an absolute path, with its fragment. One that a request could not have for that
    /// fragment is refused too. Follows `url.ParseRequestURI` and then `url.Parse`, as CEL does.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong with the text.
    pub fn parse_absolute(text: &str) -> Result<Self, UrlError> {
        Self::parse_request(text)?;
        Self::parse(text)
    }

    /// Reads a URL without fragment that is absolute, or an absolute path, as that of a request. Follows
    /// `url.ParseRequestURI`.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong with the text.
    pub fn parse_request(text: &str) -> Result<Self, UrlError> {
        parse(text, true).map_err(|why| UrlError {
            url: text.to_owned(),
            why,
        })
    }

    /// Returns the host without the port, and without the brackets of an IPv6 address.
    #[must_use]
    pub fn host_name(&self) -> &str {
        let name = self.split_host().0;
        let inside = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        inside.unwrap_or(name)
    }

    /// Returns the port, empty if there is none.
    #[must_use]
    pub fn port(&self) -> &str {
        self.split_host().1
    }

    fn split_host(&self) -> (&str, &str) {
        let colon = self.host.rfind(':');
        let colon = colon.filter(|at| is_port(&self.host[*at..]));
        colon.map_or((&self.host, ""), |at| {
            (&self.host[..at], &self.host[at + 1..])
        })
    }

    /// Returns the path as it was written.
    #[must_use]
    pub fn written_path(&self) -> &str {
        &self.written_path
    }

    /// Returns the path with all escapes that it needs: as it was written, if it has them.
    #[must_use]
    pub fn escaped_path(&self) -> String {
        escaped(&self.written_path, IN_PATHS)
    }

    /// Returns the user with the password, if there is one, as `Userinfo.String` writes it; `None` without an `@`.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        let (user, _) = self.authority.as_deref()?.rsplit_once('@')?;
        Some(user)
    }

    /// Returns the query as it was written; empty if there is none.
    #[must_use]
    pub fn raw_query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// Returns the fragment without escapes.
    #[must_use]
    pub fn fragment(&self) -> String {
        let bytes = percent_decode(self.fragment.as_bytes());
        bytes.decode_utf8_lossy().into_owned()
    }

    /// Returns the parameters of the query in their order, without those that cannot be read.
    #[must_use]
    pub fn query(&self) -> Vec<(String, String)> {
        let query = self.query.as_deref().unwrap_or_default();
        if query.matches('&').count() >= QUERY_PARAMETERS_MAX {
            return Vec::new();
        }
        let readable = |text: &str| {
            let bytes = unescape(&text.replace('+', " "), UrlComponent::Other).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let parameters = query.split('&');
        let parameters = parameters.filter(|it| !it.is_empty() && !it.contains(';'));
        parameters
            .filter_map(|it| {
                let (name, value) = it.split_once('=').unwrap_or((it, ""));
                Some((readable(name)?, readable(value)?))
            })
            .collect()
    }
}

/// The URL as `URL.String` writes it.
impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.escaped_path();
        if !self.scheme.is_empty() {
            write!(formatter, "{}:", self.scheme)?;
        }
        formatter.write_str(&self.opaque)?;
        match self.authority.as_deref() {
            Some("") if self.scheme.is_empty() || path.is_empty() => {}
            Some(authority) => write!(formatter, "//{authority}")?,
            // What is before the colon would be a scheme.
            None if self.scheme.is_empty() && first_segment(&path).contains(':') => {
                formatter.write_str("./")?;
            }
            None => {}
        }
        formatter.write_str(&path)?;
        if let Some(query) = &self.query {
            write!(formatter, "?{query}")?;
        }
        if !self.fragment.is_empty() {
            write!(formatter, "#{}", escaped(&self.fragment, IN_FRAGMENTS))?;
        }
        Ok(())
    }
}

/// Escapes a path, as `URL.EscapedPath` does.
#[must_use]
pub fn escape_path(path: &[u8]) -> String {
    percent_encode(path, IN_PATHS).to_string()
}

/// Returns true if a path can be sent as it is.
#[must_use]
pub fn is_valid_path(path: &str) -> bool {
    is_valid(path, IN_PATHS)
}

/// Returns true if a part of a URL, of which these bytes are escaped, has all escapes that it needs. Follows
/// `validEncoded`.
fn is_valid(part: &str, set: &'static AsciiSet) -> bool {
    let without: Vec<u8> = part.bytes().filter(|it| !ALSO_VALID.contains(it)).collect();
    percent_encode(&without, set).to_string().as_bytes() == without
}

/// Returns a part of a URL with all escapes that it needs: as it was written, if it has them.
fn escaped(written: &str, set: &'static AsciiSet) -> String {
    if is_valid(written, set) {
        return written.to_owned();
    }
    let decoded: Vec<u8> = percent_decode(written.as_bytes()).collect();
    percent_encode(&decoded, set).to_string()
}

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Follows `url.parse`.
fn parse(text: &str, absolute: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && absolute {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        text.clone_into(&mut url.written_path);
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let mut rest = rest;
    if let Some((before, query)) = rest.split_once('?') {
        url.query = Some(query.to_owned());
        rest = before;
    }
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if absolute {
            return Err("invalid URI for request".to_owned());
        }
        if first_segment(rest).contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_host = !scheme.is_empty() || !absolute && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_host) {
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        read_authority(&mut url, authority)?;
        rest = path;
    }
    unescape(rest, UrlComponent::Other)?;
    rest.clone_into(&mut url.written_path);
    Ok(url)
}

/// Splits what is before the first colon from a URL, if that can be a scheme. Follows `getScheme`.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let end = text.bytes().position(|it| !is_part(&it));
    let Some(end) = end.filter(|end| text.as_bytes()[*end] == b':') else {
        return Ok(("", text));
    };
    if end == 0 {
        return Err("missing protocol scheme".to_owned());
    }
    match text.starts_with(|it: char| it.is_ascii_alphabetic()) {
        true => Ok((&text[..end], &text[end + 1..])),
        false => Ok(("", text)),
    }
}

/// Reads the host and port of an authority, and the user before them. Follows `parseAuthority`.
fn read_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = parse_host(&url.scheme, host)?;
    let user = user.map(escaped_user).transpose()?;
    let user = user.map_or_else(String::new, |user| user + "@");
    url.authority = Some(user + &percent_encode(&host, IN_HOSTS).to_string());
    url.host = lossy(host);
    Ok(())
}

/// Returns the name of a user, and the password after it, with the escapes that they need.
fn escaped_user(user: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || OF_USERS.contains(&byte);
    if !user.bytes().all(is_part) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let parts = user.splitn(2, ':').map(|part| {
        let part = unescape(part, UrlComponent::Other)?;
        Ok(percent_encode(&part, IN_USERS).to_string())
    });
    Ok(parts.collect::<Result<Vec<_>, String>>()?.join(":"))
}

/// Follows `parseHost`.
fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let refuse_port = |port: &str| Err(format!("invalid port {} after host", quoted(port)));
    match host.rfind('[') {
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            let strict = matches!(scheme, "http" | "https");
            let colon = if strict {
                host.find(':')
            } else {
                host.rfind(':')
            };
            return match colon.map(|at| &host[at..]).filter(|it| !is_port(it)) {
                Some(port) => refuse_port(port),
                None => unescape(host, UrlComponent::Host),
            };
        }
    }
    let Some(end) = host.rfind(']') else {
        return Err("missing ']' in host".to_owned());
    };
    let (name, port) = (&host[1..end], &host[end + 1..]);
    if !is_port(port) {
        return refuse_port(port);
    }
    let zone = name.find("%25").unwrap_or(name.len());
    let mut address = unescape(&name[..zone], UrlComponent::Host)?;
    address.extend(unescape(&name[zone..], UrlComponent::Zone)?);
    let parsed = Address::parse(&String::from_utf8_lossy(&address));
    let parsed = parsed.map_err(|why| format!("invalid host: {why}"))?;
    if parsed.ip.is_ipv4() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", address.as_slice(), b"]", port.as_bytes()].concat())
}

/// Returns true if a text is a colon with a port, which may be missing, or empty.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or(text);
    text.is_empty() || digits.len() < text.len() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// Returns a part of a URL without escapes.
fn unescape(text: &str, part: UrlComponent) -> Result<Vec<u8>, String> {
    let refuse = |escape: &str| Err(format!("invalid URL escape {}", quoted(escape)));
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let mut length = 1;
        if first == b'%' {
            let end = rest
                .char_indices()
                .nth(3)
                .map_or(rest.len(), |(end, _)| end);
            let escape = &rest[..end];
            let Some(byte) = escape.get(1..3).and_then(hexadecimal) else {
                return refuse(escape);
            };
            length = 3;
            let allowed = match part {
                UrlComponent::Host => !byte.is_ascii(),
                UrlComponent::Zone => byte == b' ' || byte.is_ascii() && is_of_host(byte),
                UrlComponent::Other => true,
            };
            if !allowed && escape != "%25" {
                return refuse(escape);
            }
        } else if part != UrlComponent::Other && !is_of_host(first) {
            let shown = quoted(&rest[..1]);
            return Err(format!("invalid character {shown} in host name"));
        }
        rest = rest.get(length..).unwrap_or_else(|| {
            let mut characters = rest.chars();
            characters.next();
            characters.as_str()
        });
    }
    Ok(percent_decode(text.as_bytes()).collect())
}

fn hexadecimal(digits: &str) -> Option<u8> {
    let all = digits.bytes().all(|it| it.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| all)
}

fn is_of_host(byte: u8) -> bool {
    !byte.is_ascii() || percent_encode(&[byte], IN_HOSTS).all(|it| it.len() == 1)
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scheme, host, name of the host, port, path and query of a URL, or what is wrong with it, as Go has them.
    type Fact = (&'static str, Result<[&'static str; 6], &'static str>);

    #[rustfmt::skip]
    const FACTS: &[Fact] = &[
        ("http://", Ok(["http", "", "", "", "", ""])),
        ("https://example.com", Ok(["https", "example.com", "example.com", "", "", ""])),
        ("/path", Ok(["", "", "", "", "/path", ""])),
        ("//host/path", Ok(["", "host", "host", "", "/path", ""])),
        ("*", Ok(["", "", "", "", "*", ""])),
        ("", Err("parse \"\": empty url")),
        ("http:", Ok(["http", "", "", "", "", ""])),
        ("mailto:a@b", Ok(["mailto", "", "", "", "", ""])),
        ("http:x/y?z", Ok(["http", "", "", "", "", "z="])),
        ("1http://a", Err("parse \"1http://a\": invalid URI for request")),
        (":a", Err("parse \":a\": missing protocol scheme")),
        ("a b://c", Err("parse \"a b://c\": invalid URI for request")),
        ("HTTP://Host:80/P", Ok(["http", "Host:80", "Host", "80", "/P", ""])),
        ("http://a:b@c@d:1/", Ok(["http", "d:1", "d", "1", "/", ""])),
        ("http://us er@h/", Err("parse \"http://us er@h/\": net/url: invalid userinfo")),
        ("http://u%41:p%zz@h/", Err("parse \"http://u%41:p%zz@h/\": invalid URL escape \"%zz\"")),
        ("http://h:x/", Err("parse \"http://h:x/\": invalid port \":x\" after host")),
        ("http://h:/", Ok(["http", "h:", "h", "", "/", ""])),
        ("http://h:1:2/", Err("parse \"http://h:1:2/\": invalid port \":1:2\" after host")),
        ("postgres://h:1,g:2/", Ok(["postgres", "h:1,g:2", "h:1,g", "2", "/", ""])),
        ("http://[::1]:80/a", Ok(["http", "[::1]:80", "::1", "80", "/a", ""])),
        ("http://[::1", Err("parse \"http://[::1\": missing ']' in host")),
        ("http://[::1%25eth0]:80", Ok(["http", "[::1%eth0]:80", "::1%eth0", "80", "", ""])),
        ("http://[::1%eth0]", Err("parse \"http://[::1%eth0]\": invalid URL escape \"%et\"")),
        ("http://[1.2.3.4]", Err("parse \"http://[1.2.3.4]\": invalid IP-literal")),
        ("http://[::ffff:1.2.3.4]", Ok(["http", "[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "", "", ""])),
        ("http://[x]", Err("parse \"http://[x]\": invalid host: ParseAddr(\"x\"): unable to parse IP")),
        ("http://[1:2]", Err("parse \"http://[1:2]\": invalid host: ParseAddr(\"1:2\"): address string too short")),
        ("http://[::1%25]", Err("parse \"http://[::1%25]\": invalid host: ParseAddr(\"::1%\"): zone must be a non-empty string")),
        ("http://[1.2.3]", Err("parse \"http://[1.2.3]\": invalid host: ParseAddr(\"1.2.3\"): IPv4 address too short")),
        ("http://\u{7}", Err("parse \"http://\\a\": net/url: invalid control character in URL")),
        ("http://h/\u{200b}%zz", Err("parse \"http://h/\\u200b%zz\": invalid URL escape \"%zz\"")),
        ("http://a[::1]", Err("parse \"http://a[::1]\": invalid IP-literal")),
        ("http://a b/", Err("parse \"http://a b/\": invalid character \" \" in host name")),
        ("http://a%20b/", Err("parse \"http://a%20b/\": invalid URL escape \"%20\"")),
        ("http://a%C3%A9/", Ok(["http", "aé", "aé", "", "/", ""])),
        ("http://é/é", Ok(["http", "é", "é", "", "/%C3%A9", ""])),
        ("http://a<b>\"c/", Ok(["http", "a<b>\"c", "a<b>\"c", "", "/", ""])),
        ("http://a^b/", Err("parse \"http://a^b/\": invalid character \"^\" in host name")),
        ("http://h/a b%20c", Ok(["http", "h", "h", "", "/a%20b%20c", ""])),
        ("http://h/%", Err("parse \"http://h/%\": invalid URL escape \"%\"")),
        ("http://h/%zz", Err("parse \"http://h/%zz\": invalid URL escape \"%zz\"")),
        ("http://h/%2", Err("parse \"http://h/%2\": invalid URL escape \"%2\"")),
        ("http://h/a?b%zz", Ok(["http", "h", "h", "", "/a", ""])),
        ("http://h/%2F%41", Ok(["http", "h", "h", "", "/%2F%41", ""])),
        ("http://h/!'()*[]", Ok(["http", "h", "h", "", "/!'()*[]", ""])),
        ("http://h/?", Ok(["http", "h", "h", "", "/", ""])),
        ("http://h/??", Ok(["http", "h", "h", "", "/", "?="])),
        ("http://h/?a=1&a=2&b&c=%41+d&;x=1&=v&e=%zz&&", Ok(["http", "h", "h", "", "/", "=v a=1|2 b= c=A d"])),
        ("http://h/#frag", Ok(["http", "h", "h", "", "/", ""])),
        ("http://h/a?b=c#d", Ok(["http", "h", "h", "", "/a", "b=c"])),
        ("/p?q=1#f", Ok(["", "", "", "", "/p", "q=1"])),
        ("http://h#f", Err("parse \"http://h#f\": invalid character \"#\" in host name")),
        ("/a b", Ok(["", "", "", "", "/a%20b", ""])),
        ("/%zz", Err("parse \"/%zz\": invalid URL escape \"%zz\"")),
        ("relative/path", Err("parse \"relative/path\": invalid URI for request")),
        ("http://h\u{0}/", Err("parse \"http://h\\x00/\": net/url: invalid control character in URL")),
        ("http://h/\u{7f}", Err("parse \"http://h/\\x7f\": net/url: invalid control character in URL")),
        ("file:///etc", Ok(["file", "", "", "", "/etc", ""])),
        ("file:/etc", Ok(["file", "", "", "", "/etc", ""])),
        ("a+b-c.1://h", Ok(["a+b-c.1", "h", "h", "", "", ""])),
        ("http://@h", Ok(["http", "h", "h", "", "", ""])),
        ("http:///p", Ok(["http", "", "", "", "/p", ""])),
        ("///p", Ok(["", "", "", "", "///p", ""])),
        ("//h", Ok(["", "h", "h", "", "", ""])),
        ("http://h/p%23#%zz", Err("parse \"http://h/p%23#%zz\": invalid URL escape \"%zz\"")),
        ("http://h?a=b", Ok(["http", "h", "h", "", "", "a=b"])),
        ("http://h/a;b=c,d:e@f", Ok(["http", "h", "h", "", "/a;b=c,d:e@f", ""])),
        ("urn:a:b", Ok(["urn", "", "", "", "", ""])),
        ("http://h/\u{a0}", Ok(["http", "h", "h", "", "/%C2%A0", ""])),
        ("https://[fe80::1%25en%200]/", Ok(["https", "[fe80::1%en 0]", "fe80::1%en 0", "", "/", ""])),
        ("http://{a}/", Err("parse \"http://{a}/\": invalid character \"{\" in host name")),
        ("http://a|b", Err("parse \"http://a|b\": invalid character \"|\" in host name")),
        ("http://a`b", Err("parse \"http://a`b\": invalid character \"`\" in host name")),
        ("http://a\\b/", Err("parse \"http://a\\\\b/\": invalid character \"\\\\\" in host name")),
        ("http://h/a\\b|c", Ok(["http", "h", "h", "", "/a%5Cb%7Cc", ""])),
    ];

    #[test]
    fn urls_are_read_as_go_reads_them() {
        for (text, parts) in FACTS {
            let found = Url::parse_absolute(text).map_err(|it| it.to_string());
            let found = found.map(|url| {
                let mut query: Vec<(String, Vec<String>)> = Vec::new();
                for (name, value) in url.query() {
                    match query.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, values)) => values.push(value),
                        None => query.push((name, vec![value])),
                    }
                }
                query.sort();
                let query = query
                    .iter()
                    .map(|(name, values)| format!("{name}={}", values.join("|")));
                let query = query.collect::<Vec<_>>().join(" ");
                let (name, port) = (url.host_name().to_owned(), url.port().to_owned());
                let path = url.escaped_path();
                [url.scheme, url.host, name, port, path, query]
            });
            let parts = parts.map(|it| it.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found, parts, "{text}");
        }
    }

    /// URLs, each as Go writes it once it has read it.
    #[rustfmt::skip]
    const WRITTEN: &[(&str, &str)] = &[
        ("http://", "http:"),
        ("https://example.com", "https://example.com"),
        ("/path", "/path"),
        ("//host/path", "//host/path"),
        ("*", "*"),
        ("", ""),
        ("//", ""),
        ("http:", "http:"),
        ("mailto:a@b?c#d", "mailto:a@b?c#d"),
        ("http:x/y?z", "http:x/y?z"),
        ("HTTP://Host:80/P", "http://Host:80/P"),
        ("http://a:b@c@d:1/", "http://a:b%40c@d:1/"),
        ("http://@h", "http://@h"),
        ("http://:@h", "http://:@h"),
        ("http://u:@h/", "http://u:@h/"),
        ("http://u%41:p%2F@h/", "http://uA:p%2F@h/"),
        ("http://u%FF@h", "http://u%FF@h"),
        ("http://[::1%25eth0]:80", "http://[::1%25eth0]:80"),
        ("http://a%C3%A9/", "http://a%C3%A9/"),
        ("http://a%FF/", "http://a%FF/"),
        ("http://é/é?é#é", "http://%C3%A9/%C3%A9?é#%C3%A9"),
        ("http://a<b>\"c/", "http://a<b>\"c/"),
        ("http://h/a b%20c", "http://h/a%20b%20c"),
        ("http://h/%2F%41", "http://h/%2F%41"),
        ("http://h/!'()*[]", "http://h/!'()*[]"),
        ("http://h/?", "http://h/?"),
        ("http://h/??", "http://h/??"),
        ("http://h?", "http://h?"),
        ("http://h/#", "http://h/"),
        ("http://h/#a b%20c", "http://h/#a%20b%20c"),
        ("http://h/#!'()*[]%41", "http://h/#!'()*[]%41"),
        ("http://h/a#\"x?/:@", "http://h/a#%22x?/:@"),
        ("file:///etc", "file:///etc"),
        ("file:/etc", "file:/etc"),
        ("http:///p", "http:///p"),
        ("///p", "///p"),
        ("//@/p", "//@/p"),
        ("http://h", "http://h"),
        ("http://h:/", "http://h:/"),
        ("a%3Ab", "a%3Ab"),
        ("a%3A b", "./a:%20b"),
        ("x/a:b", "x/a:b"),
        ("http:?a", "http:?a"),
        ("http:?", "http:?"),
        ("https://[fe80::1%25en%200]/", "https://[fe80::1%25en%200]/"),
        ("urn:a b", "urn:a b"),
        ("postgres://h:1,g:2/", "postgres://h:1,g:2/"),
        ("http://user'!()*:x;y=z&a+b$c,d~@h", "http://user%27%21%28%29%2A:x;y=z&a+b$c,d~@h"),
        ("http://h/p%23#%23", "http://h/p%23#%23"),
    ];

    #[test]
    fn urls_are_written_as_go_writes_them() {
        for (text, written) in WRITTEN {
            let found = Url::parse(text).map(|it| it.to_string());
            assert_eq!(found.as_deref(), Ok(*written), "{text}");
        }
    }

    #[test]
    fn relative_urls_have_no_colon_in_their_first_segment() {
        for (text, why) in [
            ("a/b:c", None),
            ("", None),
            (
                "a b:c",
                Some("first path segment in URL cannot contain colon"),
            ),
            ("a#%zz", Some("invalid URL escape \"%zz\"")),
        ] {
            let found = Url::parse(text).err().map(|it| it.why);
            assert_eq!(found.as_deref(), why, "{text}");
        }
    }

    #[test]
    fn of_too_many_parameters_none_is_read() {
        let url = |count: usize| Url::parse(&format!("/?{}", vec!["a"; count].join("&")));
        let read = |count| url(count).expect("a URL").query().len();
        assert_eq!(read(QUERY_PARAMETERS_MAX), QUERY_PARAMETERS_MAX);
        assert_eq!(read(QUERY_PARAMETERS_MAX + 1), 0);
    }

    proptest::proptest! {
        #[test]
        fn a_url_of_parts_has_these_parts(
            scheme in "[a-z][a-z0-9+.-]{0,5}", host in "[a-z0-9.-]{0,9}", port in "[0-9]{0,5}",
            path in "(/[a-zé]{0,4}){0,3}", query in "[a-z=&+;]{0,9}",
        ) {
            let url = Url::parse(&format!("{scheme}://{host}:{port}{path}?{query}#f"));
            let url = url.expect("a URL");
            proptest::prop_assert_eq!(url.host_name(), &host);
            proptest::prop_assert_eq!(url.port(), &port);
            proptest::prop_assert_eq!(url.escaped_path(), path.replace('é', "%C3%A9"));
            proptest::prop_assert_eq!(url.query.as_ref(), Some(&query));
        }

        #[test]
        fn any_text_is_a_url_or_none(text in "[a/:?#@%\\[\\]0-9é .]{0,12}") {
            for url in [Url::parse(&text), Url::parse_request(&text)].into_iter().flatten() {
                proptest::prop_assert!(is_valid_path(&url.escaped_path()));
                proptest::prop_assert!(url.query().len() <= text.len());
            }
            // A request has no fragment: what looks like one is part of its query, as long as it is not read again.
            if let Ok(url) = Url::parse(&text) {
                let written = url.to_string();
                let again = Url::parse(&written).map(|it| it.to_string());
                proptest::prop_assert_eq!(again, Ok(written));
            }
        }
    }
}
