//! The sources with their switches, and the builds of them: what the compiler refuses is left out until the rest
//! compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::MutantsError;
use crate::copy::Copy;
use crate::layer::{Built, Layer, Program, Refusal};
use crate::list::Mutant;
use crate::rewrite::Rewritten;
use crate::sites::{self, Site, Sites};

/// Maximum number of builds until a layer compiles. An error hides those of later phases of the compiler.
const ROUNDS_MAX: usize = 30;

/// The sources of all mutants, and the copy into which they are written.
#[derive(Clone, Debug)]
pub(crate) struct Switched<'a> {
    copy: &'a Copy,
    mutants: &'a [Mutant],
    files: BTreeMap<String, Source>,
    /// The mutants that do not compile, or not as a switch.
    without: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Source {
    text: String,
    sites: Vec<Site>,
}

/// The mutants that a layer's build leaves out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// They do not compile.
    pub(crate) unviable: Vec<u32>,
    /// They cannot be switched at run time.
    pub(crate) fixed: Vec<u32>,
}

impl<'a> Switched<'a> {
    /// Finds the places of mutants in the copied files, and returns those that need no build to be left out.
    pub(crate) fn new(
        copy: &'a Copy,
        mutants: &'a [Mutant],
    ) -> Result<(Self, LeftOut), MutantsError> {
        let mut files: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in (1..).zip(mutants) {
            let of_file = files.entry(&mutant.file).or_default();
            of_file.push((number, mutant));
        }
        let mut sources = BTreeMap::new();
        let mut left_out = LeftOut::default();
        for (file, of_file) in files {
            let text = fs::read_to_string(copy.root().join(file))?;
            let found = sites::find(&text, &of_file);
            let Sites {
                sites,
                fixed,
                unviable,
            } = found.map_err(|error| MutantsError::Parse(file.to_owned(), error))?;
            left_out.fixed.extend(fixed);
            left_out.unviable.extend(unviable);
            sources.insert(file.to_owned(), Source { text, sites });
        }
        let switched = Self {
            copy,
            mutants,
            files: sources,
            without: BTreeSet::new(),
        };
        Ok((switched, left_out))
    }

    /// Returns the mutants that have no switch in the copy.
    pub(crate) fn without(&self) -> &BTreeSet<u32> {
        &self.without
    }

    /// Builds a layer, leaving out what it refuses.
    pub(crate) async fn build(
        &mut self,
        layer: &Layer,
    ) -> Result<(Vec<Program>, LeftOut), MutantsError> {
        let mut left_out = LeftOut::default();
        for round in 1..=ROUNDS_MAX {
            let written = self.write()?;
            match layer.build(self.copy).await? {
                Built::Programs(programs) => return Ok((programs, left_out)),
                Built::Refused(refusals) => {
                    let before = self.without.len();
                    for refusal in &refusals {
                        self.leave_out(refusal, &written, &mut left_out)?;
                    }
                    let left = self.without.len() - before;
                    eprintln!(
                        "{}: build {round} leaves {left} mutants out for {} errors",
                        layer.name,
                        refusals.len()
                    );
                }
            }
        }
        Err(MutantsError::Rounds(ROUNDS_MAX))
    }

    fn write(&self) -> Result<BTreeMap<String, Rewritten>, MutantsError> {
        let mut written = BTreeMap::new();
        for (file, source) in &self.files {
            let rewritten =
                Rewritten::new(&source.text, &source.sites, &self.without, self.mutants);
            self.copy.write(file, &rewritten.text)?;
            written.insert(file.clone(), rewritten);
        }
        Ok(written)
    }

    fn leave_out(
        &mut self,
        refusal: &Refusal,
        written: &BTreeMap<String, Rewritten>,
        left_out: &mut LeftOut,
    ) -> Result<(), MutantsError> {
        let mut marks = refusal.places.iter().filter_map(|(file, range)| {
            let written = written.get(file)?;
            written.blame(range)
        });
        let mark = marks.next();
        let mark = mark.ok_or_else(|| MutantsError::Compile(refusal.said.clone()))?;
        if mark.is_replacement {
            left_out.unviable.extend(&mark.numbers);
        } else {
            eprintln!("without a switch: {}", refusal.said.trim_end());
            left_out.fixed.extend(&mark.numbers);
        }
        self.without.extend(&mark.numbers);
        Ok(())
    }

    /// Builds a layer with one mutant that has no switch, or returns nothing if that does not compile.
    pub(crate) async fn build_fixed(
        &self,
        layer: &Layer,
        number: u32,
    ) -> Result<Option<Vec<Program>>, MutantsError> {
        self.write()?;
        let mutant = &self.mutants[number as usize - 1];
        let source = &self.files[&mutant.file];
        let sites = sites::with_fixed(&source.text, &source.sites, (number, mutant));
        let mut without = self.without.clone();
        without.remove(&number);
        let rewritten = Rewritten::new(&source.text, &sites, &without, self.mutants);
        self.copy.write(&mutant.file, &rewritten.text)?;
        Ok(match layer.build(self.copy).await? {
            Built::Programs(programs) => Some(programs),
            Built::Refused(_) => None,
        })
    }
}
