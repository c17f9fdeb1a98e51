//! The places of a file's mutants: where a switch goes, and the parts of the expression around it.
//!
//! A switch chooses at run time, so there is none where the compiler computes: in constants, statics, lengths of arrays
//! and arguments of types. Mutants there are *fixed*: each needs a build of its own.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat};

use crate::list::{Genre, Mutant, Place, Span};

/// The function with which cargo-mutants makes a reference.
const LEAKED: &str = "Box::leak";

/// A place with a switch, and the numbers of the mutants among which it chooses.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
    pub(crate) numbers: Vec<u32>,
}

/// The form of a switch. Ranges are bytes of the file.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// The statements of a function; true if it returns `impl Trait`.
    Body { is_opaque: bool },
    /// An operator between two operands, such as `<`, `&&` or `+=`.
    Binary {
        left: Range<usize>,
        right: Range<usize>,
        operator: String,
    },
    /// `!` or `-`.
    Unary {
        operator: String,
        operand: Range<usize>,
    },
    /// The guard of an arm.
    Guard,
    /// The end of an arm's pattern that has no guard.
    Arm,
    /// The value of a field in front of the rest of a struct.
    Field {
        name: String,
        is_short: bool,
        rest: Range<usize>,
    },
    /// Text that a fixed mutant replaces.
    Fixed,
}

/// The places of a file.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// In their order, those around others first.
    pub(crate) sites: Vec<Site>,
    /// Mutants that have no switch.
    pub(crate) fixed: Vec<u32>,
    /// Mutants of `&&` beside `let`, which only `&&` may join.
    pub(crate) unviable: Vec<u32>,
}

/// Finds the places of a file's mutants, each given with its number.
pub(crate) fn find(text: &str, mutants: &[(u32, &Mutant)]) -> syn::Result<Sites> {
    let mut finder = Finder {
        text,
        unclaimed: BTreeMap::new(),
        opaque: Vec::new(),
        sites: Sites::default(),
    };
    for (number, mutant) in mutants {
        let range = range(text, mutant.span);
        if mutant.genre == Genre::FnValue && mutant.is_opaque() {
            finder.opaque.push(range.start);
            // An iterator of mutable references is seldom what the function returns, and the compiler does not say
            // where.
            if mutant.replacement.contains(LEAKED) {
                finder.sites.fixed.push(*number);
                continue;
            }
        }
        let unclaimed = finder.unclaimed.entry((mutant.genre, range.start));
        let (_, numbers) = unclaimed.or_insert((range, Vec::new()));
        numbers.push(*number);
    }
    finder.visit_file(&syn::parse_file(text)?);
    let mut sites = finder.sites;
    let unclaimed = finder.unclaimed.into_values();
    let numbers = unclaimed.flat_map(|(_, numbers)| numbers);
    sites.fixed.extend(numbers);
    sort(&mut sites.sites);
    Ok(sites)
}

/// Adds the place of a mutant that has no switch to those of its file.
pub(crate) fn with_fixed(
    text: &str,
    sites: &[Site],
    (number, mutant): (u32, &Mutant),
) -> Vec<Site> {
    let mut sites = sites.to_vec();
    for site in &mut sites {
        site.numbers.retain(|it| *it != number);
    }
    sites.push(Site {
        range: range(text, mutant.span),
        form: Form::Fixed,
        numbers: vec![number],
    });
    sort(&mut sites);
    sites
}

/// Puts sites around others first. The body of a function and a guard are around the expression that begins and ends
/// with them.
fn sort(sites: &mut [Site]) {
    let is_inside = |form: &Form| !matches!(form, Form::Body { .. } | Form::Guard);
    sites.sort_by_key(|it| {
        (
            it.range.start,
            usize::MAX - it.range.end,
            is_inside(&it.form),
        )
    });
}

/// Returns the bytes of a text that a span covers.
fn range(text: &str, span: Span) -> Range<usize> {
    let offset = |place: Place| {
        let lines = text.split_inclusive('\n');
        let before: usize = lines.clone().take(place.line - 1).map(str::len).sum();
        let line = text[before..].chars().take(place.column - 1);
        before + line.map(char::len_utf8).sum::<usize>()
    };
    offset(span.start)..offset(span.end)
}

struct Finder<'a> {
    text: &'a str,
    /// The mutants whose place is not found yet, by their kind and where they begin.
    unclaimed: BTreeMap<(Genre, usize), (Range<usize>, Vec<u32>)>,
    /// The offsets in bytes at which the bodies of functions begin that return `impl Trait`.
    opaque: Vec<usize>,
    sites: Sites,
}

impl Finder<'_> {
    /// Makes a site of the mutants of a kind that begin at a byte, if there are any. `range` is the text that the
    /// switch replaces, else that of the mutants.
    fn claim(&mut self, genre: Genre, start: usize, range: Option<Range<usize>>, form: Form) {
        if let Some((own, numbers)) = self.unclaimed.remove(&(genre, start)) {
            self.sites.sites.push(Site {
                range: range.unwrap_or(own),
                form,
                numbers,
            });
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        if signature.constness.is_some() {
            return false;
        }
        if let Some(first) = block.stmts.first() {
            let start = bytes(first).start;
            let is_opaque = self.opaque.contains(&start);
            self.claim(Genre::FnValue, start, None, Form::Body { is_opaque });
        }
        true
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        if self.function(&it.sig, &it.block) {
            visit::visit_item_fn(self, it);
        }
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        if self.function(&it.sig, &it.block) {
            visit::visit_impl_item_fn(self, it);
        }
    }

    fn visit_trait_item_fn(&mut self, it: &'ast syn::TraitItemFn) {
        if let Some(block) = &it.default
            && self.function(&it.sig, block)
        {
            visit::visit_trait_item_fn(self, it);
        }
    }

    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let operator = bytes(&it.op);
        if matches!(it.op, BinOp::And(_)) && (has_let(&it.left) || has_let(&it.right)) {
            let found = self
                .unclaimed
                .remove(&(Genre::BinaryOperator, operator.start));
            let numbers = found.map(|(_, numbers)| numbers);
            self.sites.unviable.extend(numbers.into_iter().flatten());
        }
        let form = Form::Binary {
            left: bytes(&it.left),
            right: bytes(&it.right),
            operator: self.text[operator.clone()].to_owned(),
        };
        self.claim(Genre::BinaryOperator, operator.start, Some(bytes(it)), form);
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        let form = Form::Unary {
            operator: self.text[bytes(&it.op)].to_owned(),
            operand: bytes(&it.expr),
        };
        let range = bytes(it);
        let start = bytes(&it.op).start;
        self.claim(Genre::UnaryOperator, start, Some(range), form);
        visit::visit_expr_unary(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        if let Pat::Guard(guard) = &it.pat {
            let range = bytes(&guard.guard);
            self.claim(Genre::MatchArmGuard, range.start, None, Form::Guard);
        }
        visit::visit_arm(self, it);
    }

    fn visit_expr_match(&mut self, it: &'ast syn::ExprMatch) {
        // Without an arm for everything else, one that is switched off would leave values without any.
        if it.arms.iter().any(|arm| matches!(arm.pat, Pat::Wild(_))) {
            for arm in &it.arms {
                let end = bytes(&arm.pat).end;
                self.claim(Genre::MatchArm, bytes(arm).start, Some(end..end), Form::Arm);
            }
        }
        visit::visit_expr_match(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        for field in &it.fields {
            let (Some(rest), syn::Member::Named(name)) = (&it.rest, &field.member) else {
                continue;
            };
            let form = Form::Field {
                name: name.to_string(),
                is_short: field.colon_token.is_none(),
                rest: bytes(rest),
            };
            let range = bytes(&field.expr);
            self.claim(Genre::StructField, bytes(field).start, Some(range), form);
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_expr_repeat(&mut self, it: &'ast syn::ExprRepeat) {
        self.visit_expr(&it.expr);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
}

fn bytes(it: &impl Spanned) -> Range<usize> {
    it.span().byte_range()
}

/// Returns true if an operand of a chain of `&&` holds a `let` of the chain.
fn has_let(operand: &Expr) -> bool {
    match operand {
        Expr::Let(_) => true,
        Expr::Binary(it) => has_let(&it.left) || has_let(&it.right),
        _ => false,
    }
}
