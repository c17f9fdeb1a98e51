//! Lists: of any version, the newest, an exact one, and in pages; in JSON and in protobuf.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::ObjectFlags;
use crate::client::{Encoding, ListHead, Request};
use crate::context::Context;
use crate::error::LoadError;
use crate::outcome::Run;
use crate::payload::Stamp;
use crate::requests::{Clients, Pace};

/// Processor time is told for so many objects.
const OBJECTS_TOLD: f64 = 1_000.0;

/// Lists in all forms, one after the other: any version (resourceVersion=0), the newest, an exact
/// one, and in pages; in JSON and in protobuf.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct Flags {
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
}

/// How to ask for a list.
#[derive(Clone, Copy, Debug)]
enum Form {
    Any,
    Newest,
    Exact,
    Paged,
}

const FORMS: [Form; 4] = [Form::Any, Form::Newest, Form::Exact, Form::Paged];
const ENCODINGS: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

impl Form {
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

pub(crate) async fn run(context: &Context, flags: &Flags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare_to_read(context, &flags.objects).await?;
    let mut clients = Clients::connect(context, flags.clients).await?;
    let length = context.length;
    let phase = length.duration / (FORMS.len() * ENCODINGS.len()) as u32;
    // Each form once, so that all of them begin alike.
    one_run(&delivery, &mut clients, flags, "warming up", Duration::ZERO).await?;
    delivery.idle(phase).await;
    let mut runs = Vec::new();
    for what in length.names() {
        runs.push(one_run(&delivery, &mut clients, flags, &what, phase).await?);
    }
    Ok(runs)
}

async fn one_run(
    delivery: &Delivery<'_>,
    clients: &mut Clients,
    flags: &Flags,
    what: &str,
    phase: Duration,
) -> Result<Run, LoadError> {
    let mut phases = delivery.phases();
    for form in FORMS {
        for encoding in ENCODINGS {
            let lists = Lists {
                delivery,
                flags,
                form,
                encoding,
            };
            let answers = clients
                .ask(
                    delivery.context,
                    what,
                    Pace::For(phase),
                    |_| lists.first(),
                    |_, pages| lists.check(pages),
                )
                .await?;
            let name = match encoding {
                Encoding::Json => format!("list {} JSON", form.name()),
                Encoding::Protobuf => format!("list {} protobuf", form.name()),
            };
            let objects = f64::from(flags.objects.objects) / OBJECTS_TOLD;
            phases.add(&name, answers, ("1000 objects", objects));
        }
    }
    Ok(phases.finish(delivery.context))
}

/// Lists of one form.
struct Lists<'a> {
    delivery: &'a Delivery<'a>,
    flags: &'a Flags,
    form: Form,
    encoding: Encoding,
}

impl Lists<'_> {
    fn first(&self) -> Request {
        let query = self.form.query(self.delivery.revision(), self.flags.page);
        let path = format!("{}{query}", self.delivery.objects.collection);
        Request::get(path).accepting(self.encoding)
    }

    /// Looks at the pages so far: there must be every object, and all pages of one version.
    fn check(&self, pages: &[Bytes]) -> Result<Option<Request>, String> {
        let heads = pages.iter().map(|page| ListHead::read(page, self.encoding));
        let heads: Option<Vec<ListHead>> = heads.collect();
        let heads = heads.ok_or("an answer that is no list")?;
        let last = heads.last().ok_or("no answer")?;
        if heads.iter().any(|head| head.revision != last.revision) {
            return Err(format!("pages of different versions: {heads:?}"));
        }
        if matches!(self.form, Form::Exact) && last.revision != self.delivery.revision() {
            return Err(format!(
                "version {} in the place of an exact one",
                last.revision
            ));
        }
        if let Some(next) = &last.next {
            let collection = &self.delivery.objects.collection;
            let path = format!("{collection}?limit={}&continue={next}", self.flags.page);
            // Tokens are made of characters that may stand in a query.
            return Ok(Some(Request::get(path).accepting(self.encoding)));
        }
        let found: usize = pages.iter().map(|page| Stamp::count(page)).sum();
        let objects = self.delivery.objects.count;
        if found == objects as usize {
            return Ok(None);
        }
        Err(format!("{found} objects of {objects}"))
    }
}
