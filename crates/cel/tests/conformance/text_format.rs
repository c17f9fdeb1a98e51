//! Reads protobuf's text format without descriptors: a message is a list of fields by name, in their order.
//!
//! It knows the parts of the format that the conformance files of CEL use, and is as deep as a file's messages are.

use std::iter::Peekable;
use std::str::Chars;

/// A value of a field.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A string, with its escapes resolved.
    Text(Vec<u8>),
    /// A number, a boolean or the name of a constant, as it is written.
    Word(String),
    Message(Message),
}

/// A message, with its fields in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(pub(super) Vec<(String, Node)>);

impl Message {
    /// Returns all values of a field.
    pub(super) fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Node> {
        let fields = self.0.iter().filter(move |(known, _)| known == name);
        fields.map(|(_, node)| node)
    }

    /// Returns the value of a field.
    pub(super) fn get<'m>(&'m self, name: &'m str) -> Option<&'m Node> {
        self.all(name).last()
    }

    /// Returns the message in a field.
    pub(super) fn message<'m>(&'m self, name: &'m str) -> Option<&'m Self> {
        self.get(name).map(Node::message)
    }

    /// Returns the messages in a repeated field.
    pub(super) fn messages<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Self> {
        self.all(name).map(Node::message)
    }

    /// Returns the text in a field; empty if there is none.
    pub(super) fn text(&self, name: &str) -> String {
        let text = self.get(name).map(Node::text);
        text.unwrap_or_default()
    }

    /// Returns the boolean in a field.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.word() == "true")
    }
}

impl Node {
    pub(super) fn message(&self) -> &Message {
        match self {
            Self::Message(message) => message,
            other => panic!("not a message: {other:?}"),
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("UTF-8")
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            other => panic!("not a string: {other:?}"),
        }
    }

    pub(super) fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            other => panic!("not a number or a name: {other:?}"),
        }
    }
}

/// Reads a file, which is a message.
pub(super) fn read(text: &str) -> Message {
    let mut reader = Reader {
        rest: text.chars().peekable(),
    };
    let message = reader.message();
    assert_eq!(reader.next_sign(), None, "behind the message");
    message
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
}

impl Reader<'_> {
    /// Returns the next character outside of comments and space, without passing it.
    fn next_sign(&mut self) -> Option<char> {
        loop {
            match self.rest.peek() {
                Some('#') => while self.rest.next_if(|it| *it != '\n').is_some() {},
                Some(space) if space.is_whitespace() => {
                    self.rest.next();
                }
                other => return other.copied(),
            }
        }
    }

    /// Passes a character if it is the next one.
    fn pass(&mut self, sign: char) -> bool {
        let is_next = self.next_sign() == Some(sign);
        if is_next {
            self.rest.next();
        }
        is_next
    }

    fn expect(&mut self, sign: char) {
        let next = self.next_sign();
        assert!(self.pass(sign), "{sign} should be next, not {next:?}");
    }

    fn message(&mut self) -> Message {
        let mut fields = Vec::new();
        while let Some(sign) = self.next_sign()
            && sign != '}'
        {
            let name = self.name();
            self.pass(':');
            if self.pass('[') {
                while !self.pass(']') {
                    fields.push((name.clone(), self.node()));
                    self.pass(',');
                }
            } else {
                fields.push((name, self.node()));
            }
            if !self.pass(',') {
                self.pass(';');
            }
        }
        Message(fields)
    }

    /// Reads the name of a field; that of an extension or of the message in an `Any` stands in brackets.
    fn name(&mut self) -> String {
        if self.pass('[') {
            let name = self.word();
            self.expect(']');
            return name;
        }
        self.word()
    }

    fn node(&mut self) -> Node {
        match self.next_sign() {
            Some('{') => {
                self.expect('{');
                let message = self.message();
                self.expect('}');
                Node::Message(message)
            }
            Some('"' | '\'') => {
                let mut text = Vec::new();
                while let Some(quote @ ('"' | '\'')) = self.next_sign() {
                    self.rest.next();
                    self.quoted(quote, &mut text);
                }
                Node::Text(text)
            }
            _ => Node::Word(self.word()),
        }
    }

    fn word(&mut self) -> String {
        self.next_sign();
        let is_part = |it: &char| it.is_ascii_alphanumeric() || "_.+-/".contains(*it);
        let word: String = std::iter::from_fn(|| self.rest.next_if(is_part)).collect();
        assert!(!word.is_empty(), "no word before {:?}", self.rest.peek());
        word
    }

    fn quoted(&mut self, quote: char, text: &mut Vec<u8>) {
        loop {
            let mut utf8 = [0; 4];
            match self.rest.next().expect("a closing quote") {
                it if it == quote => return,
                '\\' => self.escape(text),
                other => text.extend(other.encode_utf8(&mut utf8).bytes()),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let letter = self.rest.next().expect("an escape");
        let (digits, radix) = match letter {
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => (3, 8),
            _ => {
                text.push(match letter {
                    'a' => 7,
                    'b' => 8,
                    'f' => 12,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 11,
                    '\\' | '\'' | '"' | '?' => u8::try_from(letter).expect("ASCII"),
                    other => panic!("no escape: {other}"),
                });
                return;
            }
        };
        let mut number = if radix == 8 {
            letter.to_string()
        } else {
            String::new()
        };
        while number.len() < digits
            && let Some(digit) = self.rest.next_if(|it| it.is_digit(radix))
        {
            number.push(digit);
        }
        let number = u32::from_str_radix(&number, radix).expect("a number");
        if matches!(letter, 'u' | 'U') {
            let letter = char::from_u32(number).expect("a character");
            text.extend(letter.to_string().bytes());
        } else {
            text.push(u8::try_from(number).expect("a byte"));
        }
    }
}

#[test]
fn text_format_is_read() {
    let message = read(
        "# a comment\nname: 'it\\'s' \" \\303\\251\\u00e9\"\ninner { n: -1.5e3, flag: true; l: [1, 2] }\nany: { [a.b/C.D] {} }\nl: 3 l: 4",
    );
    assert_eq!(message.text("name"), "it's éé");
    let inner = message.message("inner").expect("a message");
    assert_eq!(inner.get("n").map(Node::word), Some("-1.5e3"));
    assert!(inner.is("flag"));
    assert_eq!(inner.all("l").count(), 2);
    let any = message.message("any").expect("a message");
    assert_eq!(any.0[0].0, "a.b/C.D");
    assert_eq!(message.get("l").map(Node::word), Some("4"));
}
