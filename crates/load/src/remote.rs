//! A server that is read and not loaded, for other clients than the load generator: the same kubeconfigs and connections.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::client::{Client, ClientError, Connection, HttpVersion, Request};
use crate::target::{RemoteFlags, Target, TargetError};

/// A server that is read.
#[derive(Debug)]
pub struct Remote {
    client: Client,
    address: String,
    /// The connection of the last request, if it can be used again.
    connection: Option<Connection>,
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
    pub async fn find(flags: &RemoteFlags) -> Result<Self, TargetError> {
        let target = Target::find_anywhere(flags).await?;
        let address = target.authority.clone();
        Ok(Self {
            client: Client::new(target, HttpVersion::One)?,
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
    pub async fn get(&mut self, path: &str) -> Result<Bytes, ClientError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await?,
        };
        let answer = match connection.request(Request::get(path)).await {
            Err(ClientError::Unsent(_)) => {
                connection = self.client.connect().await?;
                connection.request(Request::get(path)).await?
            }
            answer => answer?,
        };
        self.connection = Some(connection);
        answer.success()
    }

    /// Opens the stream at a path, on a connection of its own.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn stream(&self, path: &str) -> Result<Pieces, ClientError> {
        let mut connection = self.client.connect().await?;
        let body = connection.stream(path).await?;
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
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| ClientError::Broken(error.to_string()))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
