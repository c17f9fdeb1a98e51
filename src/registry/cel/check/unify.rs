//! What is known of types that stand for others.

use std::sync::Arc;

use super::types::Type;

/// What type variables stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings(Vec<Option<Type>>);

impl Bindings {
    /// A new variable, the first of so many.
    pub(super) fn fresh(&mut self, count: usize) -> usize {
        let first = self.0.len();
        self.0.resize(first + count, None);
        first
    }

    /// A type with all that is known put in. What is not known of it stays.
    pub(super) fn resolve(&self, it: &Type) -> Type {
        match it {
            Type::Variable(number) => match self.0.get(*number) {
                Some(Some(known)) => self.resolve(known),
                _ => it.clone(),
            },
            Type::List(of) => Type::list(self.resolve(of)),
            Type::Map(key, value) => Type::map(self.resolve(key), self.resolve(value)),
            Type::Optional(of) => Type::optional(self.resolve(of)),
            other => other.clone(),
        }
    }

    /// A type in which what is not known may be anything.
    pub(super) fn settle(&self, it: &Type) -> Type {
        match self.resolve(it) {
            Type::Variable(_) => Type::Dyn,
            Type::List(of) => Type::list(self.settle(&of)),
            Type::Map(key, value) => Type::map(self.settle(&key), self.settle(&value)),
            Type::Optional(of) => Type::optional(self.settle(&of)),
            other => other,
        }
    }

    /// Makes the one fit the other; false, with nothing learned, if it cannot be.
    pub(super) fn fit(&mut self, wanted: &Type, given: &Type) -> bool {
        let before = self.clone();
        let fits = self.unify(wanted, given);
        if !fits {
            *self = before;
        }
        fits
    }

    fn unify(&mut self, wanted: &Type, given: &Type) -> bool {
        // What may be anything in one place may be anything in all.
        if let Type::Variable(number) = wanted
            && self.resolve(given) == Type::Dyn
        {
            self.0[*number] = Some(Type::Dyn);
            return true;
        }
        let (wanted, given) = (self.resolve(wanted), self.resolve(given));
        match (&wanted, &given) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (Type::Variable(number), other) | (other, Type::Variable(number)) => {
                let free = !mentions(other, *number);
                if free {
                    self.0[*number] = Some(other.clone());
                }
                free
            }
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.unify(a, b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.unify(a, c) && self.unify(b, d),
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Object(_)
                    | Type::Opaque(_)
                    | Type::Duration
                    | Type::Timestamp
                    | Type::Optional(_)
            ),
            (a, b) => a == b,
        }
    }

    /// The types of a signature with variables of their own.
    pub(super) fn instance(&self, it: &Type, first: usize) -> Type {
        match it {
            Type::Variable(letter) => Type::Variable(first + letter),
            Type::List(of) => Type::list(self.instance(of, first)),
            Type::Map(key, value) => {
                Type::map(self.instance(key, first), self.instance(value, first))
            }
            Type::Optional(of) => Type::Optional(Arc::new(self.instance(of, first))),
            other => other.clone(),
        }
    }
}

fn mentions(it: &Type, number: usize) -> bool {
    match it {
        Type::Variable(other) => *other == number,
        Type::List(of) | Type::Optional(of) => mentions(of, number),
        Type::Map(key, value) => mentions(key, number) || mentions(value, number),
        _ => false,
    }
}
