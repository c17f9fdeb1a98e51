//! Semantic versions as `blang/semver` reads them, with its words about what is wrong.

use ringwatch_apimachinery::go_text::quoted;

/// Returns a version as the library reads it, without build metadata, which make no difference; it may be incomplete if
/// `is_lenient`. The error is in the words of kube-apiserver. Follows `stringToSemverNormalize`.
pub(super) fn spelled(text: &str, is_lenient: bool) -> Result<String, String> {
    if !is_lenient {
        return parse(text);
    }
    parse(&normalized(text)?)
}

/// Completes a version, and removes leading zeros. Follows `normalizeAndParse`.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    if part.len() < 2 || rest.starts_with(|it: char| it.is_ascii_digit()) {
        return if part.len() < 2 { part } else { rest }.to_owned();
    }
    format!("0{rest}")
}

/// Reads a version, and returns it without build metadata. Follows `semver.Parse`.
fn parse(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    number("Major", major)?;
    number("Minor", minor)?;
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (*rest, None),
    };
    let (patch, pre_release) = match rest.split_once('-') {
        Some((patch, pre_release)) => (patch, Some(pre_release)),
        None => (rest, None),
    };
    number("Patch", patch)?;
    let parts = |parts: Option<&str>| {
        let parts = parts.map(|it| it.split('.').map(str::to_owned));
        parts.into_iter().flatten().collect::<Vec<_>>()
    };
    for part in parts(pre_release) {
        check_pre_release(&part)?;
    }
    for part in parts(build) {
        check_build(&part)?;
    }
    Ok(format!("{major}.{minor}.{rest}"))
}

fn number(name: &str, digits: &str) -> Result<(), String> {
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {} number {}",
            name.to_lowercase(),
            quoted(digits)
        ));
    }
    if has_leading_zeros(digits) {
        return Err(format!(
            "{name} number must not contain leading zeroes {}",
            quoted(digits)
        ));
    }
    parse_uint(digits)
}

fn has_leading_zeros(digits: &str) -> bool {
    digits.len() > 1 && digits.starts_with('0')
}

/// Checks that a number of digits fits. Follows `strconv.ParseUint`.
fn parse_uint(digits: &str) -> Result<(), String> {
    let why = match digits.parse::<u64>() {
        Ok(_) => return Ok(()),
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!(
        "strconv.ParseUint: parsing {}: {why}",
        quoted(digits)
    ))
}

/// Follows `NewPRVersion`.
fn check_pre_release(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if part.bytes().all(|it| it.is_ascii_digit()) {
        if has_leading_zeros(part) {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quoted(part)
            ));
        }
        return parse_uint(part);
    }
    check_characters("prerelease", part)
}

fn check_build(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    check_characters("build meta data", part)
}

fn check_characters(place: &str, part: &str) -> Result<(), String> {
    if part
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    {
        return Ok(());
    }
    Err(format!(
        "Invalid character(s) found in {place} {}",
        quoted(part)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, true if it may be incomplete, and the version that Go reads, or what it says is wrong.
    type Fact = (&'static str, bool, Result<&'static str, &'static str>);

    #[rustfmt::skip]
    const FACTS: &[Fact] = &[
        ("", false, Err("Version string empty")),
        ("1", false, Err("No Major.Minor.Patch elements found")),
        ("1.2", false, Err("No Major.Minor.Patch elements found")),
        ("v1.2.3", false, Err("Invalid character(s) found in major number \"v1\"")),
        ("a.2.3", false, Err("Invalid character(s) found in major number \"a\"")),
        ("01.2.3", false, Err("Major number must not contain leading zeroes \"01\"")),
        ("1.02.3", false, Err("Minor number must not contain leading zeroes \"02\"")),
        ("1.2.03", false, Err("Patch number must not contain leading zeroes \"03\"")),
        ("1.2.3a", false, Err("Invalid character(s) found in patch number \"3a\"")),
        ("1..3", false, Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        (".2.3", false, Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        ("1.2.", false, Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        ("99999999999999999999.2.3", false, Err("strconv.ParseUint: parsing \"99999999999999999999\": value out of range")),
        ("1.2.3-", false, Err("Prerelease is empty")),
        ("1.2.3-a..b", false, Err("Prerelease is empty")),
        ("1.2.3-01", false, Err("Numeric PreRelease version must not contain leading zeroes \"01\"")),
        ("1.2.3-99999999999999999999", false, Err("strconv.ParseUint: parsing \"99999999999999999999\": value out of range")),
        ("1.2.3-a_b", false, Err("Invalid character(s) found in prerelease \"a_b\"")),
        ("1.2.3+", false, Err("Build meta data is empty")),
        ("1.2.3+a_b", false, Err("Invalid character(s) found in build meta data \"a_b\"")),
        ("1.2.3-a.1+b", false, Ok("1.2.3-a.1")),
        ("1.2.3+b-a", false, Ok("1.2.3")),
        ("0.0.0-0a", false, Ok("0.0.0-0a")),
        ("1.2.3.4", false, Err("Invalid character(s) found in patch number \"3.4\"")),
        ("é.2.3", false, Err("Invalid character(s) found in major number \"é\"")),
        ("", true, Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        ("v", true, Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        ("v1", true, Ok("1.0.0")),
        ("V1", true, Err("Invalid character(s) found in major number \"0V1\"")),
        ("1.2", true, Ok("1.2.0")),
        ("01.02.03", true, Ok("1.2.3")),
        ("0.00.000", true, Ok("0.0.0")),
        ("1-a", true, Err("short version cannot contain PreRelease/Build meta data")),
        ("1.2+b", true, Err("short version cannot contain PreRelease/Build meta data")),
        ("1.2.003-a+b", true, Ok("1.2.3-a")),
        ("vv1", true, Err("Invalid character(s) found in major number \"0v1\"")),
        ("1.2.-a", true, Ok("1.2.0-a")),
    ];

    #[test]
    fn versions_are_read_as_go_reads_them() {
        for (text, is_lenient, read) in FACTS {
            let found = spelled(text, *is_lenient);
            let read = read.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, read, "{text} {is_lenient}");
        }
    }
}
