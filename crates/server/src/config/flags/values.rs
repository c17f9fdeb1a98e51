//! The values of all flags, as `/flagz` shows them.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::{ServeFlags, inert};

/// The values of all flags, by their names without dashes; empty for one that has none. Lists stand in brackets.
#[derive(Clone, Debug, Default)]
pub struct FlagValues(pub BTreeMap<String, String>);

/// Adds no flags of its own: it reads those of all others.
impl Args for FlagValues {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for FlagValues {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut values = Self::default();
        values.update_from_arg_matches(matches)?;
        Ok(values)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let command = ServeFlags::augment_args(Command::new("serve"));
        for flag in command.get_arguments() {
            let Some(name) = flag.get_long() else {
                continue;
            };
            let given = matches.try_get_raw(flag.get_id().as_str());
            let given = given.ok().flatten().into_iter().flatten();
            let given: Vec<_> = given.map(|it| it.to_string_lossy()).collect();
            let value = if is_list(flag) {
                format!("[{}]", given.join(","))
            } else {
                given.last().map(ToString::to_string).unwrap_or_default()
            };
            self.0.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

/// Returns true if all values of a flag that is given several times count. Of flags without effect the last counts, as
/// in kube-apiserver.
pub(crate) fn is_list(flag: &Arg) -> bool {
    let has_effect = || {
        let name = flag.get_long().unwrap_or_default();
        !flag.is_hide_set() && inert::FLAGS.iter().all(|it| it.name != name)
    };
    flag.get_value_delimiter().is_some()
        || matches!(flag.get_action(), ArgAction::Append) && has_effect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ServeFlags,
    }

    #[test]
    fn flags_show_what_they_are() {
        let line = [
            "serve",
            "--secure-port=1234",
            "--etcd-servers=http://a:1,http://b:2",
            "--apiserver-count=2",
            "--apiserver-count=3",
            "--profiling=false",
        ];
        let values = Line::try_parse_from(line).expect("flags").flags.values.0;
        for (name, value) in [
            ("secure-port", "1234"),
            ("etcd-servers", "[http://a:1,http://b:2]"),
            ("apiserver-count", "3"),
            ("profiling", "false"),
            ("watch-cache", "true"),
            ("tls-cert-file", ""),
            ("cors-allowed-origins", "[]"),
        ] {
            assert_eq!(values.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(values.len() > 170, "every flag of kube-apiserver is there");
    }
}
