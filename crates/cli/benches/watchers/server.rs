//! The server under test: `ringwatch serve` as a process of its own in a temporary folder.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::api::Api;
use super::child::BECOMES;
use super::process::{Cpu, resident_bytes};
use super::{Failed, Settings};
use ringwatch_testing::etcd::Etcd;

/// The token of the clients.
pub(crate) const TOKEN: &str = "bench-token";
/// The server must serve within this time.
const START_SECONDS_MAX: u64 = 120;
/// How often it is looked whether it is ready.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Kept open: what the server says goes nowhere else.
    _output: BufReader<ChildStdout>,
    folder: TempDir,
    flags: Vec<String>,
    under: Vec<String>,
    address: SocketAddr,
}

impl Server {
    /// Starts a server with a store of its own, or over this etcd.
    pub(crate) async fn start(settings: &Settings, etcd: Option<&Etcd>) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        fs::write(
            folder.path().join("tokens.csv"),
            format!("{TOKEN},bench,1,\"system:masters\"\n"),
        )?;
        let mut flags = vec![format!(
            "--token-auth-file={}",
            folder.path().join("tokens.csv").display()
        )];
        flags.extend(etcd.map(|etcd| format!("--etcd-servers={}", etcd.endpoint())));
        let under = settings.under.clone();
        let (child, output, address) = spawn(&folder, 0, &flags, &under).await?;
        Ok(Self {
            child,
            _output: output,
            folder,
            flags,
            under,
            address,
        })
    }

    /// Kills the server and starts it again on the same data and port.
    pub(crate) async fn restart(&mut self) -> Result<(), Failed> {
        self.child.kill().await?;
        let port = self.address.port();
        (self.child, self._output, self.address) =
            spawn(&self.folder, port, &self.flags, &self.under).await?;
        Ok(())
    }

    /// Waits until everything is in memory that it serves from there.
    pub(crate) async fn ready(&self) -> Result<(), Failed> {
        let mut line = self.api()?.connect().await?;
        let looking = async {
            while line.get("/readyz").await.is_err() {
                tokio::time::sleep(LOOK_PERIOD).await;
            }
        };
        let at_most = Duration::from_secs(START_SECONDS_MAX);
        Ok(tokio::time::timeout(at_most, looking).await?)
    }

    /// How to reach it.
    pub(crate) fn api(&self) -> Result<Api, Failed> {
        Ok(Api {
            address: self.address,
            authority: self.pki("ca.crt")?,
        })
    }

    /// The certificate and the key that it shows, in PEM.
    pub(crate) fn identity(&self) -> Result<(String, String), Failed> {
        Ok((self.pki("apiserver.crt")?, self.pki("apiserver.key")?))
    }

    fn pki(&self, name: &str) -> Result<String, Failed> {
        let path: PathBuf = self.folder.path().join("data/pki").join(name);
        Ok(fs::read_to_string(path)?)
    }

    pub(crate) fn cpu(&self) -> Cpu {
        Cpu::of(self.pid())
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.pid())
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("a running server")
    }
}

/// Starts a server and waits until it says where it serves.
async fn spawn(
    folder: &TempDir,
    port: u16,
    flags: &[String],
    under: &[String],
) -> Result<(Child, BufReader<ChildStdout>, SocketAddr), Failed> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([BECOMES, &std::process::id().to_string()])
        .args(under)
        .arg(env!("CARGO_BIN_EXE_ringwatch"))
        .args(["serve", "--data-dir"])
        .arg(folder.path().join("data"))
        .args(["--secure-port", &port.to_string()])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut output = BufReader::new(output);
    let mut line = String::new();
    let at_most = Duration::from_secs(START_SECONDS_MAX);
    tokio::time::timeout(at_most, output.read_line(&mut line)).await??;
    let address = line
        .trim()
        .rsplit_once("https://")
        .map(|(_, it)| it.parse());
    let address = address.ok_or_else(|| format!("the server said {line:?}"))??;
    Ok((child, output, address))
}
