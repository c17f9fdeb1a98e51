//! A command that is run while the run goes on: to restart the server, to stop it for a while.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ringwatch_apimachinery::duration;
use serde::{Serialize, Serializer};

/// A command and the time at which to run it, as `at=10s cmd=systemctl restart ringwatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Duration,
    /// The command, which a shell runs.
    pub(crate) command: String,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} does not look like \"at=10s cmd=COMMAND\"");
        let rest = text.trim().strip_prefix("at=").ok_or_else(wrong)?;
        let (at, rest) = rest.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let command = rest.trim().strip_prefix("cmd=").ok_or_else(wrong)?;
        let at = duration::parse(at)?;
        if command.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            at,
            command: command.to_owned(),
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at={}s cmd={}", self.at.as_secs_f64(), self.command)
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_time_and_a_command() {
        let fault: Fault = "at=1.5s cmd=kill -9 $(cat pid)".parse().expect("a fault");
        assert_eq!(fault.at, Duration::from_millis(1_500));
        assert_eq!(fault.command, "kill -9 $(cat pid)");
        assert_eq!(fault.to_string(), "at=1.5s cmd=kill -9 $(cat pid)");
        let fault: Fault = "at=1m30s cmd=x".parse().expect("a time as flags have it");
        assert_eq!(fault.at, Duration::from_secs(90));
        for wrong in [
            "",
            "at=1s",
            "at=1 cmd=x",
            "at=-1s cmd=x",
            "at=1s cmd=",
            "cmd=x at=1s",
        ] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }
}
