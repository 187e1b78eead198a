//! One's own page: what one bought, and how one signs in.

use domain::api_accounts::{AccountView, BookingPage, BookingSummary};
use domain::booking::{BookingState, MoneyState};
use domain::roles::Role;
use leptos::prelude::*;

use super::words::{self, Notice};
use super::{known_password, new_password, notice_view, press, trouble_view};
use crate::shell::{Head, Page};

/// The page of an account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Whose it is.
    pub account: AccountView,
    /// A page of their bookings.
    pub bookings: BookingPage,
    /// What was done before.
    pub notice: Option<Notice>,
    /// What stood in the way of changing the password.
    pub trouble: Option<String>,
    /// Idempotency key of asking for the mail again.
    pub key: String,
}

impl Page for Account {
    fn head(&self) -> Head {
        Head { title: words::ACCOUNT.to_owned(), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let AccountView { name, email, email_proven, grants, .. } = self.account;
        let works_at = grants.into_iter().map(|grant| format!("{} ({})", grant.theatre, role_words(grant.role)));
        let works_at = works_at.collect::<Vec<_>>().join(", ");
        view! {
            <div class="account">
                <header class="account-head">
                    <div>
                        <h1>{words::ACCOUNT}</h1>
                        <p class="quiet"><bdi data-testid="account-name">{name}</bdi>" · "<bdi>{email}</bdi></p>
                        {(!works_at.is_empty()).then(|| view! { <p class="quiet small">{words::WORKS_AT}" "{works_at}</p> })}
                    </div>
                    {press("/account/logout", None, words::SIGN_OUT, "sign-out")}
                </header>
                {notice_view(self.notice)}
                {(!email_proven).then(|| prove(self.key))}
                <section class="account-bookings" aria-labelledby="account-bookings">
                    <h2 id="account-bookings">{words::BOOKINGS}</h2>
                    {bookings_view(self.bookings)}
                </section>
                <section class="account-security" aria-labelledby="account-security">
                    <h2 id="account-security">{words::SECURITY}</h2>
                    <div class="card account-card">
                        {trouble_view(self.trouble)}
                        <form class="account-form" action="/account/password" method="post">
                            {known_password("current", words::CURRENT_PASSWORD)}
                            {new_password("new", words::NEW_PASSWORD)}
                            <button class="button button-quiet" r#type="submit" data-testid="change-password">{words::CHANGE_PASSWORD}</button>
                        </form>
                    </div>
                    <div class="card account-card">
                        <p class="quiet small">{words::SIGN_OUT_EVERYWHERE_HINT}</p>
                        {press("/account/logout-everywhere", None, words::SIGN_OUT_EVERYWHERE, "sign-out-everywhere")}
                    </div>
                </section>
            </div>
        }
        .into_any()
    }
}

fn prove(key: String) -> impl IntoView {
    view! {
        <section class="card account-card account-prove" data-testid="prove">
            <h2>{words::PROVE_TITLE}</h2>
            <p>{words::PROVE_LEAD}</p>
            {press("/account/email-link", Some(key), words::PROVE_AGAIN, "send-again")}
        </section>
    }
}

fn bookings_view(page: BookingPage) -> AnyView {
    if page.bookings.is_empty() {
        return view! {
            <div class="card account-card">
                <p class="quiet">{words::NO_BOOKINGS}</p>
                <p><a class="button" href="/search">{words::FIND_A_SHOW}</a></p>
            </div>
        }
        .into_any();
    }
    view! {
        <ul class="account-list" data-testid="my-bookings">{page.bookings.into_iter().map(line).collect_view()}</ul>
        {page.next.map(|next| view! { <p><a class="button button-quiet" href=format!("/account?after={next}")>{words::OLDER}</a></p> })}
    }
    .into_any()
}

fn line(booking: BookingSummary) -> impl IntoView {
    let state = state_words(booking.state, booking.money);
    view! {
        <li>
            <a class="account-booking card" href=format!("/bookings/{}", booking.id) data-testid="my-booking" data-state=booking.state.as_str()>
                <span class="account-booking-what">
                    <strong><bdi>{booking.film}</bdi></strong>
                    <span>{booking.starts}</span>
                    <span class="quiet small"><bdi>{booking.place}</bdi></span>
                </span>
                <span class="account-booking-seats">{booking.what.join(", ")}</span>
                <span class="account-booking-state">
                    <span>{state}</span>
                    <span class="quiet small">{booking.total.to_string()}" · "{booking.reference}</span>
                </span>
            </a>
        </li>
    }
}

const fn state_words(state: BookingState, money: MoneyState) -> &'static str {
    match (state, money) {
        (BookingState::Confirmed, _) => "Booked",
        (_, MoneyState::Refunding) => "Money on its way back",
        (_, MoneyState::Refunded) => "Paid back",
        (_, MoneyState::Moved) => "Moved to another booking",
        (BookingState::Cancelled, _) => "Cancelled",
        (BookingState::Expired, _) => "Expired",
        (BookingState::PaymentSucceeded, _) => "Paid",
        (BookingState::Created | BookingState::SeatsLocked | BookingState::PaymentPending, _) => "Being paid",
    }
}

const fn role_words(role: Role) -> &'static str {
    match role {
        Role::BoxOffice => "box office",
        Role::Manager => "manager",
        Role::Organiser => "organiser",
    }
}
