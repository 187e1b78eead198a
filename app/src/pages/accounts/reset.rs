//! Password reset by mail, and confirmation of an address.

use leptos::prelude::*;

use super::{email_field, hidden, new_password, trouble_view, username};
use crate::say;
use crate::shell::{Head, Page};

/// The password reset page with its three steps.
#[derive(Clone, Debug)]
pub enum PasswordResetPage {
    /// Asks for the address.
    Ask {
        /// The typed address.
        email: String,
        /// The error of the last attempt.
        trouble: Option<String>,
        /// Idempotency key of the form.
        key: String,
    },
    /// Confirmation, the same whether or not a mail was sent.
    Sent,
    /// Asks for the new password, after the link was opened.
    Choose {
        /// The link's token.
        token: String,
        /// The error of the last attempt.
        trouble: Option<String>,
        /// Idempotency key of the form.
        key: String,
    },
}

impl Page for PasswordResetPage {
    fn head(&self) -> Head {
        Head { title: say!("account.reset"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        match self {
            Self::Ask { email, trouble, key } => view! {
                <section class="account-door card">
                    <h1>{say!("account.reset")}</h1>
                    <p class="quiet">{say!("account.reset_lead")}</p>
                    {trouble_view(trouble)}
                    <form class="account-form" action="/reset" method="post">
                        {hidden("key", key)}
                        {email_field(email)}
                        <button class="button" r#type="submit" data-testid="ask-reset">{say!("account.reset_send")}</button>
                    </form>
                </section>
            }
            .into_any(),
            Self::Sent => view! {
                <section class="account-door card">
                    <h1>{say!("account.read_mail")}</h1>
                    <p role="status" data-testid="reset-sent">{say!("account.read_mail_lead")}</p>
                    <p class="account-ways"><a href="/login">{say!("account.sign_in")}</a></p>
                </section>
            }
            .into_any(),
            Self::Choose { token, trouble, key } => view! {
                <section class="account-door card">
                    <h1>{say!("account.reset")}</h1>
                    <p class="quiet">{say!("account.reset_choose")}</p>
                    {trouble_view(trouble)}
                    <form class="account-form" action="/reset/new" method="post">
                        {hidden("key", key)}
                        {hidden("token", token)}
                        {username(String::new())}
                        {new_password("password", say!("account.new_password"))}
                        <button class="button" r#type="submit" data-testid="set-password">{say!("account.reset_set")}</button>
                    </form>
                    <p class="account-ways"><a href="/reset">{say!("account.forgotten")}</a></p>
                </section>
            }
            .into_any(),
        }
    }
}

/// The page opened by the link of the confirmation mail. Opening it changes nothing, because mail programs prefetch
/// links.
#[derive(Clone, Debug)]
pub struct ConfirmEmailPage {
    /// The link's token.
    pub token: String,
    /// The e-mail address of the signed-in account.
    pub email: String,
    /// The error of the last attempt.
    pub trouble: Option<String>,
    /// Idempotency key of the form.
    pub key: String,
}

impl Page for ConfirmEmailPage {
    fn head(&self) -> Head {
        Head { title: say!("account.prove_title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        view! {
            <section class="account-door card">
                <h1>{say!("account.prove_title")}</h1>
                {trouble_view(self.trouble)}
                <p><strong>{self.email}</strong></p>
                <form class="account-form" action="/confirm-email" method="post">
                    {hidden("key", self.key)}
                    {hidden("token", self.token)}
                    <button class="button" r#type="submit" data-testid="confirm-email">{say!("account.prove_button")}</button>
                </form>
                <p class="account-ways"><a href="/account">{say!("account.title")}</a></p>
            </section>
        }
        .into_any()
    }
}
