//! The document around every page (head, header, footer), and the rendering of pages.
//!
//! Follows the strict content security policy: no inline script, no style attribute. A page without an island has one
//! small script, which shows who is signed in. The page itself never contains that, because caches store it.

use std::sync::Arc;

use domain::VariantName;
use hydration_context::SsrSharedContext;
use language::{Language, say};
use leptos::either::Either;
use leptos::html::meta;
use leptos::prelude::*;
use leptos::tachys::html::doctype;
use strum::{IntoStaticStr, VariantArray};

use crate::markup::{IntoMarkup, Markup};
use crate::{legal_links, markup, site};

/// A town, theatre or other thing with its own page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLink {
    /// Name for people.
    pub name: String,
    /// Path of its page.
    pub href: String,
}

impl PageLink {
    /// A place by name and path.
    pub fn new(name: impl Into<String>, href: impl Into<String>) -> Self {
        Self { name: name.into(), href: href.into() }
    }
}

/// The modules of the client. Each page loads only the one it needs: see `xtask/src/site.rs`. The client of
/// `cargo xtask run` is one module that serves under all these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WasmModule {
    /// Bookings and all other public pages.
    #[default]
    Pages,
    /// The page of a show: seat map and checkout.
    Show,
    /// Pages of theatre staff.
    Staff,
}

/// Pages that a browser stores for offline use. A script of each does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflinePage {
    /// Tickets.
    Ticket,
    /// The door of a show.
    Door,
}

impl OfflinePage {
    fn script(self) -> String {
        site::address(match self {
            Self::Ticket => "/pkg/keep-ticket.js",
            Self::Door => "/pkg/keep-door.js",
        })
    }
}

/// Data of the document outside a page's content.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Title without the site's name; empty on the front page.
    pub title: String,
    /// One sentence for search engines and previews.
    pub description: String,
    /// True if the page has an island and needs the client.
    pub has_island: bool,
    /// Groups of messages that its islands use. The page carries them.
    pub words: &'static [&'static str],
    /// The module of its islands.
    pub module: WasmModule,
    /// The visitor's current city, for the header.
    pub city: Option<PageLink>,
    /// Text in the header's search field.
    pub query: String,
    /// True if the page has the form [`FILTERS`]: the search field belongs to it, so that one request sends both.
    pub has_filters: bool,
    /// True if search engines must not index it, and links to it have no preview: bookings, tickets, errors. It does not
    /// decide about caches.
    pub is_private: bool,
    /// Path of the picture in the preview of a link to it; empty if it has none.
    pub picture: String,
    /// The subject of the page for search engines: a JSON-LD document.
    pub structured_data: Option<String>,
    /// The offline storage of the page, if it has one.
    pub offline: Option<OfflinePage>,
}

/// The id of the form with which a page narrows its search. The search field is in the header.
pub const FILTERS: &str = "filters";

/// A page with all its data.
pub trait Page: Sized {
    /// Data for the document around it.
    fn head(&self) -> Head;
    /// The content of `<main>`, as one type, so that the server does not compile the document again for every page.
    fn view(self) -> Markup;
}

/// Renders the page in English, as if at the root.
pub fn render(page: impl Page) -> String {
    render_in(Language::English, "/".to_owned(), |_| "/".to_owned(), page)
}

/// Renders the page as a full HTML document in a language. `address` is its absolute address, `address_in` returns its
/// address in another language. Islands carry their props. All reactive values are cleaned up before this returns.
pub fn render_in(
    language: Language,
    address: String,
    address_in: impl Fn(Language) -> String,
    page: impl Page,
) -> String {
    language::with_language(language, || {
        let head = page.head();
        let owner = Owner::new_root(Some(Arc::new(SsrSharedContext::new_islands())));
        let html =
            owner.with(|| document(language, head, address, page.view(), chooser(language, address_in)).to_html());
        owner.unset_with_forced_cleanup();
        markup::delivered(&html)
    })
}

/// Name of the site in titles and header, the same in every language.
const SITE: &str = "Rowlock";

fn document(language: Language, head: Head, address: String, content: Markup, chooser: impl IntoView) -> impl IntoView {
    let title = if head.title.is_empty() {
        format!("{SITE} · {}", say!("site.promise_short"))
    } else {
        format!("{} · {SITE}", head.title)
    };
    let preview = (!head.is_private).then(|| preview(&head, &title, address));
    // Data blocks, not scripts: the content security policy allows them where it forbids inline scripts (HTML, "prepare
    // the script element": an unknown type returns before the policy is asked).
    let structured_data = head.structured_data.map(|json| {
        // A `<` is inside a text of the JSON only. Escaped, it cannot end the element.
        let json = json.replace('<', "\\u003c");
        view! { <script type="application/ld+json" inner_html=json></script> }
    });
    let words = (!head.words.is_empty()).then(|| {
        let carried = language::carried_by(language, head.words);
        view! { <script type="application/json" id="words" inner_html=carried></script> }
    });
    let is_map = head.has_island && head.module == WasmModule::Show;
    let live = head.has_island.then(|| {
        let half = head.module.as_str();
        view! {
            <link rel="modulepreload" href=site::address("/pkg/boot.js") />
            <link rel="modulepreload" href=site::address(&format!("/pkg/{half}.js")) />
            <link rel="preload" href=site::address(&format!("/pkg/{half}_bg.wasm")) r#as="fetch" r#type="application/wasm" crossorigin="anonymous" />
            <script type="module" src=site::address("/pkg/boot.js")></script>
        }
    });
    let kept = head.offline.map(|kept| view! { <script type="module" src=kept.script()></script> });
    view! {
        {doctype("html")}
        <html lang=language.tag() dir=language.direction()>
            <head>
                <meta charset="utf-8" />
                <title>{title}</title>
                <meta name="description" content=head.description />
                <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
                <meta name="color-scheme" content="dark light" />
                <meta name="theme-color" media="(prefers-color-scheme: light)" content="#faf6ef" />
                <meta name="theme-color" media="(prefers-color-scheme: dark)" content="#161210" />
                {head.is_private.then(|| view! { <meta name="robots" content="noindex" /> })}
                {preview}
                {structured_data}
                {style(is_map)}
                <link rel="icon" href="/favicon.svg" r#type="image/svg+xml" />
                {words}
                <script r#type="module" src=site::address("/pkg/account.js")></script>
                {live}
                {kept}
            </head>
            <body>
                <a class="skip-link" href="#main">{say!("site.skip")}</a>
                {header(head.city, head.query, head.has_filters)}
                <main id="main" tabindex="-1">{content}</main>
                {footer(chooser)}
            </body>
        </html>
    }
}

/// Tags for search engines and for the preview of a link in a chat: the canonical address, without the query, because that
/// only chooses a part of the page; and Open Graph's title, description, address and picture.
fn preview(head: &Head, full_title: &str, address: String) -> impl IntoView + use<> {
    let title = if head.title.is_empty() { full_title } else { &head.title };
    let canonical = address.split('?').next().unwrap_or_default().to_owned();
    let properties = [
        ("og:site_name", SITE.to_owned()),
        ("og:type", "website".to_owned()),
        ("og:title", title.to_owned()),
        ("og:description", head.description.clone()),
    ];
    let picture = (!head.picture.is_empty()).then(|| ("og:image", format!("{}{}", origin_of(&address), head.picture)));
    let properties = properties.into_iter().chain(picture).chain([("og:url", address)]);
    view! {
        <link rel="canonical" href=canonical />
        {properties.map(|(name, content)| meta().content(content).attr("property", name)).collect_view()}
    }
}

/// The scheme and host of an absolute address.
fn origin_of(address: &str) -> &str {
    address.match_indices('/').nth(2).map_or(address, |(end, _)| &address[..end])
}

/// Style of a live map until its seats can be taken. The rest and the font load then
/// ([`LATER_STYLE`](crate::show_island::LATER_STYLE)). Without scripts there is no map, and all styles load at once.
const MAP_STYLE: &str = "/style/map.css";

fn style(is_map: bool) -> impl IntoView {
    let all = || view! { <link rel="stylesheet" href=site::address("/style/main.css") /> };
    if is_map {
        Either::Left(view! {
            <link rel="stylesheet" href=site::address(MAP_STYLE) />
            <noscript>{all()}</noscript>
        })
    } else {
        Either::Right(view! {
            <link rel="preload" href=site::address("/fonts/figtree-west.woff2") r#as="font" r#type="font/woff2" crossorigin="anonymous" />
            {all()}
        })
    }
}

fn header(city: Option<PageLink>, query: String, has_filters: bool) -> impl IntoView {
    let form = has_filters.then_some(FILTERS);
    let city = match city {
        Some(city) => view! {
            <a class="site-city" href=city.href>{pin()}<bdi>{city.name}</bdi></a>
            <a class="site-city site-city-change" href="/#cities">{say!("site.change_city")}</a>
        }
        .into_markup(),
        None => view! { <a class="site-city" href="/#cities">{pin()}{say!("site.choose_city")}</a> }.into_markup(),
    };
    view! {
        <header class="site-header">
            <a class="wordmark" href="/" aria-label=say!("site.front_page", site = SITE)>{mark()}<span>{SITE}</span></a>
            <nav class="site-cities" aria-label=say!("site.city")>{city}</nav>
            {account()}
            <form class="site-search" action="/search" method="get" role="search">
                <input type="search" name="q" form=form value=query placeholder=say!("site.search_hint") aria-label=say!("site.search_films") maxlength="80" />
                <button type="submit" form=form aria-label=say!("site.search")>{lens()}</button>
            </form>
        </header>
    }
}

/// The link to the account. Pages are the same for all visitors and stored by caches; `frontend/static/account.js`
/// fetches and inserts the name. On the page of a show it sends guests to the sign-in page, and back to the show.
fn account() -> impl IntoView {
    view! {
        <a class="site-account" href="/account" data-testid="account-mark">
            {person()}<span data-account-name>{say!("account.mark")}</span>
        </a>
    }
}

fn footer(chooser: impl IntoView) -> impl IntoView {
    view! {
        <footer class="site-footer">
            <p>{say!("site.promise")}</p>
            <nav aria-label=say!("site.more")>
                <a href="/search">{say!("site.search_all")}</a>
                <a href="/bookings/find">{say!("mailed.find_title")}</a>
                <a href="/api/openapi.json">{say!("site.api")}</a>
                {legal_links::get().in_footer()}
            </nav>
            {chooser}
        </footer>
    }
}

/// Links to the page in other languages, each in its own language.
fn chooser(current: Language, address_in: impl Fn(Language) -> String) -> impl IntoView {
    let choices = Language::ALL.map(|language| {
        let (tag, address) = (language.tag(), address_in(language));
        let is_current = (language == current).then_some("true");
        view! {
            <li>
                <a href=address lang=tag hreflang=tag dir=language.direction() rel="nofollow" data-testid=format!("language-{tag}")
                    aria-current=is_current>{language.own_name()}</a>
            </li>
        }
    });
    view! {
        <nav class="languages" aria-label=say!("site.language")>
            <ul>{choices.into_iter().collect_view()}</ul>
        </nav>
    }
}

/// The logo: a seat seen from above, which is also a rowlock on a gunwale.
fn mark() -> impl IntoView {
    view! {
        <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
            <path d="M7 8v9a9 9 0 0 0 18 0V8" fill="none" stroke="currentColor" stroke-width="5" stroke-linecap="round" />
            <circle cx="16" cy="14" r="4" fill="currentColor" />
        </svg>
    }
}

fn pin() -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" focusable="false">
            <path d="M10 18s6-5.6 6-10A6 6 0 0 0 4 8c0 4.4 6 10 6 10Z" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linejoin="round" />
            <circle cx="10" cy="8" r="2" fill="currentColor" />
        </svg>
    }
}

fn person() -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" focusable="false">
            <circle cx="10" cy="6.5" r="3.5" fill="none" stroke="currentColor" stroke-width="1.75" />
            <path d="M3 18c0-4 3-6 7-6s7 2 7 6" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" />
        </svg>
    }
}

fn lens() -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
            <circle cx="9" cy="9" r="5.5" fill="none" stroke="currentColor" stroke-width="2" />
            <path d="m13.5 13.5 4 4" stroke="currentColor" stroke-width="2" stroke-linecap="round" />
        </svg>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::problems::NotFoundPage;
    use crate::show_island::LATER_STYLE;

    /// A page with its title in a paragraph.
    struct Titled(Head);

    impl Page for Titled {
        fn head(&self) -> Head {
            self.0.clone()
        }

        fn view(self) -> Markup {
            view! { <p>{self.0.title}</p> }.into_markup()
        }
    }

    fn live(title: &str) -> Titled {
        let city = Some(PageLink::new(title, "/"));
        Titled(Head { title: title.to_owned(), has_island: true, city, ..Head::default() })
    }

    #[test]
    fn a_page_without_an_island_has_only_the_account_script() {
        let html = render(NotFoundPage::nothing_here(Language::English));
        assert!(html.starts_with("<!DOCTYPE html>"), "{html}");
        assert!(html.contains("src=\"/pkg/account.js\""), "{html}");
        assert!(html.matches("<script").count() == 1 && !html.contains(".wasm"), "{html}");
    }

    #[test]
    fn a_page_with_an_island_has_no_inline_script_or_style() {
        let html = render(live("Salt"));
        assert!(html.contains("<script type=\"module\" src=\"/pkg/boot.js\"></script>"), "{html}");
        assert!(!html.contains("style=") && !html.contains("<style"), "{html}");
    }

    #[test]
    fn the_page_of_a_map_loads_only_the_map_style_first() {
        let html = render(Titled(Head { has_island: true, module: WasmModule::Show, ..Head::default() }));
        assert!(html.contains(&format!("<link rel=\"stylesheet\" href=\"{MAP_STYLE}\">")), "{html}");
        assert!(!html.contains("/fonts/") && !html.contains(LATER_STYLE), "{html}");
        assert!(html.contains("<noscript><link rel=\"stylesheet\" href=\"/style/main.css\"></noscript>"), "{html}");
        let html = render(live("Salt"));
        assert!(html.contains("/style/main.css") && html.contains("/fonts/") && !html.contains(MAP_STYLE), "{html}");
    }

    #[test]
    fn a_document_has_its_language_and_links_to_others() {
        let address_in = |language: Language| format!("/films/tide?lang={}", language.tag());
        let html = render_in(Language::Arabic, String::new(), address_in, NotFoundPage::nothing_here(Language::Arabic));
        assert!(html.contains("<html lang=\"ar\" dir=\"rtl\">"), "{html}");
        assert!(html.contains("href=\"/films/tide?lang=de\"") && html.contains(">Deutsch</a>"), "{html}");
        assert!(!html.contains("Skip to the content"), "{html}");
        assert!(render(NotFoundPage::nothing_here(Language::English)).contains("<html lang=\"en\" dir=\"ltr\">"));
    }

    #[test]
    fn only_a_public_page_has_a_canonical_address_and_a_preview() {
        let address = "https://seats.example/films/tide?city=lisbon";
        let shown = |is_private| {
            let head =
                Head { title: "Tide".to_owned(), description: "\"Wet\"".to_owned(), is_private, ..Head::default() };
            render_in(Language::English, address.to_owned(), |_| String::new(), Titled(head))
        };
        let html = shown(false);
        assert!(html.contains("<link rel=\"canonical\" href=\"https://seats.example/films/tide\">"), "{html}");
        for (name, content) in [("title", "Tide"), ("url", address), ("description", "&quot;Wet&quot;")] {
            assert!(html.contains(&format!("<meta content=\"{content}\" property=\"og:{name}\">")), "{name}: {html}");
        }
        assert!(!html.contains("noindex"), "{html}");
        let html = shown(true);
        assert!(html.contains("noindex") && !html.contains("og:") && !html.contains("canonical"), "{html}");
    }

    #[test]
    fn structured_data_cannot_end_its_element() {
        let json = r#"{"name":"</script><script>alert(1)</script>"}"#;
        let html = render(Titled(Head { structured_data: Some(json.to_owned()), ..Head::default() }));
        let (_, rest) = html.split_once("<script type=\"application/ld+json\">").expect("the data");
        let (data, _) = rest.split_once("</script>").expect("an end");
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["name"], "</script><script>alert(1)</script>");
    }

    #[test]
    fn a_page_carries_the_messages_of_its_islands_as_json() {
        let wordy = Titled(Head { has_island: true, words: &["pay", "common"], ..Head::default() });
        let html = render_in(Language::German, String::new(), |_| String::new(), wordy);
        let (_, rest) = html.split_once("<script type=\"application/json\" id=\"words\">").expect("the words");
        let (json, _) = rest.split_once("</script>").expect("an end");
        let words: std::collections::BTreeMap<String, String> = serde_json::from_str(json).expect("JSON");
        assert_eq!(words["pay.go"], "Zur Zahlung");
        assert!(words.keys().all(|key| key.starts_with("pay.") || key.starts_with("common.")), "{words:?}");
    }

    #[test]
    fn a_document_is_valid_html_without_direction_overrides() {
        struct Rows;
        impl Page for Rows {
            fn head(&self) -> Head {
                Head { title: "\u{202e}Salt".to_owned(), ..Head::default() }
            }
            fn view(self) -> Markup {
                let rows = vec![view! { <li>"Row" {"A\u{202e}1"} {None::<String>}</li> }];
                view! { <ul>{rows}</ul> }.into_markup()
            }
        }
        let html = render(Rows);
        assert!(!html.contains("<!>"), "{html}");
        assert!(!html.contains('\u{202e}') && html.contains("<title>Salt ·") && html.contains("A1"), "{html}");
    }

    #[test]
    fn hostile_names_are_escaped() {
        let html = render(live("\"><script>alert('𝔽7')</script>"));
        assert!(!html.contains("<script>"), "{html}");
    }
}
