//! The operators: processes of this program, whose leader is killed now and then.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::process::{Child, Command};

use super::{NAMESPACE, Stage};
use crate::Failure;
use crate::election::LEASE;

/// The number of operators that stand for leader.
const OPERATORS: usize = 2;
/// Pause between two killings.
const KILL_EVERY: Duration = Duration::from_secs(12);
/// The most time that an operator may take to end when told.
const END_WITHIN: Duration = Duration::from_secs(20);

/// Running operators.
#[derive(Debug)]
pub(super) struct Operators {
    running: Vec<(String, Child)>,
    started: usize,
}

impl Operators {
    pub(super) fn start(stage: &Stage) -> Result<Self, Failure> {
        let mut operators = Self {
            running: Vec::new(),
            started: 0,
        };
        for _ in 0..OPERATORS {
            operators.start_one(stage)?;
        }
        Ok(operators)
    }

    fn start_one(&mut self, stage: &Stage) -> Result<(), Failure> {
        self.started += 1;
        let identity = format!("operator-{}", self.started);
        let program = std::env::current_exe()?;
        let child = Command::new(program)
            .args(["run", "--identity", &identity, "--namespace", NAMESPACE])
            .kill_on_drop(true)
            .spawn()?;
        self.running.push((identity, child));
        stage.ledger().count("operators started");
        Ok(())
    }

    /// Kills whoever leads, again and again, and starts another instead.
    pub(super) async fn kill_leaders(&mut self, stage: &Stage) -> Result<(), Failure> {
        let leases: Api<Lease> = Api::namespaced(stage.client.clone(), NAMESPACE);
        loop {
            tokio::time::sleep(KILL_EVERY).await;
            let Ok(lease) = leases.get(LEASE).await else {
                continue;
            };
            let holder = lease.spec.and_then(|it| it.holder_identity);
            let leader = self
                .running
                .iter()
                .position(|it| Some(&it.0) == holder.as_ref());
            if let Some(leader) = leader {
                let (_, mut child) = self.running.swap_remove(leader);
                child.kill().await?;
                stage.ledger().count("leaders killed");
                self.start_one(stage)?;
            }
        }
    }

    /// Tells all to end.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        for (_, child) in &mut self.running {
            let id = child.id().unwrap_or_default().to_string();
            Command::new("kill").args(["-INT", &id]).status().await?;
            let ended = tokio::time::timeout(END_WITHIN, child.wait()).await;
            ended.map_err(|_| Failure::TooLate("the end of an operator", END_WITHIN))??;
        }
        Ok(())
    }
}
