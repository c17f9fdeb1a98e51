//! The flags of kube-apiserver that do nothing here: accepted without effect, or refused.
//!
//! With them every flag of kube-apiserver is in exactly one of three lists: the fields of [`super::ServeFlags`],
//! [`inert`] and [`refused`]. A test compares them with kube-apiserver's names and with the table in
//! `docs/compatibility.md`.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use ringwatch_apimachinery::duration;

use super::inert::{self, Inert};
use super::refused;

/// The heading in `--help` of flags without effect.
const HEADING: &str = "Accepted for compatibility, without effect";

/// The flags among these that were given.
#[derive(Clone, Debug, Default)]
pub struct InventoryFlags {
    without_effect: Vec<&'static Inert>,
    /// The name of a refused flag, and the reason.
    refused: Option<(&'static str, &'static str)>,
}

impl InventoryFlags {
    /// Returns a line for each flag that was given and has no effect, with the reason.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let flags = self.without_effect.iter();
        flags
            .map(|flag| format!("--{} has no effect here: {}", flag.name, flag.reason))
            .collect()
    }

    /// Checks that no refused flag was given.
    ///
    /// # Errors
    /// A line for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.refused {
            None => Ok(()),
            Some((name, reason)) => Err(format!("--{name} cannot be used here: {reason}")),
        }
    }
}

/// Returns the name of each refused flag, and the reason.
fn refused() -> impl Iterator<Item = (&'static str, &'static str)> {
    refused::FLAGS.iter().map(|flag| (flag.name, flag.reason))
}

impl Args for InventoryFlags {
    fn augment_args(command: Command) -> Command {
        let refused = refused().map(|(name, _)| {
            Arg::new(name)
                .long(name)
                .action(ArgAction::Append)
                .num_args(0..=1)
                .default_missing_value("")
                .hide(true)
        });
        command
            .args(inert::FLAGS.iter().map(argument))
            .args(refused)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: &'static Inert) -> Arg {
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .value_name(flag.value)
        // kube-apiserver takes the last of several.
        .action(ArgAction::Append)
        .value_parser(move |text: &str| (flag.check)(text).map(|()| text.to_owned()))
        .help_heading(HEADING)
        .help(format!("Has no effect: {}.", flag.reason));
    let argument = if flag.is_switch() {
        let argument = argument.num_args(0..=1).require_equals(true);
        argument.default_missing_value("true")
    } else {
        argument
    };
    match flag.default {
        "" => argument,
        default => argument.default_value(default),
    }
}

impl FromArgMatches for InventoryFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        check_leadership(matches)
            .map_err(|message| Error::raw(ErrorKind::ValueValidation, message))?;
        let given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let without_effect = inert::FLAGS.iter().filter(|flag| given(flag.name));
        Ok(Self {
            without_effect: without_effect.collect(),
            refused: refused().find(|(name, _)| given(name)),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Checks the times of coordinated leader election against each other, as kube-apiserver does.
fn check_leadership(matches: &ArgMatches) -> Result<(), String> {
    let time = |name: &str| {
        let given = matches.get_many::<String>(name).into_iter().flatten();
        let last = given.last().and_then(|text| duration::parse(text).ok());
        last.unwrap_or(Duration::ZERO)
    };
    let [lease, renewal, retry] = [
        "coordinated-leadership-lease-duration",
        "coordinated-leadership-renew-deadline",
        "coordinated-leadership-retry-period",
    ];
    for (longer, shorter) in [(lease, renewal), (renewal, retry)] {
        if time(longer) <= time(shorter) {
            return Err(format!("--{longer} must be greater than --{shorter}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
