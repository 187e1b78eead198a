//! The page of an account: bookings, sign-in and password.

use domain::api::accounts::{AccountView, BookingPage, BookingSummary};
use domain::booking::{BookingState, MoneyState};
use domain::roles::Role;
use leptos::prelude::*;

use super::{Notice, known_password, new_password, notice_view, press, trouble_view, username};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, Page};

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
    pub trouble: Option<String>,
    /// Idempotency key for requesting the confirmation mail again.
    pub key: String,
}

impl Page for AccountPage {
    fn head(&self) -> Head {
        Head { title: say!("account.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let AccountView { name, email, email_proven, grants, .. } = self.account;
        let own_username = username(email.clone());
        let works_at = grants.into_iter().map(|grant| format!("{} ({})", grant.theatre, role_words(grant.role)));
        let works_at = works_at.collect::<Vec<_>>().join(", ");
        view! {
            <div class="account">
                <header class="account-head">
                    <div>
                        <h1>{say!("account.title")}</h1>
                        <p class="quiet"><bdi data-testid="account-name">{name}</bdi>" · "<bdi>{email}</bdi></p>
                        {(!works_at.is_empty()).then(|| view! { <p class="small"><a href="/staff" data-testid="works-at">{say!("account.works_at", places = &works_at)}</a></p> })}
                    </div>
                    {press("/account/logout", None, say!("account.sign_out"), "sign-out")}
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
                        {trouble_view(self.trouble)}
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
        .into_any()
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

fn bookings_view(page: BookingPage) -> AnyView {
    if page.bookings.is_empty() {
        return view! {
            <div class="card account-card">
                <p class="quiet">{say!("account.no_bookings")}</p>
                <p><a class="button" href="/search">{say!("account.find_show")}</a></p>
            </div>
        }
        .into_any();
    }
    view! {
        <ul class="account-list" data-testid="my-bookings">{page.bookings.into_iter().map(line).collect_view()}</ul>
        {page.next.map(|next| view! { <p><a class="button button-quiet" href=format!("/account?after={next}")>{say!("account.older")}</a></p> })}
    }
    .into_any()
}

fn line(booking: BookingSummary) -> impl IntoView {
    let state = state_words(&booking);
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

pub(crate) fn state_words(booking: &BookingSummary) -> String {
    match (booking.state, booking.money) {
        (BookingState::Confirmed, _) => say!("account.state_booked"),
        // A bounced refund comes first, regardless of the payment state.
        _ if booking.came_back => say!("account.state_came_back"),
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
