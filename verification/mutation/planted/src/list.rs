//! The list of mutations.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::MutateError;

/// A `mutations.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutation: Vec<Mutation>,
}

/// An edit that must not go unnoticed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    pub(crate) name: String,
    /// The prefix of the names of the models that should notice it, else of those of its file.
    model: Option<String>,
    /// Relative to the root of the workspace.
    pub(crate) file: String,
    /// Occurs in the file once.
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Mutation {
    /// Returns the prefix of the names of the models that should notice it.
    pub(crate) fn model(&self) -> Option<String> {
        let file = Path::new(&self.file).file_stem().and_then(|it| it.to_str());
        let of_file = || file.map(|file| format!("{file}::"));
        self.model.clone().or_else(of_file)
    }

    /// Returns the file's text with the edit made in it.
    ///
    /// # Errors
    /// [`MutateError::Place`] unless `from` occurs in the text once.
    pub(crate) fn apply(&self, text: &str) -> Result<String, MutateError> {
        match text.matches(&self.from).count() {
            1 => Ok(text.replacen(&self.from, &self.to, 1)),
            count => Err(MutateError::Place {
                name: self.name.clone(),
                count,
            }),
        }
    }
}

/// Reads a list.
pub(crate) fn read(file: &Path) -> Result<Vec<Mutation>, MutateError> {
    let wrong = |message: String| MutateError::List {
        file: file.display().to_string(),
        message,
    };
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let list: List = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if list.mutation.is_empty() {
        return Err(wrong("it lists nothing".to_owned()));
    }
    Ok(list.mutation)
}

/// Keeps those whose name contains the filter, if there is one.
pub(crate) fn choose(
    mut mutations: Vec<Mutation>,
    filter: Option<String>,
) -> Result<Vec<Mutation>, MutateError> {
    let Some(filter) = filter else {
        return Ok(mutations);
    };
    mutations.retain(|mutation| mutation.name.contains(&filter));
    if mutations.is_empty() {
        return Err(MutateError::NothingMatches(filter));
    }
    Ok(mutations)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mutations themselves are tried by hand; that an edit of the code moved one of their places is noticed here.
    #[test]
    fn every_mutation_of_this_workspace_has_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for member in [
            "loom-tests",
            "verification/shuttle",
            "verification/simulation",
        ] {
            for mutation in read(&root.join(member).join("mutations.toml")).expect("a list") {
                let text = fs::read_to_string(root.join(&mutation.file)).expect("its file");
                let edited = mutation.apply(&text);
                edited.unwrap_or_else(|error| panic!("{member}: {error}"));
            }
        }
    }
}
