//! Account pages: sign-in, registration, the account itself, a new password. Plain forms; only signing out has a script,
//! for staff with unsent scans.

use domain::VariantName;
use domain::api::accounts::{AccountView, BookingPage, BookingSummary};
use domain::booking::{BookingState, MoneyState};
use domain::person::{MAX_EMAIL_BYTES, MAX_NAME_CHARS};
use domain::roles::Role;
use language::{Moment, say};
use leptos::prelude::*;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};
use crate::site;

/// The error of the last attempt, announced when the page loads.
pub(in crate::pages) fn error_view(error: Option<String>) -> impl IntoView {
    error.map(|words| view! { <p class="account-trouble" role="alert" data-testid="account-trouble">{words}</p> })
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

fn known_password(name: &'static str, label: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name r#type="password" autocomplete="current-password" required maxlength="256" />
        </div>
    }
}

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

pub(super) fn hidden(name: &'static str, value: String) -> impl IntoView {
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

/// A confirmed action. Addresses contain its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Notice {
    /// A registration. The same whether or not the account existed.
    Registered,
    /// The mail with the link was sent.
    MailSent,
    /// The address was confirmed.
    Proven,
    /// The password was changed.
    PasswordChanged,
    /// The password was reset by mail.
    PasswordReset,
    /// All sessions were ended.
    #[strum(serialize = "signed-out")]
    SignedOutEverywhere,
    /// The requested page needs a signed-in account.
    SignInFirst,
}

impl Notice {
    /// Its text.
    pub fn words(self) -> String {
        match self {
            Self::Registered => say!("account.notice_registered"),
            Self::MailSent => say!("account.notice_mail_sent"),
            Self::Proven => say!("account.notice_proven"),
            Self::PasswordChanged => say!("account.notice_password_changed"),
            Self::PasswordReset => say!("account.notice_password_reset"),
            Self::SignedOutEverywhere => say!("account.notice_signed_out"),
            Self::SignInFirst => say!("account.notice_sign_in_first"),
        }
    }
}

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
    pub error: Option<String>,
}

impl Page for LoginPage {
    fn head(&self) -> Head {
        Head { title: say!("account.sign_in"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        view! {
            <section class="account-door card">
                <h1>{say!("account.sign_in")}</h1>
                {notice_view(self.notice)}
                {error_view(self.error)}
                <form class="account-form" action="/login" method="post">
                    {hidden("next", self.next.clone())}
                    {email_field(self.email)}
                    {known_password("password", say!("account.password"))}
                    <button class="button" r#type="submit" data-testid="sign-in">{say!("account.sign_in")}</button>
                </form>
                <p class="account-ways">
                    <a href="/reset">{say!("account.forgotten")}</a>
                    <span>{say!("account.new_here")}" "<a href=path_with_next("/register", &self.next)>{say!("account.register")}</a></span>
                </p>
            </section>
        }
        .into_markup()
    }
}

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
    pub error: Option<String>,
    /// Idempotency key of the form: sending it twice registers once.
    pub key: String,
}

impl Page for RegisterPage {
    fn head(&self) -> Head {
        Head { title: say!("account.register"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        view! {
            <section class="account-door card">
                <h1>{say!("account.register")}</h1>
                <p class="quiet">{say!("account.register_lead")}</p>
                {error_view(self.error)}
                <form class="account-form" action="/register" method="post">
                    {hidden("next", self.next.clone())}
                    {hidden("key", self.key)}
                    {name_field(self.name)}
                    {email_field(self.email)}
                    {new_password("password", say!("account.password"))}
                    <button class="button" r#type="submit" data-testid="register">{say!("account.register")}</button>
                </form>
                <p class="account-ways">
                    <span>{say!("account.known_here")}" "<a href=path_with_next("/login", &self.next)>{say!("account.sign_in")}</a></span>
                </p>
            </section>
        }
        .into_markup()
    }
}

/// Address of a page that then returns to `next`, a path of this site.
fn path_with_next(page: &str, next: &str) -> String {
    if next.is_empty() { page.to_owned() } else { format!("{page}?next={}", next_in_query(next)) }
}

/// Escapes a path of this site, which is ASCII without `#`, as the value of a parameter.
pub fn next_in_query(next: &str) -> String {
    next.replace('%', "%25").replace('&', "%26").replace('+', "%2B")
}

/// The answer to a form of staff whose sender is not signed in. A reload of the page sends the form again.
#[derive(Clone, Debug)]
pub struct SignedOutPage {
    /// Path to return to in the tab that signs in.
    pub next: String,
}

impl Page for SignedOutPage {
    fn head(&self) -> Head {
        Head { title: say!("account.form_kept_title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let href = path_with_next("/login", &self.next);
        view! {
            <section class="account-door card" data-testid="form-kept">
                <h1>{say!("account.form_kept_title")}</h1>
                <p>{say!("account.form_kept")}</p>
                <p><a class="button" href=href target="_blank" rel="noopener">{say!("account.form_kept_sign_in")}</a></p>
                <p>{say!("account.form_kept_reload")}</p>
            </section>
        }
        .into_markup()
    }
}

/// The page of an account.
#[derive(Clone, Debug)]
pub struct AccountPage {
    /// The account.
    pub account: AccountView,
    /// A page of its bookings.
    pub bookings: BookingPage,
    /// Confirmation of the last action.
    pub notice: Option<Notice>,
    /// The error of the last password change.
    pub error: Option<String>,
    /// Idempotency key for requesting the confirmation mail again.
    pub key: String,
}

impl Page for AccountPage {
    fn head(&self) -> Head {
        Head { title: say!("account.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let AccountView { name, email, email_proven, grants, .. } = self.account;
        let own_username = username(email.clone());
        let works_at = grants.into_iter().map(|grant| format!("{} ({})", grant.theatre, role_words(grant.role)));
        let works_at = works_at.collect::<Vec<_>>().join(", ");
        // Staff may have scanned tickets on this device.
        let sign_out_script = (!works_at.is_empty()).then(|| {
            let question = say!("account.unsent_scans");
            view! { <script r#type="module" src=site::address("/pkg/sign-out.js") data-question=question></script> }
        });
        view! {
            <div class="account">
                <header class="account-head">
                    <div>
                        <h1>{say!("account.title")}</h1>
                        <p class="quiet"><bdi data-testid="account-name">{name}</bdi>" · "<bdi>{email}</bdi></p>
                        {(!works_at.is_empty()).then(|| view! { <p class="small"><a href="/staff" data-testid="works-at">{say!("account.works_at", places = &works_at)}</a></p> })}
                    </div>
                    {press("/account/logout", None, say!("account.sign_out"), "sign-out")}
                    {sign_out_script}
                </header>
                {notice_view(self.notice)}
                {(!email_proven).then(|| confirm_email_section(self.key))}
                <section class="account-bookings" aria-labelledby="account-bookings">
                    <h2 id="account-bookings">{say!("account.bookings")}</h2>
                    {bookings_view(self.bookings)}
                </section>
                <section class="account-security" aria-labelledby="account-security">
                    <h2 id="account-security">{say!("account.security")}</h2>
                    <div class="card account-card">
                        {error_view(self.error)}
                        <form class="account-form" action="/account/password" method="post">
                            {own_username}
                            {known_password("current", say!("account.current_password"))}
                            {new_password("new", say!("account.new_password"))}
                            <button class="button button-quiet" r#type="submit" data-testid="change-password">{say!("account.change_password")}</button>
                        </form>
                    </div>
                    <div class="card account-card">
                        <p class="quiet small">{say!("account.sign_out_everywhere_hint")}</p>
                        {press("/account/logout-everywhere", None, say!("account.sign_out_everywhere"), "sign-out-everywhere")}
                    </div>
                </section>
            </div>
        }
        .into_markup()
    }
}

fn confirm_email_section(key: String) -> impl IntoView {
    view! {
        <section class="card account-card account-prove" data-testid="prove">
            <h2>{say!("account.prove_title")}</h2>
            <p>{say!("account.prove_lead")}</p>
            {press("/account/email-link", Some(key), say!("account.prove_again"), "send-again")}
        </section>
    }
}

fn bookings_view(page: BookingPage) -> Markup {
    if page.bookings.is_empty() {
        return view! {
            <div class="card account-card">
                <p class="quiet">{say!("account.no_bookings")}</p>
                <p><a class="button" href="/search">{say!("account.find_show")}</a></p>
            </div>
        }
        .into_markup();
    }
    view! {
        <ul class="account-list" data-testid="my-bookings">{page.bookings.into_iter().map(line).collect_view()}</ul>
        {page.next.map(|next| view! { <p><a class="button button-quiet" href=format!("/account?after={next}")>{say!("account.older")}</a></p> })}
    }
    .into_markup()
}

fn line(booking: BookingSummary) -> impl IntoView {
    let state = state_words(booking.state, booking.money, booking.came_back.then(|| say!("account.state_came_back")));
    let language = language::current();
    let starts = Moment::parse(&booking.starts_local).map_or(booking.starts, |start| start.in_words(language));
    view! {
        <li>
            <a class="account-booking card" href=format!("/bookings/{}", booking.id) data-testid="my-booking" data-state=booking.state.as_str()>
                <span class="account-booking-what">
                    <strong><bdi>{booking.film}</bdi></strong>
                    <span>{starts}</span>
                    <span class="quiet small"><bdi>{booking.place}</bdi></span>
                </span>
                <span class="account-booking-seats">{booking.what.join(", ")}</span>
                <span class="account-booking-state">
                    <span>{state}</span>
                    <span class="quiet small">{language::money(booking.total, language)}" · "{booking.reference}</span>
                </span>
            </a>
        </li>
    }
}

/// Names the state of a booking. `came_back` says that its refund bounced, if it did.
pub(crate) fn state_words(state: BookingState, money: MoneyState, came_back: Option<String>) -> String {
    // A bounced refund comes first, regardless of the payment state.
    if let Some(words) = came_back
        && state != BookingState::Confirmed
    {
        return words;
    }
    match (state, money) {
        (BookingState::Confirmed, _) => say!("account.state_booked"),
        (_, MoneyState::Refunding) => say!("account.state_refunding"),
        (_, MoneyState::Refunded) => say!("account.state_refunded"),
        (_, MoneyState::Moved) => say!("account.state_moved"),
        (BookingState::Cancelled, _) => say!("account.state_cancelled"),
        (BookingState::Expired, _) => say!("account.state_expired"),
        (BookingState::PaymentSucceeded, _) => say!("account.state_paid"),
        (BookingState::Created | BookingState::SeatsLocked | BookingState::PaymentPending, _) => {
            say!("account.state_paying")
        }
    }
}

fn role_words(role: Role) -> String {
    match role {
        Role::BoxOffice => say!("account.role_box_office"),
        Role::Manager => say!("account.role_manager"),
        Role::Organiser => say!("account.role_organiser"),
    }
}

/// The password reset page with its three steps.
#[derive(Clone, Debug)]
pub enum PasswordResetPage {
    /// Asks for the address.
    Ask {
        /// The typed address.
        email: String,
        /// The error of the last attempt.
        error: Option<String>,
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
        error: Option<String>,
        /// Idempotency key of the form.
        key: String,
    },
}

impl Page for PasswordResetPage {
    fn head(&self) -> Head {
        Head { title: say!("account.reset"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        match self {
            Self::Ask { email, error, key } => view! {
                <section class="account-door card">
                    <h1>{say!("account.reset")}</h1>
                    <p class="quiet">{say!("account.reset_lead")}</p>
                    {error_view(error)}
                    <form class="account-form" action="/reset" method="post">
                        {hidden("key", key)}
                        {email_field(email)}
                        <button class="button" r#type="submit" data-testid="ask-reset">{say!("account.reset_send")}</button>
                    </form>
                </section>
            }
            .into_markup(),
            Self::Sent => view! {
                <section class="account-door card">
                    <h1>{say!("account.read_mail")}</h1>
                    <p role="status" data-testid="reset-sent">{say!("account.read_mail_lead")}</p>
                    <p class="account-ways"><a href="/login">{say!("account.sign_in")}</a></p>
                </section>
            }
            .into_markup(),
            Self::Choose { token, error, key } => view! {
                <section class="account-door card">
                    <h1>{say!("account.reset")}</h1>
                    <p class="quiet">{say!("account.reset_choose")}</p>
                    {error_view(error)}
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
            .into_markup(),
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
    pub error: Option<String>,
    /// Idempotency key of the form.
    pub key: String,
}

impl Page for ConfirmEmailPage {
    fn head(&self) -> Head {
        Head { title: say!("account.prove_title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        view! {
            <section class="account-door card">
                <h1>{say!("account.prove_title")}</h1>
                {error_view(self.error)}
                <p><strong>{self.email}</strong></p>
                <form class="account-form" action="/confirm-email" method="post">
                    {hidden("key", self.key)}
                    {hidden("token", self.token)}
                    <button class="button" r#type="submit" data-testid="confirm-email">{say!("account.prove_button")}</button>
                </form>
                <p class="account-ways"><a href="/account">{say!("account.title")}</a></p>
            </section>
        }
        .into_markup()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn notices_are_parsed_by_name_and_other_texts_are_rejected() {
        for &notice in Notice::VARIANTS {
            assert_eq!(notice.as_str().parse(), Ok(notice));
        }
        assert!("<script>".parse::<Notice>().is_err());
    }
}
