//! The rules by which values merge, as the markers in the comments above fields say.

/// Returns the merge markers of a field, as words with a space before each; nothing for most fields.
pub(crate) fn merging(comment: &str) -> String {
    let markers = |name: &str| -> Vec<&str> {
        let lines = comment
            .lines()
            .filter_map(|line| line.trim().strip_prefix('+'));
        let values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.map(str::trim).collect()
    };
    let mut words = String::new();
    for (word, marker, keys) in [
        ("list", "listType", "listMapKey"),
        ("map", "mapType", ""),
        ("struct", "structType", ""),
        ("patch", "patchStrategy", "patchMergeKey"),
    ] {
        let Some(rule) = markers(marker).first().copied() else {
            continue;
        };
        let keys = if keys.is_empty() {
            Vec::new()
        } else {
            markers(keys)
        };
        words.push_str(&format!(" {word}={rule}"));
        if !keys.is_empty() {
            words.push_str(&format!(":{}", keys.join(",")));
        }
    }
    words
}
