//! A button that asks before it acts, for actions that cannot be undone. The waiting room, the waiting list and the
//! counter use it.

use language::say;
use leptos::prelude::*;

/// A button that acts with its second press. The first one replaces its text with a question until the button loses the
/// focus. `label` and `question` are keys of messages.
pub fn two_press_button(
    test_id: &'static str,
    class: &'static str,
    label: &'static str,
    question: &'static str,
    act: impl Fn() + 'static,
) -> impl IntoView {
    let is_asking = RwSignal::new(false);
    let press = move |_| {
        let is_confirmed = is_asking.get_untracked();
        is_asking.set(!is_confirmed);
        if is_confirmed {
            act();
        }
    };
    // Safari focuses a pressed button only with a tab index. Without a focus no blur would reset the question.
    view! {
        <button type="button" class=class data-testid=test_id tabindex="0"
            on:click=press on:blur=move |_| is_asking.set(false)>
            {move || if is_asking.get() { say!(question) } else { say!(label) }}
        </button>
    }
}
