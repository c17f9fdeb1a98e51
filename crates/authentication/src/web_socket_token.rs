//! Reads the bearer token that a WebSocket client sends as one of its subprotocols.
//!
//! Pages in browsers can set no header of a WebSocket's handshake but that of its subprotocols. Ported from Kubernetes
//! 1.36, apiserver/pkg/authentication/request/websocket/protocol.go `ProtocolAuthenticator`.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, HeaderValue};
use ringwatch_apimachinery::upgrade::is_web_socket;

/// The beginning of the subprotocol; the token follows in the URL-safe base64 without padding.
const PREFIX: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// The decoder of tokens, which like Go's ignores bits behind the last byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// A token among the subprotocols of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebSocketToken {
    /// The token.
    pub(super) token: String,
    /// The header with the other subprotocols alone.
    pub(super) others: HeaderValue,
}

/// The reason why subprotocols with a token are not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketTokenError {
    /// There is more than one token; send one.
    #[error("multiple base64.bearer.authorization tokens specified")]
    Several,
    /// The token is not in URL-safe base64 without padding.
    #[error("invalid base64.bearer.authorization token encoding")]
    Encoding,
    /// The token is not UTF-8.
    #[error("invalid base64.bearer.authorization token")]
    NotText,
    /// There is no subprotocol that the server could choose; send another one.
    #[error("missing additional subprotocol")]
    NoOther,
}

impl WebSocketToken {
    /// Returns the token of a request; `None` if it is not for a WebSocket, or has none.
    ///
    /// # Errors
    /// [`WebSocketTokenError`] for a token that cannot be read.
    pub(super) fn read(headers: &HeaderMap) -> Result<Option<Self>, WebSocketTokenError> {
        if !is_web_socket(headers) {
            return Ok(None);
        }
        let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
        let protocols = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let (mut token, mut others) = (None, Vec::new());
        for protocol in protocols.map(<[u8]>::trim_ascii) {
            let Some(encoded) = protocol.strip_prefix(PREFIX) else {
                others.push(protocol);
                continue;
            };
            if token.is_some() {
                return Err(WebSocketTokenError::Several);
            }
            let decoded = BASE64.decode(encoded);
            let decoded = decoded.map_err(|_| WebSocketTokenError::Encoding)?;
            let decoded = String::from_utf8(decoded);
            token = Some(decoded.map_err(|_| WebSocketTokenError::NotText)?);
        }
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Ok(None);
        };
        if others.is_empty() {
            return Err(WebSocketTokenError::NoOther);
        }
        // Parts of valid values, joined by commas, are a valid value.
        let others = HeaderValue::from_bytes(&others.join(&b','));
        let others = others.unwrap_or(HeaderValue::from_static(""));
        Ok(Some(Self { token, others }))
    }
}

#[cfg(test)]
mod tests {
    use http::header::{CONNECTION, UPGRADE};

    use super::*;

    fn read(protocols: &[&str]) -> Result<Option<(String, String)>, WebSocketTokenError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        for protocols in protocols {
            let value = protocols.parse().expect("a header");
            headers.append(SEC_WEBSOCKET_PROTOCOL, value);
        }
        let read = WebSocketToken::read(&headers)?;
        Ok(read.map(|it| {
            let others = it.others.to_str().expect("text").to_owned();
            (it.token, others)
        }))
    }

    fn protocol(encoded: &str) -> String {
        format!("base64url.bearer.authorization.k8s.io.{encoded}")
    }

    #[test]
    fn the_token_is_found_among_the_subprotocols_and_taken_out() {
        let token = protocol("c2VjcmV0");
        for protocols in [
            vec![format!("a,{token} , b")],
            vec!["a".to_owned(), token.clone(), "b".to_owned()],
            vec![format!("{token},a"), "b".to_owned()],
        ] {
            let protocols: Vec<&str> = protocols.iter().map(String::as_str).collect();
            let expected = ("secret".to_owned(), "a,b".to_owned());
            assert_eq!(read(&protocols), Ok(Some(expected)), "{protocols:?}");
        }
        // The last four bits belong to no byte.
        let (found, _) = read(&[&protocol("YR"), "a"]).expect("read").expect("one");
        assert_eq!(found, "a");
    }

    #[test]
    fn without_a_token_there_is_nothing_to_take_out() {
        for protocols in [&[][..], &["a, b"], &[&protocol(""), "a"], &[&protocol("")]] {
            assert_eq!(read(protocols), Ok(None), "{protocols:?}");
        }
        let mut headers = HeaderMap::new();
        let value = format!("a,{}", protocol("c2VjcmV0"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value.parse().expect("a header"));
        assert_eq!(WebSocketToken::read(&headers), Ok(None), "no handshake");
    }

    #[test]
    fn tokens_that_cannot_be_read_are_errors() {
        let token = protocol("c2VjcmV0");
        for (protocols, error) in [
            (&[&*token, &*token][..], WebSocketTokenError::Several),
            (&[&protocol(""), &*token], WebSocketTokenError::Several),
            (
                &[&protocol("c2VjcmV0="), "a"],
                WebSocketTokenError::Encoding,
            ),
            (&[&protocol("c2V+"), "a"], WebSocketTokenError::Encoding),
            (&[&protocol("_w"), "a"], WebSocketTokenError::NotText),
            (&[&*token], WebSocketTokenError::NoOther),
        ] {
            assert_eq!(read(protocols), Err(error), "{protocols:?}");
        }
    }
}
