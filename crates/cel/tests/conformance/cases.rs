//! Runs a case of the conformance files as kube-apiserver would: it is compiled, checked and evaluated.

use std::collections::BTreeMap;

use kube_cel::cel::Value as CelValue;
use ringwatch_cel::{
    CompileError, Meter, Names, Program, Scope, Type, check_program, compile, compile_binding,
    execute, on_large_stack,
};

use super::text_format::Message;
use super::values::{same, type_of, value};

/// Compiles an expression, with the macros that some expressions have.
type Compile = fn(&str) -> Result<Program, CompileError>;

/// The file of the macro `cel.bind`, which expressions about devices have.
const BINDINGS: &str = "bindings_ext";

/// Runs a case. The error says what is other than the file wants.
fn run(case: &Message, compile: Compile) -> Result<(), String> {
    let mut names = Names::default();
    for declared in case.messages("type_env") {
        let name = declared.text("name");
        let Some(variable) = declared.message("ident") else {
            return Err(format!("{name} is a function of the host"));
        };
        let of = variable.message("type").expect("a type");
        names.add(&name, type_of(of)?);
    }
    let mut scope = Scope::default();
    for binding in case.messages("bindings") {
        let bound = binding.message("value").expect("a bound value");
        let Some(bound) = bound.message("value") else {
            return Err("a variable whose value is an error".to_owned());
        };
        let name = binding.text("key");
        let is_declared = names.variables.contains_key(&name);
        scope.add(&name, value(bound)?);
        if !is_declared {
            names.add(&name, Type::Dyn);
        }
    }
    let source = case.text("expr");
    let found = evaluated(case, compile(&source), &source, &names, &scope);
    if case.get("eval_error").is_some() {
        return match found {
            Ok(Some(found)) => Err(format!("gives {found:?}, and no error")),
            Ok(None) => Err("passes the check".to_owned()),
            Err(_) => Ok(()),
        };
    }
    let Some(found) = found? else {
        return Ok(());
    };
    let typed = case.message("typed_result");
    let wanted = case
        .message("value")
        .or_else(|| typed.and_then(|it| it.message("result")));
    let wanted = match wanted {
        None => CelValue::Bool(true),
        Some(wanted) => match wanted.get("type_value") {
            // The name of a type is an expression whose value is the type.
            Some(name) => {
                let (name, case) = (name.text(), Message::default());
                evaluated(&case, compile(&name), &name, &names, &scope)?.expect("a type")
            }
            None => value(wanted)?,
        },
    };
    if same(&found, &wanted) {
        return Ok(());
    }
    Err(format!("gives {found:?}"))
}

/// Returns the value of an expression; none if it is only to be checked.
fn evaluated(
    case: &Message,
    program: Result<Program, CompileError>,
    source: &str,
    names: &Names,
    scope: &Scope,
) -> Result<Option<CelValue>, String> {
    let program = program.map_err(|error| error.to_string())?;
    if !case.is("disable_check") {
        let checked = check_program(source, &program, names).map_err(|error| error.to_string())?;
        let typed = case.message("typed_result");
        if let Some(wanted) = typed.and_then(|it| it.message("deduced_type")) {
            let wanted = type_of(wanted)?.to_string();
            let gives = checked.gives.to_string();
            if gives != wanted {
                return Err(format!("is of type {gives}, not {wanted}"));
            }
        }
    }
    if case.is("check_only") {
        return Ok(None);
    }
    let value = on_large_stack(|| execute(&program, scope, &mut Meter::new()));
    value.map(Some).map_err(|error| error.to_string())
}

/// The cases of a section, each with what is other than it should be.
pub(super) type Outcomes = Vec<(String, Result<(), String>)>;

/// Runs the cases of a file. Returns them by their sections.
pub(super) fn run_file(name: &str, file: &Message) -> BTreeMap<String, Outcomes> {
    let compile = if name == BINDINGS {
        compile_binding
    } else {
        compile
    };
    let mut sections: BTreeMap<String, Outcomes> = BTreeMap::new();
    for section in file.messages("section") {
        let outcomes = sections.entry(section.text("name")).or_default();
        for case in section.messages("test") {
            let mut name = case.text("name");
            let namesakes = outcomes.iter().filter(|(known, _)| *known == name).count();
            if namesakes > 0 {
                name = format!("{name}#{}", namesakes + 1);
            }
            outcomes.push((name, run(case, compile)));
        }
    }
    sections
}
