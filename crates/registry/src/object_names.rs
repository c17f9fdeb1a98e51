//! The check of the names by which an object is looked up.

use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::validation::formats;

/// Checks that there can be an object of a name, in a namespace if it is of a resource that has one. Follows
/// `NamespaceKeyFunc` and `NoNamespaceKeyFunc`. For names that clients write into objects as well as for those in
/// paths.
///
/// # Errors
/// [`Error::BadRequest`] when one is missing, or the name can be no segment of a path.
pub fn check_names(namespace: Option<&str>, name: &str) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::BadRequest(why.to_owned()));
    if namespace.is_some_and(str::is_empty) {
        return refuse("Namespace parameter required.");
    }
    if name.is_empty() {
        return refuse("Name parameter required.");
    }
    let wrong = formats::path_segment(name, false);
    if !wrong.is_empty() {
        let wrong = wrong.join(";");
        return refuse(&format!("Name parameter invalid: {name:?}: {wrong}"));
    }
    Ok(())
}
