//! Reads samples out of Prometheus' text format.

use std::collections::BTreeMap;

/// A sample of `/metrics`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    /// The name of the metric.
    pub(crate) name: &'a str,
    /// The values of the labels, by their names.
    pub(crate) labels: BTreeMap<&'a str, String>,
    /// The value.
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// Returns the value of a label; empty if there is none.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    }
}

/// Returns the samples whose metric `wanted` returns true for. Lines that are none are passed over.
pub(crate) fn samples(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Sample<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter(|line| {
            let end = line.find(['{', ' ']).unwrap_or(line.len());
            wanted(&line[..end])
        })
        .filter_map(sample)
        .collect()
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(label, value);
            rest = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// Reads a label's value up to its closing quote, and returns it with the text after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_and_others_passed_over() {
        let text = "# HELP a x\n# TYPE a gauge\na 1\nb{x=\"1\",y=\"a\\\"b}\\n\"} 2.5 17\n\
                    c{x=\"open 3\nd{} 4e3\nother 5\n";
        let read = samples(text, |name| name != "other");
        let short: Vec<_> = read.iter().map(|it| (it.name, it.value)).collect();
        assert_eq!(short, [("a", 1.0), ("b", 2.5), ("d", 4000.0)]);
        assert_eq!((read[1].label("x"), read[1].label("y")), ("1", "a\"b}\n"));
        assert_eq!(read[1].label("z"), "");
    }
}
