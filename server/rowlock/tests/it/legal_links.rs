//! Links to the operator's legal pages: those that are set are in the footer, and the checkout names the terms.

use crate::prelude::*;

const TERMS: &str = "https://cinema.example/terms";
const PRIVACY: &str = "https://cinema.example/privacy?lang=en&print";
const IMPRINT: &str = "https://cinema.example/imprint";

/// The template that the checkout copies.
const NOTE: &str = "<template id=\"terms-note\">";

#[tokio::test(flavor = "multi_thread")]
async fn pages_link_to_the_legal_pages_that_are_set_and_to_no_others() {
    let mut world = World::start(1, &[]).await;
    let all = world.add_server(&[("TERMS_URL", TERMS), ("PRIVACY_URL", PRIVACY), ("IMPRINT_URL", IMPRINT)]).await;
    let imprint = world.add_server(&[("IMPRINT_URL", IMPRINT)]).await;
    let (show, privacy) = (format!("/shows/{}", world.show), PRIVACY.replace('&', "&amp;"));
    for path in ["/", "/login", "/no-such-page", &show] {
        let [none, all, imprint] = [0, all, imprint].map(|server| world.visitor_at(server));
        let (_, html) = none.page(path).await;
        assert!(!html.contains("cinema.example") && !html.contains(">Terms<"), "{path}: {html}");
        let (_, html) = all.page(path).await;
        for (url, name) in [(TERMS, "Terms"), (privacy.as_str(), "Privacy"), (IMPRINT, "Imprint")] {
            let (href, end) = (format!("href=\"{url}\""), format!(">{name}</a>"));
            assert!(html.contains(&href) && html.contains(&end), "{path}: {html}");
        }
        let (_, html) = imprint.page(path).await;
        assert!(html.contains(IMPRINT) && !html.contains(">Terms<") && !html.contains(">Privacy<"), "{path}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_names_the_terms_if_they_are_set() {
    let mut world = World::start(1, &[("IMPRINT_URL", IMPRINT)]).await;
    let server = world.add_server(&[("TERMS_URL", TERMS)]).await;
    let show = format!("/shows/{}", world.show);
    let (_, html) = world.visitor().page(&show).await;
    assert!(!html.contains("<template"), "{html}");
    for (language, before, link) in
        [("en", "By paying you accept the ", "terms"), ("de", "Mit der Zahlung akzeptieren Sie die ", "AGB")]
    {
        let (_, html) = world.visitor_at(server).page(&format!("{show}?lang={language}")).await;
        let note = html.split_once(NOTE).and_then(|(_, rest)| rest.split_once("</template>")).expect("the note").0;
        assert!(note.starts_with(&format!("{before}<a ")) && note.ends_with(&format!(">{link}</a>.")), "{note}");
        assert!(note.contains(&format!("href=\"{TERMS}\"")) && note.contains("target=\"_blank\""), "{note}");
    }
    let (_, html) = world.visitor_at(server).page("/").await;
    assert!(!html.contains("<template"), "only a page with a checkout has the note: {html}");
}
