//! A server that is read and not loaded, for other clients than the load generator: the same kubeconfigs and
//! connections.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use thiserror::Error;

use crate::client::{Client, ClientError, ClientRequest, Connection, HttpVersion};
use crate::target::{LoadTarget, RemoteFlags};

/// A server that is read.
#[derive(Debug)]
pub struct Remote {
    client: Client,
    address: String,
    /// The connection of the last request, if it can be used again.
    connection: Option<Connection>,
}

/// The reason why a server does not tell what it is asked for, as one line for the user.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The command line names no server that can be reached so.
    #[error("{0}")]
    Target(String),
    /// The server answered with a status that is no success.
    #[error("{code} {message}")]
    Refused {
        /// The status.
        code: u16,
        /// The text of the answer.
        message: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("{0}")]
    Broken(String),
}

impl From<ClientError> for RemoteError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { code, message } => Self::Refused { code, message },
            other => Self::Broken(other.to_string()),
        }
    }
}

/// A stream of bytes of a server.
#[derive(Debug)]
pub struct Pieces {
    body: Incoming,
    /// The connection, which lasts as long as the stream.
    _connection: Connection,
}

impl Remote {
    /// Finds the server that the flags name.
    ///
    /// # Errors
    /// One line that says what is wrong and what to do.
    pub async fn find(flags: &RemoteFlags) -> Result<Self, RemoteError> {
        let target = LoadTarget::find_anywhere(flags).await;
        let target = target.map_err(|error| RemoteError::Target(error.to_string()))?;
        let address = target.authority.clone();
        let client = Client::new(target, HttpVersion::One);
        Ok(Self {
            client: client.map_err(|error| RemoteError::Target(error.to_string()))?,
            address,
            connection: None,
        })
    }

    /// Returns the host and port of the server.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the document at a path.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn get(&mut self, path: &str) -> Result<Bytes, RemoteError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await?,
        };
        let answer = match connection.request(ClientRequest::get(path)).await {
            Err(ClientError::Unsent(_)) => {
                connection = self.client.connect().await?;
                connection.request(ClientRequest::get(path)).await?
            }
            answer => answer?,
        };
        self.connection = Some(connection);
        Ok(answer.success()?)
    }

    /// Opens the stream at a path, on a connection of its own.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn stream(&self, path: &str) -> Result<Pieces, RemoteError> {
        let mut connection = self.client.connect().await?;
        let body = connection.stream(path, "*/*").await?;
        Ok(Pieces {
            body,
            _connection: connection,
        })
    }
}

impl Pieces {
    /// Returns the next bytes; `None` at the end of the stream.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| RemoteError::Broken(error.to_string()))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
