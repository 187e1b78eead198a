//! Who buys, and for whom: names and e-mails, checked where they are typed, then off to the payment page.

use domain::api::Person;
use domain::api::cancelling::IfLate;
use domain::person::{MAX_EMAIL_BYTES, MAX_NAME_CHARS, has_mail_domain};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::code::Code;
use super::pay::{self, Attempt, Trouble};
use crate::browser;
use crate::payment_retry::buyer_details::Typed;
use crate::say;
use crate::seat_map::session::Session;

/// What was typed and what came of it: outlives the form, which goes when the hold does.
#[derive(Clone, Copy)]
pub struct Details {
    name: RwSignal<String>,
    email: RwSignal<String>,
    /// Whether somebody else will sit there, and who.
    for_friend: RwSignal<bool>,
    friend_name: RwSignal<String>,
    friend_email: RwSignal<String>,
    if_late: RwSignal<IfLate>,
    /// What some shows ask for before checkout.
    code: Code,
    trouble: RwSignal<Option<Trouble>>,
    busy: RwSignal<bool>,
    attempt: StoredValue<Option<Attempt>>,
}

impl Details {
    /// Nothing typed yet.
    #[must_use]
    pub fn new(show: Uuid) -> Self {
        Self {
            name: RwSignal::new(String::new()),
            email: RwSignal::new(String::new()),
            for_friend: RwSignal::new(false),
            friend_name: RwSignal::new(String::new()),
            friend_email: RwSignal::new(String::new()),
            if_late: RwSignal::new(IfLate::default()),
            code: Code::new(show),
            trouble: RwSignal::new(None),
            busy: RwSignal::new(false),
            attempt: StoredValue::new(None),
        }
    }

    /// Writes down who is signed in, or what was typed before the page was loaded again, where nothing was typed yet; and
    /// where a code was mailed before that.
    pub fn fill_in(self) {
        self.code.come_back(self.email);
        let put = |field: RwSignal<String>, value: String| {
            if field.with_untracked(String::is_empty) {
                field.set(value);
            }
        };
        let known = browser::element(super::BUYER);
        for (field, attribute) in [(self.name, "data-name"), (self.email, "data-email")] {
            put(field, known.as_ref().and_then(|known| known.get_attribute(attribute)).unwrap_or_default());
        }
        if let Some(typed) = Typed::kept_for(account().as_deref()) {
            put(self.name, typed.name);
            put(self.email, typed.email);
            put(self.friend_name, typed.friend_name);
            put(self.friend_email, typed.friend_email);
            self.for_friend.update(|is_for_friend| *is_for_friend |= typed.for_friend);
            if self.if_late.get_untracked() == IfLate::default() {
                self.if_late.set(typed.if_late);
            }
        }
    }

    /// Keeps what is typed, as it is typed, for when the page is loaded again.
    pub fn keep(self) {
        let account = account();
        // The page knows who is signed in.
        let unknown = |field: RwSignal<String>| if account.is_none() { field.get() } else { String::new() };
        let typed = Typed {
            name: unknown(self.name),
            email: unknown(self.email),
            for_friend: self.for_friend.get(),
            friend_name: self.friend_name.get(),
            friend_email: self.friend_email.get(),
            if_late: self.if_late.get(),
            account,
        };
        typed.keep();
    }

    /// The page is shown again after it was left to pay: the button works once more.
    pub fn come_back(self) {
        self.busy.set(false);
    }

    /// Clears the error.
    pub fn forget_trouble(self) {
        self.trouble.set(None);
    }

    /// Clears the error if it is that the server could not be reached.
    pub fn forget_unreachable(self) {
        if self.trouble.with_untracked(|met| met.as_ref().is_some_and(|met| met.is_unreachable)) {
            self.trouble.set(None);
        }
    }

    /// The error, announced by screen readers when it appears.
    pub fn trouble(self) -> impl IntoView {
        view! {
            <div role="alert" class="details-trouble" data-testid="pay-error">
                {move || self.trouble.get().map(|met| view! { <p>{met.text}</p> })}
            </div>
        }
    }
}

/// The address of the account that is signed in.
fn account() -> Option<String> {
    browser::element(super::BUYER)?.get_attribute("data-email")
}

/// The form.
pub fn form(session: Session, details: Details) -> impl IntoView {
    let Details { name, email, for_friend, friend_name, friend_email, if_late, code, trouble, busy, attempt } = details;
    let buyer = Fields::new("buyer", name, email);
    let friend = Fields::new(FRIEND, friend_name, friend_email);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        // Both are checked, so that everything wrong is said at once; the first of it gets the focus.
        let wrong = [Some(buyer), for_friend.get_untracked().then_some(friend)];
        let wrong: Vec<String> = wrong.into_iter().flatten().filter_map(Fields::check).collect();
        if let Some(first) = wrong.first() {
            browser::focus(first);
        } else if code.is_missing(&buyer.person().email) {
            browser::focus(super::code::FIELD);
        } else if !busy.get_untracked() {
            busy.set(true);
            trouble.set(None);
            let holder = for_friend.get_untracked().then(|| friend.person());
            spawn_local(async move {
                let (payer, late) = (buyer.person(), if_late.get_untracked());
                let email = payer.email.clone();
                if !code.entered(&email).await {
                    busy.set(false);
                    return;
                }
                let Err(met) = pay::pay(session, (payer, holder), late, attempt).await else {
                    // Now the way to the booking takes the form's place, which may be wanted again.
                    busy.set(false);
                    return;
                };
                let met = if met.wants_code { code.have_mailed(&email).await.err() } else { Some(met) };
                busy.set(false);
                trouble.set(met);
            });
        }
    };
    view! {
        // Our own words in place of the browser's bubbles.
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
                        on:change=move |event| if_late.set(IfLate::parse(&event_target_value(&event)).unwrap_or_default())>
                        {late_choices(if_late)}
                    </select>
                </div>
            </details>
            <button type="submit" class="button details-pay" data-testid="pay" aria-disabled=move || if busy.get() { "true" } else { "false" }>
                {move || if busy.get() { say!("common.one_moment") } else { say!("pay.go") }}
            </button>
            <p class="details-small">{say!("pay.note")}</p>
        </form>
    }
}

fn late_choices(chosen: RwSignal<IfLate>) -> impl IntoView {
    let choices = [
        (IfLate::SameSeats, say!("pay.late_same")),
        (IfLate::SameOrBetter, say!("pay.late_better")),
        (IfLate::Refund, say!("pay.late_refund")),
    ];
    choices
        .map(|(choice, words)| view! { <option value=choice.as_str() prop:selected=move || choice == chosen.get()>{words}</option> })
        .collect_view()
}

/// In front of the ids of the fields of whoever the tickets are for.
const FRIEND: &str = "friend";

/// Name and e-mail of a person, and what is wrong with them.
#[derive(Clone, Copy)]
struct Fields {
    /// Goes in front of the ids of the fields.
    who: &'static str,
    name: RwSignal<String>,
    email: RwSignal<String>,
    /// Keys of what is wrong with them.
    name_error: RwSignal<Option<&'static str>>,
    email_error: RwSignal<Option<&'static str>>,
}

impl Fields {
    fn new(who: &'static str, name: RwSignal<String>, email: RwSignal<String>) -> Self {
        Self { who, name, email, name_error: RwSignal::new(None), email_error: RwSignal::new(None) }
    }

    fn person(self) -> Person {
        let trimmed = |text: RwSignal<String>| text.get_untracked().trim().to_owned();
        Person { name: trimmed(self.name), email: trimmed(self.email) }
    }

    /// Says what is wrong, and the id of the first field that is.
    fn check(self) -> Option<String> {
        let person = self.person();
        let (name, email) = (wrong_name(&person.name, self.who), wrong_email(&person.email));
        self.name_error.set(name);
        self.email_error.set(email);
        name.map(|_| format!("{}-name", self.who)).or_else(|| email.map(|_| format!("{}-email", self.who)))
    }

    /// The two fields with these labels and what browsers may fill in.
    fn view(self, name_label: String, email_label: String, fill: [&'static str; 2]) -> impl IntoView {
        let Self { who, name, email, name_error, email_error } = self;
        let [name_id, email_id] = ["name", "email"].map(|field| format!("{who}-{field}"));
        // The buyer's go by the names that browsers remember.
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
                        // It is being mended; whether well is looked at on the next press.
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

/// The key of what is wrong with the name of the buyer, or of the friend.
fn wrong_name(name: &str, who: &str) -> Option<&'static str> {
    match name.chars().count() {
        0 if who == FRIEND => Some("pay.friend_name_missing"),
        0 => Some("pay.name_missing"),
        count if count > MAX_NAME_CHARS => Some("pay.name_too_long"),
        _ => None,
    }
}

/// The key of what is wrong with an address. Catches slips of the finger; whether it exists only a mail can
/// tell.
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
        assert_eq!(wrong_name("Ng", FRIEND), None);
        assert_eq!(wrong_name(&"ß".repeat(MAX_NAME_CHARS), "buyer"), None);
        assert!(wrong_name(&"x".repeat(MAX_NAME_CHARS + 1), "buyer").is_some());
        assert_eq!(
            [wrong_name("", "buyer"), wrong_name("", FRIEND)],
            [Some("pay.name_missing"), Some("pay.friend_name_missing")]
        );
    }
}
