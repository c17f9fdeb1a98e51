//! The bench's hold on a process of watching clients.

use super::Failed;
use super::child::{Role, WATCHES};
use super::process::Cpu;
use super::protocol::{ClientAnswer, ClientOrder, Collected, Mode, Opening};

/// Watching clients. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct Clients {
    role: Role<ClientOrder, ClientAnswer>,
}

impl Clients {
    /// A process without watches.
    pub(crate) fn start() -> Result<Self, Failed> {
        Ok(Self {
            role: Role::start(WATCHES)?,
        })
    }

    /// Opens watches; gives the number of their group.
    pub(crate) async fn open(&mut self, opening: Opening) -> Result<usize, Failed> {
        match self.role.ask(&ClientOrder::Open(opening.into())).await? {
            ClientAnswer::Opened { group } => Ok(group),
            other => Err(format!("not opened: {other:?}").into()),
        }
    }

    /// Counts from here on.
    pub(crate) async fn begin(&mut self) -> Result<(), Failed> {
        self.done(ClientOrder::Begin).await
    }

    /// Has a group behave in a way.
    pub(crate) async fn set(&mut self, group: usize, mode: Mode) -> Result<(), Failed> {
        self.done(ClientOrder::Set { group, mode }).await
    }

    /// Returns the counts of a group since `begin`, once each of its watches had so many events.
    ///
    /// # Errors
    /// Anything was lost, came twice, or out of order.
    pub(crate) async fn collect(
        &mut self,
        group: usize,
        events: u64,
        seconds_max: u64,
    ) -> Result<Collected, Failed> {
        let order = ClientOrder::Collect {
            group,
            events,
            seconds_max,
        };
        match self.role.ask(&order).await? {
            ClientAnswer::Collected(collected) if collected.faults == 0 => Ok(collected),
            other => Err(format!("not every watch got every event once: {other:?}").into()),
        }
    }

    /// Waits until all watches are answered.
    pub(crate) async fn await_live(&mut self, seconds_max: u64) -> Result<usize, Failed> {
        match self
            .role
            .ask(&ClientOrder::AwaitLive { seconds_max })
            .await?
        {
            ClientAnswer::Live { live } => Ok(live),
            other => Err(format!("not live: {other:?}").into()),
        }
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.role.cpu()
    }

    async fn done(&mut self, order: ClientOrder) -> Result<(), Failed> {
        match self.role.ask(&order).await? {
            ClientAnswer::Done => Ok(()),
            other => Err(format!("not done: {other:?}").into()),
        }
    }
}
