//! The estimated costs of expressions, compared with those of kube-apiserver.

use imbl::OrdMap;
use proptest::prelude::*;

use super::ranges::Range;
use super::*;
use crate::types::SizedType;

fn sized(form: SizedType, max: u64) -> DeclaredType {
    DeclaredType {
        form,
        max,
        min_bytes: 2,
    }
}

fn plain(of: Type, max: u64) -> DeclaredType {
    sized(SizedType::Plain(of), max)
}

/// Returns a text of so many bytes at most: four for each character that a schema allows.
fn text(max: u64) -> DeclaredType {
    plain(Type::String, max)
}

fn list(of: DeclaredType, max: u64) -> DeclaredType {
    sized(SizedType::List(of.into()), max)
}

fn map(of: DeclaredType, max: u64) -> DeclaredType {
    sized(SizedType::Map(of.into()), max)
}

fn object<const N: usize>(name: &str, fields: [(&str, DeclaredType); N]) -> DeclaredType {
    let fields: OrdMap<String, DeclaredType> = fields
        .into_iter()
        .map(|(name, of)| (name.to_owned(), of))
        .collect();
    let object = Object {
        name: name.to_owned(),
        fields,
        others: None,
    };
    plain(Type::Object(object.into()), 0)
}

/// The longest text that fits into a request.
const UNBOUNDED: u64 = (3 << 20) - 2;

fn item(name: &str) -> DeclaredType {
    object(
        name,
        [
            ("name", text(40)),
            ("other", text(12)),
            ("port", plain(Type::Int, 0)),
            ("tags", list(text(48), 7)),
            ("labels", map(text(64), 4)),
        ],
    )
}

/// Returns the variables of a rule about an object with fields of all kinds.
fn names() -> Names {
    let inner = [("name", text(32)), ("items", list(item("inner.item"), 2))];
    let whole = object(
        "whole",
        [
            ("text", text(100)),
            ("note", text(20)),
            ("long", text(UNBOUNDED)),
            ("blob", plain(Type::Bytes, 50)),
            ("choice", text(3)),
            ("whole", plain(Type::Int, 0)),
            ("number", plain(Type::Double, 0)),
            ("flag", plain(Type::Bool, 0)),
            ("wait", plain(Type::Duration, 32)),
            ("at", plain(Type::Timestamp, 29)),
            ("port", plain(Type::Dyn, UNBOUNDED)),
            ("list", list(text(100), 10)),
            ("longs", list(text(UNBOUNDED), 4)),
            ("numbers", list(plain(Type::Int, 0), 8)),
            ("map", map(list(text(100), 10), 5)),
            ("labels", map(text(80), 6)),
            ("items", list(item("item"), 3)),
            (
                "nested",
                object("nested", [("inner", object("inner", inner))]),
            ),
        ],
    );
    let mut names = Names::default();
    for name in ["self", "oldSelf"] {
        names.variables.insert(name.to_owned(), whole.clone());
    }
    names
}

/// Returns the range of the estimated cost of an expression.
fn cost(source: &str, names: &Names) -> Range {
    let program = compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    on_large_stack(|| {
        let mut checker = Checker::new(names);
        checker.check(&program.expression);
        let errors: Vec<_> = checker.errors.iter().map(|it| &it.why).collect();
        assert!(errors.is_empty(), "{source}: {errors:?}");
        estimate::cost(&program.expression, &checker, names)
    })
}

#[test]
fn costs_are_those_of_kube_apiserver() {
    let names = names();
    for line in include_str!("costs.txt").lines() {
        let mut parts = line.splitn(3, ' ');
        let mut number = || parts.next().and_then(|it| it.parse().ok());
        let known = (number(), number());
        let source = parts.next().expect("an expression");
        let Range { min, max } = cost(source, &names);
        assert_eq!((Some(min), Some(max)), known, "{source}");
    }
}

#[test]
fn a_name_of_a_type_costs_the_same_with_points_in_it() {
    let names = names();
    for named in [
        "google.protobuf.Timestamp",
        ".google.protobuf.Duration",
        "net.IP",
    ] {
        let source = |name: &str| format!("type(self.text) == {name}");
        assert_eq!(
            cost(&source(named), &names),
            cost(&source("int"), &names),
            "{named}"
        );
    }
}

/// Expressions of type string with the size that they have at most by the sizes of their parts.
fn texts() -> impl Strategy<Value = (String, u64)> {
    let part = prop_oneof![
        Just(("self.text".to_owned(), 100)),
        Just(("self.note".to_owned(), 20)),
        Just(("self.choice".to_owned(), 3)),
        "[a-z]{0,9}".prop_map(|it| (format!("'{it}'"), it.len() as u64)),
    ];
    part.prop_recursive(4, 32, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|((a, n), (b, m))| (format!("({a} + {b})"), n + m)),
            (inner.clone(), inner.clone())
                .prop_map(|((a, n), (b, m))| (format!("(self.flag ? {a} : {b})"), n.max(m))),
            (inner.clone(), inner.clone())
                .prop_map(|((a, n), (b, m))| (format!("[{a}, {b}][0]"), n.max(m))),
            (inner.clone(), inner.clone())
                .prop_map(|((a, n), (b, m))| (format!("([{a}] + [{b}])[0]"), n.max(m))),
            inner
                .clone()
                .prop_map(|(a, n)| (format!("{{'k': {a}}}['k']"), n)),
            inner
                .clone()
                .prop_map(|(a, n)| (format!("{a}.trim().lowerAscii()"), n)),
            inner.prop_map(|(a, n)| (format!("dyn({a}.substring(1))"), n)),
        ]
    })
}

proptest! {
    #[test]
    fn sizes_pass_through_operators(((source, size), other) in (texts(), "[a-z]{0,9}")) {
        let names = names();
        let alone = cost(&source, &names).max;
        let compared = cost(&format!("{source} == self.long"), &names).max;
        // The walk through both, as far as the shorter one, and the two names of the longer one.
        prop_assert_eq!(compared - alone, size.div_ceil(10) + 2, "{}", source);
        let shorter = cost(&format!("{source} == '{other}'"), &names).max;
        let least = size.min(other.len() as u64);
        prop_assert_eq!(shorter - alone, least.div_ceil(10), "{}", source);
    }
}
