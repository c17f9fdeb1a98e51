//! The syntax of JSONPath. Follows the parser of client-go's `jsonpath`, whose words it tells.

/// Maximum number of paths within each other, in filters, unions and names.
const DEEP_MAX: usize = 32;

/// Returns what is wrong with a path; `None` if client-go can read it.
pub(super) fn wrong_path(path: &str) -> Option<String> {
    read(path, DEEP_MAX).err()
}

/// Reads a path; returns true if `..` ends it.
fn read(path: &str, deep_left: usize) -> Result<bool, String> {
    let Some(deep_left) = deep_left.checked_sub(1) else {
        return Err("nested too deeply".to_owned());
    };
    let mut reader = PathReader {
        rest: path,
        ends_in_descent: false,
        deep_left,
    };
    reader.all()?;
    Ok(reader.ends_in_descent)
}

/// The rest of a path that is being read.
struct PathReader<'p> {
    rest: &'p str,
    /// True after `..`.
    ends_in_descent: bool,
    deep_left: usize,
}

impl<'p> PathReader<'p> {
    /// Reads the path to its end, which closes it as a brace does. What follows a brace is text up to the next path.
    fn all(&mut self) -> Result<(), String> {
        loop {
            if let Some(text) = self.rest.strip_prefix('}') {
                let Some((_, next)) = text.split_once('{') else {
                    return Ok(());
                };
                self.rest = next;
                self.ends_in_descent = false;
            } else if self.rest.is_empty() {
                return Ok(());
            } else {
                self.step()?;
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if let Some(filter) = self.rest.strip_prefix("[?(") {
            self.rest = filter;
            return self.filter();
        }
        if let Some(below) = self.rest.strip_prefix("..") {
            return self.descent(below);
        }
        let first = self.rest.chars().next().unwrap_or_default();
        let behind = &self.rest[first.len_utf8()..];
        match first {
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            ' ' | '@' | '$' => {
                self.rest = behind;
                return Ok(());
            }
            '[' => {
                self.rest = behind;
                return self.brackets();
            }
            '"' | '\'' => self.quoted(first)?,
            '.' => self.name(behind),
            '+' | '-' | '0'..='9' => self.number()?,
            _ if is_word(first) => {
                self.take(self.rest.find(ends_a_name));
            }
            _ => {
                return Err(format!(
                    "unrecognized character in action: {}",
                    code_point(first)
                ));
            }
        }
        self.ends_in_descent = false;
        Ok(())
    }

    /// Returns what is before a place, or all that is left, and goes on there.
    fn take(&mut self, end: Option<usize>) -> &'p str {
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn descent(&mut self, below: &'p str) -> Result<(), String> {
        if self.ends_in_descent {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.ends_in_descent = true;
        self.rest = below;
        if below.starts_with(is_word) {
            self.name(below);
            self.ends_in_descent = false;
        }
        Ok(())
    }

    /// Reads a name up to a letter that ends it and has no backslash before it.
    fn name(&mut self, name: &'p str) {
        self.rest = name;
        let mut letters = name.char_indices();
        while let Some((at, letter)) = letters.next() {
            if letter == '\\' {
                letters.next();
            } else if ends_a_name(letter) {
                self.take(Some(at));
                return;
            }
        }
        self.take(None);
    }

    fn number(&mut self) -> Result<(), String> {
        let is_part = |letter: char| letter == '.' || letter.is_ascii_digit();
        let signs = usize::from(self.rest.starts_with(['+', '-']));
        let end = self.rest[signs..].find(|letter| !is_part(letter));
        let number = self.take(end.map(|end| end + signs));
        match number.parse::<f64>() {
            Ok(read) if read.is_finite() => Ok(()),
            _ => Err(format!("cannot parse number {number}")),
        }
    }

    /// Reads a text between quotes, as texts are written in Go.
    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let mut before = quote;
        for (at, letter) in self.rest.char_indices().skip(1) {
            if letter == '\n' {
                break;
            }
            if letter == quote && before != '\\' {
                let text = self.take(Some(at + 1));
                return if can_be_unquoted(&text[1..at], quote) {
                    Ok(())
                } else {
                    Err(format!("unquote string {text} error invalid syntax"))
                };
            }
            before = letter;
        }
        Err("unterminated quoted string".to_owned())
    }

    /// Reads what stands between brackets: a name, or the index or the range of items, or several of these.
    fn brackets(&mut self) -> Result<(), String> {
        let end = self.rest.find([']', '\n']);
        let inner = self.take(end);
        if !self.rest.starts_with(']') {
            return Err("unterminated array".to_owned());
        }
        self.rest = &self.rest[1..];
        self.ends_in_descent = false;
        if inner.contains(',') {
            for part in inner.split(',') {
                read(&format!("[{}]", part.trim_matches(' ')), self.deep_left)?;
            }
            return Ok(());
        }
        let name = inner
            .strip_prefix('\'')
            .and_then(|it| it.strip_suffix('\''));
        if let Some(name) = name.filter(|it| !it.contains('\'')) {
            self.ends_in_descent = read(&format!(".{name}"), self.deep_left)?;
            return Ok(());
        }
        check_range(if inner == "*" { ":" } else { inner })
    }

    /// Reads a filter from behind its parenthesis on: a path, or two that are compared.
    fn filter(&mut self) -> Result<(), String> {
        let mut quote = None;
        let mut is_closed = false;
        let mut before = '(';
        let mut end = None;
        for (at, letter) in self.rest.char_indices() {
            match letter {
                '\n' => break,
                '"' | '\'' if quote.is_none() => quote = Some(letter),
                letter if quote == Some(letter) && before != '\\' => is_closed = true,
                ')' if quote.is_some() == is_closed => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
            before = letter;
        }
        if end.is_none() {
            return Err("unterminated filter".to_owned());
        }
        let filter = self.take(end);
        let Some(rest) = self.rest.strip_prefix(")]") else {
            return Err("unclosed array expect ]".to_owned());
        };
        self.rest = rest;
        self.ends_in_descent = false;
        match compared(filter) {
            None => drop(read(filter, self.deep_left)?),
            Some((left, right)) => {
                read(left, self.deep_left)?;
                read(right, self.deep_left)?;
            }
        }
        Ok(())
    }
}

/// Returns the two sides of a comparison; `None` if it is none.
fn compared(filter: &str) -> Option<(&str, &str)> {
    let is_operator = |letter: char| "!<>=".contains(letter);
    let start = filter.find(is_operator).filter(|at| *at > 0)?;
    let (left, right) = filter.split_at(start);
    match right.trim_start_matches(is_operator) {
        // The last sign of a comparison with nothing is its right side.
        "" => (right.len() > 1).then(|| (left, &right[right.len() - 1..])),
        right => Some((left, right)),
    }
}

/// Checks the index of an item, or a range: a start, an end and a step.
fn check_range(range: &str) -> Result<(), String> {
    let parts: Vec<&str> = range.split(':').collect();
    let is_part = |part: &&str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(is_part) {
        return Err(format!("invalid array index {range}"));
    }
    let wrong = parts
        .iter()
        .find(|it| !it.is_empty() && it.parse::<i64>().is_err());
    match wrong {
        Some(part) => Err(format!("array index {part} is not a number")),
        None => Ok(()),
    }
}

/// Returns true if all escapes in a text are Go's, and no quote is without one.
fn can_be_unquoted(text: &str, quote: char) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', quote]) {
        if rest[at..].starts_with(quote) {
            return false;
        }
        let escape = &rest[at + 1..];
        let Some(after) = without_escape(escape, quote) else {
            return false;
        };
        rest = after;
    }
    true
}

/// Returns what follows an escape, which begins behind its backslash; `None` if it is none of Go's.
fn without_escape(text: &str, quote: char) -> Option<&str> {
    let first = text.chars().next()?;
    let digits = |start: usize, end: usize, radix: u32| {
        let number = text.get(start..end)?;
        let number = (!number.starts_with('+')).then(|| u32::from_str_radix(number, radix));
        Some((number?.ok()?, &text[end..]))
    };
    match first {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' => Some(&text[1..]),
        '\'' | '"' => (first == quote).then_some(&text[1..]),
        'x' => digits(1, 3, 16).map(|(_, rest)| rest),
        'u' => digits(1, 5, 16).and_then(|(letter, rest)| char::from_u32(letter).map(|_| rest)),
        'U' => digits(1, 9, 16).and_then(|(letter, rest)| char::from_u32(letter).map(|_| rest)),
        '0'..='7' => digits(0, 3, 8).and_then(|(byte, rest)| (byte <= 255).then_some(rest)),
        _ => None,
    }
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Returns true if a letter is no part of a name, unless a backslash precedes it.
fn ends_a_name(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

/// Shows a letter with its number, as Go's `%#U` does.
fn code_point(letter: char) -> String {
    let number = format!("U+{:04X}", u32::from(letter));
    if letter.is_control() {
        number
    } else {
        format!("{number} '{letter}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_kinds_can_be_read() {
        for path in [
            "spec.x",
            ".spec['a.b'].c",
            "$.a[0][-1:][0:4:2][*]",
            "..a..b",
            "a[?(@.type==\"Ready\")].b",
            "a[?(@.n)]['b','c']",
            r#"'it\'s' "\u00e4\x41\101""#,
            "-1.5 true",
            "a}text{.b",
            r"a\.b",
        ] {
            assert_eq!(wrong_path(path), None, "{path}");
        }
    }

    #[test]
    fn wrong_paths_are_told_in_the_words_of_client_go() {
        for (path, why) in [
            ("*", "unrecognized character in action: U+002A '*'"),
            ("a\tb", "unrecognized character in action: U+0009"),
            ("a\nb", "unclosed action"),
            ("[a", "unterminated array"),
            ("[a]", "invalid array index a"),
            ("[0:-]", "array index - is not a number"),
            ("[0,x]", "invalid array index x"),
            ("....", "invalid multiple recursive descent"),
            ("1.2.3", "cannot parse number 1.2.3"),
            ("'a", "unterminated quoted string"),
            (r"'\q'", r"unquote string '\q' error invalid syntax"),
            ("[?(a", "unterminated filter"),
            ("[?(a)b", "unclosed array expect ]"),
            ("[?(a==)]", "unrecognized character in action: U+003D '='"),
        ] {
            assert_eq!(wrong_path(path).as_deref(), Some(why), "{path}");
        }
    }
}
