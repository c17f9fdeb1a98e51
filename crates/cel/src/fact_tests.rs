//! Expressions with what kube-apiserver makes of them, as recorded from it in `facts.tsv`.

use kube_cel::cel::Value as CelValue;

use super::*;

/// Returns a field of the table with its escapes resolved.
fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field.chars();
    while let Some(letter) = rest.next() {
        text.push(match letter {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                other => other.expect("an escape"),
            },
            other => other,
        });
    }
    text
}

/// Returns the places and the words of errors, without the lines of the expression that are shown with them.
fn in_short(error: &CompileError) -> String {
    let detail = error.detail();
    let Some(errors) = detail.strip_prefix("compilation failed: ") else {
        return detail;
    };
    let lines = errors.lines();
    let errors = lines.filter_map(|line| line.strip_prefix("ERROR: <input>:"));
    format!(
        "compilation failed: {}",
        errors.collect::<Vec<_>>().join(" | ")
    )
}

fn run(source: &str) -> Result<CelValue, String> {
    let mut names = Names::default();
    names.add("self", Type::String);
    let mut scope = Scope::default();
    scope.add("self", CelValue::from("a"));
    let program = compile(source).map_err(|error| in_short(&error))?;
    check_program(source, &program, &names).map_err(|error| in_short(&error))?;
    let value = on_large_stack(|| execute(&program, &scope, &mut Meter::new()));
    value.map_err(|failure| format!("fails: {failure}"))
}

/// Returns what an expression comes to, as the table has it.
fn outcome(source: &str) -> String {
    let shown = |value: &CelValue| match value {
        CelValue::String(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    match run(source) {
        Err(why) => why,
        Ok(_) => {
            let shows = format!("\"%s %s\".format([type(({source})), dyn({source})])");
            run(&shows).map_or_else(|why| why, |value| format!("gives: {}", shown(&value)))
        }
    }
}

#[test]
fn expressions_come_to_what_they_come_to_in_kube_apiserver() {
    let facts = include_str!("facts.tsv").lines();
    let facts = facts.filter(|line| !line.starts_with('#'));
    let mut wrong = Vec::new();
    for line in facts {
        let (source, known) = line.split_once('\t').expect("two fields");
        let (source, known) = (unescaped(source), unescaped(known));
        let found = outcome(&source);
        // It cuts space off the end of what it says.
        if found.trim_end() != known.trim_end() {
            wrong.push(format!("{source}\n  here:  {found}\n  there: {known}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
