//! Fields of the panel. Each shows the draft's value, and returns to it when a change is refused.

use leptos::ev::Event;
use leptos::prelude::*;
use web_sys::HtmlInputElement;

/// A number as fields show it: at most two decimals.
pub(super) fn decimal(number: f64) -> String {
    ((number * 100.0).round() / 100.0 + 0.0).to_string()
}

/// Parses a number; `None` for other text.
pub(super) fn number_in(text: &str) -> Option<f64> {
    text.trim().replace(',', ".").parse::<f64>().ok().filter(|number| number.is_finite())
}

pub(super) fn whole_in(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

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
        event_target::<HtmlInputElement>(&event).set_value(&decimal(untrack(value)));
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input id=id type="number" step=step autocomplete="off" inputmode="decimal"
                prop:value=move || decimal(value()) on:change=change />
        </div>
    }
}

/// A form field that is read on submit.
pub(super) fn input(id: &'static str, label: String, kind: &'static str, signal: RwSignal<String>) -> impl IntoView {
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input id=id type=kind autocomplete="off" maxlength="120" step="any" prop:value=move || signal.get()
                on:input=move |event| signal.set(event_target_value(&event)) />
        </div>
    }
}

/// A select of values and their words.
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
    fn numbers_are_parsed_with_comma_or_point() {
        assert_eq!(
            (number_in(" 1,5 "), number_in("-2"), number_in("x"), number_in("inf")),
            (Some(1.5), Some(-2.0), None, None)
        );
        assert_eq!((whole_in(" 12 "), whole_in("-1"), whole_in("1.5")), (Some(12), None, None));
        assert_eq!([decimal(1.004), decimal(-0.001), decimal(12.5)], ["1", "0", "12.5"]);
    }
}
