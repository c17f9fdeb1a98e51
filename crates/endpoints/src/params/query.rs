//! The query parameters of a request, parsed as Go does.

use crate::errors::Failure;

/// The decoded parameters of a request, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query string after the `?`. Parameters that are not encoded well are left out.
    pub(crate) fn parse(query: &str) -> Self {
        let well = query.split('&').filter(|it| is_encoded_well(it));
        let parsed = well.flat_map(|it| form_urlencoded::parse(it.as_bytes()).into_owned());
        Self(parsed.collect())
    }

    /// Returns the first value of a parameter; empty if it is not there.
    pub(crate) fn first(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns true if the parameter is there, even if empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Returns all values of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// Encodes the parameters as they are written in a URL.
    pub(crate) fn encode(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(&self.0);
        text.finish()
    }

    /// Returns the value of a boolean parameter; `None` if it is not there.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.has(name).then(|| is_true(self.first(name)))
    }

    /// Parses a parameter as a number of 64 bits; `None` if it is not there.
    ///
    /// # Errors
    /// 400 in the words of Go's `strconv`.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Failure> {
        if !self.has(name) {
            return Ok(None);
        }
        let text = self.first(name);
        text.parse::<i64>().map(Some).map_err(|error| {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }
}

/// Returns true unless a boolean parameter is `false`, in any case, or `0`. Follows `Convert_Slice_string_To_bool`.
pub(crate) fn is_true(said: &str) -> bool {
    said != "0" && !said.eq_ignore_ascii_case("false")
}

/// Returns true if Go's `url.ParseQuery` accepts a parameter: each `%` begins two hexadecimal digits, and there is no
/// `;`.
fn is_encoded_well(parameter: &str) -> bool {
    let is_digits = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit))
    };
    !parameter.contains(';') && parameter.split('%').skip(1).all(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_switches_and_numbers_as_go_does() {
        let query = Query::parse(
            "watch&a=0&b=false&c=yes&d=FALSE&limit=5&bad=abc&big=9999999999999999999&empty=",
        );
        assert_eq!(query.switch("watch"), Some(true));
        assert_eq!(query.switch("a"), Some(false));
        assert_eq!(query.switch("b"), Some(false));
        assert_eq!(query.switch("c"), Some(true));
        assert_eq!(query.switch("d"), Some(false));
        assert_eq!(query.switch("none"), None);
        assert_eq!(query.integer("limit").expect("a number"), Some(5));
        assert_eq!(query.integer("none").expect("nothing"), None);
        let message = |name| {
            query
                .integer(name)
                .expect_err("bad")
                .status()
                .message
                .clone()
        };
        assert_eq!(
            message("bad"),
            "strconv.ParseInt: parsing \"abc\": invalid syntax"
        );
        assert_eq!(
            message("empty"),
            "strconv.ParseInt: parsing \"\": invalid syntax"
        );
        assert!(message("big").ends_with("value out of range"));
    }
}
