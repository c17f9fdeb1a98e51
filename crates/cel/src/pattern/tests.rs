//! Patterns against what Go makes of them, and the work that they take.

use super::*;

fn matches(pattern: &str, text: &str) -> bool {
    let program = Program::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
    let mut work = StepBudget::new(u64::MAX);
    program.is_match(text, &mut work).expect("enough work")
}

fn wrong(pattern: &str) -> String {
    check(pattern).expect_err(pattern).to_string()
}

#[test]
fn patterns_mean_what_they_mean_in_go() {
    for (pattern, text, expected) in [
        (r"^\d+$", "42", true),
        (r"^\d+$", "\u{664}\u{662}", false), // digits, but not of ASCII
        (r"^\w$", "\u{e4}", false),
        (r"^[\w-]+$", "a-b_c", true),
        (r"^[^\d]$", "x", true),
        (r"^[\D]$", "1", false),
        (r"^[[]$", "[", true),
        (r"^[[:]$", ":", true),
        (r"^[[:]$", "[", true),
        (r"^[[:]$", "a", false),
        (r"^[]]$", "]", true),
        (r"^[^]]$", "]", false),
        (r"^[a&&b]$", "&", true),
        (r"^[a~~b]$", "~", true),
        (r"^[+--]$", ",", true),
        (r"^[a\-z]$", "b", false),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[[:^alpha:]]+$", "ab", false),
        (r"^{.*}$", "{x}", true),
        (r"^a{2}$", "aa", true),
        (r"^a{2,3}$", "aaaa", false),
        (r"^a{,3}$", "a{,3}", true),
        (r"^a{01}$", "a{01}", true),
        (r"^\Qa.b\E$", "a.b", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"^\Qab\E*$", "abbb", true),
        (r"^\<a\>$", "<a>", true),
        (r"^\_\x41\x{42}\103$", "_ABC", true),
        (r"^\pL\p{Greek}\P{^Lu}$", "a\u{3b1}A", true),
        (r"^\p{^L}$", "a", false),
        (r"^a(?i)*b$", "aaB", true),
        (r"^(?i:k)$", "\u{212a}", true),
        (r"^(?P<n>a)(?<n>b)$", "ab", true),
        (r"^[^a]$", "\n", true),
        (r"^.$", "\n", false),
        (r"a$", "a\n", false),
        (r"(?m)a$", "a\n", true),
        (r"\bfoo\b", "a foo", true),
        (r"\B", "a\u{3b4}b", false),
        (r"^*a", "a", true),
        (r"(|a)*b", "aab", true),
        (r"[\x{D800}]", "a", false),
        ("", "anything", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn what_go_refuses_is_refused_in_its_words() {
    for (pattern, words) in [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*?", "missing argument to repetition operator: `*?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("(a{0,100}){0,100}b", "invalid repeat count: `{0,100}`"),
        ("((a{10}){10}b){11}", "invalid repeat count: `{11}`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
    ] {
        let expected = format!("error parsing regexp: {words}");
        assert_eq!(wrong(pattern), expected, "{pattern}");
    }
}

#[test]
fn repetitions_that_go_takes_are_taken() {
    for pattern in [
        "a{1000}",
        "((a{10}){10}b){10}",
        "(a{1000})*",
        "(a{0}){1000}",
        "(a{1000}|b{1000})c{1000}",
        "(a{1000}){1}",
    ] {
        assert!(check(pattern).is_ok(), "{pattern}: {:?}", check(pattern));
    }
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    for pattern in [
        r"\pL".repeat(10_000),
        "(.{1000})".repeat(1_000),
        "a".repeat(100_000),
    ] {
        assert_eq!(check(&pattern), Err(PatternError::TooLarge));
    }
    let nested = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    assert!(wrong(&nested).contains("expression nests too deeply"));
    let deep = format!("{}a{}", "(b|".repeat(99), "*)+c".repeat(99));
    assert!(check(&deep).is_ok());
}

/// Returns the work of a match, in steps.
fn work(pattern: &str, text: &str) -> Result<u64, TooMuchWork> {
    let program = Program::compile(pattern).expect("a pattern");
    let mut work = StepBudget::new(1 << 32);
    program.is_match(text, &mut work)?;
    Ok((1 << 32) - work.left())
}

#[test]
fn usual_patterns_take_a_fraction_of_a_step_for_each_byte() {
    let name = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    for (pattern, text, most) in [
        (name, "a-b.".repeat(250_000) + "c", 100_000),
        ("^(a+)+$", "a".repeat(1_000_000) + "!", 100_000),
        ("^[A-Za-z0-9+/]*={0,2}$", "abcd".repeat(250_000), 100_000),
        // Its NFA has thousands of states, which would be as many steps for each byte.
        ("(a{0,31}){0,31}b", "a".repeat(1_000_000), 4_000_000),
    ] {
        let work = work(pattern, &text).expect("little work");
        assert!(work < most, "{pattern}: {work}");
    }
}

#[test]
fn work_ends_where_it_is_not_paid_for() {
    // Its DFA has a state for every text of five hundred letters.
    let program = Program::compile("(a|b)*a(a|b){500}c").expect("a pattern");
    let mut seed = 1_u32;
    let letter = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..200_000).map(letter).collect();
    let mut little = StepBudget::new(50_000_000);
    assert_eq!(program.is_match(&text, &mut little), Err(TooMuchWork));
    let mut enough = StepBudget::new(1 << 40);
    assert_eq!(program.is_match(&text[..2000], &mut enough), Ok(false));
}

#[test]
fn matches_are_found_one_after_the_other() {
    let found = |pattern: &str, text: &str, limit| {
        let program = Program::compile(pattern).expect("a pattern");
        program.find_all(text, limit, &mut StepBudget::new(1 << 20))
    };
    let text = "baa\u{3b4}a";
    assert_eq!(found("a+|\u{3b4}", text, 9), Ok(vec![1..3, 3..5, 5..6]));
    assert_eq!(found("a+|\u{3b4}", text, 2), Ok(vec![1..3, 3..5]));
    assert_eq!(found("a+?", "aa", 9), Ok(vec![0..1, 1..2]));
    assert_eq!(found("a*", "\u{3b4}a", 9), Ok(vec![0..0, 2..3]));
    assert_eq!(found("", "\u{3b4}", 9), Ok(vec![0..0, 2..2]));
    // So many characters that their symbols do not suffice.
    let many = many_characters();
    assert_eq!(
        found(&format!("({many})*"), "a\u{4e01}b", 9),
        Ok(vec![0..0, 1..4, 5..5])
    );
}

/// Returns a pattern that tells hundreds of characters apart.
fn many_characters() -> String {
    let characters = (0x4e00..0x4f00).filter_map(char::from_u32);
    let each: Vec<String> = characters.map(|it| format!("{it}x?")).collect();
    each.join("|")
}

#[test]
fn classes_of_all_scripts_take_little_memory() {
    let hostname = r"^([a-zA-Z\p{S}\p{L}]((-?[a-zA-Z\p{S}\p{L}]{0,62})?)|([a-zA-Z\p{L}]{0,61}[a-z\p{L}])){1,}$";
    assert!(check(hostname).is_ok_and(|bytes| bytes < 64 << 10));
    for (text, expected) in [
        ("b\u{fc}cher", true),
        ("\u{4f8b}\u{3048}", true),
        ("a\u{2603}-b", true),
        ("1", false),
        ("a\u{664}", false),
    ] {
        assert_eq!(matches(hostname, text), expected, "{text}");
    }
    for pattern in [
        r"\pL{1000}",
        r"^[\p{L}\p{N}\p{M}._-]{1,1000}@[^\s\p{Zs}]{1,255}$",
        r"((?i)[\pL\d]{10}|\P{Greek}{20}){10}",
        r"(\PL{1000}|\p{Han}{1000})\p{Lu}{1000}",
    ] {
        assert!(
            check(pattern).is_ok_and(|bytes| bytes < 1 << 20),
            "{pattern}"
        );
    }
    let many = many_characters();
    assert!(matches(&format!("^({many})+$"), "\u{4e00}\u{4e7f}x"));
    assert!(!matches(&format!("^({many})+$"), "\u{5000}"));
}

#[test]
fn each_class_of_a_pattern_is_paid_for() {
    const CLASSES: usize = 500;
    let letters = |count: usize| Program::compile(&r"\pL".repeat(count)).expect("a pattern");
    let of_one = letters(1).compiling_steps() - letters(0).compiling_steps();
    assert!(of_one > 1_000, "{of_one}");
    let of_all = letters(CLASSES).compiling_steps();
    assert!(of_all > CLASSES * 1_000, "{of_all}");
    assert!(of_all <= COMPILING_STEPS_MAX);
    // Different ones are told apart, one after the other, which takes more.
    let different = |it: usize| format!(r"[\pL\x{{{:x}}}]", 0x1f600 + it % 50);
    let different: String = (0..CLASSES).map(different).collect();
    let of_different = Program::compile(&different).expect("a pattern");
    assert!(of_different.compiling_steps() > of_all);
    assert!(matches(&different, &"a".repeat(CLASSES)));
}

#[test]
fn names_of_classes_are_those_of_go() {
    for name in [
        "L",
        "Lu",
        "LC",
        "Letter",
        "lower-case letter",
        "punct",
        "Greek",
        "OLD_Italic",
        "Any",
        "ascii",
        "Assigned",
        "Cs",
    ] {
        assert!(check(&format!(r"\p{{{name}}}")).is_ok(), "{name}");
    }
    for name in [
        "Grek",
        "Alphabetic",
        "White_Space",
        "Lowercase",
        "Script=Greek",
        "sc=Greek",
        "IsGreek",
        "gc",
        "",
        " ",
    ] {
        assert!(check(&format!(r"\p{{{name}}}")).is_err(), "{name}");
    }
    assert!(check(r"\pL\pN\PZ").is_ok());
    assert!(matches(r"^[\PZ\p{Cs}]\P{Surrogate}$", "ab") && !matches(r"[\p{Cs}]|\p{Cs}", "a"));
    for name in include_str!("go_syntax/unicode_names.txt").lines() {
        assert!(check(&format!(r"\p{{{name}}}")).is_ok(), "{name}");
    }
    assert!(check(r"\p{Garay}").is_err());
    assert!(check(r"\pX").is_err() && check(r"\p").is_err() && check(r"\p\u{e4}").is_err());
}
