//! HTTP/1.1 as the floor speaks it: requests one after the other, of which only the end is looked for, and answers of
//! a given length.

use std::io::{self, ErrorKind};

use super::{ANSWER_HEAD_BYTES_MAX, REQUEST_BODY_BYTES_MAX};

/// The head of a request is at most this long.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The request that is being read.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The head, until its end was read.
    head: Vec<u8>,
    /// The number of bytes of the body that are still to come, once the head was read.
    left: Option<usize>,
}

impl Request {
    /// Takes the next bytes. Returns true if the request ends with them; the next ones are those of another request.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: head or body are too long or have no known length, or more follows before the
    /// request was answered.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let left = match self.left {
            Some(left) => left.checked_sub(bytes.len()),
            None => {
                // The end may lie across what came before.
                let searched = self.head.len().saturating_sub(HEAD_END.len() - 1);
                self.head.extend_from_slice(bytes);
                let mut windows = self.head[searched..].windows(HEAD_END.len());
                let end = windows.position(|window| window == HEAD_END);
                let end = end.map(|at| searched + at + HEAD_END.len());
                if end.unwrap_or(self.head.len()) > HEAD_BYTES_MAX {
                    return Err(ErrorKind::InvalidData.into());
                }
                let Some(end) = end else {
                    return Ok(false);
                };
                let of_body = self.head.len() - end;
                self.head.truncate(end);
                let left = body_bytes(&self.head)?.checked_sub(of_body);
                self.head.clear();
                left
            }
        };
        let left = left.ok_or(ErrorKind::InvalidData)?;
        self.left = Some(left).filter(|left| *left > 0);
        Ok(left == 0)
    }

    /// Returns true if a part of a request was read, and no end.
    pub(super) fn is_begun(&self) -> bool {
        self.left.is_some() || !self.head.is_empty()
    }
}

/// Returns the length of the body that follows a head.
fn body_bytes(head: &[u8]) -> io::Result<usize> {
    let head = str::from_utf8(head).map_err(|_| ErrorKind::InvalidData)?;
    let mut length = 0;
    for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(ErrorKind::InvalidData.into());
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
        }
    }
    if length > REQUEST_BODY_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(length)
}

/// Returns an answer whose head takes so many bytes, or as few as it can. What there is to fill stands behind the
/// status, where clients do not look.
pub(super) fn answer(head_bytes: usize, body: &[u8]) -> Vec<u8> {
    const STATUS: &str = "HTTP/1.1 200 OK";
    let rest = format!("\r\ncontent-length: {}\r\n\r\n", body.len());
    let head_bytes = head_bytes.min(ANSWER_HEAD_BYTES_MAX);
    let filler = head_bytes.saturating_sub(STATUS.len() + rest.len());
    let mut answer = STATUS.as_bytes().to_vec();
    answer.resize(STATUS.len() + filler, b'.');
    answer.extend(rest.as_bytes());
    answer.extend(body);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] =
        b"PUT /leases/one HTTP/1.1\r\nhost: a\r\nContent-Length: 9\r\n\r\nab\r\n\r\ncde";

    /// Returns the kind of error with which these bytes are refused.
    fn refused(bytes: &[u8]) -> Option<ErrorKind> {
        let taken = Request::default().take(bytes);
        taken.err().map(|error| error.kind())
    }

    #[test]
    fn requests_are_read_whole_however_they_come() {
        for step in 1..=REQUEST.len() {
            let mut request = Request::default();
            // The next one begins where one ends.
            for _ in 0..2 {
                let pieces = REQUEST.chunks(step);
                let ends: Vec<bool> = pieces
                    .map(|piece| request.take(piece).expect("a request"))
                    .collect();
                let (last, before) = ends.split_last().expect("a piece");
                assert!(*last && !before.contains(&true), "{step}: {ends:?}");
                assert!(!request.is_begun());
            }
        }
        let mut request = Request::default();
        assert!(!request.take(&REQUEST[..REQUEST.len() - 1]).expect("a part"));
        assert!(request.is_begun());
    }

    #[test]
    fn requests_without_a_body_end_with_their_head() {
        let mut request = Request::default();
        assert!(request.take(b"GET / HTTP/1.1\r\n\r\n").expect("a request"));
    }

    #[test]
    fn lengths_are_bounded() {
        let with_length =
            |length: usize| format!("PUT / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        let of = |length| refused(with_length(length).as_bytes());
        assert_eq!(of(REQUEST_BODY_BYTES_MAX), None);
        let invalid = Some(ErrorKind::InvalidData);
        assert_eq!(of(REQUEST_BODY_BYTES_MAX + 1), invalid);
        assert_eq!(refused(&[b'a'; HEAD_BYTES_MAX]), None);
        assert_eq!(refused(&[b'a'; HEAD_BYTES_MAX + 1]), invalid);
        // More than the request has, and a body whose length nobody knows.
        assert_eq!(refused(&[REQUEST, b"f"].concat()), invalid);
        let chunks = b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(refused(chunks), invalid);
    }

    #[test]
    fn answers_are_as_long_as_they_are_to_be() {
        let least = answer(0, b"body").len() - 4;
        for head_bytes in least..least + 300 {
            assert_eq!(answer(head_bytes, b"body").len(), head_bytes + 4);
        }
        let most = answer(usize::MAX, b"body").len() - 4;
        assert_eq!(most, ANSWER_HEAD_BYTES_MAX);
    }
}
