//! Translates Go's regular expressions to the syntax of the `regex` crates.
//!
//! Both are of one family (linear time, no look-around), but each accepts patterns that the other refuses, and some
//! patterns mean different things. So a pattern is parsed by the rules of Go's parser (`regexp/syntax` with the flags
//! of `regexp.Compile`), whose errors clients see, and every part is written in a form that has only one meaning:
//!
//! | written | Go | here |
//! |---|---|---|
//! | `\d` `\w` `\s` `\b` | ASCII | the ASCII classes by name |
//! | `(` `(?P<n>` | groups whose text is captured | groups |
//! | any character | itself, or what stands after `\` | escaped where it could mean something |
//! | `\Q...\E` | quoted text | the characters |

mod class;
mod unicode_names;

use std::fmt::Write as _;

use super::PatternError;

/// Maximum number of repetitions of a part, nested repetitions multiplied; Go's limit.
const REPEATS_MAX: u32 = 1000;

/// Maximum number of digits of a repetition's number; with more it is only known to be too large.
const REPEAT_DIGITS_MAX: usize = 8;

/// Maximum number of brackets that are open at once in a pattern. The compiler is recursive.
const LEVELS_MAX: usize = 100;

/// Maximum number of Unicode classes in a pattern. Each takes thousands of bytes before the size of the program is
/// known.
const UNICODE_CLASSES_MAX: usize = 500;

/// Maximum length of a pattern, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Translates a pattern of Go.
///
/// # Errors
/// [`PatternError`]: Go's parser refuses it, or it is too large.
pub(super) fn rewrite(pattern: &str) -> Result<String, PatternError> {
    if pattern.len() > TEXT_BYTES_MAX {
        return Err(PatternError::TooLarge);
    }
    let mut reader = PatternReader {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(2 * pattern.len()),
        groups: vec![PatternGroup::default()],
        unicode_classes: 0,
    };
    reader.read()?;
    Ok(reader.out)
}

/// A group between brackets, as far as it has been read.
#[derive(Default)]
struct PatternGroup {
    /// The last part, which an operator would repeat; none after a bracket or a bar.
    last: Option<PatternPiece>,
    /// The largest number of repetitions in all parts but the last.
    repeats: u32,
}

/// A part of a group that an operator can repeat.
#[derive(Clone, Copy)]
struct PatternPiece {
    /// The offset of its end in the rewritten pattern.
    end: usize,
    /// The largest number of repetitions in it.
    repeats: u32,
}

struct PatternReader<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    /// The groups that are open, the whole pattern first.
    groups: Vec<PatternGroup>,
    unicode_classes: usize,
}

fn wrong(what: &'static str, text: &str) -> PatternError {
    PatternError::Syntax {
        what,
        text: text.to_owned(),
    }
}

/// The repetition `{least,most}`; `None` for no upper bound.
struct Repeat<'p> {
    least: u32,
    most: Option<u32>,
    rest: &'p str,
}

impl<'p> PatternReader<'p> {
    fn read(&mut self) -> Result<(), PatternError> {
        // Where the operator began that was read just before, which may not be followed by another one.
        let mut operator = None;
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let mut is_operator = false;
            match next {
                '(' if before.starts_with("(?") => self.flags()?,
                '(' => {
                    self.rest = &before[1..];
                    self.open("(?:")?;
                }
                ')' => {
                    self.rest = &before[1..];
                    self.close()?;
                }
                '|' => {
                    self.rest = &before[1..];
                    self.out.push('|');
                    self.group().forget_last();
                }
                '^' | '$' | '.' => {
                    self.rest = &before[1..];
                    self.out.push(next);
                    self.part();
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.rest = &before[1..];
                    self.repeat(&before[..1], None, operator)?;
                    is_operator = true;
                }
                '{' => is_operator = self.counted(operator)?,
                '\\' => self.escaped()?,
                other => {
                    self.rest = &before[other.len_utf8()..];
                    self.literal(u32::from(other));
                }
            }
            operator = is_operator.then_some(operator.unwrap_or(before));
        }
        if self.groups.len() > 1 {
            return Err(wrong("missing closing )", self.whole));
        }
        Ok(())
    }

    fn group(&mut self) -> &mut PatternGroup {
        self.groups
            .last_mut()
            .expect("the whole pattern is never closed")
    }

    /// Makes the text that was written last a part of its own.
    fn part(&mut self) {
        let end = self.out.len();
        self.group().add(PatternPiece { end, repeats: 1 });
    }

    fn literal(&mut self, character: u32) {
        class::write_character(&mut self.out, character);
        self.part();
    }

    fn open(&mut self, source: &str) -> Result<(), PatternError> {
        if self.groups.len() > LEVELS_MAX {
            return Err(wrong("expression nests too deeply", self.whole));
        }
        self.out.push_str(source);
        self.groups.push(PatternGroup::default());
        Ok(())
    }

    fn close(&mut self) -> Result<(), PatternError> {
        if self.groups.len() == 1 {
            return Err(wrong("unexpected )", self.whole));
        }
        let mut closed = self.groups.pop().unwrap_or_default();
        closed.forget_last();
        self.out.push(')');
        let end = self.out.len();
        let repeats = closed.repeats;
        self.group().add(PatternPiece { end, repeats });
        Ok(())
    }

    /// Reads what follows `(?`: a name, flags, or flags and a group.
    fn flags(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        for start in ["(?P<", "(?<"] {
            let Some(rest) = before.strip_prefix(start) else {
                continue;
            };
            let what = "invalid named capture";
            let Some((name, after)) = rest.split_once('>') else {
                return Err(wrong(what, before));
            };
            let is_word = |it: char| it == '_' || it.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(wrong(what, &before[..before.len() - after.len()]));
            }
            self.rest = after;
            return self.open("(?:");
        }
        let (mut on, mut off) = (String::new(), String::new());
        let (mut negated, mut said) = (false, false);
        let mut rest = before[2..].chars();
        while let Some(next) = rest.next() {
            match next {
                'i' | 'm' | 's' | 'U' => {
                    said = true;
                    let flags = if negated { &mut off } else { &mut on };
                    if !flags.contains(next) {
                        flags.push(next);
                    }
                }
                '-' if !negated => (negated, said) = (true, false),
                ':' | ')' if said || !negated => {
                    self.rest = rest.as_str();
                    on.retain(|flag| !off.contains(flag));
                    return self.set(&on, &off, next == ':');
                }
                _ => break,
            }
        }
        let read = before.len() - rest.as_str().len();
        Err(wrong("invalid or unsupported Perl syntax", &before[..read]))
    }

    fn set(&mut self, on: &str, off: &str, opens: bool) -> Result<(), PatternError> {
        let minus = if off.is_empty() { "" } else { "-" };
        if opens {
            return self.open(&format!("(?{on}{minus}{off}:"));
        }
        if !(on.is_empty() && off.is_empty()) {
            _ = write!(self.out, "(?{on}{minus}{off})");
        }
        Ok(())
    }

    /// Reads `{`, which is a literal unless a repetition begins with it. Returns true if one does.
    fn counted(&mut self, operator: Option<&'p str>) -> Result<bool, PatternError> {
        let before = self.rest;
        let Some(repeat) = counts(before) else {
            self.rest = &before[1..];
            self.literal(u32::from('{'));
            return Ok(false);
        };
        let source = &before[..before.len() - repeat.rest.len()];
        let most = repeat.most.unwrap_or(repeat.least);
        if repeat.least > REPEATS_MAX || most > REPEATS_MAX || most < repeat.least {
            return Err(wrong("invalid repeat count", source));
        }
        self.rest = repeat.rest;
        self.repeat(source, Some(&repeat), operator)?;
        Ok(true)
    }

    /// Reads a repetition, which must follow a part of the pattern.
    fn repeat(
        &mut self,
        source: &str,
        counts: Option<&Repeat<'_>>,
        operator: Option<&'p str>,
    ) -> Result<(), PatternError> {
        let begins_at = self.rest.len() + source.len();
        let begins_at = self.whole.len() - begins_at;
        let lazy = self.rest.strip_prefix('?');
        self.rest = lazy.unwrap_or(self.rest);
        let ends_at = self.whole.len() - self.rest.len();
        let text = &self.whole[begins_at..ends_at];
        if let Some(operator) = operator {
            let first_at = self.whole.len() - operator.len();
            let all = &self.whole[first_at..ends_at];
            return Err(wrong("invalid nested repetition operator", all));
        }
        let Some(part) = self.group().last else {
            return Err(wrong("missing argument to repetition operator", text));
        };
        let times = counts.map_or(1, |it| it.most.unwrap_or(it.least));
        let repeats = times.saturating_mul(part.repeats).max(1);
        let is_checked = counts.is_some_and(|it| it.least >= 2 || times >= 2);
        if is_checked && repeats > REPEATS_MAX {
            return Err(wrong("invalid repeat count", text));
        }
        // Flags may have been set since, which are no part.
        self.out.insert_str(part.end, text);
        let end = part.end + text.len();
        self.group().last = Some(PatternPiece { end, repeats });
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        let source = match before[1..].chars().next() {
            Some('A') => r"\A",
            Some('z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('B') => r"(?-u:\B)",
            Some('C') => return Err(wrong("invalid escape sequence", &before[..2])),
            Some('Q') => {
                let text = &before[2..];
                let (quoted, after) = text.split_once(r"\E").unwrap_or((text, ""));
                self.rest = after;
                quoted.chars().for_each(|it| self.literal(u32::from(it)));
                return Ok(());
            }
            _ => {
                if !self.named_class()? {
                    let character = self.escape()?;
                    class::write_character(&mut self.out, character);
                }
                self.part();
                return Ok(());
            }
        };
        self.rest = &before[2..];
        self.out.push_str(source);
        self.part();
        Ok(())
    }
}

impl PatternGroup {
    fn add(&mut self, part: PatternPiece) {
        self.forget_last();
        self.last = Some(part);
    }

    fn forget_last(&mut self) {
        let repeats = self.last.take().map_or(1, |it| it.repeats);
        self.repeats = self.repeats.max(repeats);
    }
}

/// Returns the numbers of `{2}`, `{2,}` and `{2,3}`; `None` for what is no repetition.
fn counts(text: &str) -> Option<Repeat<'_>> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (most, rest) = number(rest)?;
            (Some(most), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some(Repeat { least, most, rest })
}

/// Returns a number without zeros before it, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    let is_short = digits.len() <= REPEAT_DIGITS_MAX;
    let number = if is_short {
        digits.parse().ok()?
    } else {
        u32::MAX
    };
    Some((number, rest))
}
