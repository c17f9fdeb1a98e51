//! Writes a file with its switches, and knows which mutant an error of the compiler in it comes from.
//!
//! In `match crate::mutants::at(&[7, 8]) { 0 => (a + b), 7 => (a - b), … }` the original comes first, so that it
//! decides the types and an error lies in the arm of the mutant that does not fit.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::list::Mutant;
use crate::sites::{Form, Site};

/// The text of a file with switches.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    marks: Vec<Mark>,
}

/// The mutants behind a range of a rewritten file.
#[derive(Debug)]
pub(crate) struct Mark {
    range: Range<usize>,
    pub(crate) numbers: Vec<u32>,
    /// True if it is what one mutant puts there, false if it is a whole place.
    pub(crate) is_replacement: bool,
}

impl Rewritten {
    /// Writes a text with the switches of sites, which are in their order. Those of mutants in `without` are left out.
    pub(crate) fn new(
        text: &str,
        sites: &[Site],
        without: &BTreeSet<u32>,
        mutants: &[Mutant],
    ) -> Self {
        let mut sites = sites.to_vec();
        for site in &mut sites {
            site.numbers.retain(|number| !without.contains(number));
        }
        sites.retain(|site| !site.numbers.is_empty());
        let mut writer = Writer {
            text,
            sites: &sites,
            mutants,
            out: String::new(),
            marks: Vec::new(),
        };
        writer.copy(0..text.len(), 0);
        Self {
            text: writer.out,
            marks: writer.marks,
        }
    }

    /// Returns the innermost mark around a range.
    pub(crate) fn blame(&self, range: &Range<usize>) -> Option<&Mark> {
        let around = |it: &&Mark| it.range.start <= range.start && range.end <= it.range.end;
        let marks = self.marks.iter().filter(around);
        marks.min_by_key(|it| (it.range.len(), !it.is_replacement))
    }
}

struct Writer<'a> {
    text: &'a str,
    sites: &'a [Site],
    mutants: &'a [Mutant],
    out: String,
    marks: Vec<Mark>,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Copies a range with those of its sites that stand at `first` or later in the list.
    fn copy(&mut self, range: Range<usize>, first: usize) {
        let mut done = range.start;
        for index in first..self.sites.len() {
            let site = &self.sites[index].range;
            if site.start >= range.end {
                break;
            }
            if site.start >= done {
                self.push(&self.text[done..site.start]);
                self.site(index);
                done = site.end;
            }
        }
        self.push(&self.text[done..range.end]);
    }

    fn mark(&mut self, begin: usize, numbers: &[u32], is_replacement: bool) {
        self.marks.push(Mark {
            range: begin..self.out.len(),
            numbers: numbers.to_vec(),
            is_replacement,
        });
    }

    /// Writes a choice between the original and what `replace` writes for each mutant.
    fn switch(
        &mut self,
        numbers: &[u32],
        original: impl FnOnce(&mut Self),
        replace: impl Fn(&mut Self, u32),
    ) {
        self.push(&format!("match crate::mutants::at(&{numbers:?}) {{ 0 => ("));
        original(self);
        self.push("),");
        for number in numbers {
            self.push(&format!(" {number} => "));
            let begin = self.out.len();
            self.push("(");
            replace(self, *number);
            self.push(")");
            self.mark(begin, &[*number], true);
            self.push(",");
        }
        self.push(" _ => unreachable!() }");
    }

    fn replacement(&self, number: u32) -> String {
        self.mutants[number as usize - 1].replacement.clone()
    }

    /// Writes the switch of a site, and within it the sites that it holds.
    fn site(&mut self, index: usize) {
        let Site {
            range,
            form,
            numbers,
        } = &self.sites[index];
        let begin = self.out.len();
        let inner = index + 1;
        match form {
            Form::Body { is_opaque: false } => {
                let returned = |it: &mut Self, number| {
                    it.push(&format!("return {}", it.replacement(number)));
                };
                self.switch(numbers, |_| {}, returned);
                self.push("; ");
                self.mark(begin, numbers, false);
                return self.copy(range.clone(), inner);
            }
            Form::Body { is_opaque: true } => self.opaque(range, numbers, inner),
            Form::Binary {
                left,
                right,
                operator,
            } => match operator.as_str() {
                "&&" | "||" => self.logic([left, right], operator, numbers[0], inner),
                "==" | "!=" | "<" | "<=" | ">" | ">=" => {
                    // They take references to their operands.
                    self.binary([left, right], operator, ["&", "*"], numbers, inner);
                }
                _ if operator.ends_with('=') => {
                    self.assignment([left, right], operator, numbers, inner);
                }
                _ => self.binary([left, right], operator, ["", ""], numbers, inner),
            },
            Form::Unary { operator, operand } => {
                self.push("(match (");
                self.copy(operand.clone(), inner);
                self.push(") { mutants_operand => ");
                let original = |it: &mut Self| it.push(&format!("{operator}mutants_operand"));
                let replaced = |it: &mut Self, _| it.push("mutants_operand");
                self.switch(numbers, original, replaced);
                self.push("})");
            }
            Form::Guard => self.guard(range, numbers, inner),
            Form::Arm => self.push(&format!(" if !crate::mutants::is({}) ", numbers[0])),
            Form::Field {
                name,
                is_short,
                rest,
            } => {
                if *is_short {
                    self.push(&format!("{name}: "));
                }
                let of_rest = format!("({}).{name}", &self.text[rest.clone()]);
                let original = |it: &mut Self| it.copy(range.clone(), inner);
                self.switch(numbers, original, |it, _| it.push(&of_rest));
            }
            Form::Fixed => self.push(&self.replacement(numbers[0])),
        }
        self.mark(begin, numbers, false);
    }

    /// Each mutant returns an iterator of a type of its own.
    fn opaque(&mut self, range: &Range<usize>, numbers: &[u32], inner: usize) {
        for number in numbers {
            self.push(&format!(
                "crate::mutants::either(if crate::mutants::is({number}) {{ None }} else {{ Some("
            ));
        }
        self.push("{ ");
        self.copy(range.clone(), inner);
        self.push(" }");
        for number in numbers.iter().rev() {
            self.push(") }, ");
            let begin = self.out.len();
            self.push(&format!("|| {}", self.replacement(*number)));
            self.mark(begin, &[*number], true);
            self.push(")");
        }
    }

    fn binary(
        &mut self,
        operands: [&Range<usize>; 2],
        operator: &str,
        [reference, value]: [&str; 2],
        numbers: &[u32],
        inner: usize,
    ) {
        for (before, operand) in [("(match (", operands[0]), (", ", operands[1])] {
            self.push(&format!("{before}{reference}("));
            self.copy(operand.clone(), inner);
            self.push(")");
        }
        self.push(") { (mutants_left, mutants_right) => ");
        let joined =
            |operator: &str| format!("{value}mutants_left {operator} {value}mutants_right");
        self.switch(
            numbers,
            |it| it.push(&joined(operator)),
            |it, number| it.push(&joined(&it.replacement(number))),
        );
        self.push("})");
    }

    /// `a && b` is `if a { b } else { false }`, and `a || b` is `if !a { b } else { true }`: one is the other with two
    /// values turned round.
    fn logic(
        &mut self,
        [left, right]: [&Range<usize>; 2],
        operator: &str,
        number: u32,
        inner: usize,
    ) {
        let is = format!("crate::mutants::is({number})");
        let (compared, otherwise) = if operator == "&&" {
            ("!=", "")
        } else {
            ("==", "!")
        };
        self.push("(if (");
        self.copy(left.clone(), inner);
        self.push(&format!(") {compared} {is} {{ "));
        self.copy(right.clone(), inner);
        self.push(&format!(" }} else {{ {otherwise}{is} }})"));
    }

    fn assignment(
        &mut self,
        [left, right]: [&Range<usize>; 2],
        operator: &str,
        numbers: &[u32],
        inner: usize,
    ) {
        self.push("(match (");
        self.copy(right.clone(), inner);
        self.push(") { mutants_right => ");
        let original = |it: &mut Self| {
            it.copy(left.clone(), inner);
            it.push(&format!(" {operator} mutants_right"));
        };
        let replaced = |it: &mut Self, number| {
            let place = &it.text[left.clone()];
            it.push(&format!("{place} {} mutants_right", it.replacement(number)));
        };
        self.switch(numbers, original, replaced);
        self.push("})");
    }

    fn guard(&mut self, range: &Range<usize>, numbers: &[u32], inner: usize) {
        self.push("(");
        for number in numbers {
            let text = match self.replacement(*number).as_str() {
                "true" => format!("crate::mutants::is({number}) || "),
                _ => format!("!crate::mutants::is({number}) && "),
            };
            self.push(&text);
        }
        self.push("(");
        self.copy(range.clone(), inner);
        self.push("))");
    }
}
