//! Getting back in without a password, and confirming an address.

use leptos::prelude::*;

use super::{email_field, hidden, new_password, trouble_view, username};
use crate::say;
use crate::shell::{Head, Page};

/// The page for a new password, at its three steps.
#[derive(Clone, Debug)]
pub enum Reset {
    /// Which address?
    Ask {
        /// The address as it was typed.
        email: String,
        /// What stood in the way.
        trouble: Option<String>,
        /// Idempotency key of this form.
        key: String,
    },
    /// A mail is on its way, or not: that is not told.
    Sent,
    /// Came by the link.
    Choose {
        /// The link's token.
        token: String,
        /// What stood in the way.
        trouble: Option<String>,
        /// Idempotency key of this form.
        key: String,
    },
}

impl Page for Reset {
    fn head(&self) -> Head {
        Head { title: say!("account.reset"), private: true, ..Head::default() }
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

/// The page the link of the other mail leads to. A link that is merely opened, by a mail program that looks ahead for
/// one, does nothing yet.
#[derive(Clone, Debug)]
pub struct ConfirmEmail {
    /// The link's token.
    pub token: String,
    /// The address of whoever is signed in.
    pub email: String,
    /// What stood in the way.
    pub trouble: Option<String>,
    /// Idempotency key of this form.
    pub key: String,
}

impl Page for ConfirmEmail {
    fn head(&self) -> Head {
        Head { title: say!("account.prove_title"), private: true, ..Head::default() }
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
