//! The page to which every API problem links: code, status and meaning.

use leptos::prelude::*;

use crate::say;
use crate::shell::{Head, Page};

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

    fn view(self) -> AnyView {
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
        .into_any()
    }
}
