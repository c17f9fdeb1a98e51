//! Requests of the bench itself: what it creates, changes and lists.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Failed;
use super::server::TOKEN;
use super::tls::client_config;

/// The media type that the bench sends, and mostly reads.
const JSON: &str = "application/json";

/// How to reach a server.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
}

/// A connection for one request after the other.
#[derive(Debug)]
pub(crate) struct Line {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Api {
    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Line, Failed> {
        let tcp = TcpStream::connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let config = client_config(&self.authority, b"http/1.1");
        let stream = TlsConnector::from(Arc::clone(&config))
            .connect(name, tcp)
            .await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its end shows in the next request.
        tokio::spawn(connection);
        Ok(Line {
            sender,
            host: self.address.to_string(),
        })
    }
}

impl Line {
    /// The answer's body; an error for any status but success.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Bytes, Failed> {
        let answer = self.ask(method, path, JSON, content_type, body).await?;
        Ok(answer.collect().await?.to_bytes())
    }

    /// How long the body is of an answer in a form of this media type, which is read and dropped.
    pub(crate) async fn length(&mut self, path: &str, accept: &str) -> Result<usize, Failed> {
        let mut body = self
            .ask(Method::GET, path, accept, JSON, String::new())
            .await?;
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(length)
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        content_type: &str,
        body: String,
    ) -> Result<Incoming, Failed> {
        let told = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("accept", accept)
            .header("content-type", content_type)
            .body(Full::from(body))?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status: StatusCode = answer.status();
        if !status.is_success() {
            let body = answer.into_body().collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&body);
            return Err(format!("{told}: {status}: {text}").into());
        }
        Ok(answer.into_body())
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes, Failed> {
        self.get_as(path, JSON).await
    }

    pub(crate) async fn get_as(&mut self, path: &str, accept: &str) -> Result<Bytes, Failed> {
        let answer = self
            .ask(Method::GET, path, accept, JSON, String::new())
            .await?;
        Ok(answer.collect().await?.to_bytes())
    }

    pub(crate) async fn create(&mut self, path: &str, object: &Value) -> Result<(), Failed> {
        self.send(Method::POST, path, JSON, object.to_string())
            .await?;
        Ok(())
    }

    pub(crate) async fn patch(&mut self, path: &str, patch: String) -> Result<Bytes, Failed> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch)
            .await
    }
}
