//! The command line of the stand-in: etcd's flags, in the forms of Go's flag library.
//!
//! etcd takes no words but flags, so a word without dashes is the value of the flag before it, and no list of all flags
//! of all versions is needed. Those that tune a store which is not here are accepted, and named in the announcement.
//! Those that would protect what clients send are refused, since nothing is encrypted here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use super::answers::ETCD_VERSION;
use super::error::EnvtestError;

/// Maximum number of URLs of `--listen-client-urls`.
const LISTEN_URLS_MAX: usize = 16;

/// Flags that have etcd speak TLS with its clients, or know them: those that are true or false, and those of files.
const TLS_SWITCHES: [&str; 2] = ["auto-tls", "client-cert-auth"];
const TLS_FILES: [&str; 3] = ["cert-file", "key-file", "trusted-ca-file"];

/// The text of `--help`. envtest looks for `--unsafe-no-fsync` at the beginning of a line.
const HELP: &str = "\
A stand-in for etcd in test suites. It stores nothing: the kube-apiserver beside it keeps its store in --data-dir.

Usage: etcd [FLAG...]

  --listen-client-urls 'http://localhost:2379'
      Addresses of plain HTTP to answer at, comma-separated. Port 0 is any free one, which is printed.
  --data-dir '${name}.etcd'
      Folder of the store, which is created if it is missing.
  --name 'default'
      Name of the default folder.
  --unsafe-no-fsync 'false'
      Let the store lose writes when the machine fails.
  --version
      Print the version, and end.

Flags of TLS and --config-file are refused. etcd's other flags are accepted without effect.
";

/// A wish that a command line states.
#[derive(Debug, PartialEq, Eq)]
pub enum EtcdCommand {
    /// This text is to be printed.
    Print(String),
    /// The stand-in is to run.
    Run(EtcdFlags),
}

/// The flags of the stand-in that have an effect.
#[derive(Debug, PartialEq, Eq)]
pub struct EtcdFlags {
    /// The host and port of each URL to listen at.
    pub(crate) listen: Vec<ListenUrl>,
    /// The folder of the store.
    pub(crate) data_dir: PathBuf,
    /// True if the store may lose writes when the machine fails.
    pub(crate) unsafe_no_fsync: bool,
    /// The names of the other flags that were given.
    pub(crate) without_effect: BTreeSet<String>,
}

/// An address of plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenUrl {
    /// The URL as it was given.
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl EtcdCommand {
    /// Reads the words after the name of the program.
    ///
    /// # Errors
    /// [`EnvtestError::Flag`], a line for the user.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, EnvtestError> {
        let mut given = GivenFlags::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let word = text(word)?;
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                return Err(wrong(format!("'{word}' is not a valid flag")));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => {
                    let follows =
                        |next: &OsString| !next.to_str().is_some_and(|it| it.starts_with('-'));
                    let next = words.next_if(follows).map(text).transpose()?;
                    (flag, next)
                }
            };
            match name {
                "h" | "help" => return Ok(Self::Print(HELP.to_owned())),
                "version" => return Ok(Self::Print(version())),
                _ => given.take(name, value)?,
            }
        }
        given.flags().map(Self::Run)
    }
}

/// The values that the flags have by now; of several the last counts.
#[derive(Default)]
struct GivenFlags {
    listen: Option<String>,
    data_dir: Option<String>,
    name: Option<String>,
    unsafe_no_fsync: bool,
    without_effect: BTreeSet<String>,
}

impl GivenFlags {
    fn take(&mut self, name: &str, value: Option<String>) -> Result<(), EnvtestError> {
        let needed = |value: Option<String>| {
            value.ok_or_else(|| wrong(format!("flag needs an argument: --{name}")))
        };
        match name {
            "listen-client-urls" => self.listen = Some(needed(value)?),
            "data-dir" => self.data_dir = Some(needed(value)?),
            "name" => self.name = Some(needed(value)?),
            "unsafe-no-fsync" => self.unsafe_no_fsync = is_true(name, value.as_deref())?,
            "config-file" => {
                return Err(wrong(
                    "--config-file is not read by this stand-in for etcd; give its settings as flags",
                ));
            }
            _ if asks_for_tls(name, value.as_deref())? => {
                return Err(wrong(format!(
                    "--{name} cannot be used: this stand-in for etcd speaks plain HTTP; leave it out, or use etcd"
                )));
            }
            _ => {
                self.without_effect.insert(name.to_owned());
            }
        }
        Ok(())
    }

    fn flags(self) -> Result<EtcdFlags, EnvtestError> {
        let listen = self.listen.as_deref().unwrap_or("http://localhost:2379");
        let listen: Vec<_> = listen.split(',').map(str::trim).collect();
        if listen.len() > LISTEN_URLS_MAX {
            return Err(wrong(format!(
                "--listen-client-urls has more than {LISTEN_URLS_MAX} addresses"
            )));
        }
        let listen: Result<_, _> = listen.into_iter().map(ListenUrl::parse).collect();
        let name = self.name.as_deref().unwrap_or("default");
        // An empty one is the default for etcd too.
        let data_dir = self.data_dir.filter(|it| !it.is_empty());
        let data_dir = data_dir.unwrap_or_else(|| format!("{name}.etcd"));
        Ok(EtcdFlags {
            listen: listen?,
            data_dir: data_dir.into(),
            unsafe_no_fsync: self.unsafe_no_fsync,
            without_effect: self.without_effect,
        })
    }
}

impl ListenUrl {
    fn parse(text: &str) -> Result<Self, EnvtestError> {
        let refused = |why: &str| wrong(format!("--listen-client-urls: {text}: {why}"));
        let url: http::Uri = text.parse().map_err(|_| refused("this is no URL"))?;
        if url.scheme_str() != Some("http") {
            return Err(refused(
                "this stand-in for etcd speaks plain HTTP; give http://HOST:PORT",
            ));
        }
        let host = url.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match url.port_u16() {
            Some(port) if !host.is_empty() => Ok(Self {
                url: text.to_owned(),
                host: host.to_owned(),
                port,
            }),
            _ => Err(refused("it needs a host and a port")),
        }
    }
}

/// Returns true if a flag asks for TLS.
fn asks_for_tls(name: &str, value: Option<&str>) -> Result<bool, EnvtestError> {
    if TLS_SWITCHES.contains(&name) {
        return is_true(name, value);
    }
    Ok(TLS_FILES.contains(&name) && value != Some(""))
}

/// Reads a boolean in any of the forms that Go takes. Without a value it is true.
fn is_true(name: &str, value: Option<&str>) -> Result<bool, EnvtestError> {
    match value {
        None | Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Ok(true),
        Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Ok(false),
        Some(_) => Err(wrong(format!("--{name} must be true or false"))),
    }
}

fn version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("etcd Version: {ETCD_VERSION}\nStand-in of ringwatch {own}, which stores nothing\n")
}

fn text(word: OsString) -> Result<String, EnvtestError> {
    word.into_string()
        .map_err(|word| wrong(format!("{} is no text", word.display())))
}

fn wrong(why: impl Into<String>) -> EnvtestError {
    EnvtestError::Flag(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<EtcdFlags, String> {
        let words = words.iter().map(OsString::from);
        match EtcdCommand::parse(words) {
            Ok(EtcdCommand::Run(flags)) => Ok(flags),
            Ok(EtcdCommand::Print(text)) => Err(text),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_flags_of_envtest_are_taken() {
        let flags = parse(&[
            "--advertise-client-urls=http://127.0.0.1:4000",
            "--data-dir=/tmp/k8s_test_framework_1",
            "--listen-client-urls=http://127.0.0.1:4000",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync=true",
        ]);
        let flags = flags.expect("flags");
        assert_eq!(flags.data_dir, PathBuf::from("/tmp/k8s_test_framework_1"));
        assert_eq!(flags.listen.len(), 1);
        assert_eq!(flags.listen[0].host, "127.0.0.1");
        assert_eq!(flags.listen[0].port, 4000);
        assert!(flags.unsafe_no_fsync);
        let others: Vec<_> = flags.without_effect.iter().collect();
        assert_eq!(others, ["advertise-client-urls", "listen-peer-urls"]);
    }

    #[test]
    fn gos_forms_of_flags_are_read() {
        let flags = parse(&[
            "-data-dir",
            "/d",
            "-unsafe-no-fsync",
            "--listen-client-urls",
            "http://[::1]:0, http://localhost:1 ",
            "--enable-pprof",
            "--data-dir=/e",
        ]);
        let flags = flags.expect("flags");
        assert_eq!(flags.data_dir, PathBuf::from("/e"));
        assert!(flags.unsafe_no_fsync);
        assert_eq!(
            (flags.listen[0].host.as_str(), flags.listen[0].port),
            ("::1", 0)
        );
        assert_eq!(flags.listen[1].host, "localhost");
        let flags = parse(&["--name=a"]).expect("flags");
        assert_eq!(flags.data_dir, PathBuf::from("a.etcd"));
        assert_eq!(flags.listen[0].port, 2379);
        assert!(!flags.unsafe_no_fsync);
    }

    #[test]
    fn what_the_stand_in_cannot_do_is_refused() {
        for (words, why) in [
            (&["serve"][..], "not a valid flag"),
            (&["--listen-client-urls=https://127.0.0.1:1"], "plain HTTP"),
            (&["--listen-client-urls=unix://a"], "plain HTTP"),
            (
                &["--listen-client-urls=http://127.0.0.1"],
                "a host and a port",
            ),
            (&["--listen-client-urls"], "needs an argument"),
            (&["--cert-file", "a"], "plain HTTP"),
            (&["--client-cert-auth"], "plain HTTP"),
            (&["--auto-tls=1"], "plain HTTP"),
            (&["--auto-tls=no"], "true or false"),
            (&["--config-file=a"], "as flags"),
            (&["--unsafe-no-fsync=maybe"], "true or false"),
        ] {
            let error = parse(words).expect_err(why);
            assert!(error.contains(why), "{words:?}: {error}");
        }
        for no in ["0", "f", "F", "false", "False", "FALSE"] {
            let word = format!("--client-cert-auth={no}");
            parse(&[&word, "--cert-file="]).expect("nothing is asked for");
        }
        let many = vec!["http://127.0.0.1:0"; LISTEN_URLS_MAX + 1].join(",");
        parse(&["--listen-client-urls", &many]).expect_err("too many");
    }

    #[test]
    fn help_has_the_flag_that_envtest_looks_for_at_the_beginning_of_a_line() {
        let help = parse(&["--help"]).expect_err("a text");
        let at_start = |it: &str| it.trim_start().starts_with("--unsafe-no-fsync ");
        assert!(help.lines().any(at_start), "{help}");
        let version = parse(&["--version"]).expect_err("a text");
        assert!(version.starts_with("etcd Version: 3."), "{version}");
    }
}
