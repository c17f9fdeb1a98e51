//! A compiled pattern, and the work of running it.
//!
//! A pattern runs as a lazy DFA: states are made as the text asks for them, and a text is then walked through at the
//! speed of memory. There are patterns whose DFA is larger than any cache. So when the cache has been cleared too
//! often, the NFA is simulated instead, in as many steps as it has states for each byte of the text. Either is paid for
//! in [`StepBudget`].

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{Compiler, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, Match};

use super::alphabet::{self, Alphabet};
use super::{PatternError, go_syntax};

/// Maximum number of bytes of the NFA of one pattern.
pub const PROGRAM_BYTES_MAX: usize = 4 << 20;

/// Bytes of cached DFA states above which the cache is cleared.
const CACHE_BYTES_MAX: usize = 1 << 20;

/// Maximum number of times that the cache is cleared in a match before the NFA is simulated.
const CACHE_CLEARS_MAX: usize = 4;

/// Bytes of DFA states that are kept until the next match, beside what an empty cache takes. Most patterns need half of
/// that.
const STATES_KEPT_BYTES_MAX: usize = 4 << 10;

/// Maximum depth for the parser of the crate. A group of ours is a concatenation, an alternation, a repetition and a
/// class to it.
const SYNTAX_LEVELS_MAX: u32 = 600;

/// Bytes of stack that compiling takes at most, and the size of the stack that is added when fewer are left.
const STACK_LEFT_MIN: usize = 8 << 20;
const STACK_BYTES: usize = 16 << 20;

/// Bytes that a DFA scans in the time of one step of a simulation.
const BYTES_PER_STEP: usize = 16;

/// Bytes of an NFA that are compiled in that time.
const COMPILED_BYTES_PER_STEP: usize = 2;

/// Maximum number of ranges of characters that are looked at for the classes of a pattern. Five hundred classes of all
/// letters have two thirds of that.
const RANGES_MAX: usize = 1 << 19;

/// Steps of reading, telling apart and translating one of these ranges.
const STEPS_PER_RANGE: usize = 2;

/// Steps of compiling a pattern, as far as it may take.
pub(crate) const COMPILING_STEPS_MAX: usize =
    PROGRAM_BYTES_MAX / COMPILED_BYTES_PER_STEP + RANGES_MAX * STEPS_PER_RANGE;

/// A budget of work, in steps of a simulated NFA. A step takes some ten nanoseconds.
#[derive(Debug)]
pub struct StepBudget {
    left: u64,
}

/// The error of a match that would exceed its budget of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchWork;

impl StepBudget {
    /// Creates a budget of this many steps.
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Returns the steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Charges this many steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), TooMuchWork> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.unwrap_or_default();
        left.map(|_| ()).ok_or(TooMuchWork)
    }
}

/// Compiles a pattern as far as its size needs, and returns the size in bytes.
///
/// # Errors
/// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
pub(super) fn size(pattern: &str) -> Result<usize, PatternError> {
    Ok(machine(pattern)?.bytes())
}

/// The NFA of a pattern, over the symbols of its alphabet; over the bytes of UTF-8 if it has none.
#[derive(Debug)]
struct Machine {
    nfa: NFA,
    alphabet: Option<Alphabet>,
    /// The number of ranges that were looked at for the alphabet.
    ranges: usize,
}

impl Machine {
    fn bytes(&self) -> usize {
        self.nfa.memory_usage() + self.alphabet.as_ref().map_or(0, Alphabet::bytes)
    }
}

/// Compiling is recursive, and unoptimised it takes several KB for a level.
fn machine(pattern: &str) -> Result<Machine, PatternError> {
    stacker::maybe_grow(STACK_LEFT_MIN, STACK_BYTES, || build(pattern))
}

fn build(pattern: &str) -> Result<Machine, PatternError> {
    let rewritten = go_syntax::rewrite(pattern)?;
    let config = syntax::Config::new().nest_limit(SYNTAX_LEVELS_MAX);
    let parsed = syntax::parse_with(&rewritten, &config).map_err(|error| {
        tracing::warn!(%error, pattern, "a pattern of Go's syntax could not be written for the regex crate");
        PatternError::TooLarge
    })?;
    let (alphabet, ranges) = Alphabet::of(&parsed);
    if ranges > RANGES_MAX {
        return Err(PatternError::TooLarge);
    }
    let parsed = match &alphabet {
        Some(alphabet) => alphabet.translate(&parsed),
        None => parsed,
    };
    let config = NFA::config()
        .utf8(alphabet.is_none())
        .nfa_size_limit(Some(PROGRAM_BYTES_MAX))
        .which_captures(WhichCaptures::Implicit);
    let nfa = Compiler::new().configure(config).build_from_hir(&parsed);
    let nfa = nfa.map_err(|_| PatternError::TooLarge)?;
    Ok(Machine {
        nfa,
        alphabet,
        ranges,
    })
}

/// A text as a pattern reads it.
struct Reading<'t> {
    text: &'t str,
    /// The symbols of the text, or its bytes.
    units: Cow<'t, [u8]>,
    /// True if the units are the bytes of UTF-8, of which characters have several.
    is_utf8: bool,
}

impl Reading<'_> {
    /// Returns true if no character is on both sides of a place.
    fn is_between(&self, place: usize) -> bool {
        !self.is_utf8 || self.text.is_char_boundary(place)
    }

    /// Returns the place one character further; `None` at the end.
    fn next(&self, place: usize) -> Option<usize> {
        let mut after = place + 1..=self.units.len();
        after.find(|it| self.is_between(*it))
    }
}

/// A pattern compiled to an NFA, which matches in time linear in the text.
#[derive(Debug)]
pub struct Program {
    dfa: DFA,
    simulation: PikeVM,
    alphabet: Option<Alphabet>,
    /// The number of ranges that were looked at for the alphabet.
    ranges: usize,
    /// States that the last match made, unless somebody is using them.
    states: Mutex<Option<Box<Cache>>>,
    /// Bytes that these take at most.
    states_bytes_max: usize,
}

/// The DFA has cleared its cache too often, or met what it cannot decide.
struct GaveUp;

impl Program {
    /// Compiles a pattern of Go's syntax.
    ///
    /// # Errors
    /// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
    pub(super) fn compile(pattern: &str) -> Result<Self, PatternError> {
        let Machine {
            nfa,
            alphabet,
            ranges,
        } = machine(pattern)?;
        let config = DFA::config()
            .cache_capacity(CACHE_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(CACHE_CLEARS_MAX));
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa.clone());
        let dfa = dfa.map_err(|_| PatternError::TooLarge)?;
        let simulation = PikeVM::new_from_nfa(nfa);
        let empty = Box::new(dfa.create_cache());
        Ok(Self {
            simulation: simulation.map_err(|_| PatternError::TooLarge)?,
            states_bytes_max: empty.memory_usage() + STATES_KEPT_BYTES_MAX,
            states: Mutex::new(Some(empty)),
            dfa,
            alphabet,
            ranges,
        })
    }

    /// Returns the bytes that it takes, with the states that it may keep.
    pub(crate) fn bytes(&self) -> usize {
        let alphabet = self.alphabet.as_ref().map_or(0, Alphabet::bytes);
        alphabet + self.nfa().memory_usage() + self.dfa.memory_usage() + self.states_bytes_max
    }

    /// Returns the work of compiling it, in steps.
    pub(crate) fn compiling_steps(&self) -> usize {
        self.nfa().memory_usage() / COMPILED_BYTES_PER_STEP + self.ranges * STEPS_PER_RANGE
    }

    fn nfa(&self) -> &NFA {
        self.simulation.get_nfa()
    }

    /// Reads a text, and charges that if its characters are translated.
    fn read<'t>(&self, text: &'t str, work: &mut StepBudget) -> Result<Reading<'t>, TooMuchWork> {
        let units = match &self.alphabet {
            Some(alphabet) => alphabet.read(text),
            None => Cow::Borrowed(text.as_bytes()),
        };
        if let Cow::Owned(symbols) = &units {
            work.spend(symbols.len())?;
        }
        Ok(Reading {
            text,
            units,
            is_utf8: self.alphabet.is_none(),
        })
    }

    /// Looks for a match in a text.
    ///
    /// # Errors
    /// [`TooMuchWork`] as soon as the match has used up `work`.
    pub(crate) fn is_match(&self, text: &str, work: &mut StepBudget) -> Result<bool, TooMuchWork> {
        let text = self.read(text, work)?;
        if let Ok(end) = self.walk(&text, 0, true, work)? {
            return Ok(end.is_some());
        }
        let found = self.simulate(Input::new(&text.units).earliest(true), work)?;
        Ok(found.is_some())
    }

    /// Returns the matches in a text, one after the other, at most `limit`. An empty one at the end of another does not
    /// count.
    ///
    /// # Errors
    /// [`TooMuchWork`] as soon as the matches have used up `work`.
    pub(crate) fn find_all(
        &self,
        text: &str,
        limit: usize,
        work: &mut StepBudget,
    ) -> Result<Vec<Range<usize>>, TooMuchWork> {
        let reading = self.read(text, work)?;
        let mut all: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while all.len() < limit {
            let Some(found) = self.find(&reading, from, work)? else {
                break;
            };
            let last = all.last().map(|it| it.end);
            from = found.end;
            if !found.is_empty() || last != Some(found.end) {
                all.push(found.clone());
            }
            if found.is_empty() {
                let Some(next) = reading.next(from) else {
                    break;
                };
                from = next;
            }
        }
        Ok(if reading.is_utf8 {
            all
        } else {
            alphabet::bytes_of(text, all)
        })
    }

    /// Returns the first match that begins at a place or later.
    fn find(
        &self,
        text: &Reading<'_>,
        from: usize,
        work: &mut StepBudget,
    ) -> Result<Option<Range<usize>>, TooMuchWork> {
        let to = match self.walk(text, from, false, work)? {
            Ok(None) => return Ok(None),
            Ok(Some(end)) => end,
            Err(GaveUp) => text.units.len(),
        };
        // The DFA tells where the match ends. Where it begins is found in what lies before.
        let found = self.simulate(Input::new(&text.units).range(from..to), work)?;
        Ok(found.map(|found| found.range()))
    }

    fn simulate(
        &self,
        input: Input<'_>,
        work: &mut StepBudget,
    ) -> Result<Option<Match>, TooMuchWork> {
        let bytes = input.get_range().len() + 1;
        work.spend(bytes.saturating_mul(self.nfa().states().len()))?;
        let mut cache = pikevm::Cache::new(&self.simulation);
        Ok(self.simulation.find(&mut cache, input))
    }

    /// Returns where the first match ends by the DFA; with `earliest`, any end of it.
    fn walk(
        &self,
        text: &Reading<'_>,
        from: usize,
        earliest: bool,
        work: &mut StepBudget,
    ) -> Result<Result<Option<usize>, GaveUp>, TooMuchWork> {
        let kept = self
            .states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut cache = kept.unwrap_or_else(|| Box::new(self.dfa.create_cache()));
        let mut at = from;
        let end = self.end(&mut cache, &text.units, &mut at, earliest);
        let (bytes, cleared) = (cache.memory_usage(), cache.clear_count());
        let mut steps = (at - from) / BYTES_PER_STEP;
        if cleared == 0 && bytes <= self.states_bytes_max {
            *self.states.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
        } else {
            // The states are built again in the next match. Those that are kept are not charged, so that work does not
            // depend on earlier matches.
            steps += bytes + cleared * CACHE_BYTES_MAX;
        }
        work.spend(steps)?;
        // An empty match within a character is none; only the simulation goes on to the next one.
        Ok(end.and_then(|end| match end {
            Some(end) if !text.is_between(end) => Err(GaveUp),
            end => Ok(end),
        }))
    }

    fn end(
        &self,
        cache: &mut Cache,
        text: &[u8],
        at: &mut usize,
        earliest: bool,
    ) -> Result<Option<usize>, GaveUp> {
        let input = Input::new(text).range(*at..text.len());
        let start = self.dfa.start_state_forward(cache, &input);
        let mut state = start.map_err(|_| GaveUp)?;
        let mut end = None;
        // A match is known one byte after its end.
        for byte in &text[*at..] {
            state = self
                .dfa
                .next_state(cache, state, *byte)
                .map_err(|_| GaveUp)?;
            if state.is_tagged() {
                if state.is_match() {
                    end = Some(*at);
                    if earliest {
                        return Ok(end);
                    }
                } else if state.is_dead() {
                    return Ok(end);
                } else if state.is_quit() {
                    return Err(GaveUp);
                }
            }
            *at += 1;
        }
        let state = self.dfa.next_eoi_state(cache, state).map_err(|_| GaveUp)?;
        Ok(if state.is_match() {
            Some(text.len())
        } else {
            end
        })
    }
}
