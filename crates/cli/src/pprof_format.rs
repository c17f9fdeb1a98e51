//! The format of profiles that `go tool pprof` reads: a gzipped message of protobuf (`profile.proto` of google/pprof).
//!
//! Of its messages only the fields that a CPU profile fills are here.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

/// A sampled stack.
#[derive(Debug)]
pub(crate) struct Stack {
    /// The names of functions, the innermost first.
    pub(crate) functions: Vec<String>,
    /// The thread.
    pub(crate) thread: String,
    /// The number of samples.
    pub(crate) count: i64,
}

/// A profile that is being made.
#[derive(Debug)]
pub(crate) struct Profile {
    message: ProfileMessage,
    strings: HashMap<String, i64>,
    /// The locations of functions, which are also the functions' own numbers.
    locations: HashMap<String, u64>,
    period: i64,
}

impl Profile {
    /// Begins a profile of processors that began at a time since 1970 and took a time, with a sample for each period of
    /// a processor's time.
    pub(crate) fn of_cpu(began: Duration, took: Duration, period: Duration) -> Self {
        let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let mut profile = Self {
            message: ProfileMessage {
                time_nanos: nanoseconds(began),
                duration_nanos: nanoseconds(took),
                period: nanoseconds(period),
                ..ProfileMessage::default()
            },
            strings: HashMap::new(),
            locations: HashMap::new(),
            period: nanoseconds(period),
        };
        // The first string is empty, which fields that are not there refer to.
        profile.string("");
        let samples = profile.value_type("samples", "count");
        let cpu = profile.value_type("cpu", "nanoseconds");
        profile.message.sample_type = vec![samples, cpu];
        profile.message.period_type = Some(cpu);
        profile
    }

    /// Adds the samples of a stack.
    pub(crate) fn add(&mut self, stack: &Stack) {
        let locations = stack.functions.iter().map(|name| self.location(name));
        let location_id = locations.collect();
        let label = Label {
            key: self.string("thread"),
            text: self.string(&stack.thread),
        };
        self.message.sample.push(Sample {
            location_id,
            value: vec![stack.count, stack.count.saturating_mul(self.period)],
            label: vec![label],
        });
    }

    /// Returns the profile's bytes.
    ///
    /// # Errors
    /// None: it is written to memory.
    pub(crate) fn gzipped(&self) -> io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.message.encode_to_vec())?;
        encoder.finish()
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    /// Returns the number of a string, which is added if it is new.
    fn string(&mut self, text: &str) -> i64 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = i64::try_from(self.message.string_table.len()).unwrap_or(i64::MAX);
        self.message.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    /// Returns the number of a function's location, which is added if it is new.
    fn location(&mut self, function: &str) -> u64 {
        if let Some(number) = self.locations.get(function) {
            return *number;
        }
        let name = self.string(function);
        let id = self.message.location.len() as u64 + 1;
        self.message.function.push(Function {
            id,
            name,
            system_name: name,
        });
        self.message.location.push(Location {
            id,
            line: vec![Line { function_id: id }],
        });
        self.locations.insert(function.to_owned(), id);
        id
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

/// A profile as its readers see it.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct DecodedProfile(ProfileMessage);

#[cfg(test)]
impl DecodedProfile {
    /// Reads a profile.
    pub(crate) fn read(gzipped: &[u8]) -> Self {
        let mut bytes = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(gzipped);
        io::Read::read_to_end(&mut decoder, &mut bytes).expect("gzip");
        Self(ProfileMessage::decode(&*bytes).expect("a profile"))
    }

    /// Returns the sums of the values of the stacks with a function whose name contains a word.
    pub(crate) fn samples_of(&self, word: &str) -> (i64, i64) {
        let named = |location: &u64| {
            let location = self.0.location.iter().find(|it| it.id == *location);
            let line = location.and_then(|it| it.line.first()).expect("a line");
            let function = self.0.function.iter().find(|it| it.id == line.function_id);
            self.text(function.expect("a function").name).contains(word)
        };
        let stacks = self.0.sample.iter();
        let stacks = stacks.filter(|it| it.location_id.iter().any(named));
        stacks.fold((0, 0), |(count, time), it| {
            (count + it.value[0], time + it.value[1])
        })
    }

    fn text(&self, number: i64) -> &str {
        let place = usize::try_from(number).expect("a place");
        &self.0.string_table[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_refers_to_each_name_once() {
        let (began, took) = (Duration::from_secs(5), Duration::from_secs(2));
        let mut profile = Profile::of_cpu(began, took, Duration::from_millis(10));
        for (functions, count) in [(["inner", "outer"], 3), (["other", "outer"], 4)] {
            profile.add(&Stack {
                functions: functions.map(str::to_owned).to_vec(),
                thread: "serving".to_owned(),
                count,
            });
        }
        let read = DecodedProfile::read(&profile.gzipped().expect("bytes"));
        assert_eq!(read.samples_of("inner"), (3, 30_000_000));
        assert_eq!(read.samples_of("outer"), (7, 70_000_000));
        let strings = [
            "",
            "samples",
            "count",
            "cpu",
            "nanoseconds",
            "inner",
            "outer",
            "thread",
            "serving",
            "other",
        ];
        assert_eq!(read.0.string_table, strings);
        let units = read.0.sample_type.iter();
        let units = units.map(|it| (read.text(it.kind), read.text(it.unit)));
        assert_eq!(
            units.collect::<Vec<_>>(),
            [("samples", "count"), ("cpu", "nanoseconds")]
        );
        assert_eq!(read.0.period, 10_000_000);
        assert_eq!(
            (read.0.time_nanos, read.0.duration_nanos),
            (5_000_000_000, 2_000_000_000)
        );
        let label = read.0.sample[0].label[0];
        assert_eq!(
            (read.text(label.key), read.text(label.text)),
            ("thread", "serving")
        );
    }
}
