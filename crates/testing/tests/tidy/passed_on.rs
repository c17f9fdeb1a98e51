//! A store in front of another one writes only what it changes: `Delegate` passes on the rest, all of it.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{Expr, FnArg, ImplItem, ImplItemFn, Item, ItemImpl, Pat, Stmt, TraitItem};

use super::{code, read, relative, root};

/// The traits of stores.
const STORES: [&str; 2] = ["Delegate", "Interface"];

#[test]
fn no_store_passes_on_a_call_as_it_is() {
    let mut found = Vec::new();
    let mut stores = 0;
    for file in code() {
        let text = read(&file);
        if !STORES
            .iter()
            .any(|it| text.contains(&format!("impl {it} for")))
        {
            continue;
        }
        for store in implementations(&text) {
            stores += 1;
            let passed_on = passed_on(&store).into_iter();
            found.extend(passed_on.map(|it| format!("{}: {it}", relative(&file))));
        }
    }
    assert!(stores > 8, "{stores} stores");
    assert!(
        found.is_empty(),
        "implement Delegate and leave these out:\n{}",
        found.join("\n")
    );
}

#[test]
fn delegates_pass_on_every_call_of_a_store() {
    let methods = |path: &str, name: &str| {
        let file = syn::parse_file(&read(&root().join(path))).expect("a source");
        let mut items = file.items.into_iter();
        let found = items.find_map(|item| match item {
            Item::Trait(item) if item.ident == name => Some(item.items),
            _ => None,
        });
        let methods = found.expect(name).into_iter();
        let names = methods.filter_map(|item| match item {
            TraitItem::Fn(method) => Some(method.sig.ident.to_string()),
            _ => None,
        });
        names.collect::<BTreeSet<_>>()
    };
    let mut passed_on = methods("src/storage/delegate.rs", "Delegate");
    assert!(passed_on.remove("inner"));
    assert_eq!(passed_on, methods("src/storage/interface.rs", "Interface"));
    let delegate = implementations(&read(&root().join("src/storage/delegate.rs")));
    assert_eq!(delegate[0].items.len(), passed_on.len());
}

#[test]
fn a_call_that_is_passed_on_is_told_from_one_that_is_changed() {
    let text = "
        #[async_trait]
        impl Delegate for Counted {
            fn inner(&self) -> &dyn Interface { &*self.store }
            fn compact_revision(&self) -> u64 { self.store.compact_revision() }
            async fn get(&self, key: &str, options: GetOptions) -> Got {
                self.inner().get(key, options).await
            }
            async fn stats(&self) -> Result<Stats, StorageError> { Ok(self.store.stats().await?) }
            async fn watch(&self, key: &str, mut options: ListOptions) -> Watched {
                self.store.watch(key, options.shortened()).await
            }
            async fn get_list(&self, key: &str, options: ListOptions) -> Listed {
                self.count();
                self.store.get_list(key, options).await
            }
        }
        impl Other for Counted {
            fn compact_revision(&self) -> u64 { self.store.compact_revision() }
        }";
    let stores = implementations(text);
    let found: Vec<String> = stores.iter().flat_map(passed_on).collect();
    assert_eq!(found, ["compact_revision", "get"]);
}

/// Returns the stores that a file implements, outside of functions.
fn implementations(text: &str) -> Vec<ItemImpl> {
    let file = syn::parse_file(text).expect("a source");
    let mut stores = Vec::new();
    let mut items = file.items;
    while let Some(item) = items.pop() {
        match item {
            Item::Impl(item) if is_store(&item) => stores.push(item),
            Item::Mod(module) => items.extend(module.content.into_iter().flat_map(|it| it.1)),
            _ => {}
        }
    }
    stores
}

fn is_store(item: &ItemImpl) -> bool {
    let name = item.trait_.as_ref().and_then(|it| it.0.segments.last());
    name.is_some_and(|name| STORES.iter().any(|it| name.ident == it))
}

/// Returns the names of the methods that only call the same method of something else, with what they were given.
fn passed_on(store: &ItemImpl) -> Vec<String> {
    let methods = store.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if passes_on(method) => Some(method.sig.ident.to_string()),
        _ => None,
    });
    methods.collect()
}

fn passes_on(method: &ImplItemFn) -> bool {
    let [Stmt::Expr(body, None)] = method.block.stmts.as_slice() else {
        return false;
    };
    let body = match body {
        Expr::Await(it) => &*it.base,
        body => body,
    };
    let Expr::MethodCall(call) = body else {
        return false;
    };
    let given = method.sig.inputs.iter().filter_map(|it| match it {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(name) => Some(name.ident.to_string()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let arguments = call.args.iter().map(|it| it.to_token_stream().to_string());
    call.method == method.sig.ident && arguments.eq(given)
}
