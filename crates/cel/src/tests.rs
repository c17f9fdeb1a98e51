//! The results of expressions, and the cost that they may have.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use serde_json::{Value, json};

use super::*;

fn run(source: &str, this: &Value) -> Result<CelValue, Failure> {
    let mut scope = Scope::default();
    scope.add("self", plain(this));
    let program = compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    on_large_stack(|| execute(&program, &scope, &mut Meter::new()))
}

fn outcome(source: &str, this: &Value) -> String {
    match run(source, this) {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn expressions_give_what_the_language_says() {
    let this = json!({"a": 1, "l": [1, 2, 3], "m": {"x": "y"}, "t": "héllo", "n": null});
    for source in [
        "bool('true') && string(true) == 'true' && self.a + 1 == 2 && -self.a == -1 && 7 % 4 == 3 && 7 / 2 == 3 && 2.5 * 2.0 == 5.0",
        "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
        "self.t.size() == 5 && size(self.l) == 3 && self.m.size() == 1",
        "self.l[1] == 2 && self.m['x'] == 'y' && 2 in self.l && 'x' in self.m && !('z' in self.m)",
        "has(self.m.x) && !has(self.m.z) && !has(self.z)",
        "self.l.map(i, i * 2) == [2, 4, 6] && self.l.filter(i, i > 1) == [2, 3] && self.l.map(i, i > 1, i) == [2, 3]",
        "self.l.exists(i, 1 / (i - 1) > 0) && !self.l.all(i, 1 / (i - 1) > 0)",
        "self.m.all(k, self.m[k] == 'y') && self.l.exists_one(i, i == 2)",
        "(1 / 0 > 0 || true) && !(1 / 0 > 0 && false)",
        "1 == 1.0 && 1u == 1 && 1 < 1.5 && 'a' < 'b' && self.n == null",
        "type(self.a) == int && type(self.t) == string && type([1]) == list && dyn(1) == 1",
        "self.?a.orValue(0) == 1 && self.?z.orValue(7) == 7 && self.l[?9].hasValue() == false",
        "self.?m.?x.optMap(v, v + '!').orValue('') == 'y!' && optional.none().or(optional.of(1)).value() == 1",
        "[?self.?z, 1] == [1] && {'a': 1, ?'b': optional.none()} == {'a': 1}",
        "self.t.matches('^h.l+o$') && 'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'aXa'.replace('a', 'bb') == 'bbXbb'",
        "timestamp('2026-01-01T00:00:00Z') + duration('1h') == timestamp('2026-01-01T01:00:00Z')",
        "quantity('1Gi').isGreaterThan(quantity('1Mi')) && ip('::1').isLoopback() && ip.isCanonical('127.0.0.1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && url('https://a/b').getHost() == 'a' && semver('1.2.3').major() == 1",
        "[1, 3, 2].sum() == 6 && ![3, 1].isSorted() && [1, 5].max() == 5 && 'abc'.indexOf('c') == 2",
        "'%s is %d'.format(['a', 1]) == 'a is 1' && 'Ab'.lowerAscii() == 'ab' && bytes('hi') == b'hi'",
        "sets.contains([1, 2], [1]) && !format.dns1123Label().validate('a').hasValue()",
        "lists.range(3) == [0, 1, 2] && lists.range(-1) == [] && [1, 2, 3, 4].slice(1, 3) == [2, 3] && self.l.slice(3, 3) == []",
        "[1, [2, [3]]].flatten() == [1, 2, [3]] && [1, [2, [3]]].flatten(2) == [1, 2, 3] && [[1], []].flatten(0) == [[1], []]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [b'b', b'a'].sort() == [b'a', b'b'] && [].sort() == []",
        "self.l.sortBy(x, -x) == [3, 2, 1] && ['ccc', 'a', 'bb'].sortBy(x, x.size()) == ['a', 'bb', 'ccc'] && [].sortBy(x, x) == [] && lists.range(100).map(i, i % 3 == 0 ? 0.0 / 0.0 : double(100 - i)).sort()[0] == 2.0",
        "['b', 'a'].map(y, y).sortBy(x, x) == ['a', 'b'] && [[2, 1], [1]].map(y, y.sortBy(x, x)) == [[1, 2], [1]]",
        "[1, 2.0, 1.0, 2, 'a', 'a'].distinct() == [1, 2.0, 'a'] && self.l.reverse() == [3, 2, 1]",
        "self.l.map(a, self.l.map(b, a * b)) == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]",
    ] {
        assert_eq!(outcome(source, &this), "Bool(true)", "{source}");
    }
}

#[test]
fn failures_have_the_words_of_kube_apiserver() {
    let this = json!({"a": 1, "l": [1, 2, 3], "t": "héllo"});
    for (source, why) in [
        ("self.z", "no such key: z"),
        ("self.l[3]", "index out of bounds: 3"),
        ("1 / 0", "division by zero"),
        (
            "self.l.slice(2, 1)",
            "cannot slice(2, 1), start index must be less than or equal to end index",
        ),
        (
            "self.l.slice(-1, 1)",
            "cannot slice(-1, 1), negative indexes not supported",
        ),
        ("self.l.slice(0, 4)", "cannot slice(0, 4), list is length 3"),
        ("self.l.flatten(-1)", "level must be non-negative"),
        ("[1, 'a'].sort()", "list elements must have the same type"),
        ("[[1]].sort()", "list elements must be comparable"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("self.t + 1", "no such overload"),
        ("self.a.b", "no such key: b"),
        ("self.a && true", "no such overload"),
        ("optional.none().value()", "optional.none() dereference"),
        (
            "self.l.transformMapEntry(i, v, {'a': v})",
            "insert failed: key a already exists",
        ),
        (
            "self.l.transformMapEntry(i, v, v)",
            "no such overload: cel.@mapInsert(map, int)",
        ),
        ("self.l.transformMap(i, v, v / 0)", "division by zero"),
        (
            "self.t.all(i, v, true)",
            "unsupported comprehension range type: types.String",
        ),
        ("int('x')", "type conversion error from 'string' to 'int'"),
    ] {
        assert_eq!(outcome(source, &this), why, "{source}");
    }
}

/// Expressions that convert texts which Go does not take, each with its failure.
const REFUSED: &[(&str, &str)] = &[
    (
        "string(b'\\xff')",
        "invalid UTF-8 in bytes, cannot convert to string",
    ),
    ("int('abc')", "type conversion error from 'string' to 'int'"),
    (
        "duration(self.t)",
        "type conversion error from 'string' to 'google.protobuf.Duration'",
    ),
    (
        "url('abc')",
        "URL parse error during conversion from string: parse \"abc\": invalid URI for request",
    ),
    (
        "ip('x')",
        "IP Address \"x\" parse error during conversion from string: ParseAddr(\"x\"): unable to parse IP",
    ),
    (
        "ip.isCanonical('1.2.3')",
        "IP Address \"1.2.3\" parse error during conversion from string: ParseAddr(\"1.2.3\"): IPv4 address too short",
    ),
    (
        "ip('fe80::1%eth0')",
        "IP address \"fe80::1%eth0\" with zone value is not allowed",
    ),
    (
        "ip('::ffff:1.2.3.4')",
        "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed",
    ),
    (
        "cidr('x')",
        "network address parse error during conversion from string: network address parse error during conversion from \
         string: netip.ParsePrefix(\"x\"): no '/'",
    ),
    (
        "cidr('::ffff:1.2.3.4/128')",
        "network address parse error during conversion from string: IPv4-mapped IPv6 address \"::ffff:1.2.3.4/128\" \
         is not allowed",
    ),
    ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
    (
        "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/40')",
        "network address parse error during conversion from string: network address parse error during conversion from \
         string: netip.ParsePrefix(\"10.0.0.0/40\"): prefix length out of range",
    ),
    (
        "cidr('10.0.0.0/8').containsIP(self.t == '' ? dyn('') : dyn(1))",
        "no such overload: containsIP(net.CIDR, int)",
    ),
    ("quantity('1mm')", "unable to parse quantity's suffix"),
    ("quantity('1e')", "unable to parse quantity's suffix"),
    (
        "quantity(' 1')",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "quantity('1.5').asInteger()",
        "cannot convert value to integer",
    ),
    ("semver('1.2')", "No Major.Minor.Patch elements found"),
    (
        "semver('1-a', true)",
        "short version cannot contain PreRelease/Build meta data",
    ),
    ("timestamp('0000-01-01T00:00:00Z')", "timestamp overflow"),
    (
        "timestamp('9999-12-31T23:59:59-01:00')",
        "timestamp overflow",
    ),
    (
        "timestamp('x')",
        "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    ),
    (
        "quantity('')",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
];

#[test]
fn texts_are_read_as_go_reads_them() {
    let this = json!({"t": "héllo"});
    for source in [
        "!isCIDR('10.10.010.10/24') && isCIDR('10.10.10.10/24') && !isIP('::ffff:1.2.3.4') && isIP('::1')",
        "isURL('http://') && isURL('/a b') && !isURL('a') && url('http://h:1/a%20b?x=1&x=2#f').getQuery() == {'x': ['1', '2']}",
        "isQuantity('m') && quantity('m') == quantity('0')",
        "!isQuantity(' 1') && !isQuantity('1mm') && isSemver('v1', true) && !isSemver('V1', true)",
        "semver('1.0.0+a') == semver('1.0.0+b') && semver('v1', true).compareTo(semver('1.0.0')) == 0",
        "semver('1.0.0-a').isLessThan(semver('1.0.0'))",
        "url('http://a@h/') != url('http://b@h/') && url('http://h/#a') != url('http://h/#b') && url('mailto:a') != url('mailto:b')",
        "url('http://h/?') != url('http://h/') && url('file:/a') != url('file:///a') && url('http://h/a b') == url('HTTP://h/a%20b#')",
        "url('http://u%41@h') == url('http://uA@h') && url('http://a%C3%A9') == url('http://aé') && url('http://h/%41') != url('http://h/A')",
        "url('http://[::1]:80/p').getHostname() == '::1' && url('HTTP://H').getScheme() == 'http' && url('/p').getHost() == '' && url('http://h').getPort() == ''",
    ] {
        assert_eq!(outcome(source, &this), "Bool(true)", "{source}");
    }
    for (source, why) in REFUSED {
        assert_eq!(outcome(source, &this), *why, "{source}");
    }
}

#[test]
fn formats_are_told_in_the_words_of_kubernetes() {
    for source in [
        "!format.named('x').hasValue() && format.named('uuid').value() == format.uuid() && format.uri() != format.byte()",
        "!format.dns1035LabelPrefix().validate('a-').hasValue() && !format.dns1123Subdomain().validate('a.b').hasValue()",
        "!format.uuid().validate('00000000-0000-4000-8000-000000000000').hasValue() && !format.byte().validate('YQ==').hasValue()",
        "!format.date().validate('2026-01-31').hasValue() && !format.datetime().validate('2026-01-31T00:00:00Z').hasValue()",
        "!format.labelValue().validate('').hasValue() && !format.qualifiedName().validate('a.b/c').hasValue()",
        "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
        "format.dns1035LabelPrefix().validate('-').hasValue()",
        "format.labelValue().validate('a'.replace('a', 'aaaaaaaa').replace('a', 'aaaaaaaa')).value() == ['must be no more than 63 bytes']",
        "format.qualifiedName().validate('/a').value() == ['prefix part must be non-empty']",
        "format.uri().validate('a').value() == ['parse \"a\": invalid URI for request']",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "format.byte().validate('x').value() == ['invalid base64']",
        "format.date().validate('x').value() == ['invalid date']",
        "format.datetime().validate('x').value() == ['invalid datetime']",
    ] {
        assert_eq!(outcome(source, &json!({})), "Bool(true)", "{source}");
    }
}

#[test]
fn extensions_give_what_they_should() {
    let this = json!({"l": [1, 2, 3], "m": {"x": "y"}});
    for source in [
        "self.l.all(i, v, v == i + 1) && self.m.all(k, v, k == 'x' && v == 'y') && !self.l.all(i, v, i > 0)",
        "self.l.exists(i, v, i == 2 && v == 3) && self.m.exists(k, v, v == 'y') && !self.l.exists(i, v, v > 3)",
        "self.l.existsOne(i, v, v > 2) && self.l.exists_one(i, v, i == 0) && !self.l.existsOne(i, v, v > 1)",
        "self.l.exists(i, v, 1 / i > 0) && self.l.exists(i, v, self.l.all(j, w, w <= v))",
        "self.l.transformList(i, v, i * v) == [0, 2, 6] && self.l.transformList(i, v, i != 1, v) == [1, 3]",
        "self.m.transformList(k, v, k + v) == ['xy'] && [1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k) == {'b': 'b'} && {}.transformMap(k, v, v) == {}",
        "{'a': 1, 'b': 2}.transformMapEntry(k, v, {v: k}) == {1: 'a', 2: 'b'}",
        "self.l.transformMapEntry(i, v, v != 2, {'k%d'.format([i]): v}) == {'k0': 1, 'k2': 3}",
        "[1, 2].first().value() == 1 && [1, 2].last() == optional.of(2) && !dyn([]).first().hasValue()",
        "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.none(), optional.of('a')].unwrapOpt() == ['a']",
    ] {
        assert_eq!(outcome(source, &this), "Bool(true)", "{source}");
    }
}

#[test]
fn only_where_it_is_allowed_variables_are_bound() {
    let source = "cel.bind(a, [1, 2], a.all(b, b < 3) && cel.bind(a, 5, a == 5))";
    let program = compile_binding(source).expect("an expression");
    let checked = check_program(source, &program, &Default::default());
    assert_eq!(checked.expect("it fits").gives, Type::Bool);
    let refused = |source: &str| {
        let program = compile_binding(source);
        let checked = program.map(|it| check_program(source, &it, &Default::default()));
        checked.is_err() || checked.is_ok_and(|it| it.is_err())
    };
    assert!(refused("cel.bind('a', 1, true)"));
    assert!(refused("cel.bind(a, 1, b)"));
    assert!(check(source, &Default::default()).is_err());
}

/// A chain of variables, each of which is made of the one before; what the last of them comes to.
fn chain(first: &str, next: &str, length: usize) -> Result<CelValue, Failure> {
    let members = (0..length).map(|number| {
        let text = match number {
            0 => first.to_owned(),
            _ => next.replace('x', &format!("variables.v{}", number - 1)),
        };
        let program = compile(&text).map_err(|error| error.to_string());
        (format!("v{number}"), program)
    });
    let members = Arc::new(Members::from_iter(members));
    let mut scope = Scope::default();
    scope.add_computed("variables", &members);
    let last = compile(&format!("variables.v{} == '' || true", length - 1)).unwrap();
    on_large_stack(|| execute(&last, &scope, &mut Meter::new()))
}

#[test]
fn values_that_are_doubled_are_paid_for() {
    for (first, next) in [
        ("'0123456789'", "x + x"),
        ("b'0123456789'", "x + x"),
        ("[1, 2]", "x + x"),
        ("[1, 2]", "[x, x]"),
        ("{'a': 1}", "{'a': x, 'b': x}"),
        ("'aaaaaaaa'", "x.replace('a', 'aa')"),
        ("'aaaaaaaa'", "[x, x, x].join('')"),
        ("'aaaaaaaa'", "'%s%s'.format([x, x])"),
        ("'aaaaaaaa'", "x.split('').map(a, a + a).join('')"),
        ("[1, 1]", "x.map(a, x)"),
        ("optional.of(1)", "optional.of([x, x])"),
        ("'\"'", "strings.quote(x) + strings.quote(x)"),
        ("b'a'", "bytes(string(x) + string(x))"),
    ] {
        let failure = chain(first, next, 60).unwrap_err();
        assert!(failure.is_final(), "{next}: {failure}");
    }
    // As many that do not grow are none of anybody's business.
    assert_eq!(
        chain("'a'", "x == 'a' ? 'a' : 'b'", 60),
        Ok(CelValue::Bool(true))
    );
    // Deeper than the stack would bear.
    assert_eq!(chain("[1]", "[x]", 90), Ok(CelValue::Bool(true)));
    assert_eq!(chain("[1]", "[x]", 5_000), Err(Failure::TooLarge));
    let levels = "[[[[[[[[[[x]]]]]]]]]]";
    assert_eq!(chain("[1]", levels, 60), Err(Failure::TooLarge));
}

#[test]
fn what_grows_within_one_expression_is_paid_for() {
    let long = json!("a".repeat(10_000));
    let list = json!(vec!["aaaaaaaaaa"; 2_000]);
    for (source, this) in [
        ("self.replace('a', self).replace('a', self) != ''", &long),
        ("self.split('').map(a, self).join('') != ''", &long),
        ("self.split('').map(a, self.split('')).size() > 0", &long),
        ("self.all(a, self.all(b, self.all(c, a == b)))", &list),
        ("self.map(a, self.map(b, a + b)).size() > 0", &list),
        ("self.map(a, self).map(a, self).map(a, self) == []", &list),
        ("'%.99999999f'.format([1.0]) != ''", &long),
        ("'%.99999999999999999999f'.format([1.0]) != ''", &long),
        ("self.split('').all(a, self.matches(a + '{1,900}'))", &long),
        ("self.split('').all(a, self.contains(self))", &long),
        ("sets.contains(self + self, self)", &list),
        (
            "self.transformMap(i, a, self).transformMap(i, a, self).transformMap(i, a, self) == {}",
            &list,
        ),
        (
            "self.all(i, a, self.transformMap(j, b, a + b).size() > 0)",
            &list,
        ),
        ("self.all(i, a, self.exists(j, b, j == 1900))", &list),
    ] {
        let failure = run(source, this).unwrap_err();
        assert!(failure.is_final(), "{source}: {failure}");
    }
    assert_eq!(
        outcome("self.matches('((a{1,100}){1,100}){1,100}')", &long),
        "error parsing regexp: invalid repeat count: `{1,100}`"
    );
}

#[test]
fn a_budget_is_for_all_expressions_together() {
    let mut scope = Scope::default();
    scope.add("self", plain(&json!(vec![1; 100])));
    let program = compile("self.all(a, self.all(b, a == b))").unwrap();
    let mut meter = Meter::new();
    meter.spend(9_000_000).unwrap();
    let mut runs = 0;
    let failure = loop {
        match on_large_stack(|| execute(&program, &scope, &mut meter)) {
            Ok(_) => runs += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure, Failure::OutOfBudget);
    assert!((5..100).contains(&runs), "{runs}");
}

/// Returns the cost of an expression.
fn cost(this: &Value, source: &str) -> u64 {
    let mut scope = Scope::default();
    scope.add("self", plain(this));
    let program = compile(source).expect("an expression");
    let mut meter = Meter::new();
    on_large_stack(|| execute(&program, &scope, &mut meter)).expect("a value");
    meter::CALL_COST_MAX - meter.left()
}

#[test]
fn costs_are_those_of_kube_apiserver() {
    for (source, known) in [
        ("type(self.n) == int", 4),
        ("self.n + 1 > 1", 4),
        ("sets.contains([1, 2, 3, 4], [2, 3])", 29),
        ("sets.equivalent([1], [1, 1])", 25),
        ("!sets.equivalent([1], [1, 2])", 26),
        ("[1, 2].existsOne(i, v, v > 0)", 20),
        ("{'a': 1, 'b': 2}.existsOne(k, v, v > 0)", 40),
        ("jsonpatch.escapeKey('a/b~c a/b~c')", 2),
        (
            "format.named('dns1123Label').value().validate('a-name')",
            10,
        ),
        (
            "format.named('dns1123Subdomain').value().validate('a-name')",
            17,
        ),
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii()", 3),
    ] {
        assert_eq!(cost(&json!({"n": 1}), source), known, "{source}");
    }
}

#[test]
fn what_is_compared_is_walked_through_as_far_as_it_costs() {
    let this = json!({"numbers": vec![0; 100_000]});
    for source in [
        "[] == self.numbers",
        "self.numbers != [[0]]",
        "{} == dyn(self.numbers)",
        "self.numbers in []",
    ] {
        meter::WALKED.set(0);
        let _ = run(source, &this);
        assert!(meter::WALKED.get() < 1000, "{source}");
    }
}

#[test]
fn what_takes_long_costs_something() {
    let long = "x".repeat(640_000);
    let members: serde_json::Map<String, Value> = (0..1000)
        .map(|number| (format!("k{number}"), Value::Null))
        .collect();
    let this = json!({"text": long, "members": members, "map": {}});
    let literal = &long[..64_000];
    for (source, least) in [
        ("size(self.text) > 0".to_owned(), 1000),
        (format!("'{literal}' != ''"), 100),
        (format!("has(self.map.{literal})"), 100),
        (
            "{'a': 1}.transformMapEntry(k, v, self.members).size() > 0".to_owned(),
            100,
        ),
        // The failure has the text in its words, and is copied with each of the items behind it.
        (
            "[0, 1, 2].exists(n, n == 0 && self.map[self.text] == 1) || true".to_owned(),
            3000,
        ),
    ] {
        let cost = cost(&this, &source);
        assert!(cost >= least, "{cost}: {source:.60}");
    }
    assert!(cost(&this, "self.text != dyn(1)") < 10);
}

#[test]
fn constants_are_not_run_without_end() {
    let program = compile("true").expect("an expression");
    let mut meter = Meter::new();
    meter.spend(9_999_000).expect("a budget");
    let mut runs = 0;
    while execute(&program, &Scope::default(), &mut meter).is_ok() {
        runs += 1;
        assert!(runs <= 1000, "{runs}");
    }
    assert_eq!(runs, 1000);
    assert_eq!(cost(&Value::Null, "true"), 0);
}

#[test]
fn looking_items_up_is_charged_by_the_larger_list() {
    let long = CelValue::from("x".repeat(640_000));
    let keys: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
    let members: serde_json::Map<String, Value> =
        keys.iter().map(|key| (key.clone(), json!(0))).collect();
    let mut scope = Scope::default();
    scope.add("set", set_list(vec![CelValue::Int(0)], None));
    scope.add("long", set_list(vec![long], None));
    scope.add("keyed", keyed_list(vec![plain(&members.into())], keys));
    scope.add("many", plain(&json!(vec![json!({}); 1000])));
    for (source, least) in [
        ("set == long", 1000),
        ("long == set", 1000),
        ("[long] == [['']]", 1000),
        ("set in [long]", 1000),
        ("[long].indexOf(set) == -1", 1000),
        ("keyed == [{}]", 1000),
        ("dyn({'a': keyed}) == {'a': [{}]}", 1000),
        ("size(keyed + many) > 0", 1_000_000),
    ] {
        let program = compile(source).expect("an expression");
        let mut meter = Meter::new();
        let outcome = on_large_stack(|| execute(&program, &scope, &mut meter));
        let cost = meter::CALL_COST_MAX - meter.left();
        let ended = outcome.is_err();
        assert!(cost >= least || ended, "{cost}: {source}");
        assert_eq!(ended, least == 1_000_000, "{source}: {outcome:?}");
    }
}

#[test]
fn each_list_that_flatten_comes_to_is_charged() {
    const LISTS: u64 = 1000;
    let lists = |inner: Value| json!(vec![inner; 1000]);
    let of_numbers = cost(&lists(json!(0)), "self.flatten()");
    let of_nothing = cost(&lists(json!([])), "self.flatten()");
    assert!(
        of_nothing > of_numbers + LISTS / 2,
        "{of_nothing}, {of_numbers}"
    );
    let of_nothing_in_lists = cost(&lists(json!([[]])), "self.flatten(2)");
    assert!(of_nothing_in_lists > of_nothing + LISTS * 3 / 2);
    let of_many = cost(&lists(json!(vec![0; 20])), "self.flatten()");
    assert!(of_many > of_nothing + LISTS);
}
