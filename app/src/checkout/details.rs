//! The form of the checkout: names and e-mail addresses of buyer and ticket holder, checked before the payment.

use domain::VariantName;
use domain::api::Person;
use domain::api::cancelling::LatePaymentHandling;
use domain::person::{MAX_EMAIL_BYTES, MAX_NAME_CHARS, has_mail_domain};
use language::say;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::code::EmailCode;
use super::pay::{self, CheckoutError, PaymentAttempt};
use crate::browser;
use crate::payment_retry::BuyerDetails;
use crate::seat_map::session::MapSession;

/// Id of the error.
const ERROR: &str = "pay-error";

/// The form's state. It outlives the form, which disappears with the hold.
#[derive(Clone, Copy)]
pub struct CheckoutForm {
    name: RwSignal<String>,
    email: RwSignal<String>,
    /// Set if the tickets are for a friend, with the friend's details.
    for_friend: RwSignal<bool>,
    friend_name: RwSignal<String>,
    friend_email: RwSignal<String>,
    if_late: RwSignal<LatePaymentHandling>,
    /// The mailed code that some shows require.
    code: EmailCode,
    error: RwSignal<Option<CheckoutError>>,
    busy: RwSignal<bool>,
    attempt: StoredValue<Option<PaymentAttempt>>,
}

impl CheckoutForm {
    pub fn new(show: Uuid) -> Self {
        Self {
            name: RwSignal::new(String::new()),
            email: RwSignal::new(String::new()),
            for_friend: RwSignal::new(false),
            friend_name: RwSignal::new(String::new()),
            friend_email: RwSignal::new(String::new()),
            if_late: RwSignal::new(LatePaymentHandling::default()),
            code: EmailCode::new(show),
            error: RwSignal::new(None),
            busy: RwSignal::new(false),
            attempt: StoredValue::new(None),
        }
    }

    /// Fills empty fields from the signed-in account, or from what was typed before a reload, and restores a pending
    /// code.
    pub fn fill_in(self) {
        self.code.restore(self.email);
        let put = |field: RwSignal<String>, value: String| {
            if field.with_untracked(String::is_empty) {
                field.set(value);
            }
        };
        let known = browser::element(super::BUYER);
        for (field, attribute) in [(self.name, "data-name"), (self.email, "data-email")] {
            put(field, known.as_ref().and_then(|known| known.get_attribute(attribute)).unwrap_or_default());
        }
        if let Some(stored) = BuyerDetails::load_for(account().as_deref()) {
            put(self.name, stored.name);
            put(self.email, stored.email);
            put(self.friend_name, stored.friend_name);
            put(self.friend_email, stored.friend_email);
            self.for_friend.update(|is_for_friend| *is_for_friend |= stored.for_friend);
            if self.if_late.get_untracked() == LatePaymentHandling::default() {
                self.if_late.set(stored.if_late);
            }
        }
    }

    /// Stores the form while it is typed, for a reload.
    pub fn save(self) {
        let account = account();
        // The page has the account's name and address.
        let unknown = |field: RwSignal<String>| if account.is_none() { field.get() } else { String::new() };
        let stored = BuyerDetails {
            name: unknown(self.name),
            email: unknown(self.email),
            for_friend: self.for_friend.get(),
            friend_name: self.friend_name.get(),
            friend_email: self.friend_email.get(),
            if_late: self.if_late.get(),
            account,
        };
        stored.save();
    }

    /// Enables the button after a return from the payment page.
    pub fn enable(self) {
        self.busy.set(false);
    }

    pub fn clear_error(self) {
        self.error.set(None);
    }

    /// Clears the error if it was a missing answer.
    pub fn clear_unreachable(self) {
        if self.error.with_untracked(|failure| failure.as_ref().is_some_and(|failure| failure.is_unreachable)) {
            self.error.set(None);
        }
    }

    /// The error, announced when it appears.
    pub fn error(self) -> impl IntoView {
        view! {
            <div role="alert" id=ERROR class="details-trouble" data-testid=ERROR>
                {move || self.error.get().map(|failure| view! { <p>{failure.text}</p> })}
            </div>
        }
    }
}

/// The e-mail address of the signed-in account.
fn account() -> Option<String> {
    browser::element(super::BUYER)?.get_attribute("data-email")
}

pub fn form(session: MapSession, details: CheckoutForm) -> impl IntoView {
    let CheckoutForm { name, email, for_friend, friend_name, friend_email, if_late, code, error, busy, attempt } =
        details;
    let buyer = PersonFields::new("buyer", name, email);
    let friend = PersonFields::new(FRIEND, friend_name, friend_email);
    // It is booked at once: there is no payment page.
    let is_free = Memo::new(move |_| super::total_of(session).is_some_and(|total| total.minor == 0));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        // Both persons are checked, so that all errors show at once. The first gets the focus.
        let wrong = [Some(buyer), for_friend.get_untracked().then_some(friend)];
        let wrong: Vec<String> = wrong.into_iter().flatten().filter_map(PersonFields::check).collect();
        if let Some(first) = wrong.first() {
            browser::focus(first);
        } else if code.reports_missing(&buyer.person().email) {
            browser::focus(super::code::FIELD);
        } else if !busy.get_untracked() {
            busy.set(true);
            error.set(None);
            let holder = for_friend.get_untracked().then(|| friend.person());
            spawn_local(async move {
                let (payer, late) = (buyer.person(), if_late.get_untracked());
                let email = payer.email.clone();
                if !code.check(&email).await {
                    busy.set(false);
                    return;
                }
                let Err(failure) = pay::pay(session, (payer, holder), late, attempt).await else {
                    // The link to the booking now replaces the form, which may be needed again.
                    busy.set(false);
                    return;
                };
                let failure = if failure.wants_code { code.mail(&email).await.err() } else { Some(failure) };
                busy.set(false);
                if failure.is_some() {
                    // In the sheet of a phone it may be far above the button.
                    request_animation_frame(|| browser::scroll_to(ERROR));
                }
                error.set(failure);
            });
        }
    };
    view! {
        // Our own messages replace the browser's validation.
        <form class="details" novalidate on:submit=submit>
            {buyer.view(say!("pay.name"), say!("pay.email"), ["name", "email"])}
            <label class="details-friend">
                <input type="checkbox" data-testid="for-friend" prop:checked=move || for_friend.get()
                    on:change=move |event| for_friend.set(event_target_checked(&event)) />
                <span>{say!("pay.for_friend")}</span>
            </label>
            {move || for_friend.get().then(|| view! {
                <fieldset class="details-holder">
                    <legend>{say!("pay.who_comes")}</legend>
                    {friend.view(say!("pay.their_name"), say!("pay.their_email"), ["off", "off"])}
                    <p class="details-small">{say!("pay.friend_note")}</p>
                </fieldset>
            })}
            {code.view(email)}
            <details class="details-late">
                <summary>{say!("pay.late_title")}</summary>
                <div class="field">
                    <label for="if-late">{say!("pay.late_label")}</label>
                    <select id="if-late" data-testid="if-late"
                        on:change=move |event| if_late.set(event_target_value(&event).parse().unwrap_or_default())>
                        {late_choices(if_late)}
                    </select>
                </div>
            </details>
            {browser::markup_of(super::TERMS_NOTE).map(|note| view! {
                <p class="details-small" hidden=move || is_free.get() inner_html=note></p>
            })}
            <button type="submit" class="button details-pay" data-testid="pay" aria-disabled=move || if busy.get() { "true" } else { "false" }>
                {move || match (busy.get(), is_free.get()) {
                    (true, _) => say!("common.one_moment"),
                    (false, true) => say!("cart.continue"),
                    (false, false) => say!("pay.go"),
                }}
            </button>
            <p class="details-small" hidden=move || is_free.get()>{say!("pay.note")}</p>
        </form>
    }
}

fn late_choices(chosen: RwSignal<LatePaymentHandling>) -> impl IntoView {
    let choices = [
        (LatePaymentHandling::SameSeats, say!("pay.late_same")),
        (LatePaymentHandling::SameOrBetter, say!("pay.late_better")),
        (LatePaymentHandling::Refund, say!("pay.late_refund")),
    ];
    choices
        .map(|(choice, words)| view! { <option value=choice.as_str() prop:selected=move || choice == chosen.get()>{words}</option> })
        .collect_view()
}

/// Prefix of the field ids of the ticket holder.
const FRIEND: &str = "friend";

/// Name and e-mail fields of a person, with their errors.
#[derive(Clone, Copy)]
struct PersonFields {
    /// Prefix of the field ids.
    who: &'static str,
    name: RwSignal<String>,
    email: RwSignal<String>,
    /// Message keys of the errors.
    name_error: RwSignal<Option<&'static str>>,
    email_error: RwSignal<Option<&'static str>>,
}

impl PersonFields {
    fn new(who: &'static str, name: RwSignal<String>, email: RwSignal<String>) -> Self {
        Self { who, name, email, name_error: RwSignal::new(None), email_error: RwSignal::new(None) }
    }

    fn person(self) -> Person {
        let trimmed = |text: RwSignal<String>| text.get_untracked().trim().to_owned();
        Person { name: trimmed(self.name), email: trimmed(self.email) }
    }

    /// Checks the fields and shows errors. Returns the id of the first wrong field.
    fn check(self) -> Option<String> {
        let person = self.person();
        let (name, email) = (wrong_name(&person.name, self.who), wrong_email(&person.email));
        self.name_error.set(name);
        self.email_error.set(email);
        name.map(|_| format!("{}-name", self.who)).or_else(|| email.map(|_| format!("{}-email", self.who)))
    }

    /// The two fields, with labels and autofill hints.
    fn view(self, name_label: String, email_label: String, fill: [&'static str; 2]) -> impl IntoView {
        let Self { who, name, email, name_error, email_error } = self;
        let [name_id, email_id] = ["name", "email"].map(|field| format!("{who}-{field}"));
        // The buyer's fields have the names that browsers remember.
        let prefix = if who == "buyer" { String::new() } else { format!("{who}-") };
        let [name_name, email_name] = ["name", "email"].map(|field| format!("{prefix}{field}"));
        let [name_error_id, email_error_id] = [&name_id, &email_id].map(|id| format!("{id}-error"));
        view! {
            <div class="field">
                <label for=name_id.clone()>{name_label}</label>
                <input id=name_id name=name_name type="text" autocomplete=fill[0] maxlength=MAX_NAME_CHARS required
                    prop:value=move || name.get()
                    aria-invalid=move || name_error.get().map(|_: &str| "true") aria-describedby=name_error_id.clone()
                    on:input=move |event| {
                        name.set(event_target_value(&event));
                        // Being corrected; checked again on the next press.
                        name_error.set(None);
                    } />
                <p class="field-error" id=name_error_id>{move || name_error.get().map(|key| say!(key))}</p>
            </div>
            <div class="field">
                <label for=email_id.clone()>{email_label}</label>
                <input id=email_id name=email_name type="email" autocomplete=fill[1] inputmode="email" maxlength=MAX_EMAIL_BYTES required
                    prop:value=move || email.get()
                    aria-invalid=move || email_error.get().map(|_: &str| "true") aria-describedby=email_error_id.clone()
                    on:input=move |event| {
                        email.set(event_target_value(&event));
                        email_error.set(None);
                    } />
                <p class="field-error" id=email_error_id>{move || email_error.get().map(|key| say!(key))}</p>
            </div>
        }
    }
}

/// The message key of an error in the buyer's or the friend's name.
fn wrong_name(name: &str, who: &str) -> Option<&'static str> {
    match name.chars().count() {
        0 if who == FRIEND => Some("pay.friend_name_missing"),
        0 => Some("pay.name_missing"),
        count if count > MAX_NAME_CHARS => Some("pay.name_too_long"),
        _ => None,
    }
}

/// The message key of an error in an address. It catches typing errors; only a mail proves that an address exists.
pub(crate) fn wrong_email(email: &str) -> Option<&'static str> {
    let looks_right = has_mail_domain(email) && !email.starts_with('@');
    let clean = email.len() <= MAX_EMAIL_BYTES && !email.chars().any(|c| c.is_whitespace() || c.is_control());
    match () {
        () if email.is_empty() => Some("pay.email_missing"),
        () if looks_right && clean && email.matches('@').count() == 1 => None,
        () => Some("pay.email_wrong"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_in_an_address_are_caught() {
        for right in ["ana@example.org", "a.b+tickets@kino.example", "josé@correo.es"] {
            assert_eq!(wrong_email(right), None, "{right}");
        }
        for wrong in ["", "ana", "ana@", "@example.org", "ana@example", "a b@example.org", "a@b@example.org", "a@.org"]
        {
            assert!(wrong_email(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_name_has_1_to_120_characters_of_any_script() {
        assert_eq!(wrong_name("Ng", FRIEND), None);
        assert_eq!(wrong_name(&"ß".repeat(MAX_NAME_CHARS), "buyer"), None);
        assert!(wrong_name(&"x".repeat(MAX_NAME_CHARS + 1), "buyer").is_some());
        assert_eq!(
            [wrong_name("", "buyer"), wrong_name("", FRIEND)],
            [Some("pay.name_missing"), Some("pay.friend_name_missing")]
        );
    }
}
