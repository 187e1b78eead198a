//! The code that some shows ask for before checkout: mailed when the first try is refused for want of it, typed in
//! beside the address, and tried when Pay is pressed again.
//!
//! The field is there for the address the code was mailed to. Whoever changes the address sees it go, and come back with
//! the address. That a code is on its way is kept for this tab, so that a reload costs nobody a second one.

use domain::api::email_codes::{EmailCodeRequest, EmailProofRequest, TypedCode};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::pay::{self, Trouble};
use crate::browser::calls::{self, Failure};
use crate::browser::{self, clock, ids, keep};
use crate::language::current;
use crate::say;

/// The id of the field.
pub const FIELD: &str = "pay-code";
/// Longest text looked at: six digits with whatever space people copy along.
const MAX_TYPED_CHARS: usize = 16;

/// What is read of the answer.
#[derive(Deserialize)]
struct Mailed {
    expires_at_ms: i64,
}

/// The field and what is known of the code.
#[derive(Clone, Copy)]
pub struct Code {
    show: Uuid,
    /// The address it was mailed to; none: nobody wants one (yet).
    mailed_to: RwSignal<Option<String>>,
    typed: RwSignal<String>,
    error: RwSignal<Option<String>>,
    /// Said when another code is on its way.
    news: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
}

impl Code {
    /// None was asked for.
    pub fn new(show: Uuid) -> Self {
        Self {
            show,
            mailed_to: RwSignal::new(None),
            typed: RwSignal::new(String::new()),
            error: RwSignal::new(None),
            news: RwSignal::new(None),
            busy: RwSignal::new(false),
        }
    }

    /// Shows the field again for a code that is still good, and the address with it.
    pub fn come_back(self, email: RwSignal<String>) {
        let Some(kept) = keep::read_for_tab(&self.kept_as()) else { return };
        let Some((until_ms, mailed_to)) = kept.split_once(' ') else { return };
        // Before the server's first word nobody knows how late it is; then the code itself is the judge.
        let is_over = |until_ms: i64| clock::server_now().is_some_and(|now| now.0 >= until_ms);
        if until_ms.parse().map_or(true, is_over) {
            keep::forget_for_tab(&self.kept_as());
            return;
        }
        if email.with_untracked(String::is_empty) {
            email.set(mailed_to.to_owned());
        }
        self.mailed_to.set(Some(mailed_to.to_owned()));
    }

    /// Whether a code for this address is wanted and none that could be one was typed; it is said beside the field then.
    pub fn is_missing(self, email: &str) -> bool {
        let is_missing = self.is_for(email) && self.digits().is_none();
        if is_missing {
            self.error.set(Some(say!("pay.code_missing")));
        }
        is_missing
    }

    /// Has a code mailed to that address, and brings the reader to the field.
    ///
    /// # Errors
    /// [`Trouble`], in words.
    pub async fn have_mailed(self, email: &str) -> Result<(), Trouble> {
        let request = EmailCodeRequest { email: email.to_owned(), language: Some(current().tag().to_owned()) };
        let path = format!("/api/v1/shows/{}/email-code", self.show);
        let asked = calls::change::<Mailed>(Method::POST, &path, &ids::new_key(), &request).await;
        let mailed = asked.map_err(|failure| pay::trouble(&failure))?;
        keep::write_for_tab(&self.kept_as(), &format!("{} {email}", mailed.expires_at_ms));
        self.typed.set(String::new());
        self.error.set(None);
        self.mailed_to.set(Some(email.to_owned()));
        // It is on the page with the next frame.
        request_animation_frame(|| browser::focus(FIELD));
        Ok(())
    }

    /// Tries what was typed, where a code for this address is wanted. Whether the way to the payment is free; if not, it
    /// is said beside the field.
    pub async fn entered(self, email: &str) -> bool {
        let Some(digits) = self.digits().filter(|_| self.is_for(email)) else { return true };
        let request = EmailProofRequest { email: email.to_owned(), code: TypedCode(digits) };
        let path = format!("/api/v1/shows/{}/email-code/proof", self.show);
        match calls::change::<IgnoredAny>(Method::POST, &path, &ids::new_key(), &request).await {
            // "Wrong state": the show has stopped asking for codes.
            Err(failure) if failure.code() != "wrong_state" => {
                self.refused(&failure);
                false
            }
            Ok(_) | Err(_) => {
                self.done();
                true
            }
        }
    }

    fn refused(self, failure: &Failure) {
        self.news.set(None);
        self.error.set(Some(pay::trouble(failure).text));
        browser::focus(FIELD);
    }

    fn done(self) {
        keep::forget_for_tab(&self.kept_as());
        self.mailed_to.set(None);
        self.typed.set(String::new());
        self.error.set(None);
        self.news.set(None);
    }

    fn mail_another(self) {
        let Some(email) = self.mailed_to.get_untracked().filter(|_| !self.busy.get_untracked()) else { return };
        self.busy.set(true);
        self.news.set(None);
        spawn_local(async move {
            match self.have_mailed(&email).await {
                Ok(()) => self.news.set(Some(say!("pay.code_another"))),
                Err(met) => self.error.set(Some(met.text)),
            }
            self.busy.set(false);
        });
    }

    fn is_for(self, email: &str) -> bool {
        self.mailed_to.with_untracked(|mailed_to| mailed_to.as_deref() == Some(email))
    }

    fn digits(self) -> Option<String> {
        TypedCode(self.typed.get_untracked()).digits()
    }

    fn kept_as(self) -> String {
        format!("rowlock-code-{}", self.show)
    }

    /// The field, for as long as `email` is the address the code was mailed to.
    pub fn view(self, email: RwSignal<String>) -> impl IntoView {
        let Self { mailed_to, typed, error, news, busy, .. } = self;
        let shown = Memo::new(move |_| mailed_to.get().filter(|to| email.with(|email| email.trim() == to)));
        let field = move |to: String| {
            view! {
                <div class="field details-code" data-testid="code-field">
                    <label for=FIELD>{say!("pay.code_label")}</label>
                    <p class="details-small" id="pay-code-hint">{say!("pay.code_hint", email = &to)}</p>
                    <input id=FIELD name="code" type="text" inputmode="numeric" autocomplete="one-time-code" dir="ltr"
                        maxlength=MAX_TYPED_CHARS required prop:value=move || typed.get()
                        aria-invalid=move || error.get().map(|_| "true") aria-describedby="pay-code-hint pay-code-error"
                        on:input=move |event| typed.set(event_target_value(&event)) />
                    <p class="field-error" id="pay-code-error" data-testid="code-error">{move || error.get()}</p>
                    <button type="button" class="button button-quiet" data-testid="code-again"
                        aria-disabled=move || if busy.get() { "true" } else { "false" }
                        on:click=move |_| self.mail_another()>{say!("pay.code_again")}</button>
                    <p class="details-small" role="status" data-testid="code-news">{move || news.get()}</p>
                </div>
            }
        };
        move || shown.get().map(field)
    }
}
