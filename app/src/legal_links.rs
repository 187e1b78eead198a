//! Links to the operator's legal pages: in the footer of every page, and the terms of sale at the checkout.

use std::sync::OnceLock;

use language::say;
use leptos::prelude::*;

use crate::checkout::TERMS_NOTE;

static LINKS: OnceLock<LegalLinks> = OnceLock::new();

/// Addresses of the operator's legal pages, if the operator has set them.
#[derive(Clone, Debug, Default)]
pub struct LegalLinks {
    /// The terms of sale.
    pub terms: Option<String>,
    /// The privacy policy.
    pub privacy: Option<String>,
    /// The imprint: the operator's name and postal address.
    pub imprint: Option<String>,
}

/// Sets the links for all pages. Only the first call of a process has an effect, before any page is rendered.
pub fn set(links: LegalLinks) {
    let _ = LINKS.set(links);
}

/// The links of all pages.
pub(crate) fn get() -> &'static LegalLinks {
    LINKS.get_or_init(LegalLinks::default)
}

impl LegalLinks {
    /// The links in the footer.
    pub(crate) fn in_footer(&self) -> impl IntoView + use<> {
        let links = [("site.terms", &self.terms), ("site.privacy", &self.privacy), ("site.imprint", &self.imprint)];
        let link = |(name, url): (&str, &Option<String>)| {
            let url = url.clone()?;
            Some(view! { <a href=url rel="noopener">{say!(name)}</a> })
        };
        links.into_iter().filter_map(link).collect_view()
    }

    /// The line about the terms, which the checkout copies. The client has neither its text nor the address, so without
    /// terms it costs no bytes. The link opens a new tab: the page of the show stays, and with it the hold.
    pub(crate) fn at_checkout(&self) -> impl IntoView + use<> {
        self.terms.clone().map(|url| {
            let sentence = say!("site.accept_terms");
            let (before, rest) = sentence.split_once('[').unwrap_or((sentence.as_str(), ""));
            let (link, after) = rest.split_once(']').unwrap_or((rest, ""));
            let [before, link, after] = [before, link, after].map(str::to_owned);
            view! {
                <template id=TERMS_NOTE>{before}<a href=url target="_blank" rel="noopener">{link}</a>{after}</template>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use language::{Language, with_language};

    use super::*;

    #[test]
    fn the_footer_links_to_the_pages_that_are_set() {
        let imprint = Some("https://cinema.example/imprint?a&b".to_owned());
        let html = LegalLinks { imprint, ..LegalLinks::default() }.in_footer().to_html();
        assert!(html.contains("href=\"https://cinema.example/imprint?a&amp;b\""), "{html}");
        assert!(html.contains(">Imprint</a>") && html.matches("<a ").count() == 1, "{html}");
        assert!(!LegalLinks::default().in_footer().to_html().contains("<a"));
    }

    #[test]
    fn the_checkout_links_to_the_terms_in_every_language() {
        let terms = Some("https://cinema.example/terms".to_owned());
        let links = LegalLinks { terms, ..LegalLinks::default() };
        for language in Language::ALL {
            let html = with_language(language, || links.at_checkout().to_html());
            assert!(html.contains("href=\"https://cinema.example/terms\"") && !html.contains("></a>"), "{html}");
            assert!(html.contains("target=\"_blank\"") && !html.contains(['[', ']']), "{html}");
        }
        assert!(!LegalLinks::default().at_checkout().to_html().contains("template"));
    }
}
