//! Connections that watchers share over HTTP/2: opened by the first who needs one, and anew when it
//! has broken.

use tokio::sync::Mutex;

use crate::client::{Client, ClientError, Connection, Encoding, Watch};

/// Connections by their number, each opened when it is needed.
#[derive(Debug)]
pub(crate) struct SharedConnections(Vec<Mutex<Option<Connection>>>);

impl SharedConnections {
    /// Returns so many connections that are not open yet.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Mutex::new(None)).collect())
    }

    /// Opens a watch on the connection of this number.
    pub(crate) async fn watch(
        &self,
        number: usize,
        client: &Client,
        path: &str,
        encoding: Encoding,
    ) -> Result<Watch, ClientError> {
        let mut handle = self.handle(number, client).await?;
        let watch = handle.watch(path, encoding).await;
        if matches!(
            watch,
            Err(ClientError::Broken(_) | ClientError::Unsent(_) | ClientError::Timeout(_))
        ) {
            *self.0[number].lock().await = None;
        }
        watch
    }

    async fn handle(&self, number: usize, client: &Client) -> Result<Connection, ClientError> {
        let mut connection = self.0[number].lock().await;
        let open = match connection.as_ref() {
            Some(open) => open,
            None => connection.insert(client.connect().await?),
        };
        let another = open.another();
        another.ok_or(ClientError::Malformed("not a connection of HTTP/2"))
    }
}
