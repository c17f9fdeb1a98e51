//! HTML while it is written.
//!
//! Only literals of this program become markup; whatever is computed or read is text and is escaped.
//! The types see to it, so that no name, reason or file can put markup into a page.

use std::fmt::{self, Display, Write};

/// A page of HTML while it is written. Only literals become markup; all else is text.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup, which stands in the source of this program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, also as the value of an attribute in quotes.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(Escaping(&mut self.0), "{text}");
        self
    }

    /// Returns the page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Escapes what is written through it.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let mut page = Html::default();
        page.raw("<b title=\"").text("\"><script>'&amp;").raw("\">");
        let expected = "<b title=\"&quot;&gt;&lt;script&gt;&#39;&amp;amp;\">";
        assert_eq!(page.finish(), expected);
    }
}
