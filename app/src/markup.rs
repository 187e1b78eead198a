//! Rendered markup: one type for the parts of a page, and the HTML that is sent, which is valid and without characters
//! that change the direction of text.
//!
//! A view's type is as deep as its markup, and the compiler makes a dozen functions for each of its elements: to build
//! it in a browser, to update it, to wait for its parts. A page of the server needs one, which writes text. `AnyView`
//! would hide the type and still have all of them compiled.

use domain::hidden_characters::is_bidi_override;
use leptos::IntoView;
use leptos::tachys::html::InertElement;
use leptos::tachys::view::RenderHtml;

/// The placeholder that Leptos writes between two texts and after a list; islands expect a comment there. As written it
/// is a parse error of HTML (`incorrectly-opened-comment`).
const PLACEHOLDER: &str = "<!>";
/// The same comment in valid HTML.
const EMPTY_COMMENT: &str = "<!---->";
/// The element around every island. Texts and attributes cannot contain it, because `<` is escaped there.
const ISLAND: &str = "leptos-island";
/// Isolates that messages write around names, always in pairs: see `language::isolated`.
const OURS: [char; 2] = ['\u{2068}', '\u{2069}'];

/// The markup of a part of a page.
pub type Markup = InertElement;

/// Renders a view at once, in the language and under the owner of [`crate::render_in`]. The result takes no attributes,
/// and an island must not contain it, because it cannot be hydrated.
pub trait IntoMarkup {
    /// Returns the view's markup.
    fn into_markup(self) -> Markup;
}

impl<V: IntoView> IntoMarkup for V {
    fn into_markup(self) -> Markup {
        InertElement::new(self.into_view().to_html())
    }
}

/// The document as sent to a visitor.
///
/// Placeholders are removed, or written as comments inside islands. Characters that override, embed or isolate a
/// direction are removed regardless of their source: elements around names isolate them.
pub fn delivered(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find("<leptos-island") {
        let end = start + island_length(&rest[start..]);
        push_without_placeholders(&mut out, &rest[..start], "");
        push_without_placeholders(&mut out, &rest[start..end], EMPTY_COMMENT);
        rest = &rest[end..];
    }
    push_without_placeholders(&mut out, rest, "");
    let is_removed = |letter: char| is_bidi_override(letter) && !OURS.contains(&letter);
    if out.contains(is_removed) {
        out.retain(|letter| !is_removed(letter));
    }
    out
}

fn push_without_placeholders(out: &mut String, html: &str, instead: &str) {
    for (number, part) in html.split(PLACEHOLDER).enumerate() {
        if number > 0 {
            out.push_str(instead);
        }
        out.push_str(part);
    }
}

/// Length of the island at the start of the text, nested islands included. The whole text if the island has no end.
fn island_length(html: &str) -> usize {
    let mut depth = 0_u32;
    for (at, name) in html.match_indices(ISLAND) {
        if html[..at].ends_with("</") {
            depth = depth.saturating_sub(1);
        } else if html[..at].ends_with('<') {
            depth += 1;
        }
        if depth == 0 {
            return (at + name.len() + 1).min(html.len());
        }
    }
    html.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_removed_and_become_comments_in_islands() {
        let html = "<p>A<!>B</p><!><leptos-island data-props=\"{}\"><p>C<!></p><leptos-island><!></leptos-island>\
                    <!></leptos-island><p>D<!></p>";
        let sent = "<p>AB</p><leptos-island data-props=\"{}\"><p>C<!----></p><leptos-island><!----></leptos-island>\
                    <!----></leptos-island><p>D</p>";
        assert_eq!(delivered(html), sent);
        assert_eq!(delivered("<leptos-island><!>"), "<leptos-island><!---->", "an island without an end");
        assert_eq!(delivered("leptos-island<!>"), "leptos-island");
    }

    #[test]
    fn direction_overrides_are_removed_and_isolates_of_messages_kept() {
        assert_eq!(delivered("<p>\u{202e}moor\u{202c} \u{2066}ليلى\u{200f}</p>"), "<p>moor ليلى\u{200f}</p>");
        assert_eq!(delivered("<p>\u{2068}C7\u{2069}!</p>"), "<p>\u{2068}C7\u{2069}!</p>");
    }
}
