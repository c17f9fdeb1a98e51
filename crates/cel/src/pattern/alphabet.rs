//! The characters of a pattern as symbols of one byte.
//!
//! In UTF-8 a class such as `\pL` is a machine of hundreds of states, and `\pL{1000}` a thousand of these; in Go it is
//! one instruction. But a pattern tells few characters apart: those that stand in the same classes of it are one
//! symbol to it. So characters of ASCII are symbols of their own, as line ends and words need, and the others share
//! those from 128 on. A pattern and its texts are translated to symbols, of which a class is one state.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicodeRange, Hir, HirKind};

/// The first symbol, and the first character, that is not of ASCII.
const FIRST: u8 = 0x80;
const FIRST_CHARACTER: u32 = 0x80;

/// Maximum number of symbols beside those of ASCII.
const SYMBOLS_MAX: usize = 128;

/// Maximum number of different classes in a pattern that are told apart.
const CLASSES_MAX: usize = 1_000;

/// A class of characters beyond ASCII: its ranges, first and last character of each, in order.
type Ranges = Vec<(u32, u32)>;

/// The symbols of the characters beyond ASCII.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// The first characters of ranges of one symbol, in order.
    ranges: Box<[(u32, u8)]>,
}

impl Alphabet {
    /// Returns the alphabet of a pattern, `None` if it tells too many characters apart, and the number of ranges of
    /// characters that were looked at for it: a class has its ranges as often as it stands in the pattern.
    pub(super) fn of(pattern: &Hir) -> (Option<Self>, usize) {
        let mut classes = Classes::default();
        classes.collect(pattern);
        let mut looked_at = classes.ranges;
        if classes.beyond_ascii.len() > CLASSES_MAX {
            return (None, looked_at);
        }
        let mut ranges = vec![(FIRST_CHARACTER, 0)];
        for class in &classes.beyond_ascii {
            let Some(more) = split(&ranges, class) else {
                return (None, looked_at);
            };
            ranges = more;
            looked_at += ranges.len();
        }
        let symbol = |(first, number): (u32, u8)| (first, FIRST + number);
        let ranges = ranges.into_iter().map(symbol).collect();
        (Some(Self { ranges }), looked_at)
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.ranges)
    }

    /// Returns the symbols of a text, one for each character.
    pub(super) fn read<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        if text.is_ascii() {
            return Cow::Borrowed(text.as_bytes());
        }
        Cow::Owned(text.chars().map(|it| self.symbol(it)).collect())
    }

    fn symbol(&self, character: char) -> u8 {
        if let Ok(ascii @ 0..FIRST) = u8::try_from(character) {
            return ascii;
        }
        self.ranges[self.range_of(u32::from(character))].1
    }

    fn range_of(&self, character: u32) -> usize {
        let after = self
            .ranges
            .partition_point(|(first, _)| *first <= character);
        after.saturating_sub(1)
    }

    /// Translates a pattern of characters to one of symbols.
    pub(super) fn translate(&self, pattern: &Hir) -> Hir {
        let mut translation = Translation {
            alphabet: self,
            classes: BTreeMap::new(),
        };
        translation.of(pattern)
    }

    fn symbols(&self, class: &[ClassUnicodeRange]) -> ClassBytes {
        let mut symbols = ClassBytes::empty();
        for range in class {
            let (start, end) = (u32::from(range.start()), u32::from(range.end()));
            if let Ok(low @ 0..FIRST) = u8::try_from(start) {
                let high = u8::try_from(end).unwrap_or(u8::MAX).min(FIRST - 1);
                symbols.push(ClassBytesRange::new(low, high));
            }
            if end >= FIRST_CHARACTER {
                let from = self.range_of(start.max(FIRST_CHARACTER));
                for (_, symbol) in &self.ranges[from..=self.range_of(end)] {
                    symbols.push(ClassBytesRange::new(*symbol, *symbol));
                }
            }
        }
        symbols
    }
}

/// A translation of one pattern, which translates each different class once.
struct Translation<'p> {
    alphabet: &'p Alphabet,
    classes: BTreeMap<&'p [ClassUnicodeRange], ClassBytes>,
}

impl<'p> Translation<'p> {
    fn of(&mut self, pattern: &'p Hir) -> Hir {
        match pattern.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                Hir::literal(self.alphabet.read(&text).into_owned())
            }
            HirKind::Class(class) => Hir::class(Class::Bytes(self.class(class))),
            HirKind::Look(look) => Hir::look(*look),
            HirKind::Repetition(repetition) => {
                Hir::repetition(repetition.with(self.of(&repetition.sub)))
            }
            HirKind::Capture(capture) => self.of(&capture.sub),
            HirKind::Concat(parts) => Hir::concat(parts.iter().map(|it| self.of(it)).collect()),
            HirKind::Alternation(parts) => {
                Hir::alternation(parts.iter().map(|it| self.of(it)).collect())
            }
        }
    }

    fn class(&mut self, class: &'p Class) -> ClassBytes {
        let Class::Unicode(class) = class else {
            return ClassBytes::empty();
        };
        let translated = self.classes.entry(class.ranges());
        let translated = translated.or_insert_with_key(|class| self.alphabet.symbols(class));
        translated.clone()
    }
}

/// The classes of a pattern, and its single characters.
#[derive(Default)]
struct Classes<'p> {
    /// The different classes.
    known: BTreeSet<&'p [ClassUnicodeRange]>,
    /// The different parts of them that lie beyond ASCII.
    beyond_ascii: BTreeSet<Ranges>,
    /// The number of ranges of all classes, counted as often as each stands in the pattern.
    ranges: usize,
}

impl<'p> Classes<'p> {
    fn collect(&mut self, pattern: &'p Hir) {
        if self.beyond_ascii.len() > CLASSES_MAX {
            return;
        }
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => {}
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                let beyond = text.chars().filter(|it| !it.is_ascii()).map(u32::from);
                self.beyond_ascii.extend(beyond.map(|it| vec![(it, it)]));
            }
            HirKind::Class(Class::Unicode(class)) => {
                let ranges = class.ranges();
                self.ranges += ranges.len();
                if self.known.insert(ranges) {
                    let ranges = ranges.iter();
                    let ranges = ranges.map(|it| (u32::from(it.start()), u32::from(it.end())));
                    let beyond = ranges.filter(|(_, end)| *end >= FIRST_CHARACTER);
                    let beyond = beyond.map(|(start, end)| (start.max(FIRST_CHARACTER), end));
                    self.beyond_ascii.insert(beyond.collect());
                }
            }
            HirKind::Repetition(repetition) => self.collect(&repetition.sub),
            HirKind::Capture(capture) => self.collect(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().for_each(|it| self.collect(it));
            }
        }
    }
}

/// Splits ranges, each with a number, so that each lies in a class or outside of it; those that were and stay together
/// have one number. Returns `None` if there are too many numbers.
fn split(ranges: &[(u32, u8)], class: &Ranges) -> Option<Vec<(u32, u8)>> {
    let mut numbers: HashMap<(u8, bool), u8> = HashMap::new();
    let mut made: Vec<(u32, u8)> = Vec::with_capacity(ranges.len() + 2 * class.len());
    let mut add = |first: u32, before: u8, inside: bool| {
        let next = u8::try_from(numbers.len()).ok()?;
        let number = *numbers.entry((before, inside)).or_insert(next);
        if usize::from(number) >= SYMBOLS_MAX {
            return None;
        }
        if made.last().is_none_or(|(_, last)| *last != number) {
            made.push((first, number));
        }
        Some(())
    };
    let mut at = 0;
    for (index, (first, before)) in ranges.iter().enumerate() {
        let end = ranges.get(index + 1).map_or(u32::MAX, |(next, _)| *next);
        let mut first = *first;
        while first < end {
            while class.get(at).is_some_and(|(_, last)| *last < first) {
                at += 1;
            }
            let (inside, until) = match class.get(at) {
                Some((start, last)) if *start <= first => (true, *last + 1),
                Some((start, _)) => (false, *start),
                None => (false, end),
            };
            add(first, *before, inside)?;
            first = until.min(end);
        }
    }
    Some(made)
}

/// Returns the bytes of a text that these of its symbols stand for, given in the order of the text.
pub(super) fn bytes_of(text: &str, symbols: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if text.is_ascii() {
        return symbols;
    }
    let mut begins = text.char_indices().map(|(begin, _)| begin);
    let (mut symbol, mut byte) = (0, begins.next().unwrap_or(text.len()));
    let mut byte_of = |wanted: usize| {
        while symbol < wanted {
            byte = begins.next().unwrap_or(text.len());
            symbol += 1;
        }
        byte
    };
    let range = |it: Range<usize>| byte_of(it.start)..byte_of(it.end);
    symbols.into_iter().map(range).collect()
}
