//! The command line: `ringwatch serve`, `ringwatch relay`, `ringwatch store`, `ringwatch load`, `ringwatch top`, and
//! what helps to install them. By the names kube-apiserver and etcd the program is these, for test suites.
//!
//! Here belongs what a process has once: subcommands, exit codes, logging, the allocator, profiles. Whatever another
//! program could use does not, and is in the crate of the subcommand, such as `ringwatch-server`.
//!
//! Whatever is wrong is one line on standard error. Exit code 2 is a wrong command line, 1 a
//! failure, 0 a regular end.

mod configuration;
mod controls;
mod cpu_profile;
mod generated;
mod heap_profile;
mod json_lines;
mod logging;
mod pprof_format;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use ringwatch_envtest::{AssetsFlags, EnvtestError, EtcdCommand, Program};
use ringwatch_load::LoadFlags;
use ringwatch_server::config_file;
use ringwatch_server::flags::{RelayFlags, ServeFlags, with_dashes};
use ringwatch_server::{relay, serve};
use ringwatch_store::StoreFlags;
use ringwatch_top::TopFlags;
use tikv_jemallocator::Jemalloc;

use self::configuration::{CheckConfigFlags, ConfiguredFlags};
use self::controls::Controls;
use self::generated::{CompletionFlags, ManPagesFlags};

/// Every delivery over TLS allocates a record, a little longer than what glibc's allocator keeps ready
/// for a thread. jemalloc does, and gives idle memory back in the background. It asks for huge pages
/// (`.cargo/config.toml`).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The exit code of a wrong command line.
const WRONG_COMMAND_LINE: u8 = 2;

/// A Kubernetes-compatible API server core built around its watch cache.
#[derive(Parser, Debug)]
#[command(name = "ringwatch", version, subcommand_required = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Serve(Box<ServeFlags>),
    Relay(Box<RelayFlags>),
    Store(StoreFlags),
    Load(Box<LoadFlags>),
    Top(TopFlags),
    CheckConfig(CheckConfigFlags),
    EnvtestAssets(AssetsFlags),
    Completion(CompletionFlags),
    #[command(hide = true)]
    ManPages(ManPagesFlags),
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next();
    let program = Program::named(name.as_deref());
    let before: &[&str] = match program {
        Program::Etcd => return run_etcd(words),
        Program::KubeApiserver => &["ringwatch", "serve"],
        Program::Ringwatch => &["ringwatch"],
    };
    let line = before.iter().map(OsString::from).chain(words);
    let (command, matches) = match parse(with_dashes(line).collect()) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    match command {
        Command::Serve(flags) => run_server(*flags, &matches, program),
        Command::Relay(flags) => run_relay(&flags, &matches),
        Command::Store(flags) => run_store(&flags),
        Command::Load(flags) => run_load(&flags),
        Command::Top(flags) => run_top(&flags),
        Command::CheckConfig(flags) => check_config(&flags),
        Command::EnvtestAssets(flags) => lay_out_assets(&flags),
        Command::Completion(flags) => {
            written(flags.write(CommandLine::command(), std::io::stdout()))
        }
        Command::ManPages(flags) => written(flags.write(CommandLine::command())),
    }
}

/// Parses a command line with the fields of the file that it names, and says what is wrong with it.
fn parse(line: Vec<OsString>) -> Result<(Command, ArgMatches), ExitCode> {
    let root = CommandLine::command();
    let line = config_file::with_file(&root, line).map_err(|error| {
        say(&error.to_string());
        ExitCode::from(WRONG_COMMAND_LINE)
    })?;
    let parsed = root.try_get_matches_from(line).and_then(|matches| {
        let line = CommandLine::from_arg_matches(&matches)?;
        Ok((line.command, matches))
    });
    parsed.map_err(|error| wrong_command_line(&error))
}

fn run_server(mut flags: ServeFlags, matches: &ArgMatches, program: Program) -> ExitCode {
    if let Some(version) = flags.version.printed() {
        return print(&version);
    }
    if let Some(code) = without_server(&ConfiguredFlags::Server(&flags), "serve", matches) {
        return code;
    }
    let log = logging::start(flags.verbosity, flags.logging_format);
    if program == Program::KubeApiserver {
        let given = matches.subcommand_matches("serve");
        let source = given.and_then(|it| it.value_source("data_dir"));
        let has_data_dir = source != Some(ValueSource::DefaultValue);
        match ringwatch_envtest::keep_store_at_etcd(&mut flags, has_data_dir) {
            Ok(()) => {}
            Err(error @ EnvtestError::NoServers) => {
                say(&error.to_string());
                return ExitCode::from(WRONG_COMMAND_LINE);
            }
            Err(error) => return failed(&error.to_string()),
        }
    }
    match serve::run(&flags, Some(Controls::shared(log))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

/// Runs the stand-in for etcd, or prints what its flags ask for.
fn run_etcd(words: impl Iterator<Item = OsString>) -> ExitCode {
    let ran = EtcdCommand::parse(words).and_then(|command| match command {
        EtcdCommand::Print(text) => {
            print(text.trim_end());
            Ok(())
        }
        EtcdCommand::Run(flags) => ringwatch_envtest::etcd::run(&flags),
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ EnvtestError::Flag(_)) => {
            say(&format!("{error}; see etcd --help"));
            ExitCode::from(WRONG_COMMAND_LINE)
        }
        Err(error) => failed(&error.to_string()),
    }
}

/// Runs `envtest-assets`.
fn lay_out_assets(flags: &AssetsFlags) -> ExitCode {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return failed(&format!("cannot find this program: {error}")),
    };
    let search_path = std::env::var_os("PATH");
    match ringwatch_envtest::lay_out(flags, &own, search_path.as_deref()) {
        Ok(said) => print(&said),
        Err(error) => failed(&error.to_string()),
    }
}

fn run_relay(flags: &RelayFlags, matches: &ArgMatches) -> ExitCode {
    if let Some(code) = without_server(&ConfiguredFlags::Relay(flags), "relay", matches) {
        return code;
    }
    let log = logging::start(flags.verbosity, flags.logging_format);
    match relay::run(flags, Some(Controls::shared(log))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

/// Ends the program where flags do not go together or ask for the configuration alone.
fn without_server(
    configured: &ConfiguredFlags<'_>,
    command: &str,
    matches: &ArgMatches,
) -> Option<ExitCode> {
    if let Err(message) = configured.check() {
        say(&format!("{message}; see ringwatch {command} --help"));
        return Some(ExitCode::from(WRONG_COMMAND_LINE));
    }
    let printed = configured.printed(&CommandLine::command(), matches)?;
    Some(match printed {
        Ok(text) => print(text.trim_end()),
        Err(error) => failed(&format!("cannot print the configuration: {error}")),
    })
}

/// Runs `check-config`: one line on standard error for all that is wrong.
fn check_config(flags: &CheckConfigFlags) -> ExitCode {
    let (kind, line) = match flags.line() {
        Ok(both) => both,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::from(WRONG_COMMAND_LINE);
        }
    };
    let command = match parse(line) {
        Ok((command, _)) => command,
        Err(code) => return code,
    };
    let configured = match &command {
        Command::Serve(flags) => ConfiguredFlags::Server(flags),
        Command::Relay(flags) => ConfiguredFlags::Relay(flags),
        _ => return ExitCode::from(WRONG_COMMAND_LINE),
    };
    let file = flags.file.display();
    if let Err(message) = configured.check() {
        say(&format!("{file}: {message}"));
        return ExitCode::from(WRONG_COMMAND_LINE);
    }
    let problems = configured.problems();
    for problem in &problems {
        say(&format!("{file}: {problem}"));
    }
    match problems.is_empty() {
        true => print(&format!("{file} is a {} that can be used", kind.name())),
        false => ExitCode::FAILURE,
    }
}

/// Prints a line on standard output. Nobody is left to tell if that fails.
fn print(line: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{line}");
    ExitCode::SUCCESS
}

fn written(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&format!("cannot write: {error}")),
    }
}

/// Runs `store`. A check that found something wrong has said so already, and fails.
fn run_store(flags: &StoreFlags) -> ExitCode {
    match ringwatch_store::run(flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error.to_string()),
    }
}

/// Runs `load`. A load that lost or repeated an event has said so already, and fails.
fn run_load(flags: &LoadFlags) -> ExitCode {
    match ringwatch_load::run(flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error.to_string()),
    }
}

fn run_top(flags: &TopFlags) -> ExitCode {
    match ringwatch_top::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    say(why);
    ExitCode::FAILURE
}

/// Prints help and version as they are, and an error as one line.
fn wrong_command_line(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            let text = error.to_string();
            let about = text.split("\n\nUsage:").next().unwrap_or_default();
            let about = about.strip_prefix("error: ").unwrap_or(about);
            let about = about
                .split("\n\nFor more information")
                .next()
                .unwrap_or(about);
            let words: Vec<&str> = about.split_whitespace().collect();
            let asked = std::env::args()
                .nth(1)
                .filter(|it| CommandLine::command().find_subcommand(it).is_some());
            let command = asked.as_deref().unwrap_or("serve");
            say(&format!(
                "{}; see ringwatch {command} --help",
                words.join(" ")
            ));
            ExitCode::from(WRONG_COMMAND_LINE)
        }
    }
}

/// Prints a line on standard error. Nobody is left to tell if that fails.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "ringwatch: {message}");
}
