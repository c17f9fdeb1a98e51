//! A client's connection for requests, made anew when it broke.

use std::time::Duration;

use super::journal::Journal;
use super::objects;
use super::resource::Resource;
use crate::client::{
    Client, ClientError, ClientRequest, Connection, Encoding, Response, StatusFailure,
};
use crate::verify::history::{
    Get, ListRead, ListedPage, Nanos, ObjectKey, Refusal, RevisionMatch, Selector,
};

/// A request must be answered within this time. Who writes must not be kept by a server that hangs.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The pause between two attempts to connect to a server that is away.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The most connections that may have ended before a request could be sent; after these it is tried once more.
const ENDED_CONNECTIONS_MAX: u32 = 3;
/// A list has at most this many pages.
const PAGES_MAX: usize = 1_000;

/// A connection for one request after the other, which is made anew when it broke.
#[derive(Debug)]
pub(super) struct ReconnectingConnection {
    client: Client,
    connection: Option<Connection>,
}

/// The objects from which is selected: a collection and a query.
#[derive(Clone, Debug)]
pub(super) struct SelectedObjects {
    /// The path of the collection.
    collection: String,
    /// The query that selects our objects in it.
    query: String,
}

impl SelectedObjects {
    /// Returns the objects in the collection of one namespace.
    pub(super) fn namespace(collection: &str) -> Self {
        Self {
            collection: collection.to_owned(),
            query: String::new(),
        }
    }

    /// Returns the objects of a run in all namespaces, where a label tells them from others.
    pub(super) fn cluster(resource: &Resource, run: &str) -> Self {
        Self {
            collection: resource.everywhere(),
            query: objects::run_query(run),
        }
    }

    /// Returns the path and query that read a selection.
    pub(super) fn path(&self, selector: &Selector) -> String {
        let Self { collection, query } = self;
        format!("{collection}?{query}{}", objects::query(selector))
    }
}

/// The parameters of a list.
#[derive(Clone, Debug)]
pub(super) struct ListRequest<'a> {
    pub(super) scope: &'a SelectedObjects,
    pub(super) selector: &'a Selector,
    pub(super) revision_match: RevisionMatch,
    /// The most objects that a page may have; `None` for no limit.
    pub(super) limit: Option<usize>,
    pub(super) encoding: Encoding,
}

impl ReconnectingConnection {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
        }
    }

    /// Connects unless it is connected. Until then nothing has been asked.
    pub(super) async fn connect(&mut self) -> Result<(), ClientError> {
        if self.connection.is_none() {
            self.connection = Some(self.client.connect().await?);
        }
        Ok(())
    }

    /// Asks over the connection, and over another if the server had ended it before. After an error nobody knows what
    /// came of the request.
    pub(super) async fn ask(&mut self, request: ClientRequest) -> Result<Response, ClientError> {
        for _ in 0..ENDED_CONNECTIONS_MAX {
            match self.ask_once(request.clone()).await {
                Err(ClientError::Unsent(_)) => {}
                answer => return answer,
            }
        }
        self.ask_once(request).await
    }

    async fn ask_once(&mut self, request: ClientRequest) -> Result<Response, ClientError> {
        self.connect().await?;
        let Some(mut connection) = self.connection.take() else {
            return Err(ClientError::Malformed("no connection"));
        };
        let answer = tokio::time::timeout(ANSWER_MAX, connection.request(request)).await;
        let answer = answer.unwrap_or(Err(ClientError::Timeout(ANSWER_MAX)))?;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// Reads an object and takes down how it is.
    pub(super) async fn get(
        &mut self,
        journal: &Journal,
        scope: &SelectedObjects,
        key: ObjectKey,
        encoding: Encoding,
    ) -> Result<(), ClientError> {
        self.connect().await?;
        let invoked = journal.now();
        let path = format!("{}/{key}", scope.collection);
        let answer = self
            .ask(ClientRequest::get(path).accepting(encoding))
            .await?;
        let answered = journal.now();
        let is_absent = refusal(&answer) == Refusal::NotFound;
        let found = match answer.success() {
            Ok(body) => objects::object(&body, encoding).map_err(ClientError::Malformed)?,
            Err(_) if is_absent => None,
            Err(error) => return Err(error),
        };
        journal.get(Get {
            key,
            invoked,
            answered,
            found,
        });
        Ok(())
    }

    /// Lists page by page and takes the list down. Returns its place among the lists of the run, and the list.
    pub(super) async fn list(
        &mut self,
        journal: &Journal,
        request: &ListRequest<'_>,
    ) -> Result<(usize, ListRead), ClientError> {
        let mut read = ListRead {
            revision_match: request.revision_match,
            selector: request.selector.clone(),
            limit: request.limit,
            encoding: request.encoding,
            pages: Vec::new(),
        };
        let mut next = None;
        for _ in 0..PAGES_MAX {
            let path = request.path(next.as_deref());
            self.connect().await?;
            let invoked = journal.now();
            let answer = self
                .ask(ClientRequest::get(path).accepting(request.encoding))
                .await?;
            let (page, rest) = page(journal, invoked, &answer.success()?, request.encoding)?;
            read.pages.push(page);
            next = rest;
            if next.is_none() {
                return Ok(journal.read(read));
            }
        }
        Err(ClientError::Malformed("a list without an end"))
    }
}

/// Returns what a refusal says of the object. The Status says it, since others may send the same code as well.
pub(super) fn refusal(answer: &Response) -> Refusal {
    let failure = StatusFailure::read(&answer.body);
    match failure.reason.as_str() {
        "AlreadyExists" | "Conflict" => Refusal::Conflict,
        "NotFound" if !failure.details.name.is_empty() => Refusal::NotFound,
        _ => Refusal::Other,
    }
}

fn page(
    journal: &Journal,
    invoked: Nanos,
    body: &[u8],
    encoding: Encoding,
) -> Result<(ListedPage, Option<String>), ClientError> {
    let (head, objects) = objects::list(body, encoding).map_err(ClientError::Malformed)?;
    let page = ListedPage {
        invoked,
        answered: journal.now(),
        revision: head.revision,
        objects,
    };
    Ok((page, head.next))
}

impl ListRequest<'_> {
    fn path(&self, next: Option<&str>) -> String {
        let mut path = self.scope.path(self.selector);
        if let Some(limit) = self.limit {
            path += &format!("&limit={limit}");
        }
        if let Some(next) = next {
            // A token holds no characters that a query could misread.
            return path + "&continue=" + next;
        }
        path + &match self.revision_match {
            RevisionMatch::Newest => String::new(),
            RevisionMatch::Any => "&resourceVersion=0".to_owned(),
            RevisionMatch::NotOlderThan(revision) => {
                format!("&resourceVersion={revision}&resourceVersionMatch=NotOlderThan")
            }
            RevisionMatch::Exact(revision) => {
                format!("&resourceVersion={revision}&resourceVersionMatch=Exact")
            }
        }
    }
}
