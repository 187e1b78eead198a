//! Import findings of a room file, in the reader's language.

use domain::layout::import::Finding;
use leptos::prelude::*;

use crate::say;
use crate::staff::islands::organiser::words;

/// Findings as a list; `None` without any.
pub(super) fn list(findings: Vec<Finding>) -> Option<impl IntoView> {
    let can_be_mended = findings.iter().any(|finding| finding.kind.can_be_mended());
    let advice = can_be_mended.then(|| view! { <p>{say!("organiser.finding_mend")}</p> });
    (!findings.is_empty()).then(|| {
        let items = findings.into_iter().map(|finding| {
            let kind = serde_json::to_value(finding.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            view! { <li data-finding=kind>{words(&finding)}</li> }
        });
        view! {
            <ul class="organiser-findings" data-testid="findings">{items.collect_view()}</ul>
            {advice}
        }
    })
}
