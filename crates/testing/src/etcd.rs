//! A real etcd for a test: a process of its own on free loopback ports, with a temporary directory,
//! killed when dropped.
//!
//! The binary is what `RINGWATCH_ETCD` names, else `.tools/bin/etcd` of this checkout, where
//! `scripts/setup` puts it, else `etcd` on PATH. Without any the test says that it is skipped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::eventually::DEADLINE;
use crate::reserved_port::ReservedPort;

/// The time between two questions to a starting etcd, if it is ready.
const READY_POLL_PAUSE: Duration = Duration::from_millis(50);

/// A running etcd with a data folder of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Etcd {
    binary: PathBuf,
    arguments: Vec<String>,
    tls: bool,
    ports: Ports,
    directory: TempDir,
    child: Option<Child>,
}

#[derive(Debug, Default)]
struct Ports {
    client: ReservedPort,
    peer: ReservedPort,
    metrics: ReservedPort,
}

/// Files with which etcd demands TLS and client certificates.
#[derive(Debug)]
pub struct TlsFiles {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Etcd {
    /// Starts an etcd for the test of this name, or says that the test is skipped.
    pub fn start(test: &str) -> Option<Self> {
        Self::start_with(test, None, &[])
    }

    /// Starts an etcd with TLS and more flags.
    pub fn start_with(test: &str, tls: Option<&TlsFiles>, flags: &[&str]) -> Option<Self> {
        let Some(binary) = binary() else {
            crate::tools::skipped(test, "no etcd");
            return None;
        };
        let mut arguments: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        if let Some(files) = tls {
            arguments.push("--client-cert-auth".to_owned());
            for (flag, path) in [
                ("--trusted-ca-file", &files.ca),
                ("--cert-file", &files.cert),
                ("--key-file", &files.key),
            ] {
                arguments.push(format!("{flag}={}", path.display()));
            }
        }
        let mut etcd = Self {
            binary,
            arguments,
            tls: tls.is_some(),
            ports: Ports::default(),
            directory: tempfile::tempdir().expect("a temporary directory"),
            child: None,
        };
        assert!(etcd.run(), "{} did not start", etcd.binary.display());
        Some(etcd)
    }

    /// Returns the URL for clients.
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.ports.client.number())
    }

    /// Runs `etcdctl` against this etcd and returns its output; it lies beside the etcd.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let mut etcdctl = Command::new(self.binary.with_file_name("etcdctl"));
        etcdctl
            .env("ETCDCTL_API", "3")
            .arg("--endpoints")
            .arg(self.endpoint());
        let output = crate::tools::run(etcdctl.args(arguments));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Kills the process as `kill -9` does. Its data and ports stay.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("etcd can be killed");
            child.wait().expect("etcd ends");
        }
    }

    /// Keeps the process from doing anything: its connections stay open, and nothing is answered.
    pub fn freeze(&self) {
        let id = self.child.as_ref().expect("a running etcd").id();
        let stopped = crate::tools::run(Command::new("kill").args(["-STOP", &id.to_string()]));
        assert!(stopped.status.success(), "{stopped:?}");
    }

    /// Starts again with the same data on the same ports.
    pub fn restart(&mut self) {
        self.stop();
        assert!(self.run(), "etcd did not start again");
    }

    /// Returns a copy of the data as they are. The etcd is stopped meanwhile.
    pub fn copy(&mut self) -> TempDir {
        self.stop();
        let copy = tempfile::tempdir().expect("a temporary directory");
        copy_folder(&self.data(), &copy.path().join("data"));
        assert!(self.run(), "etcd did not start again");
        copy
    }

    /// Puts a copy in the place of the data, as one who restores a backup does.
    pub fn put_back(&mut self, copy: &TempDir) {
        self.stop();
        std::fs::remove_dir_all(self.data()).expect("data to remove");
        copy_folder(&copy.path().join("data"), &self.data());
        assert!(self.run(), "etcd did not start again");
    }

    /// Starts the process; the flag says whether it became ready.
    fn run(&mut self) -> bool {
        let Ports {
            client,
            peer,
            metrics,
        } = &self.ports;
        let [client, peer, metrics] = [client, peer, metrics].map(ReservedPort::number);
        let url = self.endpoint();
        let child = Command::new(&self.binary)
            .arg("--name=test")
            .arg(format!("--data-dir={}", self.data().display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"))
            .arg(format!(
                "--initial-advertise-peer-urls=http://127.0.0.1:{peer}"
            ))
            .arg(format!("--initial-cluster=test=http://127.0.0.1:{peer}"))
            .arg(format!("--listen-metrics-urls=http://127.0.0.1:{metrics}"))
            .args(["--unsafe-no-fsync", "--log-level=fatal"])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("etcd can be started");
        let child = self.child.insert(child);
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            if is_ready(metrics) && TcpStream::connect((Ipv4Addr::LOCALHOST, client)).is_ok() {
                return true;
            }
            if child.try_wait().expect("etcd can be asked").is_some() {
                return false;
            }
            std::thread::sleep(READY_POLL_PAUSE);
        }
        false
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // An etcd that has ended by itself needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("its entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a file is copied");
        }
    }
}

/// Returns true if the etcd that serves its health on this port is healthy.
fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}

fn binary() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("RINGWATCH_ETCD") {
        return Some(named.into());
    }
    let own = crate::recorded::checkout().join(".tools/bin/etcd");
    if own.exists() {
        return Some(own);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("etcd"))
        .find(|candidate| candidate.is_file())
}
