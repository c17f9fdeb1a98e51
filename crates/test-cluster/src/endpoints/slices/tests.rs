//! Tests of which slices are written.

use super::*;

fn template(endpoints_max: usize) -> SliceTemplate {
    SliceTemplate {
        name: "s".to_owned(),
        namespace: "n".to_owned(),
        labels: json!({SERVICE_NAME: "s"}),
        annotations: Value::Null,
        owner: json!({"kind": "Service", "uid": "u"}),
        endpoints_max,
        has_placeholder: true,
    }
}

fn port() -> Vec<Value> {
    vec![json!({"name": "", "port": 80, "protocol": "TCP"})]
}

fn endpoint(number: usize) -> Value {
    json!({"addresses": [format!("10.0.0.{number}")], "conditions": {"ready": true}})
}

fn wanted(numbers: impl IntoIterator<Item = usize>) -> WantedEndpoints {
    let mut wanted = WantedEndpoints::default();
    for number in numbers {
        wanted.add(port(), endpoint(number));
    }
    wanted
}

fn existing(name: &str, numbers: impl IntoIterator<Item = usize>) -> Value {
    let mut slice = template(0).slice(AddressFamily::V4, port());
    slice["metadata"]["name"] = name.into();
    slice["endpoints"] = numbers.into_iter().map(endpoint).collect();
    slice
}

/// Returns the names and the numbers of endpoints of slices that are created, changed and deleted.
fn summary(changes: &SliceChanges) -> [Vec<(&str, usize)>; 3] {
    [&changes.create, &changes.update, &changes.delete].map(|slices| {
        let slices = slices.iter();
        slices
            .map(|it| (accessor::text(it, "name"), count(it)))
            .collect()
    })
}

fn changes(
    endpoints_max: usize,
    wanted: WantedEndpoints,
    existing: impl IntoIterator<Item = Value>,
) -> SliceChanges {
    let existing = existing.into_iter().collect();
    template(endpoints_max).changes(AddressFamily::V4, wanted, existing)
}

#[test]
fn endpoints_are_spread_over_as_few_slices_as_possible() {
    let all = changes(3, wanted(0..7), []);
    assert_eq!(
        summary(&all),
        [vec![("", 3), ("", 3), ("", 1)], vec![], vec![]]
    );
    assert_eq!(all.create[0]["metadata"]["generateName"], "s-");
}

#[test]
fn nothing_is_written_when_all_is_as_it_should_be() {
    let both = [existing("a", 0..2), existing("b", 2..3)];
    assert_eq!(
        summary(&changes(3, wanted(0..3), both)),
        [vec![], vec![], vec![]]
    );
}

#[test]
fn a_new_endpoint_goes_where_others_change_and_then_where_room_is_left() {
    // One of `b` goes, so the new one takes its place.
    let both = [existing("a", 0..2), existing("b", 2..5)];
    let one = changes(3, wanted([0, 1, 2, 3, 9]), both);
    assert_eq!(summary(&one), [vec![], vec![("b", 3)], vec![]]);
    // Nothing else changes: the fullest slice with enough room takes them all.
    let three = [
        existing("a", 0..1),
        existing("b", 1..3),
        existing("c", 3..7),
    ];
    let two = changes(4, wanted(0..9), three);
    assert_eq!(summary(&two), [vec![], vec![("b", 4)], vec![]]);
}

#[test]
fn a_changed_endpoint_or_label_changes_its_slice_alone() {
    let mut ready = wanted(0..3);
    let mut changed = endpoint(1);
    changed["conditions"]["ready"] = false.into();
    ready.add(port(), changed);
    let both = [existing("a", 0..2), existing("b", 2..3)];
    assert_eq!(
        summary(&changes(3, ready, both.clone())),
        [vec![], vec![("a", 2)], vec![]]
    );
    let [mut a, b] = both;
    a["metadata"]["labels"]["more"] = "x".into();
    let mended = changes(3, wanted(0..3), [a, b]);
    assert_eq!(summary(&mended), [vec![], vec![("a", 2)], vec![]]);
    assert_eq!(mended.update[0]["metadata"]["labels"], template(0).labels);
}

#[test]
fn there_is_always_one_slice_which_may_be_empty() {
    let new = changes(3, wanted([]), []);
    assert_eq!(summary(&new), [vec![("", 0)], vec![], vec![]]);
    let emptied = changes(3, wanted([]), [existing("a", 0..2)]);
    assert_eq!(summary(&emptied), [vec![], vec![("a", 0)], vec![]]);
    assert_eq!(emptied.update[0]["ports"], json!([]));
    let again = changes(3, wanted([]), emptied.update);
    assert_eq!(summary(&again), [vec![], vec![], vec![]]);
}

#[test]
fn the_empty_slice_and_those_of_other_ports_are_used_again_and_those_of_others_deleted() {
    // One that has been stored has no lists.
    let mut empty = existing("a", []);
    empty["endpoints"] = Value::Null;
    empty["ports"] = Value::Null;
    assert_eq!(
        summary(&changes(3, wanted(0..1), [empty.clone()])),
        [vec![], vec![("a", 1)], vec![]]
    );
    let mut without_ports = WantedEndpoints::default();
    without_ports.add(Vec::new(), endpoint(1));
    assert_eq!(
        summary(&changes(3, without_ports, [empty])),
        [vec![], vec![("a", 1)], vec![]]
    );
    let mut foreign = existing("b", 0..1);
    foreign["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    assert_eq!(
        summary(&changes(3, wanted(0..1), [foreign])),
        [vec![("", 1)], vec![], vec![("b", 1)]]
    );
}
