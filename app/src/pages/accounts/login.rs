//! Signing in.

use leptos::prelude::*;

use super::{Notice, email_field, hidden, known_password, notice_view, trouble_view};
use crate::say;
use crate::shell::{Head, Page};

/// The sign-in page.
#[derive(Clone, Debug, Default)]
pub struct LoginPage {
    /// Path to return to, or empty.
    pub next: String,
    /// The typed address.
    pub email: String,
    /// Confirmation of the last action.
    pub notice: Option<Notice>,
    /// The error of the last attempt.
    pub trouble: Option<String>,
}

impl Page for LoginPage {
    fn head(&self) -> Head {
        Head { title: say!("account.sign_in"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        view! {
            <section class="account-door card">
                <h1>{say!("account.sign_in")}</h1>
                {notice_view(self.notice)}
                {trouble_view(self.trouble)}
                <form class="account-form" action="/login" method="post">
                    {hidden("next", self.next.clone())}
                    {email_field(self.email)}
                    {known_password("password", say!("account.password"))}
                    <button class="button" r#type="submit" data-testid="sign-in">{say!("account.sign_in")}</button>
                </form>
                <p class="account-ways">
                    <a href="/reset">{say!("account.forgotten")}</a>
                    <span>{say!("account.new_here")}" "<a href=super::register::path(&self.next)>{say!("account.register")}</a></span>
                </p>
            </section>
        }
        .into_any()
    }
}
