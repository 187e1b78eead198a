//! Pages about errors: the one for unknown addresses and failures, and the one to which every API problem links.

use language::{Language, say};
use leptos::prelude::*;

use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};

/// A page that could not be shown.
#[derive(Clone, Debug)]
pub struct NotFoundPage {
    /// A short title: "There is nothing here".
    pub title: String,
    /// Advice of a sentence or two.
    pub advice: String,
}

impl NotFoundPage {
    /// For an unknown address.
    pub fn nothing_here(language: Language) -> Self {
        Self { title: say!(in language, "lost.title"), advice: say!(in language, "lost.advice") }
    }

    /// For an address with an unreadable query. `why` is English and shown on English pages only.
    pub fn unreadable(language: Language, why: String) -> Self {
        let advice = if language == Language::English { why } else { say!(in language, "lost.unreadable_advice") };
        Self { title: say!(in language, "lost.unreadable_title"), advice }
    }

    /// For a temporary error of the server.
    pub fn server_error(language: Language) -> Self {
        Self { title: say!(in language, "lost.trouble_title"), advice: say!(in language, "lost.trouble_advice") }
    }
}

impl Page for NotFoundPage {
    fn head(&self) -> Head {
        Head { title: self.title.clone(), description: self.advice.clone(), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        view! {
            <section class="empty-state">
                <svg class="empty-seats" viewBox="0 0 240 64" width="240" height="64" aria-hidden="true" focusable="false">
                    {(0..6)
                        .map(|seat| {
                            let class = if seat == 3 { "empty-seat empty-seat-lit" } else { "empty-seat" };
                            let path = format!("M{} 16v18a13 13 0 0 0 26 0V16", 8 + seat * 40);
                            view! { <path class=class d=path fill="none" stroke-width="7" stroke-linecap="round" /> }
                        })
                        .collect_view()}
                </svg>
                <h1>{self.title}</h1>
                <p>{self.advice}</p>
                <p><a class="button" href="/">{say!("lost.home")}</a></p>
            </section>
        }
        .into_markup()
    }
}

/// The page of problems.
#[derive(Clone, Debug)]
pub struct ProblemsPage {
    /// One entry per code, in the order of the documentation.
    pub entries: Vec<ProblemEntry>,
}

/// One kind of problem.
#[derive(Clone, Debug)]
pub struct ProblemEntry {
    /// Stable name; also the anchor.
    pub code: String,
    /// HTTP status.
    pub status: u16,
    /// Short description.
    pub title: String,
}

impl Page for ProblemsPage {
    fn head(&self) -> Head {
        Head { title: say!("problems.title"), description: say!("problems.description"), ..Head::default() }
    }

    fn view(self) -> Markup {
        let entry = |ProblemEntry { code, status, title }| {
            let anchor = code.clone();
            view! {
                <div id=anchor>
                    <dt><code>{code}</code>" "{status}</dt>
                    <dd>{title}</dd>
                </div>
            }
        };
        view! {
            <h1>{say!("problems.title")}</h1>
            <p>{say!("problems.intro")}</p>
            // The API describes itself in English, for developers.
            <dl class="problems" lang="en" dir="ltr">{self.entries.into_iter().map(entry).collect_view()}</dl>
        }
        .into_markup()
    }
}
