//! Lists and watches of shards: a list of one of ten shards of many pods beside a list of all, and beside one for which
//! every pod is looked at; an event to the watchers of its shard beside those of nine others.
//!
//! `cargo bench --bench sharded` measures; under `cargo test` everything runs once with few pods.
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "criterion's macros write undocumented functions, and the files of `support` are included"
)]

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/world.rs"]
mod world;

use std::cell::RefCell;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ringwatch::codec;
use ringwatch::meta::{ResourceVersion, ShardField, ShardRange, ShardSelector, shard_hash};
use ringwatch::storage::ListOptions;
use ringwatch_testing::pod::pod;

use self::world::{World, received, since};

/// The shards that the objects are divided into.
const SHARDS: u64 = 10;

/// The watchers of all shards together.
const WATCHERS: usize = 1_000;

/// Returns one of so many shards of the same size.
fn shard(number: u64, shards: u64) -> ShardSelector {
    let size = u64::MAX / shards;
    let last = if number + 1 == shards {
        u64::MAX
    } else {
        (number + 1) * size - 1
    };
    let first = number * size;
    ShardSelector::new(ShardField::Uid, &[ShardRange { first, last }])
}

/// Returns the options of a list or watch of a shard.
fn of_shard(shard: ShardSelector) -> ListOptions {
    let mut options = since(0);
    options.predicate.shard = shard;
    options
}

/// Returns a uid: random, as those of Kubernetes are, but the same in each run.
fn uid(number: usize) -> String {
    let half = shard_hash(&format!("{number:032}"));
    let other = shard_hash(&format!("{half:032}"));
    format!("{:08x}-0000-4000-8000-{:012x}", half >> 32, other >> 16)
}

/// Returns a world with so many pods.
fn world_of_pods(count: usize, shard_indexes: bool) -> World {
    let mut world = World::with_shards(shard_indexes, 0, |_| since(0));
    world.write_encoded((0..count).map(|number| {
        let mut value = pod(&format!("{number:06}"));
        value["metadata"]["uid"] = uid(number).into();
        let value = codec::encode_value(&value).unwrap();
        (format!("/pods/ns/{number:06}"), value.into())
    }));
    world.turn();
    world
}

fn list(criterion: &mut Criterion) {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let count: usize = if measured { 100_000 } else { 2_000 };
    let mut group = criterion.benchmark_group(format!("list {count} pods"));
    group.throughput(Throughput::Elements(count as u64));
    group.sample_size(20);
    let mut measure = |name: String, world: &World, options: &ListOptions| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(world.list(black_box(options.clone())).items.len()));
        });
    };
    let (indexed, plain) = (world_of_pods(count, true), world_of_pods(count, false));
    measure("all".to_owned(), &plain, &since(0));
    for shards in [2, 3, 4, SHARDS, 100] {
        let options = of_shard(shard(1, shards));
        measure(format!("one of {shards} shards"), &indexed, &options);
        measure(
            format!("one of {shards} shards, looking at each"),
            &plain,
            &options,
        );
    }
    let mut page = of_shard(shard(1, SHARDS));
    page.predicate.limit = 500;
    // With version 0 the limit would be ignored.
    page.resource_version = Some(ResourceVersion(indexed.list(since(0)).revision));
    measure(format!("a page of 500 of {SHARDS} shards"), &indexed, &page);
    group.finish();
}

fn event(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an event");
    group.sample_size(20);
    let mut measure = |name: &str, watchers: usize, options: &dyn Fn(usize) -> ListOptions| {
        let world = RefCell::new(World::with_shards(true, watchers, options));
        group.bench_function(name, |bencher| {
            // What the watchers read is not measured: they have slept before the event.
            let write = || {
                let mut world = world.borrow_mut();
                world.watches.iter_mut().for_each(|it| {
                    received(it);
                });
                world.write();
            };
            bencher.iter_batched(
                write,
                |()| world.borrow_mut().turn(),
                BatchSize::PerIteration,
            );
        });
    };
    // The pod that is written has no uid.
    let mine = shard_hash("") / (u64::MAX / SHARDS);
    let mine = mine.min(SHARDS - 1);
    let of_number = |number: usize| (mine + 1 + number as u64 % SHARDS) % SHARDS;
    measure("to 100 watchers of everything", WATCHERS / 10, &|_| {
        since(0)
    });
    measure(
        "to 100 watchers of its shard beside 900 of others",
        WATCHERS,
        &|number| of_shard(shard(of_number(number), SHARDS)),
    );
    measure(
        "to none beside 900 watchers of other shards",
        900,
        &|number| {
            of_shard(shard(
                (mine + 1 + number as u64 % (SHARDS - 1)) % SHARDS,
                SHARDS,
            ))
        },
    );
    measure("to none beside none", 0, &|_| since(0));
    group.finish();
}

criterion_group!(benches, list, event);
criterion_main!(benches);
