//! Making an account.

use leptos::prelude::*;

use super::words;
use super::{email_field, hidden, name_field, new_password, trouble_view};
use crate::shell::{Head, Page};

/// The page to register on.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// Where to go then: a path of ours, or empty.
    pub next: String,
    /// What was typed.
    pub name: String,
    /// What was typed.
    pub email: String,
    /// What stood in the way.
    pub trouble: Option<String>,
    /// Idempotency key of this form: sent twice it is one registration.
    pub key: String,
}

impl Page for Register {
    fn head(&self) -> Head {
        Head { title: words::REGISTER.to_owned(), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        view! {
            <section class="account-door card">
                <h1>{words::REGISTER}</h1>
                <p class="quiet">{words::REGISTER_LEAD}</p>
                {trouble_view(self.trouble)}
                <form class="account-form" action="/register" method="post">
                    {hidden("next", self.next.clone())}
                    {hidden("key", self.key)}
                    {name_field(self.name)}
                    {email_field(self.email)}
                    {new_password("password", words::PASSWORD)}
                    <button class="button" r#type="submit" data-testid="register">{words::REGISTER}</button>
                </form>
                <p class="account-ways">
                    <span>{words::KNOWN_HERE}" "<a href=login_path(&self.next)>{words::SIGN_IN}</a></span>
                </p>
            </section>
        }
        .into_any()
    }
}

/// The page's address, coming back to `next`, a path without `&` or `#`.
pub(super) fn path(next: &str) -> String {
    if next.is_empty() { "/register".to_owned() } else { format!("/register?next={next}") }
}

fn login_path(next: &str) -> String {
    if next.is_empty() { "/login".to_owned() } else { format!("/login?next={next}") }
}
