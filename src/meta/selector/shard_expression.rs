//! The syntax of CEL, as far as the parser of shard selectors needs it: every operator is read, so that one that is not
//! allowed can be named, but only the operands of `||` and of calls are kept.
//!
//! Kinds and names of functions are those of cel-go's `ast` and `operators`, since errors show them. Not read are
//! identifiers in backticks, and neither are the optional syntax and the macros, which kube-apiserver leaves off here.

use super::ParseError;
use super::shard_tokens::{Token, Tokens};

/// Maximum number of expressions within each other: the parser, and what walks its result, recur for each.
/// kube-apiserver reads 250.
const LEVELS_MAX: usize = 60;

/// Operators between two operands, by their precedence: a larger one binds its operands first.
const BINARY: [(&str, u8, &str); 14] = [
    ("||", 1, "_||_"),
    ("&&", 2, "_&&_"),
    ("<", 3, "_<_"),
    ("<=", 3, "_<=_"),
    (">", 3, "_>_"),
    (">=", 3, "_>=_"),
    ("==", 3, "_==_"),
    ("!=", 3, "_!=_"),
    ("in", 3, "@in"),
    ("+", 4, "_+_"),
    ("-", 4, "_-_"),
    ("*", 5, "_*_"),
    ("/", 5, "_/_"),
    ("%", 5, "_%_"),
];

/// Words that no identifier may be, besides literals and operators.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The precedence of `||`, the weakest operator.
const OR: u8 = 1;

/// A parsed expression.
#[derive(Debug)]
pub(super) enum ShardExpression {
    /// Expressions joined by `||`, in order.
    Or(Vec<Self>),
    /// A call of a function, or of a method, whose target is not kept.
    Call(String, Vec<Self>),
    /// Another operator, by the name of its function.
    Operator(&'static str),
    /// An identifier, and the fields selected of it, joined by dots.
    Path { text: String, is_field: bool },
    /// A field of an expression of this kind, which is no path.
    FieldOf { kind: u8 },
    /// A text.
    Text(String),
    /// Another literal, by its type in Go.
    Literal(&'static str),
    /// A list.
    List,
    /// A map.
    Map,
    /// A message.
    Message,
}

impl ShardExpression {
    /// Returns the number of the kind in cel-go.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Or(_) | Self::Call(..) | Self::Operator(_) => 1,
            Self::Path {
                is_field: false, ..
            } => 3,
            Self::List => 4,
            Self::Text(_) | Self::Literal(_) => 5,
            Self::Map => 6,
            Self::Path { is_field: true, .. } | Self::FieldOf { .. } => 7,
            Self::Message => 8,
        }
    }
}

/// Parses a whole text.
///
/// # Errors
/// [`ParseError`] with the place and what was found there.
pub(super) fn parse(text: &str) -> Result<ShardExpression, ParseError> {
    let mut parser = Parser {
        tokens: Tokens::new(text)?,
        level: 0,
    };
    let expression = parser.expression()?;
    match parser.tokens.next() {
        Token::End => Ok(expression),
        other => Err(unexpected(&other)),
    }
}

struct Parser {
    tokens: Tokens,
    /// The number of expressions that are being read.
    level: usize,
}

impl Parser {
    /// Reads an expression with or without a condition.
    fn expression(&mut self) -> Result<ShardExpression, ParseError> {
        if self.level == LEVELS_MAX {
            return Err(ParseError(format!(
                "expression recursion limit exceeded: {LEVELS_MAX}"
            )));
        }
        self.level += 1;
        let condition = self.binary(OR)?;
        let expression = if self.tokens.take("?") {
            self.binary(OR)?;
            self.expect(":")?;
            self.expression()?;
            ShardExpression::Operator("_?_:_")
        } else {
            condition
        };
        self.level -= 1;
        Ok(expression)
    }

    /// Reads operands and the operators between them that bind at least so strongly.
    fn binary(&mut self, weakest: u8) -> Result<ShardExpression, ParseError> {
        let mut left = self.unary()?;
        while let Some((symbol, precedence, function)) = self.operator(weakest) {
            self.tokens.take(symbol);
            let right = self.binary(precedence + 1)?;
            left = match (precedence, left) {
                (OR, ShardExpression::Or(mut sides)) => {
                    sides.push(right);
                    ShardExpression::Or(sides)
                }
                (OR, left) => ShardExpression::Or(vec![left, right]),
                _ => ShardExpression::Operator(function),
            };
        }
        Ok(left)
    }

    /// Returns the next token if it is an operator that binds at least so strongly.
    fn operator(&self, weakest: u8) -> Option<(&'static str, u8, &'static str)> {
        let is_it = |(symbol, precedence, _): &&(&str, u8, &str)| {
            *precedence >= weakest && self.tokens.is(symbol)
        };
        BINARY.iter().find(is_it).copied()
    }

    fn unary(&mut self) -> Result<ShardExpression, ParseError> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let mut count = 0;
            while self.tokens.take(symbol) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let operand = self.member()?;
            let is_number = matches!(operand, ShardExpression::Literal("int64" | "float64"));
            // A number has its sign; two operators undo each other.
            let keeps = count % 2 == 0 || (symbol == "-" && count == 1 && is_number);
            return Ok(if keeps {
                operand
            } else {
                ShardExpression::Operator(function)
            });
        }
        self.member()
    }

    /// Reads a primary expression, and the fields, calls and elements of it.
    fn member(&mut self) -> Result<ShardExpression, ParseError> {
        let mut target = self.primary()?;
        let mut word = match &target {
            ShardExpression::Path { text, .. } => reserved(text),
            _ => None,
        };
        loop {
            if self.tokens.take(".") {
                let name = self.name()?;
                target = if self.tokens.take("(") {
                    ShardExpression::Call(name, self.list(")", false)?)
                } else {
                    field(target, &name)
                };
            } else if self.tokens.take("[") {
                self.expression()?;
                self.expect("]")?;
                target = ShardExpression::Operator("_[_]");
            } else if matches!(target, ShardExpression::Path { .. }) && self.tokens.take("{") {
                self.entries()?;
                target = ShardExpression::Message;
                // The names of messages may be reserved words, as those of fields.
                word = None;
            } else {
                return word.map_or(Ok(target), |word| Err(is_reserved(word)));
            }
        }
    }

    fn primary(&mut self) -> Result<ShardExpression, ParseError> {
        Ok(match self.tokens.next() {
            Token::Name(name) => self.identifier(name)?,
            Token::Text(text) => ShardExpression::Text(text),
            Token::Literal(go_type) => ShardExpression::Literal(go_type),
            Token::Symbol(".") => {
                let name = self.name()?;
                self.identifier(format!(".{name}"))?
            }
            Token::Symbol("(") => {
                let expression = self.expression()?;
                self.expect(")")?;
                expression
            }
            Token::Symbol("[") => {
                self.list("]", true)?;
                ShardExpression::List
            }
            Token::Symbol("{") => {
                self.entries()?;
                ShardExpression::Map
            }
            other => return Err(unexpected(&other)),
        })
    }

    /// Returns the expression that an identifier begins: a call, or a path.
    fn identifier(&mut self, name: String) -> Result<ShardExpression, ParseError> {
        if self.tokens.take("(") {
            if let Some(word) = reserved(&name) {
                return Err(is_reserved(word));
            }
            return Ok(ShardExpression::Call(name, self.list(")", false)?));
        }
        Ok(ShardExpression::Path {
            text: name,
            is_field: false,
        })
    }

    /// Reads expressions between commas, up to the closing bracket; with a comma before that if it may be.
    fn list(&mut self, close: &str, trailing: bool) -> Result<Vec<ShardExpression>, ParseError> {
        let mut items = Vec::new();
        if self.tokens.take(close) {
            return Ok(items);
        }
        loop {
            items.push(self.expression()?);
            if self.tokens.take(close) {
                return Ok(items);
            }
            self.expect(",")?;
            if trailing && self.tokens.take(close) {
                return Ok(items);
            }
        }
    }

    /// Reads the entries of a map or message, up to the closing brace.
    fn entries(&mut self) -> Result<(), ParseError> {
        while !self.tokens.take("}") {
            self.expression()?;
            self.expect(":")?;
            self.expression()?;
            if !self.tokens.take(",") {
                return self.expect("}");
            }
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String, ParseError> {
        match self.tokens.next() {
            Token::Name(name) => Ok(name),
            other => Err(unexpected(&other)),
        }
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.tokens.take(symbol) {
            return Ok(());
        }
        Err(unexpected(&self.tokens.next()))
    }
}

/// Returns the reserved word that an identifier is, if it is one.
fn reserved(identifier: &str) -> Option<&'static str> {
    let word = identifier.trim_start_matches('.');
    RESERVED.into_iter().find(|it| *it == word)
}

fn is_reserved(word: &str) -> ParseError {
    ParseError(format!("reserved identifier: {word}"))
}

/// Returns a field of an expression.
fn field(target: ShardExpression, name: &str) -> ShardExpression {
    match target {
        ShardExpression::Path { mut text, .. } => {
            // A path has as many fields as its writer likes, so it is not copied for each.
            text.push('.');
            text.push_str(name);
            ShardExpression::Path {
                text,
                is_field: true,
            }
        }
        ShardExpression::FieldOf { kind } => ShardExpression::FieldOf { kind },
        other => ShardExpression::FieldOf { kind: other.kind() },
    }
}

fn unexpected(token: &Token) -> ParseError {
    ParseError(match token {
        Token::End => "Syntax error: unexpected end of the expression".to_owned(),
        Token::Name(text) => format!("Syntax error: unexpected '{text}'"),
        Token::Text(text) => format!("Syntax error: unexpected text {text:?}"),
        Token::Literal(_) => "Syntax error: unexpected literal".to_owned(),
        Token::Symbol(symbol) => format!("Syntax error: unexpected '{symbol}'"),
    })
}
