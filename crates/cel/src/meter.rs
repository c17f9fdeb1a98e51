//! Counts the cost of expressions while they run, in kube-apiserver's units, and ends those that exceed it.
//!
//! Every step is charged before it is taken, so no time or memory is used that is not charged. Copying and traversing
//! values, which cost nothing in kube-apiserver since its lists are views, are charged by the size of the values: a
//! value whose parts are shared could otherwise be doubled until traversing it takes for ever.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Key;

use super::failure::Failure;
use super::merged_lists::list_items;

/// Maximum cost of one expression.
pub(super) const CALL_COST_MAX: u64 = 1_000_000;

/// Maximum cost of all expressions that are run for one object, or for one policy.
const COST_MAX: u64 = 10_000_000;

/// Bytes of a value that count as one unit.
const UNIT_BYTES: u64 = 64;

/// Maximum number of parts of a value, shared parts counted each time.
pub(super) const PARTS_MAX: u64 = 1 << 20;

/// Maximum number of bytes of the strings in a value.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of levels of a value.
const LEVELS_MAX: u32 = 200;

/// The cost that may still be spent.
#[derive(Debug)]
pub struct Meter {
    left: u64,
    call: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Meter {
    /// Creates a meter with the whole cost still to be spent.
    pub fn new() -> Self {
        Self {
            left: COST_MAX,
            call: CALL_COST_MAX,
        }
    }

    /// Begins an expression, which may spend the whole cost of one.
    pub(super) fn begin(&mut self) {
        self.call = CALL_COST_MAX;
    }

    /// Ends an expression. A constant costs nothing, but may be run for each of a million items.
    ///
    /// # Errors
    /// [`Failure::OutOfBudget`] if nothing is left for it.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        match self.call {
            CALL_COST_MAX => self.spend(1),
            _ => Ok(()),
        }
    }

    /// Spends cost outside of expressions.
    ///
    /// # Errors
    /// [`Failure::OutOfBudget`] if less than that is left.
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or_default();
        left.map(|_| ()).ok_or(Failure::OutOfBudget)
    }

    /// Returns true if nothing is left, for this expression and all after it.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Spends cost inside of an expression. Fails also if the expression may have no more.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.call = self.call.checked_sub(cost).ok_or(Failure::CallLimit)?;
        self.spend(cost)
    }

    /// Returns the cost that the expression may still have.
    pub(super) fn left(&self) -> u64 {
        self.call.min(self.left)
    }

    /// Charges a scan of this many characters.
    pub(super) fn charge_text(&mut self, length: u64) -> Result<(), Failure> {
        self.charge(length.div_ceil(10))
    }

    /// Charges the reading or copying of a text of this many bytes, as that of any value of its size.
    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.charge(bytes as u64 / UNIT_BYTES / 10)
    }

    /// Charges the traversal of a value, or its inclusion in another value.
    pub(super) fn charge_value(&mut self, value: &CelValue) -> Result<Extent, Failure> {
        let extent = Extent::measure(value)?;
        self.charge(extent.units() / 10)?;
        Ok(extent)
    }
}

#[cfg(test)]
thread_local! {
    /// The number of parts of values that were walked through.
    pub(super) static WALKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The size of a value, with all of its parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) parts: u64,
    pub(super) bytes: u64,
}

impl Extent {
    /// Measures a value: the number of its parts, and the bytes of its texts and byte strings.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] if it has more parts than any value may have.
    pub(super) fn measure(value: &CelValue) -> Result<Self, Failure> {
        let mut extent = Self::default();
        extent.add(value, 0, u64::MAX)?;
        Ok(extent)
    }

    /// Returns the units of the smaller one of two values. It walks through the other one only as far.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] if both have more parts than any value may have.
    pub(super) fn smaller_units(one: &CelValue, other: &CelValue) -> Result<u64, Failure> {
        let mut most = 64;
        loop {
            let units = [one, other].map(|it| Self::units_up_to(it, most));
            let [one, other] = units;
            if let Some(smaller) = one?.into_iter().chain(other?).min() {
                return Ok(smaller);
            }
            most *= 2;
        }
    }

    /// Returns the units of a value; `None` if they are more than so many.
    fn units_up_to(value: &CelValue, most: u64) -> Result<Option<u64>, Failure> {
        let mut extent = Self::default();
        match extent.add(value, 0, most) {
            Ok(()) => Ok(Some(extent.units())),
            Err(_) if extent.units() > most => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(super) fn units(self) -> u64 {
        self.parts + self.bytes / UNIT_BYTES
    }

    fn add(&mut self, value: &CelValue, level: u32, most: u64) -> Result<(), Failure> {
        #[cfg(test)]
        WALKED.with(|count| count.set(count.get() + 1));
        self.parts += 1;
        match value {
            CelValue::String(text) => self.bytes += text.len() as u64,
            CelValue::Bytes(bytes) => self.bytes += bytes.len() as u64,
            CelValue::List(items) => {
                for item in items.iter() {
                    self.add(item, level + 1, most)?;
                }
            }
            CelValue::Map(map) => {
                for (key, value) in map.map.iter() {
                    if let Key::String(text) = key {
                        self.bytes += text.len() as u64;
                    }
                    self.add(value, level + 1, most)?;
                }
            }
            CelValue::Opaque(opaque) => {
                if let Some(inner) = super::optional::inside(opaque.as_ref()) {
                    self.add(inner, level + 1, most)?;
                }
                for item in list_items(value).into_iter().flat_map(|it| it.iter()) {
                    self.add(item, level + 1, most)?;
                }
            }
            _ => {}
        }
        if self.parts > PARTS_MAX
            || self.bytes > TEXT_BYTES_MAX
            || level > LEVELS_MAX
            || self.units() > most
        {
            return Err(Failure::TooLarge);
        }
        Ok(())
    }
}

/// Returns the size of a value as `size()` returns it; 1 for a value without size.
pub(super) fn size(value: &CelValue) -> u64 {
    let size = match value {
        CelValue::String(text) => text.chars().count(),
        CelValue::Bytes(bytes) => bytes.len(),
        CelValue::List(items) => items.len(),
        CelValue::Map(map) => map.map.len(),
        other => list_items(other).map_or(1, |items| items.len()),
    };
    size as u64
}
