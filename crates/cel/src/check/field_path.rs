//! Paths from a variable to its parts, by which the declared sizes of parts are found.
//!
//! Follows the paths of cel-go's estimator and the `EstimateSize` of CustomResourceDefinitions, with what is peculiar
//! to them, since their estimates decide which definitions may be written:
//!
//! - The first step is never looked at: it should be the variable. A part of a computed value, such as an item of the
//!   result of `split`, begins a path of its own, and so is as large as the whole declaration.
//! - Paths are slices, of which several may share memory. Where there is room behind a path, its extension is written
//!   there, over an earlier extension of the same path: after `k.a` and `k.b` both may lead to `b`.

use std::cell::RefCell;
use std::rc::Rc;

use super::ranges::Range;
use crate::types::{DeclaredType, SizedType, Type};

/// A step of a path, from a value to a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathStep<'a> {
    /// A variable, from nowhere.
    Variable,
    /// A field of an object.
    Field(&'a str),
    /// An item of a list, or a value of a map.
    Inside,
    /// A key of a map.
    Key,
    /// An index of a list.
    Index,
}

/// A path from a variable to a part of its value; empty for values that no declaration describes.
#[derive(Clone, Debug)]
pub(super) struct FieldPath<'a> {
    root: Option<&'a DeclaredType>,
    memory: Rc<Memory<'a>>,
    length: usize,
}

/// The memory of paths that have their first steps in common.
#[derive(Debug, Default)]
struct Memory<'a> {
    steps: RefCell<Vec<PathStep<'a>>>,
    /// Steps that there is memory for.
    room: usize,
}

impl<'a> FieldPath<'a> {
    /// Creates an empty path, whose extensions lead into this declaration.
    pub(super) fn nowhere(root: Option<&'a DeclaredType>) -> Self {
        Self {
            root,
            memory: Rc::default(),
            length: 0,
        }
    }

    /// Returns the path extended by a step. Memory grows as Go's slices grow.
    pub(super) fn then(&self, step: PathStep<'a>) -> Self {
        let memory = if self.length < self.memory.room {
            Rc::clone(&self.memory)
        } else {
            Rc::new(Memory {
                steps: RefCell::new(self.memory.steps.borrow()[..self.length].to_vec()),
                room: (2 * self.length).max(1),
            })
        };
        let mut steps = memory.steps.borrow_mut();
        match steps.get_mut(self.length) {
            Some(earlier) => *earlier = step,
            None => steps.push(step),
        }
        drop(steps);
        Self {
            root: self.root,
            memory,
            length: self.length + 1,
        }
    }

    /// Returns the size that the declaration allows at the end of the path.
    pub(super) fn size(&self) -> Option<Range> {
        Some(Range::up_to(self.declared()?.max))
    }

    /// Returns the size that the declaration allows for the items of what the path leads to.
    pub(super) fn items_size(&self) -> Option<Range> {
        Some(Range::up_to(self.declared()?.inside()?.max))
    }

    fn declared(&self) -> Option<&'a DeclaredType> {
        let steps = self.memory.steps.borrow();
        let (_, below) = steps[..self.length].split_first()?;
        let mut at = self.root?;
        for step in below {
            at = match (step, &at.form) {
                (PathStep::Field(name), _) => at.field(name)?,
                (PathStep::Inside, _) => at.inside()?,
                (PathStep::Key, SizedType::Map(_)) => &KEY,
                _ => return None,
            };
        }
        Some(at)
    }
}

/// The keys of maps, which count as empty strings.
static KEY: DeclaredType = DeclaredType {
    form: SizedType::Plain(Type::String),
    max: 0,
    min_bytes: 2,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(form: SizedType, max: u64) -> DeclaredType {
        DeclaredType {
            form,
            max,
            min_bytes: 2,
        }
    }

    #[test]
    fn extensions_overwrite_each_other_where_there_is_room() {
        let text = |max| sized(SizedType::Plain(Type::String), max);
        let list = |of: DeclaredType, max| sized(SizedType::List(of.into()), max);
        let root = list(list(list(list(text(1), 2), 3), 4), 5);
        let whole = FieldPath::nowhere(Some(&root)).then(PathStep::Variable);
        assert_eq!(whole.size(), Some(Range::up_to(5)));
        // Of the third extension on there is room for one more.
        let third = whole.then(PathStep::Inside).then(PathStep::Inside);
        let fourth = third.then(PathStep::Inside);
        assert_eq!(fourth.size(), Some(Range::up_to(2)));
        let other = third.then(PathStep::Key);
        assert_eq!((other.size(), fourth.size()), (None, None));
        // What was extended before in memory of its own keeps its steps.
        let second = whole.then(PathStep::Inside);
        let inside = second.then(PathStep::Inside);
        let _ = second.then(PathStep::Key);
        assert_eq!(inside.size(), Some(Range::up_to(3)));
    }

    #[test]
    fn first_step_is_the_whole() {
        let root = sized(SizedType::Plain(Type::String), 7);
        let nowhere = FieldPath::nowhere(Some(&root));
        assert_eq!(nowhere.size(), None);
        assert_eq!(nowhere.then(PathStep::Inside).size(), Some(Range::up_to(7)));
        let below = nowhere.then(PathStep::Inside).then(PathStep::Inside);
        assert_eq!(below.size(), None);
    }
}
