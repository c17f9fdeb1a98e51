//! The table of functions with the types of their arguments and results.
//!
//! A line of `signatures.txt` is a function: a receiver and a point if it has one, its name, the types of its
//! arguments, and that of its result. Capital letters are type variables. A name with a point and no receiver is one
//! name.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::types::Type;

/// One overload of a function.
#[derive(Debug)]
pub(super) struct Signature {
    /// True if the first argument is the receiver.
    pub(super) member: bool,
    pub(super) takes: Vec<Type>,
    pub(super) gives: Type,
}

/// Maximum number of letters that stand for types in a signature.
pub(super) const LETTERS: usize = 2;

/// All overloads by the names of the functions.
pub(super) static FUNCTIONS: LazyLock<HashMap<String, Vec<Signature>>> = LazyLock::new(|| {
    let mut functions: HashMap<String, Vec<Signature>> = HashMap::new();
    for line in include_str!("signatures.txt").lines() {
        let Some((name, signature)) = read(line) else {
            continue;
        };
        functions.entry(name).or_default().push(signature);
    }
    functions
});

/// Returns true if there is a function of that name.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains_key(name)
}

/// Reads a line of the table; `None` if it is empty or a comment.
fn read(line: &str) -> Option<(String, Signature)> {
    let (call, gives) = line.rsplit_once(' ')?;
    let (name, takes) = call.strip_suffix(')')?.split_once('(')?;
    let mut types = split(takes).map(one).collect::<Vec<_>>();
    let target = name
        .rsplit_once('.')
        .filter(|(target, _)| !crate::NAMESPACES.contains(target));
    let name = match target {
        Some((target, name)) => {
            types.insert(0, one(target));
            name
        }
        None => name,
    };
    let signature = Signature {
        member: target.is_some(),
        takes: types,
        gives: one(gives),
    };
    Some((name.to_owned(), signature))
}

/// Splits a text at the commas outside of brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |letter| {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .filter(|part| !part.is_empty())
}

fn one(text: &str) -> Type {
    if let Some((name, inside)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        let mut inside = split(inside).map(one);
        let first = inside.next().unwrap_or(Type::Dyn);
        return match name {
            "list" => Type::list(first),
            "optional" => Type::optional(first),
            "type" => Type::meta(first),
            _ => Type::map(first, inside.next().unwrap_or(Type::Dyn)),
        };
    }
    match text {
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        _ => Type::named(text).unwrap_or_else(|| Type::Opaque(Arc::from(text))),
    }
}
