//! Commands in a row, each with what it says.

use std::process::Output;

use super::*;

/// The expected output of a command.
#[derive(Clone, Copy)]
pub(super) enum Says<'a> {
    /// It succeeds, prints this and nothing else, and warns of nothing.
    Exactly(&'a str),
    /// It succeeds, and this is in what it prints or warns of.
    Has(&'a str),
    /// It fails, and this is in what it says.
    Fails(&'a str),
}

impl Kubectl {
    /// Runs commands one after the other.
    pub(super) fn steps(&self, steps: &[(&str, Says<'_>)]) {
        for (command, says) in steps {
            self.step(command, *says);
        }
    }

    /// Runs commands that are written as in a terminal, with what they say below. After the sign of
    /// the prompt `~` stands for [`Says::Has`] and `!` for [`Says::Fails`].
    pub(super) fn script(&self, script: &str) {
        for part in script.split("\n\n") {
            let (prompt, said) = part.split_once('\n').unwrap_or((part, ""));
            let (sign, command) = prompt.split_once(' ').expect("a prompt and a command");
            let said = said.trim_end();
            let says = match sign {
                "$" => Says::Exactly(said),
                "$~" => Says::Has(said),
                "$!" => Says::Fails(said),
                _ => panic!("no such prompt: {prompt}"),
            };
            self.step(command, says);
        }
    }

    fn step(&self, command: &str, says: Says<'_>) {
        let output = self.run(command);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let succeeds = !matches!(says, Says::Fails(_));
        let told = format!("{} {command}\n{out}{errors}", self.program.display());
        assert_eq!(output.status.success(), succeeds, "{told}");
        match says {
            Says::Exactly(text) => {
                assert_eq!(out.trim_end(), text, "{told}");
                assert_eq!(errors, "", "{told}");
            }
            Says::Has(text) => {
                assert!(
                    out.contains(text) || errors.contains(text),
                    "{text} in {told}"
                );
            }
            Says::Fails(text) => assert!(errors.contains(text), "{text} in {told}"),
        }
    }

    /// Runs a command that succeeds and warns of nothing, and returns what it prints.
    pub(super) fn quietly(&self, command: &str) -> String {
        let output = self.run(command);
        let errors = String::from_utf8_lossy(&output.stderr);
        let told = format!("{} {command}: {errors}", self.program.display());
        assert!(output.status.success(), "{told}");
        assert_eq!(errors, "", "{told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn run(&self, command: &str) -> Output {
        let words = words(command);
        run(&mut self.command(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// An object as JSON.
    pub(super) fn json(&self, command: &str) -> serde_json::Value {
        let text = self.quietly(&format!("{command} -o json"));
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The words of a command, as a shell has them.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(letter),
        }
    }
    words
}
