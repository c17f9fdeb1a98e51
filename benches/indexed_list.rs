//! Lists of one node's pods out of memory, by the index of `spec.nodeName`: beside a type that has no other pods, and
//! beside a label selector, for which every pod is looked at.
//!
//! `cargo bench --bench indexed_list` measures; under `cargo test` everything runs once with few pods.
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "criterion's macros write undocumented functions, and the files of `support` are included"
)]

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/world.rs"]
mod world;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch::storage::ListOptions;

use self::world::{World, since};

/// Pods of a node: the limit of Kubernetes.
const PODS_OF_NODE: usize = 110;

fn list(criterion: &mut Criterion) {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let mut group = criterion.benchmark_group("list of one node's pods");
    group.throughput(Throughput::Elements(PODS_OF_NODE as u64));
    group.sample_size(20);
    let mut measure = |name: String, world: &World, options: &ListOptions| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let list = world.list(black_box(options.clone()));
                assert_eq!(black_box(list).items.len(), PODS_OF_NODE);
            });
        });
    };
    let mut of_node = since(0);
    of_node.predicate.field = FieldSelector::parse("spec.nodeName=n7").unwrap();
    let mut labelled = since(0);
    labelled.predicate.label = LabelSelector::parse("node=n7").unwrap();

    // One more pod is there, which warms the world up.
    let alone = world_of_pods(PODS_OF_NODE - 1, |_| 7);
    measure(
        "floor: no other pods, all listed".to_owned(),
        &alone,
        &since(0),
    );
    let sizes: &[usize] = if measured { &[10, 136, 1_364] } else { &[10] };
    for nodes in sizes {
        let pods = nodes * PODS_OF_NODE;
        let world = world_of_pods(pods, |number| number % nodes);
        measure(format!("by index, of {pods}"), &world, &of_node);
        measure(format!("by label, of {pods}"), &world, &labelled);
    }
    group.finish();
}

/// Returns a world with so many pods, each on the node whose number `node` returns for its own.
fn world_of_pods(count: usize, node: impl Fn(usize) -> usize) -> World {
    let mut world = World::new(0, |_| since(0));
    let pods = (0..count).map(|number| (format!("{number:06}"), format!("n{}", node(number))));
    world.write_pods(pods);
    world.turn();
    world
}

criterion_group!(benches, list);
criterion_main!(benches);
