//! An operator as people write them with kube-rs, and a driver that shows that it can rely on its API server.
//!
//! A [`site::Site`] has pages, each of which becomes a config map, and is served by a deployment. Operators run as many
//! processes, of which the holder of a lease works. `operator churn` starts two of them, writes, breaks rules and
//! kills leaders for some time, and watches that nothing happens that must not.
//!
//! ```text
//! cargo run --package ringwatch-cli --example operator -- run --identity one
//! cargo run --package ringwatch-cli --example operator -- churn --duration 30s
//! ```
//! Both use `$KUBECONFIG`.
#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own, which reads the time and spawns as it likes"
)]

mod children;
mod churn;
mod controller;
mod election;
mod site;

use std::time::Duration;

use clap::{Parser, Subcommand};
use kube::Client;

/// An operator of sites, and what tries it.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Works whenever it holds the lease.
    Run(Run),
    /// Writes sites, kills operators, and checks what comes of it.
    Churn(churn::Churn),
}

/// The arguments of an operator.
#[derive(Debug, clap::Args)]
struct Run {
    /// Name of this process in the lease. No two processes may have the same, one after the other neither.
    #[arg(long)]
    identity: String,
    /// The namespace of the sites.
    #[arg(long, default_value = "default")]
    namespace: String,
}

/// The reason why the program ends.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the server: {0}")]
    Server(#[from] kube::Error),
    #[error("the configuration: {0}")]
    Configuration(#[from] kube::config::InferConfigError),
    #[error("an operator's process: {0}")]
    Process(#[from] std::io::Error),
    #[error("{0} did not come within {1:?}")]
    TooLate(&'static str, Duration),
    #[error("it never settled: {0}")]
    Unsettled(String),
    #[error("{0} violations")]
    Violations(usize),
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Command::Run(run) => work(run).await,
        Command::Churn(churn) => churn.run().await,
    };
    match ended {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("operator: {failure}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Stands for leader until told to end, and works while it is.
async fn work(run: Run) -> Result<(), Failure> {
    let client = client().await?;
    let election = election::Election::new(&client, &run.namespace, run.identity);
    let end = tokio::signal::ctrl_c();
    tokio::select! {
        never = election.stand(|term| controller::run(client.clone(), run.namespace.clone(), term)) => match never {},
        told = end => told?,
    }
    Ok(election.release().await?)
}

/// A client that gives up a request after some time: an answer that never comes must not hold up a leader.
async fn client() -> Result<Client, Failure> {
    let mut config = kube::Config::infer().await?;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.write_timeout = Some(Duration::from_secs(10));
    Ok(Client::try_from(config)?)
}
