//! Fields of the panel: each shows what the draft says, and goes back to that when what was written is refused.

use leptos::ev::Event;
use leptos::prelude::*;
use web_sys::HtmlInputElement;

/// A number as fields have it: at most two digits after the point.
pub(super) fn written(number: f64) -> String {
    ((number * 100.0).round() / 100.0 + 0.0).to_string()
}

/// A number as people write it; `None` for what is none.
pub(super) fn number_in(text: &str) -> Option<f64> {
    text.trim().replace(',', ".").parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A whole number as people write it.
pub(super) fn whole_in(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// A field with a text.
pub(super) fn text(
    id: &'static str,
    label: String,
    value: impl Fn() -> String + Copy + Send + 'static,
    set: impl Fn(String) + 'static,
) -> impl IntoView {
    let change = move |event: Event| {
        set(event_target_value(&event));
        event_target::<HtmlInputElement>(&event).set_value(&untrack(value));
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input id=id type="text" autocomplete="off" maxlength="120" prop:value=value on:change=change />
        </div>
    }
}

/// A field with a number.
pub(super) fn number(
    id: &'static str,
    label: String,
    step: &'static str,
    value: impl Fn() -> f64 + Copy + Send + 'static,
    set: impl Fn(f64) + 'static,
) -> impl IntoView {
    let change = move |event: Event| {
        if let Some(number) = number_in(&event_target_value(&event)) {
            set(number);
        }
        event_target::<HtmlInputElement>(&event).set_value(&written(untrack(value)));
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input id=id type="number" step=step autocomplete="off" inputmode="decimal"
                prop:value=move || written(value()) on:change=change />
        </div>
    }
}

/// A field of a form that is read when the form is sent.
pub(super) fn wish(id: &'static str, label: String, kind: &'static str, signal: RwSignal<String>) -> impl IntoView {
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input id=id type=kind autocomplete="off" maxlength="120" step="any" prop:value=move || signal.get()
                on:input=move |event| signal.set(event_target_value(&event)) />
        </div>
    }
}

/// One of several: value and words.
pub(super) fn choice(
    id: &'static str,
    label: String,
    options: impl Fn() -> Vec<(String, String)> + Send + 'static,
    value: impl Fn() -> String + Copy + Send + Sync + 'static,
    set: impl Fn(String) + 'static,
) -> impl IntoView {
    let options = move || {
        let chosen = untrack(value);
        let option = |(value, words): (String, String)| {
            let is_chosen = value == chosen;
            view! { <option value=value selected=is_chosen>{words}</option> }
        };
        options().into_iter().map(option).collect_view()
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <select id=id prop:value=value on:change=move |event| set(event_target_value(&event))>{options}</select>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(
            (number_in(" 1,5 "), number_in("-2"), number_in("x"), number_in("inf")),
            (Some(1.5), Some(-2.0), None, None)
        );
        assert_eq!((whole_in(" 12 "), whole_in("-1"), whole_in("1.5")), (Some(12), None, None));
        assert_eq!([written(1.004), written(-0.001), written(12.5)], ["1", "0", "12.5"]);
    }
}
