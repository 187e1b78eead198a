//! Account pages: sign-in, registration, the account itself, a new password. Plain forms without a script.

mod account;
mod login;
mod notice;
mod register;
mod reset;

pub use account::AccountPage;
pub(crate) use account::state_words;
pub use login::LoginPage;
pub use notice::Notice;
pub use register::RegisterPage;
pub use reset::{ConfirmEmailPage, PasswordResetPage};

use domain::person::{MAX_EMAIL_BYTES, MAX_NAME_CHARS};
use leptos::prelude::*;

use crate::say;

/// The error of the last attempt, announced when the page loads.
pub(in crate::pages) fn trouble_view(trouble: Option<String>) -> impl IntoView {
    trouble.map(|words| view! { <p class="account-trouble" role="alert" data-testid="account-trouble">{words}</p> })
}

/// Confirmation of the last action.
fn notice_view(notice: Option<Notice>) -> impl IntoView {
    notice.map(
        |notice| view! { <p class="account-notice" role="status" data-testid="account-notice">{notice.words()}</p> },
    )
}

fn name_field(value: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for="name">{say!("account.name")}</label>
            <input id="name" name="name" r#type="text" autocomplete="name" required maxlength=MAX_NAME_CHARS value=value />
        </div>
    }
}

pub(in crate::pages) fn email_field(value: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for="email">{say!("account.email")}</label>
            <input id="email" name="email" r#type="email" autocomplete="username" inputmode="email" required
                maxlength=MAX_EMAIL_BYTES value=value />
        </div>
    }
}

/// A field for an existing password.
fn known_password(name: &'static str, label: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name r#type="password" autocomplete="current-password" required maxlength="256" />
        </div>
    }
}

/// A field for a new password.
fn new_password(name: &'static str, label: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name r#type="password" autocomplete="new-password" required minlength="10" maxlength="256"
                aria-describedby="password-hint" />
            <p class="quiet small" id="password-hint">{say!("account.password_hint")}</p>
        </div>
    }
}

/// A hidden user name for password managers. Empty where only the mail's recipient is known.
pub(crate) fn username(email: String) -> impl IntoView {
    view! { <input r#type="text" name="username" autocomplete="username" value=email hidden /> }
}

fn hidden(name: &'static str, value: String) -> impl IntoView {
    view! { <input r#type="hidden" name=name value=value /> }
}

/// A form with one button and no visible field.
fn press(action: &'static str, key: Option<String>, label: String, test: &'static str) -> impl IntoView {
    view! {
        <form action=action method="post">
            {key.map(|key| hidden("key", key))}
            <button class="button button-quiet" r#type="submit" data-testid=test>{label}</button>
        </form>
    }
}
