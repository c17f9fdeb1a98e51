//! The public API of the engine is the one that `tests/public-api.txt` records, so that a break is seen in its diff.
//!
//! A line is an item's path and its declaration without documentation, body and private fields. Items that are
//! `#[doc(hidden)]` are no part of it. Traits that types implement stand in a line of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use quote::ToTokens;
use syn::{
    Attribute, Fields, ImplItem, Item, ItemImpl, ItemMod, Signature, TraitItem, Type, UseTree,
    Visibility,
};

use super::{read, root};

/// The environment variable with which the test writes the record.
const RENEW: &str = "RINGWATCH_RENEW";

/// The path of an item: its modules and its name.
type ItemPath = Vec<String>;

#[test]
fn the_public_api_is_the_one_that_is_recorded() {
    let engine = Engine::read();
    let mut lines = BTreeSet::new();
    engine.list(&[], &[], &mut lines);
    assert!(lines.len() > 300, "{} lines", lines.len());
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let record = root().join("tests/public-api.txt");
    if env::var_os(RENEW).is_some() {
        fs::write(&record, text).expect("written");
        return;
    }
    let recorded = read(&record);
    let recorded: BTreeSet<&str> = recorded.lines().collect();
    let lines: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let gone = recorded.difference(&lines).map(|it| format!("- {it}"));
    let new = lines.difference(&recorded).map(|it| format!("+ {it}"));
    let changes: Vec<String> = gone.chain(new).collect();
    assert!(
        changes.is_empty(),
        "the public API has changed; run this test with {RENEW}=1, and name a break in CHANGELOG.md:\n{}",
        changes.join("\n")
    );
}

#[test]
fn declarations_are_written_as_in_a_source() {
    let function: Signature =
        syn::parse_str("async fn get<'a>(&'a self, key: &str) -> Vec<Arc<Object>>")
            .expect("parsed");
    let written = "async fn get<'a>(&'a self, key: &str) -> Vec<Arc<Object>>";
    assert_eq!(source(&function), written);
}

/// The modules of the engine and what implements the traits and methods of its types.
struct Engine {
    modules: BTreeMap<ItemPath, Vec<Item>>,
    implementations: BTreeMap<ItemPath, Vec<ItemImpl>>,
}

impl Engine {
    fn read() -> Self {
        let mut engine = Self {
            modules: BTreeMap::new(),
            implementations: BTreeMap::new(),
        };
        engine.read_module(ItemPath::new(), &root().join("src/lib.rs"));
        for (module, items) in &engine.modules {
            for item in items {
                let Item::Impl(implementation) = item else {
                    continue;
                };
                if let Some(name) = name_of(&implementation.self_ty) {
                    let of = engine.resolve(module, &[name]);
                    let all = engine.implementations.entry(of).or_default();
                    all.push(implementation.clone());
                }
            }
        }
        engine
    }

    /// Reads a module and those below it, without those of tests.
    fn read_module(&mut self, path: ItemPath, file: &Path) {
        let parsed = syn::parse_file(&read(file));
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let folder = match file.file_stem().and_then(|it| it.to_str()) {
            Some("lib") => file.parent().expect("a folder").to_owned(),
            _ => file.with_extension(""),
        };
        let items = parsed.items.into_iter().filter(|it| !is_for_tests(it));
        let items: Vec<Item> = items.collect();
        for item in &items {
            let Item::Mod(ItemMod {
                ident,
                content: None,
                ..
            }) = item
            else {
                continue;
            };
            let below = joined(&path, &ident.to_string());
            self.read_module(below, &folder.join(format!("{ident}.rs")));
        }
        self.modules.insert(path, items);
    }

    /// Lists what is public in a module, which is known as `shown`.
    fn list(&self, module: &[String], shown: &[String], lines: &mut BTreeSet<String>) {
        for item in &self.modules[module] {
            if !is_public(item) {
                continue;
            }
            match item {
                Item::Mod(ItemMod { ident, .. }) => {
                    let name = ident.to_string();
                    self.list(&joined(module, &name), &joined(shown, &name), lines);
                }
                Item::Use(item) => {
                    for (name, path) in leaves(&item.tree, &[]) {
                        self.list_export(module, &path, &joined(shown, &name), lines);
                    }
                }
                _ => self.list_item(module, item, shown, lines),
            }
        }
    }

    /// Lists what a `pub use` in a module exports as `shown`.
    fn list_export(
        &self,
        module: &[String],
        path: &[String],
        shown: &[String],
        lines: &mut BTreeSet<String>,
    ) {
        let of = self.resolve(module, path);
        let Some((name, parent)) = of.split_last() else {
            return;
        };
        let items = self.modules.get(parent).into_iter().flatten();
        let item = items
            .into_iter()
            .find(|it| named(it).as_ref() == Some(name));
        match item {
            Some(item) => {
                let (_, folder) = shown.split_last().expect("a name");
                self.list_item(parent, item, folder, lines);
            }
            None => {
                lines.insert(format!("{}: use {}", shown.join("::"), path.join("::")));
            }
        }
    }

    /// Lists a declaration, its variants, fields and methods, and the traits that it implements.
    fn list_item(
        &self,
        module: &[String],
        item: &Item,
        shown: &[String],
        lines: &mut BTreeSet<String>,
    ) {
        let Some(name) = named(item) else {
            return;
        };
        let mut declared = declarations(item);
        let mut traits: Vec<String> = attributes(item).0.iter().flat_map(derives).collect();
        let of = joined(module, &name);
        for implementation in self.implementations.get(&of).into_iter().flatten() {
            match &implementation.trait_ {
                Some((path, _)) => traits.extend(path.segments.last().map(source)),
                None => declared.extend(methods(implementation)),
            }
        }
        if !traits.is_empty() {
            traits.sort();
            declared.push(format!("implements {}", traits.join(", ")));
        }
        let shown = joined(shown, &name).join("::");
        lines.extend(declared.into_iter().map(|it| format!("{shown}: {it}")));
    }

    /// Returns the module and name where what a path means in a module is declared, as far as that is in the engine.
    fn resolve(&self, module: &[String], path: &[String]) -> ItemPath {
        let (mut at, mut rest) = (module.to_vec(), path);
        while let Some((first, further)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                name if further.is_empty() => return self.exported(&at, name),
                name => at.push(name.to_owned()),
            }
            rest = further;
        }
        at
    }

    /// Returns where a name of a module is declared: there, or where a `use` has it from.
    fn exported(&self, module: &[String], name: &str) -> ItemPath {
        let items = self.modules.get(module).into_iter().flatten();
        let uses = items.filter_map(|item| match item {
            Item::Use(item) => Some(leaves(&item.tree, &[])),
            _ => None,
        });
        let used = uses.flatten().find(|(used, _)| used == name);
        match used {
            Some((_, path)) if path != [name] => self.resolve(module, &path),
            _ => joined(module, name),
        }
    }
}

fn joined(path: &[String], name: &str) -> ItemPath {
    let mut joined = path.to_vec();
    joined.push(name.to_owned());
    joined
}

/// Returns the names that a `use` brings, each with its path.
fn leaves(tree: &UseTree, base: &[String]) -> Vec<(String, ItemPath)> {
    match tree {
        UseTree::Path(it) => leaves(&it.tree, &joined(base, &it.ident.to_string())),
        UseTree::Name(it) => {
            let name = it.ident.to_string();
            vec![(name.clone(), joined(base, &name))]
        }
        UseTree::Rename(it) => {
            vec![(it.rename.to_string(), joined(base, &it.ident.to_string()))]
        }
        UseTree::Group(it) => it.items.iter().flat_map(|it| leaves(it, base)).collect(),
        UseTree::Glob(_) => Vec::new(),
    }
}

/// Returns the name that an item declares.
fn named(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns the name of a type without its module.
fn name_of(of: &Type) -> Option<String> {
    let Type::Path(path) = of else {
        return None;
    };
    path.path.segments.last().map(|it| it.ident.to_string())
}

/// Returns the declaration of an item, and those of its variants, public fields and methods.
fn declarations(item: &Item) -> Vec<String> {
    match item {
        Item::Const(it) => vec![format!("const {}", source(&it.ty))],
        Item::Fn(it) => vec![source(&it.sig)],
        Item::Type(it) => vec![format!("type{} = {}", source(&it.generics), source(&it.ty))],
        Item::Trait(it) => {
            let above = source(&it.supertraits);
            let head = format!("trait{}: {above}", source(&it.generics));
            let methods = it.items.iter().filter_map(|item| match item {
                TraitItem::Fn(it) if it.default.is_some() => {
                    Some(format!("{} {{ .. }}", source(&it.sig)))
                }
                TraitItem::Fn(it) => Some(source(&it.sig)),
                _ => None,
            });
            [head].into_iter().chain(methods).collect()
        }
        Item::Struct(it) => {
            let head = format!("{}struct{}", open(&it.attrs), source(&it.generics));
            [head].into_iter().chain(fields(&it.fields, true)).collect()
        }
        Item::Enum(it) => {
            let head = format!("{}enum{}", open(&it.attrs), source(&it.generics));
            let variants = it.variants.iter().map(|variant| {
                let fields: Vec<String> = fields(&variant.fields, false).collect();
                match fields.as_slice() {
                    [] => variant.ident.to_string(),
                    _ => format!("{} {{ {} }}", variant.ident, fields.join(", ")),
                }
            });
            [head].into_iter().chain(variants).collect()
        }
        _ => Vec::new(),
    }
}

fn attributes(item: &Item) -> (&[Attribute], &Visibility) {
    match item {
        Item::Const(it) => (&it.attrs, &it.vis),
        Item::Enum(it) => (&it.attrs, &it.vis),
        Item::Fn(it) => (&it.attrs, &it.vis),
        Item::Mod(it) => (&it.attrs, &it.vis),
        Item::Struct(it) => (&it.attrs, &it.vis),
        Item::Trait(it) => (&it.attrs, &it.vis),
        Item::Type(it) => (&it.attrs, &it.vis),
        Item::Use(it) => (&it.attrs, &it.vis),
        _ => (&[], &Visibility::Inherited),
    }
}

fn is_public(item: &Item) -> bool {
    let (attributes, visibility) = attributes(item);
    matches!(visibility, Visibility::Public(_)) && !is_hidden(attributes)
}

fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Impl(it) => &it.attrs,
        _ => attributes(item).0,
    };
    let without = |it: &Attribute| {
        ["cfg (test)", "cfg (not (feature"]
            .iter()
            .any(|with| it.meta.to_token_stream().to_string().starts_with(with))
    };
    attributes.iter().any(without)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|it| it.meta.to_token_stream().to_string() == "doc (hidden)")
}

/// Returns the mark of a type to which variants or fields may be added.
fn open(attributes: &[Attribute]) -> &'static str {
    let is_open = attributes
        .iter()
        .any(|it| it.path().is_ident("non_exhaustive"));
    if is_open { "non_exhaustive " } else { "" }
}

/// Returns the traits of a `#[derive]`.
fn derives(attribute: &Attribute) -> Vec<String> {
    let mut traits = Vec::new();
    if attribute.path().is_ident("derive") {
        let parsed = attribute.parse_nested_meta(|meta| {
            traits.extend(meta.path.segments.last().map(source));
            Ok(())
        });
        parsed.expect("a list of traits");
    }
    traits
}

/// Returns the fields, or those that are public alone.
fn fields(fields: &Fields, public: bool) -> impl Iterator<Item = String> {
    let fields = fields
        .iter()
        .enumerate()
        .filter(move |(_, field)| !public || matches!(field.vis, Visibility::Public(_)));
    fields.map(|(number, field)| {
        let name = field
            .ident
            .as_ref()
            .map_or_else(|| number.to_string(), ToString::to_string);
        format!("{name}: {}", source(&field.ty))
    })
}

/// Returns the public methods and constants of an implementation.
fn methods(implementation: &ItemImpl) -> impl Iterator<Item = String> {
    implementation.items.iter().filter_map(|item| match item {
        ImplItem::Fn(it) if matches!(it.vis, Visibility::Public(_)) && !is_hidden(&it.attrs) => {
            Some(source(&it.sig))
        }
        ImplItem::Const(it) if matches!(it.vis, Visibility::Public(_)) => {
            Some(format!("const {}: {}", it.ident, source(&it.ty)))
        }
        _ => None,
    })
}

/// Returns tokens with spaces as in a source.
fn source(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let mut written = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        let is_path = written.ends_with("::");
        let opens = written.ends_with(['(', '<', '[', '&']);
        let is_name = written.ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let is_generic = written.ends_with('>') && !written.ends_with("->");
        let is_call = matches!(next, '(' | '<') && (is_name || is_generic);
        let closes = matches!(next, ')' | ',' | '.' | ';' | ':' | '>' | ']');
        if letter != ' ' || !(is_path || opens || is_call || closes) {
            written.push(letter);
        }
    }
    written.replace(",)", ")")
}
