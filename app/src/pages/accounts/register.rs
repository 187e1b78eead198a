//! Registration.

use leptos::prelude::*;

use super::{email_field, hidden, name_field, new_password, trouble_view};
use crate::say;
use crate::shell::{Head, Page};

/// The registration page.
#[derive(Clone, Debug, Default)]
pub struct RegisterPage {
    /// Path to return to, or empty.
    pub next: String,
    /// The typed name.
    pub name: String,
    /// The typed address.
    pub email: String,
    /// The error of the last attempt.
    pub trouble: Option<String>,
    /// Idempotency key of the form: sending it twice registers once.
    pub key: String,
}

impl Page for RegisterPage {
    fn head(&self) -> Head {
        Head { title: say!("account.register"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        view! {
            <section class="account-door card">
                <h1>{say!("account.register")}</h1>
                <p class="quiet">{say!("account.register_lead")}</p>
                {trouble_view(self.trouble)}
                <form class="account-form" action="/register" method="post">
                    {hidden("next", self.next.clone())}
                    {hidden("key", self.key)}
                    {name_field(self.name)}
                    {email_field(self.email)}
                    {new_password("password", say!("account.password"))}
                    <button class="button" r#type="submit" data-testid="register">{say!("account.register")}</button>
                </form>
                <p class="account-ways">
                    <span>{say!("account.known_here")}" "<a href=login_path(&self.next)>{say!("account.sign_in")}</a></span>
                </p>
            </section>
        }
        .into_any()
    }
}

/// Address of the page that returns to `next`, a path without `&` or `#`.
pub(super) fn path(next: &str) -> String {
    if next.is_empty() { "/register".to_owned() } else { format!("/register?next={next}") }
}

fn login_path(next: &str) -> String {
    if next.is_empty() { "/login".to_owned() } else { format!("/login?next={next}") }
}
