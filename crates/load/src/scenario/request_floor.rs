//! The floor beside requests: those of a phase are made again, byte for byte, and answered with as many bytes as the
//! server's answers had.

use bytes::Bytes;
use futures::future::try_join;

use super::parameters::FloorFlags;
use super::phases::Phases;
use crate::client::ClientRequest;
use crate::context::Context;
use crate::error::LoadError;
use crate::floor::Floor;
use crate::requests::{Answers, Clients, Pace};

/// The floor of a scenario's requests, if there is to be one.
pub(super) struct RequestFloor<'a> {
    context: &'a Context,
    floor: Option<Floor>,
    clients: u32,
}

/// A phase of requests, of which the figures begin with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPhase<'a> {
    /// The name of the run.
    pub(super) what: &'a str,
    pub(super) name: &'a str,
    /// The name of one request.
    pub(super) of: &'a str,
}

impl<'a> RequestFloor<'a> {
    /// Starts a floor if the flags ask for one, which as many clients will ask as the server, by the same protocol.
    ///
    /// # Errors
    /// [`LoadError::System`]: the floor cannot be started.
    pub(super) fn start(
        context: &'a Context,
        flags: FloorFlags,
        clients: u32,
    ) -> Result<Self, LoadError> {
        let floor = flags
            .floor
            .then(|| Floor::start(context.floor_protocol(1)))
            .transpose()?;
        Ok(Self {
            context,
            floor,
            clients,
        })
    }

    /// Adds a phase of the server to the run, and then that of the floor, with the same `pace` and `make`.
    ///
    /// # Errors
    /// A connection to the floor broke.
    pub(super) async fn add(
        &self,
        phases: &mut Phases,
        phase: RequestPhase<'_>,
        answers: Answers,
        pace: Pace,
        make: impl Fn(u64) -> ClientRequest,
    ) -> Result<(), LoadError> {
        let RequestPhase { what, name, of } = phase;
        let each = (of, 1.0);
        let recorded = answers.recorded.clone();
        phases.add(name, answers, 0, each);
        // Without a right answer there is nothing to answer, and the run fails.
        let Some((floor, recorded)) = self.floor.as_ref().zip(recorded) else {
            return Ok(());
        };
        let expected = recorded.bodies.last().map_or(0, Bytes::len);
        let check = |_, bodies: &[Bytes]| match bodies.last().map_or(0, Bytes::len) {
            length if length == expected => Ok(None),
            length => Err(format!("{length} bytes for {expected}")),
        };
        let what = format!("floor, {what}");
        let asking = async {
            let mut clients = Clients::connect(floor.client(), self.clients).await?;
            let asking = clients.ask(self.context, &what, pace.again(), make, check);
            asking.await
        };
        let answering = floor.answer(self.clients as usize, recorded);
        let (answers, cpu) = try_join(asking, answering).await?;
        phases.add_floor(name, answers, cpu, each);
        Ok(())
    }
}
