//! The parts of the server are values: what builds them runs nothing, the heads of its rooms hold no logic, and no
//! function takes a tuple in place of arguments.

use std::path::Path;

use quote::ToTokens;
use syn::{Attribute, File, FnArg, ImplItem, Item, Signature, TraitItem, Type};

use super::{is_for_tests, read, relative, root, sources};

/// The folder of the server.
const SERVER: &str = "crates/server/src";

/// The folders whose own folders are rooms.
const ROOMS: [&str; 2] = [SERVER, "src/storage/cacher"];

/// The room in which no function may run anything.
const BUILD: &str = "crates/server/src/build/";

/// The names of functions that build a part, in the other rooms.
const CONSTRUCTORS: [&str; 4] = ["build", "new", "register", "start"];

/// The functions that start a task or a thread.
const SPAWNS: [&str; 3] = ["spawn", "spawn_local", "spawn_on"];

/// The set of running tasks.
const RUNNING_TASKS: &str = "Background";

#[test]
fn what_builds_parts_runs_nothing() {
    let mut running = Vec::new();
    let all = functions_of_server();
    assert!(all.len() > 300, "{} functions", all.len());
    for function in all {
        let is_constructor = CONSTRUCTORS.contains(&function.name().as_str());
        if (function.file.starts_with(BUILD) || is_constructor) && function.runs() {
            running.push(function.place());
        }
    }
    assert!(
        running.is_empty(),
        "return the task among the Tasks of the part instead:\n{}",
        running.join("\n")
    );
}

#[test]
fn no_function_of_the_server_takes_a_tuple() {
    let all = functions_of_server().into_iter();
    let taking = all.filter(Function::takes_a_tuple);
    let taking: Vec<String> = taking.map(|it| it.place()).collect();
    assert!(
        taking.is_empty(),
        "give each its own argument, or a struct with named fields:\n{}",
        taking.join("\n")
    );
}

#[test]
fn heads_of_rooms_hold_declarations_alone() {
    let heads = ROOMS.iter().flat_map(|folder| {
        let folder = root().join(folder);
        let heads = sources(&folder).into_iter();
        heads.filter(move |it| {
            let is_head = it.ends_with("lib.rs") || it.with_extension("").is_dir();
            it.parent() == Some(&folder) && is_head && !is_for_tests(it)
        })
    });
    let (mut seen, mut with_logic) = (0, Vec::new());
    for head in heads {
        seen += 1;
        if !is_head(&parse(&head)) {
            with_logic.push(relative(&head));
        }
    }
    assert!(seen > 5, "{seen} heads");
    assert!(
        with_logic.is_empty(),
        "move what is not `mod` or `use` into a file:\n{}",
        with_logic.join("\n")
    );
}

#[test]
fn a_break_of_each_rule_is_found() {
    let found = |text: &str| {
        let file = syn::parse_str(text).expect(text);
        functions("a.rs", &file).remove(0)
    };
    assert!(found("fn new(tasks: &mut Background) -> Self {}").runs());
    assert!(found("fn new() { Handle::current().spawn(async {}); }").runs());
    assert!(found("impl A { fn new(&self) { tokio::spawn(run()); } }").runs());
    assert!(!found("fn new(tasks: Tasks) { spawn_blocking(|| {}); }").runs());
    assert!(found("fn f(&self, (a, b): (u8, u8)) {}").takes_a_tuple());
    assert!(found("mod a { trait A { fn f(a: &(u8, u8)); } }").takes_a_tuple());
    assert!(!found("fn f(a: &[(u8, u8)], b: impl Fn((u8, u8))) -> (u8, u8) {}").takes_a_tuple());
    let head = |text: &str| is_head(&syn::parse_str(text).expect(text));
    assert!(head("//! A room.\nmod a;\npub use self::a::B;"));
    assert!(!head("mod a;\nconst B: u8 = 1;") && !head("mod a { fn b() {} }"));
}

/// A function of the server.
struct Function {
    file: String,
    signature: Signature,
    /// The words of its body.
    body: Vec<String>,
}

impl Function {
    fn new(file: &str, signature: &Signature, body: Option<&syn::Block>) -> Self {
        let body = body.map(|it| words(&it.to_token_stream().to_string()));
        Self {
            file: file.to_owned(),
            signature: signature.clone(),
            body: body.unwrap_or_default(),
        }
    }

    fn name(&self) -> String {
        self.signature.ident.to_string()
    }

    fn place(&self) -> String {
        format!("{}: fn {}", self.file, self.signature.ident)
    }

    /// Returns true if it takes the running tasks, or starts one.
    fn runs(&self) -> bool {
        let inputs = words(&self.signature.inputs.to_token_stream().to_string());
        let spawns = |word: &String| SPAWNS.contains(&word.as_str());
        inputs.iter().any(|word| word == RUNNING_TASKS) || self.body.iter().any(spawns)
    }

    fn takes_a_tuple(&self) -> bool {
        self.signature.inputs.iter().any(|input| match input {
            FnArg::Receiver(_) => false,
            FnArg::Typed(input) => is_tuple(&input.ty),
        })
    }
}

fn is_tuple(of: &Type) -> bool {
    match of {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(reference) => is_tuple(&reference.elem),
        _ => false,
    }
}

/// Returns the functions of the server, but for those of its tests.
fn functions_of_server() -> Vec<Function> {
    let files = sources(&root().join(SERVER)).into_iter();
    let files = files.filter(|file| !is_for_tests(file));
    files
        .flat_map(|file| functions(&relative(&file), &parse(&file)))
        .collect()
}

fn functions(name: &str, file: &File) -> Vec<Function> {
    let mut found = Vec::new();
    collect(name, &file.items, &mut found);
    found
}

fn collect(file: &str, items: &[Item], found: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Fn(it) => found.push(Function::new(file, &it.sig, Some(&it.block))),
            Item::Impl(of) => {
                for item in &of.items {
                    if let ImplItem::Fn(it) = item {
                        found.push(Function::new(file, &it.sig, Some(&it.block)));
                    }
                }
            }
            Item::Trait(of) => {
                for item in &of.items {
                    if let TraitItem::Fn(it) = item {
                        found.push(Function::new(file, &it.sig, it.default.as_ref()));
                    }
                }
            }
            Item::Mod(module) if !module.attrs.iter().any(is_test) => {
                let items = module.content.as_ref().map(|(_, items)| items);
                collect(file, items.map_or(&[], Vec::as_slice), found);
            }
            _ => {}
        }
    }
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.to_token_stream().to_string().contains("test")
}

/// Returns true if a file declares modules and exports names, and does nothing else.
fn is_head(file: &File) -> bool {
    file.items.iter().all(|item| match item {
        Item::Mod(module) => module.content.is_none(),
        Item::Use(_) => true,
        _ => false,
    })
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn parse(file: &Path) -> File {
    let parsed = syn::parse_file(&read(file));
    parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
