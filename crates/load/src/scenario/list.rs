//! Lists: of any version, the newest, an exact one, and in pages; in JSON and in protobuf.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use futures::future::try_join;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::{FloorFlags, ObjectFlags};
use crate::client::{ClientRequest, Encoding, ListHead};
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::floor::{Floor, Protocol};
use crate::outcome::Run;
use crate::payload::{ObjectKind, Stamp};
use crate::requests::{Answers, Clients, Pace};

/// The number of objects for which the processor time is given.
const CPU_OBJECTS: f64 = 1_000.0;
/// Controllers may put as many objects of their own into the namespace, such as `kube-root-ca.crt`.
const FOREIGN_MAX: usize = 100;
/// The time for which exact lists ask for the same version. Servers compact their stores every few minutes.
const REVISION_TIME: Duration = Duration::from_secs(20);

/// Lists in all forms, one after the other: any version (resourceVersion=0), the newest, an exact
/// one, and in pages; in JSON and in protobuf.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct ListFlags {
    #[command(flatten)]
    #[serde(flatten)]
    objects: ObjectFlags,

    /// Objects on a page.
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,

    /// Clients that list concurrently, each again and again.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,

    /// Updates of the listed objects meanwhile, per second. The server's time for them is part of the baseline.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    write_rate: Option<f64>,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

/// The way in which a list is asked for.
#[derive(Clone, Copy, Debug)]
enum ListForm {
    Any,
    Newest,
    Exact,
    Paged,
}

const FORMS: [ListForm; 4] = [
    ListForm::Any,
    ListForm::Newest,
    ListForm::Exact,
    ListForm::Paged,
];
const ENCODINGS: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

impl ListForm {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "rv=0",
            Self::Newest => "consistent",
            Self::Exact => "exact",
            Self::Paged => "paged",
        }
    }

    fn query(self, revision: u64, page: u32) -> String {
        match self {
            Self::Any => "?resourceVersion=0".to_owned(),
            Self::Newest => String::new(),
            Self::Exact => format!("?resourceVersion={revision}&resourceVersionMatch=Exact"),
            Self::Paged => format!("?limit={page}"),
        }
    }
}

pub(crate) async fn run(context: &Context, flags: &ListFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare_to_read(context, &flags.objects).await?;
    let clients = Clients::connect(&context.client, flags.clients).await?;
    let floor = flags.floor.floor.then(|| Floor::start(Protocol::Http1));
    let floor = floor.transpose()?;
    let length = context.length;
    let phase = length.duration / (FORMS.len() * ENCODINGS.len()) as u32;
    let mut listing = Listing {
        flags,
        clients,
        floor: None,
    };
    // Each form once, so that all of them begin alike.
    listing
        .run(&mut delivery, "warming up", Duration::ZERO)
        .await?;
    delivery.idle_beside_writes(flags.write_rate, phase).await?;
    listing.floor = floor;
    let mut runs = Vec::new();
    for what in length.names() {
        runs.push(listing.run(&mut delivery, &what, phase).await?);
    }
    Ok(runs)
}

/// The clients that list, and the floor that answers them the same if there is to be one.
struct Listing<'a> {
    flags: &'a ListFlags,
    clients: Clients,
    floor: Option<Floor>,
}

impl Listing<'_> {
    async fn run(
        &mut self,
        delivery: &mut Delivery<'_>,
        what: &str,
        phase: Duration,
    ) -> Result<Run, LoadError> {
        let flags = self.flags;
        let context = delivery.context;
        let each = f64::from(flags.objects.objects) / CPU_OBJECTS;
        let each = ("1000 objects", each);
        let mut phases = delivery.phases();
        for form in FORMS {
            for encoding in ENCODINGS {
                let lists = Lists {
                    collection: delivery.objects.collection.clone(),
                    objects: delivery.objects.count,
                    revisions: RefCell::default(),
                    page: flags.page,
                    form,
                    encoding,
                };
                // The last writes may be made when the lists have ended, and the server's time for them is no longer
                // seen.
                let written = AtomicUsize::default();
                lists.renew_revision(context).await?;
                let asking = async {
                    let answers = tokio::select! {
                        answers = lists.ask(&mut self.clients, context, what, phase) => answers?,
                        failure = lists.keep_renewing(context) => return Err(failure),
                    };
                    Ok((answers, written.load(Ordering::Relaxed) as u64))
                };
                let writing = delivery.write_for(flags.write_rate, phase, &written);
                let ((answers, writes), ()) = try_join(asking, writing).await?;
                let name = match encoding {
                    Encoding::Json => format!("list {} JSON", form.name()),
                    Encoding::Protobuf => format!("list {} protobuf", form.name()),
                };
                let recorded = answers.recorded.clone();
                phases.add(&name, answers, writes, each);
                // Without a whole list there is nothing to answer, and the run fails.
                if let Some((floor, pages)) = self.floor.as_ref().zip(recorded) {
                    let what = format!("floor, {what}");
                    let asking = async {
                        let clients = Clients::connect(floor.client(), flags.clients).await;
                        lists.ask(&mut clients?, context, &what, phase).await
                    };
                    let answering = floor.answer(flags.clients as usize, pages);
                    let (answers, cpu) = try_join(asking, answering).await?;
                    phases.add_floor(&name, answers, cpu, each);
                }
            }
        }
        Ok(phases.finish(context))
    }
}

/// Lists of one form in one encoding, and what they must contain.
struct Lists {
    collection: String,
    /// The number of objects that there must be.
    objects: u32,
    /// The versions of exact lists so far, of which the last is asked for.
    revisions: RefCell<Vec<u64>>,
    /// Objects on a page.
    page: u32,
    form: ListForm,
    encoding: Encoding,
}

impl Lists {
    /// Has each client list again and again.
    async fn ask(
        &self,
        clients: &mut Clients,
        context: &Context,
        what: &str,
        phase: Duration,
    ) -> Result<Answers, LoadError> {
        let make = |_| self.first();
        let check = |_, pages: &[Bytes]| self.check(pages);
        clients
            .ask(context, what, Pace::For(phase), make, check)
            .await
    }

    /// Has exact lists ask for the newest version from here on.
    async fn renew_revision(&self, context: &Context) -> Result<(), LoadError> {
        let revision = context.revision(ObjectKind::ConfigMaps).await?;
        self.revisions.borrow_mut().push(revision);
        Ok(())
    }

    /// Renews the version of exact lists again and again. Returns why that failed.
    async fn keep_renewing(&self, context: &Context) -> LoadError {
        loop {
            tokio::time::sleep(REVISION_TIME).await;
            if let Err(failure) = self.renew_revision(context).await {
                return failure;
            }
        }
    }

    fn first(&self) -> ClientRequest {
        let revision = self.revisions.borrow().last().copied().unwrap_or_default();
        let query = self.form.query(revision, self.page);
        let path = format!("{}{query}", self.collection);
        ClientRequest::get(path).accepting(self.encoding)
    }

    /// Looks at the last of the pages so far: there must be every object in the end, and all pages of one version.
    fn check(&self, pages: &[Bytes]) -> Result<Option<ClientRequest>, String> {
        let head = |page: &Bytes| {
            ListHead::read(page, self.encoding)
                .ok_or_else(|| "an answer that is no list".to_owned())
        };
        let (first, last) = pages.first().zip(pages.last()).ok_or("no answer")?;
        let (first, last) = (head(first)?, head(last)?);
        if first.revision != last.revision {
            let (first, last) = (first.revision, last.revision);
            return Err(format!("a page of version {last} after one of {first}"));
        }
        let revisions = self.revisions.borrow();
        if matches!(self.form, ListForm::Exact) && !revisions.contains(&last.revision) {
            let revision = last.revision;
            return Err(format!(
                "a list of version {revision}, for which nobody asked"
            ));
        }
        if let Some(next) = &last.next {
            // Every page has an object at least.
            let (pages, objects) = (pages.len(), self.objects);
            if pages >= objects as usize + FOREIGN_MAX {
                return Err(format!(
                    "{pages} pages and more to come, for {objects} objects"
                ));
            }
            let (collection, page) = (&self.collection, self.page);
            let path = format!("{collection}?limit={page}&continue={next}");
            // Tokens are made of characters that may stand in a query.
            return Ok(Some(ClientRequest::get(path).accepting(self.encoding)));
        }
        let found: usize = pages.iter().map(|page| Stamp::count(page)).sum();
        let objects = self.objects;
        if found == objects as usize {
            return Ok(None);
        }
        Err(format!("{found} objects of {objects}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server must not keep a client listing for ever.
    #[test]
    fn pages_without_an_end_are_a_fault() {
        let lists = Lists {
            collection: "/c".to_owned(),
            objects: 3,
            revisions: RefCell::default(),
            page: 2,
            form: ListForm::Paged,
            encoding: Encoding::Json,
        };
        let page = br#"{"metadata":{"resourceVersion":"5","continue":"on"},"items":[]}"#;
        let pages = |count| vec![Bytes::from_static(page); count];
        assert!(matches!(lists.check(&pages(2 + FOREIGN_MAX)), Ok(Some(_))));
        let why = lists.check(&pages(3 + FOREIGN_MAX)).expect_err("too many");
        assert_eq!(why, "103 pages and more to come, for 3 objects");
    }
}
