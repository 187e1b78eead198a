//! What every problem of the API points at: its code, its status, what it means.

use leptos::prelude::*;

use crate::say;
use crate::shell::{Head, Page};

/// The page of problems.
#[derive(Clone, Debug)]
pub struct Problems {
    /// One entry a code, in the order of the documentation.
    pub entries: Vec<ProblemEntry>,
}

/// One kind of problem.
#[derive(Clone, Debug)]
pub struct ProblemEntry {
    /// Stable name; also the anchor.
    pub code: String,
    /// HTTP status.
    pub status: u16,
    /// What happened.
    pub title: String,
}

impl Page for Problems {
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
            // What the API says of itself is English, for programs and those who write them.
            <dl class="problems" lang="en" dir="ltr">{self.entries.into_iter().map(entry).collect_view()}</dl>
        }
        .into_any()
    }
}
