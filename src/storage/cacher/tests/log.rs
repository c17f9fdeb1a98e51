//! The log of `ring` against a plain deque, and under load. The files of `ring` have no tests,
//! because they are compiled over loom's primitives too.

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use crate::ring::log::{Log, Reader, Slot, Writer, log};

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// Values are appended, as many as `values` says; then, perhaps, they are published.
    Append { values: u16, publish: bool },
    /// The next value begins a segment.
    Seal,
    /// The oldest segments go, this many at most.
    Evict(u8),
    /// Everything goes.
    Reset,
    /// A reader is kept until the end.
    Keep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..400_u16, any::<bool>())
            .prop_map(|(values, publish)| Step::Append { values, publish }),
        3 => Just(Step::Seal),
        3 => (0..4_u8).prop_map(Step::Evict),
        1 => Just(Step::Reset),
        1 => Just(Step::Keep),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A value is ten times its number, and the base is ten times the first number.
const TIMES: u64 = 10;

/// The window as a reader must find it.
#[derive(Clone, Debug, Default)]
struct Oracle {
    first: u64,
    values: VecDeque<u64>,
}

struct Model {
    writer: Writer<u64, u64>,
    log: Log<u64, u64>,
    published: Oracle,
    /// Values that nobody may see yet.
    pending: Vec<u64>,
    /// The number of values that each segment has, the oldest first.
    segments: VecDeque<usize>,
    /// Readers and what they must find for as long as they live.
    kept: Vec<(Reader<u64, u64>, Oracle)>,
}

impl Model {
    fn new() -> Self {
        let (writer, log) = log(0);
        Self {
            writer,
            log,
            published: Oracle::default(),
            pending: Vec::new(),
            segments: VecDeque::new(),
            kept: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append { values, publish } => {
                (0..values).for_each(|_| self.append());
                if publish {
                    self.publish();
                }
            }
            Step::Seal => self.writer.seal(),
            Step::Evict(segments) => self.evict(segments.into()),
            Step::Reset => self.reset(),
            Step::Keep => self.kept.push((self.log.read(), self.published.clone())),
        }
        self.published.check(&self.log.read());
    }

    fn append(&mut self) {
        let value = self.writer.end() * TIMES;
        if self.writer.append(value) {
            self.segments.push_back(0);
        }
        *self.segments.back_mut().expect("append returned false") += 1;
        self.pending.push(value);
    }

    fn publish(&mut self) {
        self.writer.publish();
        self.published.values.extend(self.pending.drain(..));
    }

    fn evict(&mut self, segments: usize) {
        self.publish();
        let segments = segments.min(self.segments.len());
        let Some(last) = self.writer.last_of(segments).copied() else {
            assert_eq!(segments, 0);
            return;
        };
        drop(self.writer.evict(segments, last + TIMES));
        let values: usize = self.segments.drain(..segments).sum();
        self.published.values.drain(..values);
        self.published.first += values as u64;
        assert_eq!(last + TIMES, self.published.first * TIMES);
    }

    fn reset(&mut self) {
        let first = self.writer.end() + 1;
        drop(self.writer.reset(first * TIMES));
        self.pending.clear();
        self.segments.clear();
        self.published = Oracle {
            first,
            values: VecDeque::new(),
        };
    }
}

impl Oracle {
    fn check(&self, reader: &Reader<u64, u64>) {
        let end = self.first + self.values.len() as u64;
        assert_eq!((reader.first(), reader.end()), (self.first, end));
        assert_eq!(*reader.base(), self.first * TIMES);
        assert_eq!(reader.last(), self.values.back());
        assert_eq!(reader.slot(end), Slot::Future);
        assert_eq!(reader.slot(u64::MAX), Slot::Future);
        if self.first > 0 {
            assert_eq!(reader.slot(self.first - 1), Slot::Gone);
        }
        assert!(reader.values(0).eq(&self.values));
        for (index, value) in self.values.iter().enumerate() {
            let number = self.first + index as u64;
            assert_eq!(reader.slot(number), Slot::Value(value));
            assert_eq!(reader.partition_point(|it| it < value), number);
        }
        let middle = self.first.midpoint(end);
        let later = self.values.range(self.values.len() / 2..);
        assert!(reader.values(middle).eq(later));
        assert_eq!(reader.partition_point(|_| true), end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_log_is_a_deque_with_numbers(steps in steps()) {
        let mut model = Model::new();
        for step in steps {
            model.step(step);
        }
        for (reader, oracle) in model.kept {
            oracle.check(&reader);
        }
    }
}

/// The number of values that the stress test appends.
const STRESS_VALUES: u64 = 1_000_000;

/// The number of segments that the stress test keeps.
const STRESS_SEGMENTS: usize = 20;

#[test]
fn segments_double_up_to_256_values() {
    let (mut writer, log) = log(0_u64);
    let begins = |writer: &mut Writer<u64, u64>, values: u64| -> Vec<u64> {
        let numbers = writer.end()..writer.end() + values;
        numbers.filter(|number| writer.append(*number)).collect()
    };
    let expected = [0, 16, 48, 112, 240, 496, 752];
    assert_eq!(begins(&mut writer, 1_000), expected);
    writer.publish();
    writer.seal();
    assert_eq!(begins(&mut writer, 300), [1_000, 1_256]);
    writer.publish();
    writer.seal();
    // As many as twice what was used of the last one, 44.
    assert_eq!(begins(&mut writer, 100), [1_300, 1_388]);
    writer.publish();
    assert_eq!(log.read().partition_point(|value| *value < 1_350), 1_350);
}

/// A value of the stress test.
#[derive(Debug)]
struct Stamped {
    /// Its own number.
    number: u64,
    /// The number after its batch.
    batch_end: u64,
}

/// Two readers follow a writer that never waits for them. They may be passed, but never find a gap,
/// a value twice, or half a batch.
#[test]
fn a_million_values_are_read_in_order() {
    let (mut writer, log) = log(0_u64);
    let readers = thread::scope(|scope| {
        let readers = [log.clone(), log].map(|log| scope.spawn(move || follow(&log)));
        let mut segments = 0_usize;
        while writer.end() < STRESS_VALUES {
            let batch_end = (writer.end() + 1 + writer.end() % 7).min(STRESS_VALUES);
            for number in writer.end()..batch_end {
                segments += usize::from(writer.append(Stamped { number, batch_end }));
            }
            writer.publish();
            if segments > STRESS_SEGMENTS {
                let base = writer.last_of(1).map_or(0, |it| it.number + 1);
                drop(writer.evict(1, base));
                segments -= 1;
            }
        }
        readers.map(|reader| reader.join().expect("a reader that found nothing wrong"))
    });
    for (read, passed) in readers {
        assert_eq!(read + passed, STRESS_VALUES, "{read} read, {passed} passed");
    }
}

/// Reads until the last value; returns how many were read and how many were gone by then.
fn follow(log: &Log<Stamped, u64>) -> (u64, u64) {
    let (mut cursor, mut read, mut passed) = (0, 0, 0);
    while cursor < STRESS_VALUES {
        let reader = log.read();
        assert!(reader.end() >= cursor, "the end went back");
        assert_eq!(*reader.base(), reader.first(), "another window's base");
        if let Some(last) = reader.last() {
            assert_eq!(last.batch_end, reader.end(), "half a batch");
        }
        passed += reader.first().saturating_sub(cursor);
        cursor = cursor.max(reader.first());
        for value in reader.values(cursor) {
            assert_eq!(value.number, cursor, "a gap or a value twice");
            cursor += 1;
            read += 1;
        }
        assert_eq!(cursor, reader.end(), "a value below the end is missing");
    }
    (read, passed)
}
