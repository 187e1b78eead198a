//! Turns rendered markup into the HTML that is sent: valid, and without characters that change the direction of text.

use domain::hidden_characters::is_bidi_override;

/// The placeholder that Leptos leaves between two texts and behind a list: its islands look for a comment there. As it is
/// written it is a parse error of HTML (`incorrectly-opened-comment`).
const PLACEHOLDER: &str = "<!>";
/// The same comment, written as HTML has it.
const EMPTY_COMMENT: &str = "<!---->";
/// Around every island. No text or attribute holds it: `<` is escaped there.
const ISLAND: &str = "leptos-island";
/// Isolates that messages write around names, always with their end: see `language::isolated`.
const OURS: [char; 2] = ['\u{2068}', '\u{2069}'];

/// The document as a visitor gets it.
///
/// Placeholders go, except in islands, where they are written as comments. So do the marks that override, embed or isolate
/// a direction, from every source: elements around names isolate them.
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
    let turns_text = |letter: char| is_bidi_override(letter) && !OURS.contains(&letter);
    if out.contains(turns_text) {
        out.retain(|letter| !turns_text(letter));
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

/// Length of the island that begins the text, those inside it included; all of a text that ends before it does.
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
    fn placeholders_go_and_in_islands_become_comments() {
        let html = "<p>A<!>B</p><!><leptos-island data-props=\"{}\"><p>C<!></p><leptos-island><!></leptos-island>\
                    <!></leptos-island><p>D<!></p>";
        let sent = "<p>AB</p><leptos-island data-props=\"{}\"><p>C<!----></p><leptos-island><!----></leptos-island>\
                    <!----></leptos-island><p>D</p>";
        assert_eq!(delivered(html), sent);
        assert_eq!(delivered("<leptos-island><!>"), "<leptos-island><!---->", "what has no end");
        assert_eq!(delivered("leptos-island<!>"), "leptos-island");
    }

    #[test]
    fn marks_that_turn_text_around_go_and_those_of_messages_stay() {
        assert_eq!(delivered("<p>\u{202e}moor\u{202c} \u{2066}ليلى\u{200f}</p>"), "<p>moor ليلى\u{200f}</p>");
        assert_eq!(delivered("<p>\u{2068}C7\u{2069}!</p>"), "<p>\u{2068}C7\u{2069}!</p>");
    }
}
