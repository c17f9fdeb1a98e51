//! The usage of the server: from `/proc` when it runs on this machine and its process is known, else from its
//! `/metrics`.

use std::time::Duration;

use tokio::sync::Mutex;

use super::process::Usage;
use crate::client::{Client, ClientError, ClientRequest, Connection};

const CPU_METRIC: &str = "process_cpu_seconds_total";
const MEMORY_METRIC: &str = "process_resident_memory_bytes";

/// The source from which the server's usage is read.
#[derive(Debug)]
pub(crate) enum Probe {
    Process {
        pid: u32,
    },
    Metrics {
        client: Client,
        connection: Mutex<Option<Connection>>,
    },
    /// The usage is unknown: no process was named and the metrics do not tell.
    Unknown,
}

impl Probe {
    /// Returns the probe of a process, else of the server's metrics if they have the figures.
    pub(crate) async fn find(pid: Option<u32>, client: &Client) -> Self {
        if let Some(pid) = pid {
            return Self::Process { pid };
        }
        let probe = Self::Metrics {
            client: client.clone(),
            connection: Mutex::new(None),
        };
        match probe.usage().await {
            Some(_) => probe,
            None => Self::Unknown,
        }
    }

    /// Returns the usage of the server so far, if it is known.
    pub(crate) async fn usage(&self) -> Option<Usage> {
        match self {
            Self::Process { pid } => Usage::read(*pid),
            Self::Metrics { client, connection } => {
                let mut connection = connection.lock().await;
                let answer = scrape(client, &mut connection).await;
                if answer.is_err() {
                    *connection = None;
                }
                read(&answer.ok()?)
            }
            Self::Unknown => None,
        }
    }

    /// Returns the usage of the server so far, unless asking costs it anything: its metrics may be megabytes.
    pub(crate) fn usage_for_free(&self) -> Option<Usage> {
        match self {
            Self::Process { pid } => Usage::read(*pid),
            Self::Metrics { .. } | Self::Unknown => None,
        }
    }

    /// Returns the name for the setting.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Process { pid } => format!("process {pid}"),
            Self::Metrics { .. } => "/metrics".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

async fn scrape(
    client: &Client,
    connection: &mut Option<Connection>,
) -> Result<String, ClientError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(client.connect().await?),
    };
    let answer = connection.request(ClientRequest::get("/metrics")).await?;
    let body = answer.success()?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn read(metrics: &str) -> Option<Usage> {
    let value = |name: &str| {
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.split_whitespace().next()?.parse::<f64>().ok()
    };
    let rss = value(MEMORY_METRIC)?;
    Some(Usage {
        cpu: Duration::try_from_secs_f64(value(CPU_METRIC)?).ok()?,
        rss: rss as u64,
        rss_peak: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read() {
        let metrics = "# HELP process_cpu_seconds_total Time\n\
                       # TYPE process_cpu_seconds_total counter\n\
                       process_cpu_seconds_total 2.5\n\
                       process_resident_memory_bytes 1.048576e+06\n";
        let usage = read(metrics).expect("both");
        assert_eq!(usage.cpu, Duration::from_millis(2_500));
        assert_eq!(usage.rss, 1 << 20);
        assert_eq!(read("process_cpu_seconds_total 2.5\n"), None);
    }
}
