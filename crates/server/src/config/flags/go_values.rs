//! Names and values of flags as Go's flag library reads them, where that differs from clap.

use std::ffi::OsString;

/// Returns a command line with dashes for the underscores in names of flags, which kube-apiserver takes for the same.
pub fn with_dashes(line: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    line.into_iter().map(|word| match word.to_str() {
        Some(text) if text.starts_with("--") => {
            let end = text.find('=').unwrap_or(text.len());
            let (name, value) = text.split_at(end);
            OsString::from(format!("{}{value}", name.replace('_', "-")))
        }
        _ => word,
    })
}

/// Reads a boolean in any of the forms that Go takes.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_in_names_are_dashes() {
        let line = ["serve", "--tls_cert_file=a_b", "--data-dir", "c_d"].map(OsString::from);
        let line: Vec<OsString> = with_dashes(line).collect();
        assert_eq!(line, ["serve", "--tls-cert-file=a_b", "--data-dir", "c_d"]);
    }

    #[test]
    fn booleans_have_gos_forms() {
        for yes in ["true", "1", "T"] {
            assert_eq!(parse_bool(yes), Ok(true), "{yes}");
        }
        for no in ["false", "0", "FALSE"] {
            assert_eq!(parse_bool(no), Ok(false), "{no}");
        }
        for wrong in ["", "yes", "tRUE"] {
            assert!(parse_bool(wrong).is_err(), "{wrong}");
        }
    }
}
