//! The command line: `ringwatch serve`, `ringwatch relay`, `ringwatch store`, `ringwatch load` and `ringwatch top`.
//!
//! Here belongs what a process has once: subcommands, exit codes, logging, the allocator. Whatever another program could use
//! does not, and is in `ringwatch-server`, `ringwatch-store`,
//! `ringwatch-load` or `ringwatch-top`.
//!
//! Whatever is wrong is one line on standard error. Exit code 2 is a wrong command line, 1 a
//! failure, 0 a regular end.

mod json_lines;
mod logging;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use ringwatch_load::LoadFlags;
use ringwatch_server::flags::{RelayFlags, ServeFlags, with_dashes};
use ringwatch_server::{relay, serve};
use ringwatch_store::StoreFlags;
use ringwatch_top::TopFlags;
use tikv_jemallocator::Jemalloc;

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
}

fn main() -> ExitCode {
    let line = with_dashes(std::env::args_os());
    let command = match CommandLine::try_parse_from(line) {
        Ok(line) => line.command,
        Err(error) => return wrong_command_line(&error),
    };
    match command {
        Command::Serve(flags) => run_server(&flags),
        Command::Relay(flags) => run_relay(&flags),
        Command::Store(flags) => run_store(&flags),
        Command::Load(flags) => run_load(&flags),
        Command::Top(flags) => run_top(&flags),
    }
}

fn run_server(flags: &ServeFlags) -> ExitCode {
    if let Some(version) = flags.version.printed() {
        // Nobody is left to tell if that fails.
        let _ = writeln!(std::io::stdout(), "{version}");
        return ExitCode::SUCCESS;
    }
    if let Err(message) = flags.check() {
        say(&format!("{message}; see ringwatch serve --help"));
        return ExitCode::from(WRONG_COMMAND_LINE);
    }
    logging::start(flags.verbosity, flags.logging_format);
    match serve::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn run_relay(flags: &RelayFlags) -> ExitCode {
    if let Err(message) = flags.check() {
        say(&format!("{message}; see ringwatch relay --help"));
        return ExitCode::from(WRONG_COMMAND_LINE);
    }
    logging::start(flags.verbosity, flags.logging_format);
    match relay::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
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
                .filter(|it| matches!(it.as_str(), "load" | "relay" | "store" | "top"));
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
