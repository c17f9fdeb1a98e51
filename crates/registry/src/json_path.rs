//! The JSONPath of columns of custom resources. Follows client-go's `jsonpath`, without `range`.
//!
//! A path consists of members (`.spec.color`, with `\.` for a dot in a name, or `['name']`), items (`[0]`, `[-1:]`,
//! `[0:4:2]`, `[*]`), all of something (`.*`), everything below (`..hosts`), filters (`[?(@.type=="Ready")]`,
//! `[?(@.weight>1)]`, `[?(@.name)]`) and unions (`['a','b']`). A step that does not fit, such as an index beyond the
//! end of a list or the comparison of a text with a number, makes the whole path lead nowhere.

mod walk;

use std::cmp::Ordering;

use serde_json::Value;

use self::walk::PathWalk;

/// A parsed path: the steps from an object to a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath(Vec<JsonPathStep>);

/// Maximum number of steps of a path, those in its filters and unions included.
const STEPS_MAX: usize = 64;

/// Maximum number of filters within each other.
const FILTERS_DEEP_MAX: usize = 4;

/// Maximum number of values that are looked at on the way along a path.
const VALUES_MAX: usize = 20_000;

#[derive(Clone, Debug, PartialEq)]
enum JsonPathStep {
    Member(String),
    Items(Range),
    /// The step to all items of a list, or all members of a map.
    All,
    /// The step to everything below that has parts, and to texts.
    Below,
    /// The items at which a path leads somewhere, or to a value that compares so with another one.
    Filter {
        left: Vec<Self>,
        comparison: Option<(Operator, Vec<Self>)>,
    },
    /// The values of several paths.
    Union(Vec<Vec<Self>>),
    Literal(Value),
}

/// The items of a list from a place on, to a place before the end, of which every so many are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    start: Option<i64>,
    end: SliceEnd,
    every: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SliceEnd {
    OfList,
    /// The place before which the range ends; counted from the end of the list if it is negative.
    At(i64),
    /// The range is the item at its start.
    AfterStart,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl JsonPath {
    /// Parses a path; returns `None` if it is malformed or has more than [`STEPS_MAX`] steps.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut text = text.trim();
        if let Some(inner) = text.strip_prefix('{') {
            text = inner.strip_suffix('}')?;
        }
        let mut steps_left = STEPS_MAX;
        Parser::parse(text, &mut steps_left, FILTERS_DEEP_MAX).map(Self)
    }

    /// Returns the first value that the path leads to. Looks at `values_left` values at most, of which those that it
    /// has looked at are taken.
    pub(super) fn find<'a>(
        &'a self,
        value: &'a Value,
        values_left: &mut usize,
    ) -> Option<&'a Value> {
        let most = VALUES_MAX.min(*values_left);
        let mut walk = PathWalk::new(most);
        let found = walk.steps(&self.0, vec![value]);
        *values_left -= most - walk.values_left;
        found?.first().copied()
    }
}

/// The parser of a path, or of a part of it.
struct Parser<'a, 'b> {
    rest: &'a str,
    steps: Vec<JsonPathStep>,
    steps_left: &'b mut usize,
    filters_left: usize,
}

impl Parser<'_, '_> {
    fn parse(text: &str, steps_left: &mut usize, filters_left: usize) -> Option<Vec<JsonPathStep>> {
        let mut parser = Parser {
            rest: text,
            steps: Vec::new(),
            steps_left,
            filters_left,
        };
        while let Some(first) = parser.rest.chars().next() {
            parser.step(first)?;
        }
        Some(parser.steps)
    }

    fn add(&mut self, step: JsonPathStep) -> Option<()> {
        *self.steps_left = self.steps_left.checked_sub(1)?;
        self.steps.push(step);
        Some(())
    }

    /// Returns the text before a place, and goes on after as many bytes behind it.
    fn take(&mut self, end: usize, behind: usize) -> Option<String> {
        let taken = self.rest.get(..end)?.to_owned();
        self.rest = self.rest.get(end + behind..)?;
        Some(taken)
    }

    fn step(&mut self, first: char) -> Option<()> {
        if self.rest.starts_with("[?(") {
            return self.filter();
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            self.rest = rest;
            if self.steps.last() == Some(&JsonPathStep::Below) {
                return None;
            }
            self.add(JsonPathStep::Below)?;
            let is_name = rest.starts_with(|it: char| it == '_' || it.is_alphanumeric());
            return if is_name { self.member() } else { Some(()) };
        }
        match first {
            // The object itself.
            ' ' | '@' | '$' => {
                self.rest = &self.rest[1..];
                Some(())
            }
            '[' => {
                let end = self.rest.find(']')?;
                let inner = self.take(end, 1)?;
                self.bracketed(&inner[1..])
            }
            '.' => {
                self.rest = &self.rest[1..];
                self.member()
            }
            quote @ ('"' | '\'') => {
                let text = self.quoted(quote)?;
                self.add(JsonPathStep::Literal(text.into()))
            }
            '+' | '-' | '0'..='9' => {
                let of_number = |(at, it): (usize, char)| {
                    let is_sign = at == 0 && (it == '+' || it == '-');
                    (!is_sign && it != '.' && !it.is_ascii_digit()).then_some(at)
                };
                let end = self.rest.char_indices().find_map(of_number);
                let digits = self.take(end.unwrap_or(self.rest.len()), 0)?;
                let whole = digits.parse::<i64>().map(Value::from);
                let number = whole.or_else(|_| digits.parse::<f64>().map(Value::from));
                self.add(JsonPathStep::Literal(number.ok()?))
            }
            _ => {
                let end = self.rest.find(ends_a_name).unwrap_or(self.rest.len());
                let word = self.take(end, 0)?;
                self.add(JsonPathStep::Literal(word.parse::<bool>().ok()?.into()))
            }
        }
    }

    /// Reads a member's name after the dot. An empty name stands for the object itself and is no step.
    fn member(&mut self) -> Option<()> {
        let mut name = String::new();
        let mut letters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
                letter if ends_a_name(letter) => {
                    end = at;
                    break;
                }
                letter => name.push(letter),
            }
        }
        self.rest = &self.rest[end..];
        match name.as_str() {
            "" => Some(()),
            "*" => self.add(JsonPathStep::All),
            _ => self.add(JsonPathStep::Member(name)),
        }
    }

    fn bracketed(&mut self, inner: &str) -> Option<()> {
        if inner.contains(',') {
            let mut paths = Vec::new();
            for part in inner.split(',') {
                let part = format!("[{}]", part.trim_matches(' '));
                paths.push(Parser::parse(&part, self.steps_left, self.filters_left)?);
            }
            return self.add(JsonPathStep::Union(paths));
        }
        let name = inner
            .strip_prefix('\'')
            .and_then(|it| it.strip_suffix('\''));
        if let Some(name) = name.filter(|it| !it.contains('\'')) {
            let steps = Parser::parse(&format!(".{name}"), self.steps_left, 0)?;
            self.steps.extend(steps);
            return Some(());
        }
        self.add(JsonPathStep::Items(Range::parse(inner)?))
    }

    /// Reads a filter to its end: a bracket that is not between quotes.
    fn filter(&mut self) -> Option<()> {
        let filters_left = self.filters_left.checked_sub(1)?;
        let mut quote = None;
        let mut is_closed = false;
        let mut before = ' ';
        let start = "[?(".len();
        let mut end = None;
        for (at, letter) in self.rest.char_indices().skip(start) {
            match letter {
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
        let text = self.take(end?, 1)?;
        self.rest = self.rest.strip_prefix(']')?;
        let text = &text[start..];
        let mut path = |text: &str| Parser::parse(text, self.steps_left, filters_left);
        let of_operator = |letter: char| "!<>=".contains(letter);
        let step = match text.find(of_operator).filter(|at| *at > 0) {
            None => JsonPathStep::Filter {
                left: path(text)?,
                comparison: None,
            },
            Some(at) => {
                let right = text[at..].trim_start_matches(of_operator);
                let operator = Operator::parse(&text[at..text.len() - right.len()])?;
                JsonPathStep::Filter {
                    left: path(&text[..at])?,
                    comparison: Some((operator, path(right)?)),
                }
            }
        };
        self.add(step)
    }

    /// Reads a text in quotes, in which a backslash precedes quotes and backslashes.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => text.push(letters.next()?.1),
                letter if letter == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                letter => text.push(letter),
            }
        }
        None
    }
}

/// Returns true if a letter is no part of a name, unless a backslash precedes it.
fn ends_a_name(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            ">=" => Self::GreaterOrEqual,
            ">" => Self::Greater,
            _ => return None,
        })
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Greater => order.is_gt(),
        }
    }

    /// Compares two values; `None` if they are of types that are not compared.
    fn compare(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Bool(left), Value::Bool(right)) => {
                let is_equality = matches!(self, Self::Equal | Self::NotEqual);
                is_equality.then(|| left.cmp(right))?
            }
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
                _ => return None,
            },
            _ => return None,
        };
        Some(self.holds(order))
    }
}

impl Range {
    /// Parses `start:end:every`, of which each may be left out; a start alone is one item.
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Self::parse(":");
        }
        let number = |text: &str| match text {
            "" => Some(None),
            text if text.starts_with('+') => None,
            text => text.parse::<i64>().ok().map(Some),
        };
        let mut parts = text.splitn(3, ':');
        let start = number(parts.next()?)?;
        let end = match parts.next() {
            None => SliceEnd::AfterStart,
            Some(text) => number(text)?.map_or(SliceEnd::OfList, SliceEnd::At),
        };
        let every = parts.next().map_or(Some(None), number)?;
        Some(Self { start, end, every })
    }

    /// Returns the items of a list in the range; `None` if an end of it is beyond the list.
    fn of<'a>(&self, items: &'a [Value]) -> Option<impl Iterator<Item = &'a Value>> {
        let length = i64::try_from(items.len()).ok()?;
        let from_end = |place: i64| {
            if place < 0 {
                place.saturating_add(length)
            } else {
                place
            }
        };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end {
            SliceEnd::OfList => length,
            SliceEnd::At(place) => from_end(place),
            SliceEnd::AfterStart => start.saturating_add(1),
        };
        let every = usize::try_from(self.every.unwrap_or(1)).ok()?;
        let items = match start == end {
            true => &[],
            false => items.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?,
        };
        (every > 0).then(|| items.iter().step_by(every))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"annotations": {"a.b/c": "x"}, "labels": {"x.y": "lab"}},
            "status": {"conditions": [
                {"type": "Synced", "status": "False", "weight": 1},
                {"type": "Ready", "status": "True", "since": 3, "weight": 2}]},
            "spec": {"ports": [80, 443], "routes": [{"hosts": ["h"]}], "none": []},
        })
    }

    #[test]
    fn paths_lead_to_members_items_and_choices() {
        for (path, found) in [
            (".spec.ports[0]", Some(json!(80))),
            (".spec.ports[-1]", Some(json!(443))),
            (".spec.ports[-3]", None),
            (".spec.ports[9]", None),
            (".spec.ports[*]", Some(json!(80))),
            (".spec.ports[-1:]", Some(json!(443))),
            (".spec.ports[0:2]", Some(json!(80))),
            (".spec.ports[1:2]", Some(json!(443))),
            (".spec.ports[:1]", Some(json!(80))),
            (".spec.ports[0:1:5]", Some(json!(80))),
            (".spec.ports[0:2:0]", None),
            (".spec.ports[0:3]", None),
            (".spec.ports[1:1]", None),
            (".spec.none[-1:]", None),
            (".spec.none[*]", None),
            (".spec[*]", None),
            (".spec.routes[0].*", Some(json!(["h"]))),
            (".spec..hosts", Some(json!(["h"]))),
            ("..hosts[0]", Some(json!("h"))),
            ("..since", Some(json!(3))),
            (r".metadata.annotations.a\.b/c", Some(json!("x"))),
            (r".metadata.annotations['a\.b/c']", Some(json!("x"))),
            (".metadata.annotations['a.b/c']", None),
            (r".metadata.labels['x\.y']", Some(json!("lab"))),
            (".spec['ports'][1]", Some(json!(443))),
            (".spec['nothing','ports']", Some(json!([80, 443]))),
            (".spec.ports[1,0]", Some(json!(443))),
            (
                ".status.conditions[?(@.type==\"Ready\")].status",
                Some(json!("True")),
            ),
            (".status.conditions[?(@.type=='Gone')].status", None),
            (
                ".status.conditions[?(@.type!='Synced')].type",
                Some(json!("Ready")),
            ),
            (
                ".status.conditions[?(@.since==3)].type",
                Some(json!("Ready")),
            ),
            (".status.conditions[?(@.since)].type", Some(json!("Ready"))),
            (
                ".status.conditions[?(@.weight>1)].type",
                Some(json!("Ready")),
            ),
            (
                ".status.conditions[?(@.weight >= 1)].type",
                Some(json!("Synced")),
            ),
            (".status.conditions[?(@.weight<1)].type", None),
            (".status.conditions[?(@.weight<1.5)].type", None),
            (".status.conditions[?(@.weight==\"1\")].type", None),
            (
                ".status.conditions[?(@.type<@.status)].weight",
                Some(json!(2)),
            ),
            ("{.spec.ports[1]}", Some(json!(443))),
            ("$.spec.ports[1]", Some(json!(443))),
            (".spec.nothing", None),
            (".spec.nothing[0]", None),
        ] {
            let parsed = JsonPath::parse(path).expect(path);
            assert_eq!(find(&parsed, &object()), found, "{path}");
        }
    }

    /// Returns the first value that a path alone leads to.
    fn find(path: &JsonPath, value: &Value) -> Option<Value> {
        path.find(value, &mut VALUES_MAX.clone()).cloned()
    }

    #[test]
    fn paths_share_the_values_that_may_be_looked_at() {
        let object = json!({"a": vec![1; 10]});
        let path = JsonPath::parse(".a[*]").expect("a path");
        let mut left = 25;
        assert!(path.find(&object, &mut left).is_some());
        assert_eq!(left, 25 - 11);
        assert!(path.find(&object, &mut left).is_some());
        assert!(path.find(&object, &mut left).is_none());
        assert_eq!(left, 0, "nor is there any for a shorter path");
    }

    #[test]
    fn what_is_no_path_is_not_parsed() {
        for wrong in [
            "spec",
            ".a[",
            ".a[b]",
            ".a[\"b\"]",
            "{.a",
            ".a[1:2:3:4]",
            ".a[?(@.b]",
            ".a[?(@.b)",
            "....a",
            ".a[?(@.b=1)]",
            ".a[?(@.b=='x)]",
            "(",
            ".a[?()",
            "\\",
            ".a)",
        ] {
            let found = JsonPath::parse(wrong);
            let found = found.and_then(|path| find(&path, &json!({"a": [{"b": 1}]})));
            assert_eq!(found, None, "{wrong}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(STEPS_MAX + 1)), None);
        assert_eq!(JsonPath::parse(&"[?(".repeat(100_000)), None);
    }

    #[test]
    fn no_path_takes_long() {
        let many = json!(vec![json!({"a": "b"}); VALUES_MAX]);
        for path in ["..a", "[*].a", "[?(@.a)]", "[*,*]"] {
            let path = JsonPath::parse(path).expect(path);
            assert_eq!(find(&path, &many), None, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_a_path_or_not(text in r#"[.a\[\]?(@)=<'",:*1\\ -]{0,24}"#) {
            if let Some(path) = JsonPath::parse(&text) {
                find(&path, &json!({"a": [{"a": 1}, ["a"]]}));
            }
        }
    }
}
