//! The document around every page: head, header, footer, and the one place that renders.
//!
//! Strict CSP holds here: no inline script, no style attribute. A page without an island ships one small script,
//! which says who is signed in; the page itself never does, for caches keep it.

use std::sync::Arc;

use hydration_context::SsrSharedContext;
use leptos::prelude::*;
use leptos::tachys::html::doctype;

/// A town, theatre or anything else with a page of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name for people.
    pub name: String,
    /// Path of its page.
    pub href: String,
}

impl Place {
    /// A place by name and path.
    pub fn new(name: impl Into<String>, href: impl Into<String>) -> Self {
        Self { name: name.into(), href: href.into() }
    }
}

/// What the document says about a page outside its content.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Title without the name of the site; empty on the front page.
    pub title: String,
    /// One sentence for search engines and previews.
    pub description: String,
    /// Whether the page has an island, and so needs the browser half.
    pub live: bool,
    /// The city the visitor is looking at, for the switch in the header.
    pub city: Option<Place>,
    /// What stands in the search field of the header.
    pub query: String,
    /// Keeps search engines away: bookings, tickets, errors.
    pub private: bool,
}

/// A page with all it shows.
pub trait Page: Sized {
    /// What goes around it.
    fn head(&self) -> Head;
    /// The content of `<main>`; of one type, so that the server need not compile every page again.
    fn view(self) -> AnyView;
}

/// The page as a full HTML document. The islands in it carry their props; everything reactive that
/// rendering made is cleaned up before this returns.
#[must_use]
pub fn render(page: impl Page) -> String {
    let head = page.head();
    let owner = Owner::new_root(Some(Arc::new(SsrSharedContext::new_islands())));
    let html = owner.with(|| document(head, page.view()).to_html());
    owner.unset_with_forced_cleanup();
    html
}

/// Name of the site, in titles and in the header.
const SITE: &str = "Rowlock";

fn document(head: Head, content: AnyView) -> impl IntoView {
    let title =
        if head.title.is_empty() { format!("{SITE} · every seat, live") } else { format!("{} · {SITE}", head.title) };
    let live = head.live.then(|| {
        view! {
            <link rel="modulepreload" href="/pkg/boot.js" />
            <link rel="preload" href="/pkg/rowlock_bg.wasm" r#as="fetch" r#type="application/wasm" crossorigin="anonymous" />
            <script type="module" src="/pkg/boot.js"></script>
        }
    });
    view! {
        {doctype("html")}
        <html lang="en">
            <head>
                <meta charset="utf-8" />
                <title>{title}</title>
                <meta name="description" content=head.description />
                <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
                <meta name="color-scheme" content="dark light" />
                <meta name="theme-color" media="(prefers-color-scheme: light)" content="#faf6ef" />
                <meta name="theme-color" media="(prefers-color-scheme: dark)" content="#161210" />
                {head.private.then(|| view! { <meta name="robots" content="noindex" /> })}
                <link rel="preload" href="/fonts/figtree-latin.woff2" r#as="font" r#type="font/woff2" crossorigin="anonymous" />
                <link rel="stylesheet" href="/style/main.css" />
                <link rel="icon" href="/favicon.svg" r#type="image/svg+xml" />
                <script r#type="module" src="/pkg/account.js"></script>
                {live}
            </head>
            <body>
                <a class="skip-link" href="#main">"Skip to the content"</a>
                {header(head.city, head.query)}
                <main id="main" tabindex="-1">{content}</main>
                {footer()}
            </body>
        </html>
    }
}

fn header(city: Option<Place>, query: String) -> impl IntoView {
    let city = match city {
        Some(city) => view! {
            <a class="site-city" href=city.href>{pin()}{city.name}</a>
            <a class="site-city site-city-change" href="/#cities">"Change city"</a>
        }
        .into_any(),
        None => view! { <a class="site-city" href="/#cities">{pin()}"Choose a city"</a> }.into_any(),
    };
    view! {
        <header class="site-header">
            <a class="wordmark" href="/" aria-label="Rowlock, front page">{mark()}<span>"Rowlock"</span></a>
            <nav class="site-cities" aria-label="City">{city}</nav>
            {account()}
            <form class="site-search" action="/search" method="get" role="search">
                <input type="search" name="q" value=query placeholder="Film, theatre or genre" aria-label="Search films" maxlength="80" />
                <button type="submit" aria-label="Search">{lens()}</button>
            </form>
        </header>
    }
}

/// The way to one's account. Pages are the same for everybody, and kept by caches: whose account it is,
/// `frontend/static/account.js` asks and writes here.
fn account() -> impl IntoView {
    view! {
        <a class="site-account" href="/account" data-testid="account-mark">
            {person()}<span data-account-name>"Account"</span>
        </a>
    }
}

fn footer() -> impl IntoView {
    view! {
        <footer class="site-footer">
            <p>"Every seat you see is live. Once it is yours, it is nobody else’s."</p>
            <nav aria-label="More">
                <a href="/search">"Search all shows"</a>
                <a href="/api/openapi.json">"For programs: the API"</a>
            </nav>
        </footer>
    }
}

/// The mark: a seat seen from above, which is also a rowlock on a gunwale.
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
    use crate::pages::not_found::NotFound;

    struct Live(String);

    impl Page for Live {
        fn head(&self) -> Head {
            Head { title: self.0.clone(), live: true, city: Some(Place::new(self.0.clone(), "/")), ..Head::default() }
        }

        fn view(self) -> AnyView {
            view! { <p>{self.0}</p> }.into_any()
        }
    }

    #[test]
    fn a_page_without_an_island_ships_no_script_but_the_one_that_says_who_is_signed_in() {
        let html = render(NotFound::nothing_here());
        assert!(html.starts_with("<!DOCTYPE html>"), "{html}");
        assert!(html.contains("src=\"/pkg/account.js\""), "{html}");
        assert!(html.matches("<script").count() == 1 && !html.contains(".wasm"), "{html}");
    }

    #[test]
    fn a_live_page_loads_files_only_and_nothing_is_inline() {
        let html = render(Live("Salt".to_owned()));
        assert!(html.contains("<script type=\"module\" src=\"/pkg/boot.js\"></script>"), "{html}");
        assert!(!html.contains("style=") && !html.contains("<style"), "{html}");
    }

    #[test]
    fn hostile_names_stay_text() {
        let html = render(Live("\"><script>alert('𝔽7')</script>".to_owned()));
        assert!(!html.contains("<script>"), "{html}");
    }
}
