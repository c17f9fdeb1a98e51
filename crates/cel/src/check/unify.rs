//! Unifies types: binds type variables to the types that they stand for.

use crate::types::Type;

/// Maximum number of parts of a type, with those of the variables in it. Parts beyond are treated as `dyn`: a short
/// expression could otherwise double the size of a type again and again.
const PARTS_MAX: usize = 256;

/// The types that type variables are bound to.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    known: Vec<Option<Type>>,
    /// The variables in the order in which they were bound, each with its previous type.
    learned: Vec<(usize, Option<Type>)>,
}

/// A state of the bindings that can be restored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    known: usize,
    learned: usize,
}

impl Bindings {
    /// Creates this many variables and returns the first.
    pub(super) fn fresh(&mut self, count: usize) -> usize {
        let first = self.known.len();
        self.known.resize(first + count, None);
        first
    }

    /// Returns the current state, for [`Self::forget`].
    pub(super) fn mark(&self) -> Mark {
        Mark {
            known: self.known.len(),
            learned: self.learned.len(),
        }
    }

    /// Restores an earlier state.
    pub(super) fn forget(&mut self, mark: Mark) {
        for (number, before) in self.learned.drain(mark.learned..).rev() {
            self.known[number] = before;
        }
        self.known.truncate(mark.known);
    }

    fn learn(&mut self, number: usize, known: Type) {
        let before = self.known[number].replace(known);
        self.learned.push((number, before));
    }

    /// Returns a type with its bound variables replaced; unbound ones stay.
    pub(super) fn resolve(&self, it: &Type) -> Type {
        let mut left = PARTS_MAX;
        self.resolve_parts(it, &mut left)
    }

    fn resolve_parts(&self, it: &Type, left: &mut usize) -> Type {
        let Some(fewer) = left.checked_sub(1) else {
            return Type::Dyn;
        };
        *left = fewer;
        match it {
            Type::Variable(number) => match self.known.get(*number) {
                Some(Some(known)) => self.resolve_parts(known, left),
                _ => it.clone(),
            },
            Type::List(of) => Type::list(self.resolve_parts(of, left)),
            Type::Map(key, value) => {
                let key = self.resolve_parts(key, left);
                Type::map(key, self.resolve_parts(value, left))
            }
            Type::Optional(of) => Type::optional(self.resolve_parts(of, left)),
            Type::Meta(of) => Type::meta(self.resolve_parts(of, left)),
            other => other.clone(),
        }
    }

    /// Returns a type with its bound variables replaced, and `dyn` in the place of unbound ones.
    pub(super) fn resolve_or_dyn(&self, it: &Type) -> Type {
        match self.resolve(it) {
            Type::Variable(_) => Type::Dyn,
            Type::List(of) => Type::list(self.resolve_or_dyn(&of)),
            Type::Map(key, value) => {
                Type::map(self.resolve_or_dyn(&key), self.resolve_or_dyn(&value))
            }
            Type::Optional(of) => Type::optional(self.resolve_or_dyn(&of)),
            Type::Meta(of) => Type::meta(self.resolve_or_dyn(&of)),
            other => other,
        }
    }

    /// Unifies two types; returns false, and binds nothing, if that is impossible.
    pub(super) fn fit(&mut self, wanted: &Type, given: &Type) -> bool {
        let before = self.mark();
        let fits = self.unify(wanted, given);
        if !fits {
            self.forget(before);
        }
        fits
    }

    fn unify(&mut self, wanted: &Type, given: &Type) -> bool {
        // A variable that is `dyn` in one place is `dyn` in all.
        if let Type::Variable(number) = wanted
            && self.resolve(given) == Type::Dyn
        {
            self.learn(*number, Type::Dyn);
            return true;
        }
        // A variable becomes the more general one of the types that it stands for.
        if let Type::Variable(number) = wanted
            && let Some(known) = self.known[*number].clone()
            && !matches!(self.resolve(&known), Type::Variable(_))
        {
            let fits = self.unify(&known, given);
            let general = most_general(self.resolve(given), self.resolve(&known));
            if fits && !mentions(&general, *number) {
                self.learn(*number, general);
            }
            return fits;
        }
        let (wanted, given) = (self.resolve(wanted), self.resolve(given));
        match (&wanted, &given) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (Type::Variable(number), other) | (other, Type::Variable(number)) => {
                let free = !mentions(other, *number);
                if free {
                    self.learn(*number, other.clone());
                }
                free
            }
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.unify(a, b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.unify(a, c) && self.unify(b, d),
            (Type::Meta(_), Type::Meta(_)) => true,
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

    /// Returns the types of a signature with fresh variables.
    pub(super) fn instance(&self, it: &Type, first: usize) -> Type {
        match it {
            Type::Variable(letter) => Type::Variable(first + letter),
            Type::List(of) => Type::list(self.instance(of, first)),
            Type::Map(key, value) => {
                Type::map(self.instance(key, first), self.instance(value, first))
            }
            Type::Optional(of) => Type::optional(self.instance(of, first)),
            Type::Meta(of) => Type::meta(self.instance(of, first)),
            other => other.clone(),
        }
    }
}

/// Returns the more general one of two types that fit: the second unless the first is as general.
pub(super) fn most_general(one: Type, other: Type) -> Type {
    if is_as_general(&one, &other) {
        one
    } else {
        other
    }
}

/// Follows `isEqualOrLessSpecific` of cel-go.
fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Error | Type::Variable(_), _) | (Type::Meta(_), Type::Meta(_)) => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            is_as_general(a, b)
        }
        (Type::Map(a, b), Type::Map(c, d)) => is_as_general(a, c) && is_as_general(b, d),
        (one, other) => one == other,
    }
}

fn mentions(it: &Type, number: usize) -> bool {
    match it {
        Type::Variable(other) => *other == number,
        Type::List(of) | Type::Optional(of) | Type::Meta(of) => mentions(of, number),
        Type::Map(key, value) => mentions(key, number) || mentions(value, number),
        _ => false,
    }
}
