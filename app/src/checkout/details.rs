//! Who buys: name and e-mail, checked where they are typed, then off to the payment page.

use domain::api::Person;
use domain::api_cancelling::IfLate;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::pay::{self, Attempt, Trouble};
use crate::browser;
use crate::seat_map::session::Session;

/// Longest name, characters; the server's limit.
const MAX_NAME_CHARS: usize = 120;
/// Longest e-mail address, characters (RFC 5321).
const MAX_EMAIL_CHARS: usize = 254;

/// What was typed and what came of it: outlives the form, which goes when the hold does.
#[derive(Clone, Copy)]
pub struct Details {
    name: RwSignal<String>,
    email: RwSignal<String>,
    if_late: RwSignal<IfLate>,
    trouble: RwSignal<Option<Trouble>>,
    busy: RwSignal<bool>,
    attempt: StoredValue<Option<Attempt>>,
}

impl Details {
    /// Nothing typed yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: RwSignal::new(String::new()),
            email: RwSignal::new(String::new()),
            if_late: RwSignal::new(IfLate::default()),
            trouble: RwSignal::new(None),
            busy: RwSignal::new(false),
            attempt: StoredValue::new(None),
        }
    }

    /// The page is shown again after it was left to pay: the button works once more.
    pub fn come_back(self) {
        self.busy.set(false);
    }

    /// What stood in the way does so no more.
    pub fn forget_trouble(self) {
        self.trouble.set(None);
    }

    /// What stood in the way, said aloud when it happens.
    pub fn trouble(self) -> impl IntoView {
        view! {
            <div role="alert" class="details-trouble" data-testid="pay-error">
                {move || self.trouble.get().map(trouble_view)}
            </div>
        }
    }
}

/// The form.
pub fn form(session: Session, details: Details) -> impl IntoView {
    let Details { name, email, if_late, trouble, busy, attempt } = details;
    let (name_error, email_error) = (RwSignal::new(None), RwSignal::new(None));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let person =
            Person { name: name.get_untracked().trim().to_owned(), email: email.get_untracked().trim().to_owned() };
        name_error.set(wrong_name(&person.name));
        email_error.set(wrong_email(&person.email));
        if name_error.get_untracked().is_some() {
            browser::focus("buyer-name");
        } else if email_error.get_untracked().is_some() {
            browser::focus("buyer-email");
        } else if !busy.get_untracked() {
            busy.set(true);
            trouble.set(None);
            spawn_local(async move {
                if let Err(met) = pay::pay(session, person, if_late.get_untracked(), attempt).await {
                    session.set_off_to_pay(false);
                    busy.set(false);
                    trouble.set(Some(met));
                }
            });
        }
    };
    view! {
        // Our own words in place of the browser's bubbles.
        <form class="details" novalidate on:submit=submit>
            <div class="field">
                <label for="buyer-name">"Name"</label>
                <input id="buyer-name" name="name" type="text" autocomplete="name" maxlength=MAX_NAME_CHARS required
                    prop:value=name.get_untracked()
                    aria-invalid=move || name_error.get().map(|_: &str| "true") aria-describedby="buyer-name-error"
                    on:input=move |event| name.set(event_target_value(&event)) />
                <p class="field-error" id="buyer-name-error">{move || name_error.get()}</p>
            </div>
            <div class="field">
                <label for="buyer-email">"E-mail, for the tickets"</label>
                <input id="buyer-email" name="email" type="email" autocomplete="email" inputmode="email" maxlength=MAX_EMAIL_CHARS required
                    prop:value=email.get_untracked()
                    aria-invalid=move || email_error.get().map(|_: &str| "true") aria-describedby="buyer-email-error"
                    on:input=move |event| email.set(event_target_value(&event)) />
                <p class="field-error" id="buyer-email-error">{move || email_error.get()}</p>
            </div>
            <details class="details-late">
                <summary>"If your payment comes too late"</summary>
                <div class="field">
                    <label for="if-late">"The seats are free for others when the time is over. Should your payment still arrive:"</label>
                    <select id="if-late" data-testid="if-late"
                        on:change=move |event| if_late.set(IfLate::parse(&event_target_value(&event)).unwrap_or_default())>
                        {late_choices(if_late.get_untracked())}
                    </select>
                </div>
            </details>
            <button type="submit" class="button details-pay" data-testid="pay" aria-disabled=move || if busy.get() { "true" } else { "false" }>
                {move || if busy.get() { "One moment…" } else { "Go to payment" }}
            </button>
            <p class="details-small">"You pay on the next page. Your seats stay yours while you do."</p>
        </form>
    }
}

fn late_choices(chosen: IfLate) -> impl IntoView {
    let choices = [
        (IfLate::SameSeats, "take the same seats if they are still free"),
        (IfLate::SameOrBetter, "take the same seats, or others together that cost no less"),
        (IfLate::Refund, "send the money back"),
    ];
    choices
        .map(|(choice, words)| view! { <option value=choice.as_str() selected=choice == chosen>{words}</option> })
        .collect_view()
}

fn trouble_view(trouble: Trouble) -> impl IntoView {
    view! {
        <p>{trouble.text}</p>
        {trouble.booking.map(|booking| view! { <a href=format!("/bookings/{booking}")>"See how your booking stands"</a> })}
    }
}

fn wrong_name(name: &str) -> Option<&'static str> {
    match name.chars().count() {
        0 => Some("Please tell us your name."),
        count if count > MAX_NAME_CHARS => Some("That name is longer than we can print."),
        _ => None,
    }
}

/// Catches slips of the finger; whether the address exists only a mail can tell.
fn wrong_email(email: &str) -> Option<&'static str> {
    let looks_right = email.split_once('@').is_some_and(|(local, host)| {
        !local.is_empty() && host.len() > 2 && host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
    });
    let clean = email.chars().count() <= MAX_EMAIL_CHARS && !email.chars().any(|c| c.is_whitespace() || c.is_control());
    match () {
        () if email.is_empty() => Some("Please tell us where to send the tickets."),
        () if looks_right && clean && email.matches('@').count() == 1 => None,
        () => Some("That does not look like an e-mail address."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_in_an_address_are_caught_and_real_ones_pass() {
        for right in ["ana@example.org", "a.b+tickets@kino.example", "josé@correo.es"] {
            assert_eq!(wrong_email(right), None, "{right}");
        }
        for wrong in ["", "ana", "ana@", "@example.org", "ana@example", "a b@example.org", "a@b@example.org", "a@.org"]
        {
            assert!(wrong_email(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_one_to_a_hundred_and_twenty_characters_of_any_script() {
        assert_eq!(wrong_name("Ng"), None);
        assert_eq!(wrong_name(&"ß".repeat(MAX_NAME_CHARS)), None);
        assert!(wrong_name("").is_some() && wrong_name(&"x".repeat(MAX_NAME_CHARS + 1)).is_some());
    }
}
