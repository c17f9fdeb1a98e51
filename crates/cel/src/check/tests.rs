//! The errors in expressions when they are written, and the estimated costs.

use super::unify::Bindings;
use super::*;
use crate::types::SizedType;

fn declared(form: SizedType, max: u64) -> DeclaredType {
    DeclaredType {
        form,
        max,
        min_bytes: 2,
    }
}

fn names() -> Names {
    let text = declared(SizedType::Plain(Type::String), 100);
    let whole = declared(SizedType::Plain(Type::Int), 0);
    let list = declared(SizedType::List(text.clone().into()), 10);
    let object = Object {
        name: "Widget".to_owned(),
        fields: [
            ("text".to_owned(), text),
            ("list".to_owned(), list.clone()),
            ("map".to_owned(), declared(SizedType::Map(list.into()), 5)),
            ("whole".to_owned(), whole),
        ]
        .into_iter()
        .collect(),
        others: None,
    };
    let mut names = Names::default();
    names.add("self", Type::Object(object.into()));
    names.add("any", Type::Dyn);
    names
}

fn checked(source: &str) -> String {
    match check(source, &names()) {
        Ok(checked) => checked.gives.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn expressions_have_types() {
    for (source, gives) in [
        ("self.text", "string"),
        ("self.list[0]", "string"),
        ("self.map['a'].map(x, x.size())", "list(int)"),
        ("self.list.filter(x, x == 'a')", "list(string)"),
        ("self.list.exists(x, x == 'a') || self.whole > 1.5", "bool"),
        ("self.map.all(k, k == 'a')", "bool"),
        ("self.map.all(k, v, k == 'a' && v.size() > 1)", "bool"),
        ("self.list.exists(i, v, i > 1 && v == 'a')", "bool"),
        ("self.map.existsOne(k, v, v == [k])", "bool"),
        ("self.list.transformList(i, v, i)", "list(int)"),
        (
            "self.map.transformList(k, v, k != '', v)",
            "list(list(string))",
        ),
        ("self.map.transformMap(k, v, v.size())", "map(string, int)"),
        ("self.list.transformMap(i, v, v)", "map(int, string)"),
        (
            "self.list.transformMapEntry(i, v, {v: i})",
            "map(string, int)",
        ),
        ("any.transformMap(k, v, v.a)", "map(dyn, dyn)"),
        ("self.list.first()", "optional_type(string)"),
        (
            "self.list.slice(0, 1).reverse().sort().distinct()",
            "list(string)",
        ),
        ("self.list.sortBy(x, x.size())", "list(string)"),
        ("[[1], [2]].flatten()", "list(int)"),
        ("[[[1]]].flatten(2)", "list(dyn)"),
        ("lists.range(10)", "list(int)"),
        ("optional.unwrap([self.?text])", "list(string)"),
        ("any.b.c + 1", "int"),
        ("any.b[0].c", "dyn"),
        ("[1, 2] + []", "list(int)"),
        ("{'a': 1}", "map(string, int)"),
        ("self.?text.orValue('')", "string"),
        ("self.?text", "optional_type(string)"),
        ("self.list[?0].optMap(x, x.size())", "optional_type(int)"),
        ("type(self.text) == string", "bool"),
        ("true ? self.whole : any", "dyn"),
        ("quantity('1').add(1).isGreaterThan(quantity('2'))", "bool"),
        ("url('a').getQuery()", "map(string, list(string))"),
        ("'%s%s'.format([self.text, self.text])", "string"),
        (
            "'%s-%d-%s'.format([self.text, self.whole, [1, {'a': 1, 'b': ''}]])",
            "string",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z') - duration('1h')",
            "timestamp",
        ),
        ("has(self.text) && self.text in ['a']", "bool"),
        (
            "sets.contains(self.list, ['a']) && format.uuid().validate('a').hasValue()",
            "bool",
        ),
    ] {
        assert_eq!(checked(source), gives, "{source}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (source, lines) in [
        (
            "self.missing > 1",
            "ERROR: <input>:1:5: undefined field 'missing'\n | self.missing > 1\n | ....^",
        ),
        (
            "a == 1",
            "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a == 1\n | ^",
        ),
        (
            "self.text + 1",
            "ERROR: <input>:1:11: found no matching overload for '_+_' applied to '(string, int)'\n | self.text + 1\n | ..........^",
        ),
        (
            "self.text.startsWith(1)",
            "ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.text.startsWith(1)\n | ....................^",
        ),
        (
            "self.whole.a",
            "ERROR: <input>:1:11: type 'int' does not support field selection\n | self.whole.a\n | ..........^",
        ),
        (
            "self.nothing() ||\n  b",
            "ERROR: <input>:1:13: undeclared reference to 'nothing' (in container '')\n | self.nothing() ||\n | ............^\nERROR: <input>:2:3: undeclared reference to 'b' (in container '')\n |   b\n | ..^",
        ),
        (
            "[1, 'a'] == []",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'] == []\n | ....^",
        ),
        (
            "self.whole.all(x, true)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.whole.all(x, true)\n | ....^",
        ),
    ] {
        assert_eq!(checked(source), lines, "{source}");
    }
    for (source, part) in [
        ("self.text.matches('(')", "1:19: invalid matches argument\n"),
        (
            "self.text.matches('((a{1,100}){1,100}){1,100}')",
            "1:19: invalid matches argument\n",
        ),
        (
            "self.text.find('(')",
            "error parsing regexp: missing closing ): `(`",
        ),
        (
            "duration('x') > duration('1s')",
            "invalid duration argument",
        ),
        (
            "timestamp('x') > timestamp('2026-01-01T00:00:00Z')",
            "invalid timestamp argument",
        ),
        ("Object{a: 1}", "undeclared reference to 'Object'"),
        ("lists.reach(10)", "undeclared reference to"),
        ("isImage('a')", "undeclared reference to 'isImage'"),
        ("image('a').tag()", "undeclared reference to 'image'"),
        ("[1].sortBy(1, 2)", "argument must be a simple name"),
        ("[[1]].sort()", "found no matching overload for 'sort'"),
        ("self.text >", "Syntax error"),
    ] {
        assert!(
            checked(source).contains(part),
            "{source}: {}",
            checked(source)
        );
    }
}

#[test]
fn what_is_wrong_in_macros_is_told_with_its_place() {
    for (source, lines) in [
        (
            "self.list.all(i, v, i == v)",
            "ERROR: <input>:1:23: found no matching overload for '_==_' applied to '(int, string)'\n | self.list.all(i, v, i == v)\n | ......................^",
        ),
        (
            "self.list.transformMap(i, 1, v)",
            "ERROR: <input>:1:27: argument must be a simple name\n | self.list.transformMap(i, 1, v)\n | ..........................^",
        ),
        (
            "self.list.transformMapEntry(i, v, v) == {}",
            "ERROR: <input>:1:28: found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), string)'\n | self.list.transformMapEntry(i, v, v) == {}\n | ...........................^",
        ),
        (
            "self.list.transformList(1)",
            "ERROR: <input>:1:24: undeclared reference to 'transformList' (in container '')\n | self.list.transformList(1)\n | .......................^",
        ),
    ] {
        assert_eq!(checked(source), lines, "{source}");
    }
}

#[test]
fn costs_follow_from_the_sizes_that_are_declared() {
    let cost = |source: &str| check(source, &names()).unwrap().cost;
    for (source, at_most) in [
        ("self.whole > 1", 3),
        ("self.text == 'abc'", 3),
        ("self.text.startsWith('a')", 3),
        ("self.text + self.text == ''", 4 + 20),
        ("self.text.matches('abcd')", 2 + 11),
        ("'a' in self.list", 2 + 10),
        ("self.list.all(x, x == 'a')", 2 + 1 + 10 * (2 + 3)),
        ("self.list.all(i, v, v == 'a')", 2 + 1 + 10 * (2 + 3)),
        ("self.list.all(i, v, i == 1)", 2 + 1 + 10 * (2 + 3)),
        // For each item what was gathered, its place, the value and the entry; a new map at first.
        ("self.list.transformMap(i, v, v)", 2 + 30 + 1 + 10 * 4),
    ] {
        assert_eq!(cost(source), at_most, "{source}");
    }
    assert!(cost("self.list.all(a, self.list.all(b, a == b))") > 300);
    assert!(cost("self.map.all(k, self.map[k].all(x, x != ''))") > 5 * 10);
    assert!(cost("self.map.all(k, v, v.all(x, x != ''))") > 5 * 10);
    assert_eq!(cost("any.all(x, x == 1)"), u64::MAX);
    assert_eq!(cost("any.all(k, v, v == 1)"), u64::MAX);
}

#[test]
fn hostile_expressions_are_refused_soon() {
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    assert!(checked(&deep).starts_with("list(list("));
    let wide = format!("[{}1].size() > 0", "1, ".repeat(5_000));
    assert_eq!(checked(&wide), "bool");
    let loops = format!("{}true{}", "[1, 2].all(a, ".repeat(20), ")".repeat(20));
    assert_eq!(checked(&loops), "bool");
    assert!(check(&loops, &names()).unwrap().cost > 10_000_000);
    let pairs = format!("{}true{}", "[1, 2].all(a, b, ".repeat(20), ")".repeat(20));
    assert_eq!(checked(&pairs), "bool");
    let unknowns = "[".repeat(20) + &"]".repeat(20);
    let sum = vec![unknowns.as_str(); 60].join(" == ");
    assert!(checked(&sum).len() < 100_000);
    let wrong = vec!["x"; 3_000].join(",");
    assert!(checked(&format!("[{wrong}]")).contains("undeclared reference to 'x'"));
    let many = checked(&format!("[{}]", vec!["x"; 8_000].join(",")));
    assert!(many.len() < 200_000, "{} bytes", many.len());
    assert!(many.ends_with("\n7900 more errors were truncated"));
    let doubled: String = (0..16)
        .map(|n| format!(".map(x{n}, {{x{n}: x{n}}})"))
        .collect();
    assert!(checked(&format!("[1]{doubled}")).len() < 100_000);
    let learned: String = (0..16)
        .map(|n| format!(".map(x{n}, [{{}}].map(y, y[x{n}] == x{n} ? y : y)[0])"))
        .collect();
    assert!(checked(&format!("[1]{learned}")).len() < 100_000);
}

#[test]
fn what_does_not_fit_is_not_learned() {
    let mut bindings = Bindings::default();
    let first = bindings.fresh(2);
    let pair = Type::map(Type::Variable(first), Type::Variable(first));
    assert!(!bindings.fit(&pair, &Type::map(Type::Int, Type::Bool)));
    assert_eq!(bindings.resolve(&pair), pair);
    let mark = bindings.mark();
    assert!(bindings.fit(&pair, &Type::map(Type::Int, Type::Int)));
    assert_eq!(bindings.resolve(&Type::Variable(first)), Type::Int);
    bindings.forget(mark);
    assert_eq!(bindings.resolve(&pair), pair);
}
