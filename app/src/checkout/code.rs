//! The mailed code that some shows require before checkout. It is mailed after a first attempt was refused for lack of
//! it, typed into a field beside the address, and checked on the next press of Pay.
//!
//! The field belongs to the address the code was mailed to: it hides while another address is typed. The pending code
//! is stored for this tab, so that a reload does not cause a second mail.

use domain::api::email_codes::{EmailCodeRequest, EmailProofRequest, TypedCode};
use language::{current, say};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::pay::{self, CheckoutError};
use crate::browser::calls::{self, Failure};
use crate::browser::{self, clock, ids, storage};

pub const FIELD: &str = "pay-code";
/// Longest input examined: six digits with copied whitespace.
const MAX_TYPED_CHARS: usize = 16;

/// The part of the answer that is used.
#[derive(Deserialize)]
struct MailedCode {
    expires_at_ms: i64,
}

#[derive(Clone, Copy, Default)]
pub struct EmailCode {
    show: Uuid,
    /// The address the code was mailed to; `None` while no code is required.
    mailed_to: RwSignal<Option<String>>,
    typed: RwSignal<String>,
    /// The error of the field.
    error: RwSignal<Option<String>>,
    /// The error of the last request for another code.
    refusal: RwSignal<Option<String>>,
    /// Announces that another code was mailed.
    news: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
}

impl EmailCode {
    /// A field for a show, with no code required yet.
    pub fn new(show: Uuid) -> Self {
        Self { show, ..Self::default() }
    }

    /// Restores the field and its address for a code that is still valid.
    pub fn restore(self, email: RwSignal<String>) {
        let Some(kept) = storage::TAB.read(&self.storage_key()) else { return };
        let Some((until_ms, mailed_to)) = kept.split_once(' ') else { return };
        // Before the server's first timestamp the time is unknown; then the server decides when the code is checked.
        let is_over = |until_ms: i64| clock::server_now().is_some_and(|now| now.0 >= until_ms);
        if until_ms.parse().map_or(true, is_over) {
            storage::TAB.remove(&self.storage_key());
            return;
        }
        if email.with_untracked(String::is_empty) {
            email.set(mailed_to.to_owned());
        }
        self.mailed_to.set(Some(mailed_to.to_owned()));
    }

    /// Returns true if a required code is missing or malformed. Shows an error beside the field then.
    pub fn reports_missing(self, email: &str) -> bool {
        let reports_missing = self.is_for(email) && self.digits().is_none();
        if reports_missing {
            self.error.set(Some(say!("pay.code_missing")));
        }
        reports_missing
    }

    /// Mails a code to this address and focuses the field.
    ///
    /// # Errors
    /// [`CheckoutError`], in words.
    pub async fn mail(self, email: &str) -> Result<(), CheckoutError> {
        let request = EmailCodeRequest { email: email.to_owned(), language: Some(current().tag().to_owned()) };
        let path = format!("/api/v1/shows/{}/email-code", self.show);
        let asked = calls::change::<MailedCode>(&path, &ids::new_key(), &request).await;
        let mailed = asked.map_err(|failure| pay::error_of(&failure))?;
        storage::TAB.write(&self.storage_key(), &format!("{} {email}", mailed.expires_at_ms));
        self.typed.set(String::new());
        self.error.set(None);
        self.refusal.set(None);
        self.mailed_to.set(Some(email.to_owned()));
        // The field is on the page with the next frame.
        request_animation_frame(|| browser::focus(FIELD));
        Ok(())
    }

    /// Checks the typed code if one is required for this address. Returns whether the payment may begin; if not, shows
    /// an error beside the field.
    pub async fn check(self, email: &str) -> bool {
        let Some(digits) = self.digits().filter(|_| self.is_for(email)) else { return true };
        let request = EmailProofRequest { email: email.to_owned(), code: TypedCode(digits) };
        let path = format!("/api/v1/shows/{}/email-code/proof", self.show);
        match calls::change::<IgnoredAny>(&path, &ids::new_key(), &request).await {
            // "Wrong state": the show does not require codes any more.
            Err(failure) if failure.code() != "wrong_state" => {
                self.show_refusal(&failure);
                false
            }
            Ok(_) | Err(_) => {
                self.clear();
                true
            }
        }
    }

    fn show_refusal(self, failure: &Failure) {
        self.news.set(None);
        self.refusal.set(None);
        self.error.set(Some(pay::error_of(failure).text));
        browser::focus(FIELD);
    }

    fn clear(self) {
        storage::TAB.remove(&self.storage_key());
        self.mailed_to.set(None);
        self.typed.set(String::new());
        self.error.set(None);
        self.refusal.set(None);
        self.news.set(None);
    }

    fn mail_another(self) {
        let Some(email) = self.mailed_to.get_untracked().filter(|_| !self.busy.get_untracked()) else { return };
        self.busy.set(true);
        self.refusal.set(None);
        self.news.set(None);
        spawn_local(async move {
            match self.mail(&email).await {
                Ok(()) => self.news.set(Some(say!("pay.code_another"))),
                Err(error) => self.refusal.set(Some(error.text)),
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

    fn storage_key(self) -> String {
        format!("rowlock-code-{}", self.show)
    }

    /// The field, shown while `email` is the address the code was mailed to.
    pub fn view(self, email: RwSignal<String>) -> impl IntoView {
        let Self { mailed_to, typed, error, refusal, news, busy, .. } = self;
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
                    <p class="field-error" role="alert" data-testid="code-refusal">{move || refusal.get()}</p>
                    <p class="details-small" role="status" data-testid="code-news">{move || news.get()}</p>
                </div>
            }
        };
        move || shown.get().map(field)
    }
}
