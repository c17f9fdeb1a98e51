//! The values of a JSON text as a flat list in the order of the text: a scan that allocates once, in the place of a
//! tree.
//!
//! ```text
//! text    {"a":[1,"x"],"b":null}
//! nodes   {..}  "a"  [..]  1  "x"  "b"  null      each with its place in the text, and how many nodes lie within it
//! ```
//!
//! Only what this server writes of its own is taken: no white space, whole numbers of 64 bits with a sign, and in
//! strings the escapes of one letter. All else, and what is no JSON, is left to the parser of trees, which knows all of
//! JSON.

use std::borrow::Cow;

use super::json_string;

/// The depth to which lists and objects may be nested.
const NESTING_MAX: usize = 100;

/// The most digits of a number that always fits into 64 bits with a sign.
const DIGITS_SAFE: usize = 18;

/// The text of one node in 16 bytes: about what lists of objects have.
const NODE_TEXT_BYTES: usize = 16;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeForm {
    Object,
    List,
    Text,
    /// A string, or the name of a member, with escapes in it.
    EscapedText,
    Number,
    True,
    False,
    Null,
}

#[derive(Clone, Copy, Debug)]
struct CompactNode {
    form: NodeForm,
    /// Its place in the text.
    start: u32,
    end: u32,
    /// The place of the node after it and all nodes within it.
    after: u32,
}

/// A text and its values.
#[derive(Debug)]
pub(super) struct Nodes<'t> {
    text: &'t str,
    nodes: Vec<CompactNode>,
}

/// One value of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonNode<'n> {
    nodes: &'n Nodes<'n>,
    at: usize,
}

impl<'t> Nodes<'t> {
    /// Scans a text; `None` if it is no JSON, or has what is not taken here.
    pub(super) fn scan(text: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        u32::try_from(text.len()).ok()?;
        let mut scan = Scan {
            text: text.as_bytes(),
            at: 0,
            nodes: Vec::with_capacity(text.len() / NODE_TEXT_BYTES + 1),
            open: Vec::new(),
        };
        scan.whole()?;
        Some(Self {
            text,
            nodes: scan.nodes,
        })
    }

    /// Returns the value of the whole text.
    pub(super) fn root(&self) -> JsonNode<'_> {
        JsonNode { nodes: self, at: 0 }
    }
}

impl<'n> JsonNode<'n> {
    fn node(self) -> &'n CompactNode {
        &self.nodes.nodes[self.at]
    }

    pub(super) fn form(self) -> NodeForm {
        self.node().form
    }

    /// Returns the text of the value, strings with their quotes.
    pub(super) fn raw(self) -> &'n str {
        let node = self.node();
        &self.nodes.text[node.start as usize..node.end as usize]
    }

    /// Returns a string without its quotes and escapes; `None` if it is none.
    pub(super) fn text(self) -> Option<Cow<'n, str>> {
        let quoted = self.raw();
        match self.form() {
            NodeForm::Text => Some(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
            NodeForm::EscapedText => Some(Cow::Owned(unescaped(&quoted[1..quoted.len() - 1]))),
            _ => None,
        }
    }

    /// Returns a whole number; `None` if the value is none.
    pub(super) fn whole(self) -> Option<i64> {
        match self.form() {
            NodeForm::Number => self.raw().parse().ok(),
            _ => None,
        }
    }

    /// Returns the items of a list; none of another value.
    pub(super) fn items(self) -> impl Iterator<Item = JsonNode<'n>> {
        let end = match self.form() {
            NodeForm::List => self.node().after as usize,
            _ => self.at,
        };
        Siblings {
            next: JsonNode {
                at: self.at + 1,
                ..self
            },
            end,
        }
    }

    /// Returns the names and values of an object's members, in the order of the text; none of another value.
    pub(super) fn members(self) -> impl Iterator<Item = (JsonNode<'n>, JsonNode<'n>)> {
        let end = match self.form() {
            NodeForm::Object => self.node().after as usize,
            _ => self.at,
        };
        let mut parts = Siblings {
            next: JsonNode {
                at: self.at + 1,
                ..self
            },
            end,
        };
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Returns the last member of a name.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        let named = self
            .members()
            .filter(|(it, _)| it.text().as_deref() == Some(name));
        named.last().map(|(_, value)| value)
    }
}

/// Values beside each other.
struct Siblings<'n> {
    next: JsonNode<'n>,
    end: usize,
}

impl<'n> Iterator for Siblings<'n> {
    type Item = JsonNode<'n>;

    fn next(&mut self) -> Option<JsonNode<'n>> {
        if self.next.at >= self.end {
            return None;
        }
        let found = self.next;
        self.next.at = found.node().after as usize;
        Some(found)
    }
}

/// Returns a text without its escapes, of which the scan has let those of one letter pass.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        out.push(match letters.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(itself) => itself,
            None => break,
        });
        rest = letters.as_str();
    }
    out.push_str(rest);
    out
}

/// The state of a scan.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<CompactNode>,
    /// The nodes of the objects and lists that have not ended yet.
    open: Vec<u32>,
}

impl Scan<'_> {
    fn whole(&mut self) -> Option<()> {
        loop {
            // A value begins here.
            match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    if self.open.len() == NESTING_MAX {
                        return None;
                    }
                    let (form, close) = match bracket {
                        b'{' => (NodeForm::Object, b'}'),
                        _ => (NodeForm::List, b']'),
                    };
                    self.open.push(u32::try_from(self.nodes.len()).ok()?);
                    self.push(form, self.at);
                    self.at += 1;
                    if self.peek()? != close {
                        if form == NodeForm::Object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.ended()? {
                return Some(());
            }
        }
    }

    /// Goes on after a value to where the next one begins; true if there is none.
    fn ended(&mut self) -> Option<bool> {
        loop {
            let Some(&open) = self.open.last() else {
                return (self.at == self.text.len()).then_some(true);
            };
            let is_object = self.nodes[open as usize].form == NodeForm::Object;
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    if is_object {
                        self.name()?;
                    }
                    return Some(false);
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ => return None,
            }
            self.at += 1;
            self.open.pop();
            let after = self.nodes.len() as u32;
            let node = &mut self.nodes[open as usize];
            (node.end, node.after) = (self.at as u32, after);
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Adds a node that begins at a place and ends here.
    fn push(&mut self, form: NodeForm, start: usize) {
        let after = self.nodes.len() as u32 + 1;
        self.nodes.push(CompactNode {
            form,
            start: start as u32,
            end: self.at as u32,
            after,
        });
    }

    fn name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.string()?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true", NodeForm::True),
            b'f' => self.literal("false", NodeForm::False),
            b'n' => self.literal("null", NodeForm::Null),
            _ => None,
        }
    }

    fn literal(&mut self, literal: &str, form: NodeForm) -> Option<()> {
        let start = self.at;
        if !self.text[start..].starts_with(literal.as_bytes()) {
            return None;
        }
        self.at += literal.len();
        self.push(form, start);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        self.at += 1;
        let mut form = NodeForm::Text;
        loop {
            self.at += json_string::plain_bytes(&self.text[self.at..]);
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    form = NodeForm::EscapedText;
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        _ => return None,
                    }
                }
                ..b' ' => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.push(form, start);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.text[self.at..].iter();
        let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
        let leads_with_zero = self.peek() == Some(b'0');
        // A negative zero is no whole number, nor is what has a point or an exponent.
        if count == 0 || (leads_with_zero && (count > 1 || self.at > start)) {
            return None;
        }
        self.at += count;
        if count > DIGITS_SAFE {
            let digits = std::str::from_utf8(&self.text[start..self.at]).ok()?;
            digits.parse::<i64>().ok()?;
        }
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.push(NodeForm::Number, start);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn tree(part: JsonNode<'_>) -> Value {
        match part.form() {
            NodeForm::Object => {
                let member = |(name, value): (JsonNode<'_>, JsonNode<'_>)| {
                    (name.text().expect("a name").into_owned(), tree(value))
                };
                part.members().map(member).collect::<Map<_, _>>().into()
            }
            NodeForm::List => part.items().map(tree).collect(),
            NodeForm::Text | NodeForm::EscapedText => part.text().expect("text").into(),
            NodeForm::Number => part.whole().expect("a number").into(),
            NodeForm::True => true.into(),
            NodeForm::False => false.into(),
            NodeForm::Null => Value::Null,
        }
    }

    #[test]
    fn what_is_not_taken_is_refused() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for text in [
            "",
            " {}",
            "{} ",
            "{\"a\": 1}",
            "[1,]",
            "{",
            "[1}",
            "1.5",
            "1e3",
            "-0",
            "01",
            "-",
            "tru",
            "\"\\u0041\"",
            "\"a",
            "\"\n\"",
            "9223372036854775808",
            "{a:1}",
            "{\"a\"}",
            "1 2",
            "\"\\",
        ] {
            assert!(Nodes::scan(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Nodes::scan(b"\"\xff\"").is_none());
        assert!(Nodes::scan(deep(NESTING_MAX).as_bytes()).is_some());
        assert!(Nodes::scan(deep(NESTING_MAX + 1).as_bytes()).is_none());
    }

    proptest! {
        /// Takes the same values as the parser of trees.
        #[test]
        fn the_values_are_those_of_the_tree(text in r#"(\{|\}|\[|\]|,|:|"a"|"b\\n"|"\\"c"|"é"|0|-?[1-9]{1,3}|true|null|\{"a":|"a":1){1,12}"#) {
            if let Some(nodes) = Nodes::scan(text.as_bytes()) {
                let expected: Value = serde_json::from_str(&text).expect("JSON");
                prop_assert_eq!(tree(nodes.root()), expected);
            }
        }

        #[test]
        fn compact_json_is_taken(members in prop::collection::btree_map("[a-c\"\\\\]{0,3}", prop::collection::vec(any::<i32>(), 0..3), 0..4)) {
            let tree_of_members = serde_json::to_value(&members).expect("JSON");
            let text = tree_of_members.to_string();
            let nodes = Nodes::scan(text.as_bytes()).expect("it is compact");
            prop_assert_eq!(tree(nodes.root()), tree_of_members);
        }
    }
}
