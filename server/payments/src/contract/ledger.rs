//! The ledger of a gateway, page by page.

use std::collections::{BTreeMap, BTreeSet};

use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::setup::{ContractSetup, money};
use crate::gateway::{MAX_LEDGER_ENTRIES, Window};
use crate::{LedgerEntry, refund_key};
use platform::clock;

/// Maximum number of pages that a test reads.
const MAX_PAGES: usize = 20;

fn this_hour() -> Window {
    let whole = |at: Timestamp| Timestamp(at.0 - at.0.rem_euclid(SECOND_MS));
    let now = whole(clock::now());
    Window { from: now.plus_ms(-30 * MINUTE_MS), until: now.plus_ms(30 * MINUTE_MS) }
}

/// All pages of the window, each within its bound.
async fn pages(setup: &ContractSetup, window: Window) -> Vec<Vec<LedgerEntry>> {
    let (mut pages, mut after) = (Vec::new(), None::<String>);
    while pages.len() < MAX_PAGES {
        let page = setup.gateway.ledger(window, after.as_deref()).await.expect("an answer");
        assert!(page.entries.len() <= MAX_LEDGER_ENTRIES, "{}", page.entries.len());
        pages.push(page.entries);
        after = page.next;
        if after.is_none() {
            return pages;
        }
    }
    panic!("the ledger has no end")
}

/// The sums of each booking in the ledger: charged, refunded. A booking that is listed twice has the same sums.
async fn listed(setup: &ContractSetup, window: Window) -> BTreeMap<Option<Uuid>, (i64, i64)> {
    let mut found = BTreeMap::new();
    for entry in pages(setup, window).await.into_iter().flatten() {
        let amounts = (entry.charged.minor, entry.refunded.minor);
        assert_eq!(*found.entry(entry.booking).or_insert(amounts), amounts, "{entry:?}");
        assert_eq!(entry.charged.currency.code(), "EUR");
    }
    found
}

pub(super) async fn the_ledger_lists_charges_and_refunds(setup: ContractSetup) {
    assert!(pages(&setup, this_hour()).await.concat().is_empty());
    let (paid, less) = (setup.charged(Some("paid")).await, setup.charged(Some("another_amount")).await);
    let back = setup.charged(Some("paid")).await;
    setup.charged(Some("declined")).await;
    setup.charged(None).await;
    setup.gateway.refund(&back, money(1_000), &refund_key(back.booking, 1), &[]).await.expect("refunded");
    setup.gateway.refund(&back, money(500), &refund_key(back.booking, 2), &[]).await.expect("refunded");
    let expected = [(paid.booking, (2_500, 0)), (less.booking, (2_499, 0)), (back.booking, (2_500, 1_500))];
    assert_eq!(listed(&setup, this_hour()).await, BTreeMap::from(expected.map(|(id, amounts)| (Some(id), amounts))));
    let entries = pages(&setup, this_hour()).await.concat();
    let entry = entries.iter().find(|entry| entry.booking == Some(paid.booking)).expect("it is there");
    let known = crate::PaymentIds { booking: paid.booking, gateway_ref: Some(entry.gateway_ref.clone()) };
    setup.gateway.status(&known).await.expect("an answer").expect("it is found by the id in the ledger");
}

pub(super) async fn ledger_pages_list_each_payment_once(setup: ContractSetup) {
    let mut bookings = BTreeSet::new();
    for _ in 0..=MAX_LEDGER_ENTRIES {
        bookings.insert(Some(setup.charged(Some("paid")).await.booking));
    }
    let pages = pages(&setup, this_hour()).await;
    assert!(pages.iter().filter(|page| !page.is_empty()).count() >= 2);
    let entries = pages.concat();
    assert_eq!(entries.len(), bookings.len(), "nothing is listed twice");
    assert_eq!(entries.into_iter().map(|entry| entry.booking).collect::<BTreeSet<_>>(), bookings);
}

pub(super) async fn a_ledger_window_lists_payments_charged_or_refunded_in_it(setup: ContractSetup) {
    let old = setup.charged(Some("paid")).await;
    let back = setup.charged(Some("paid")).await;
    setup.simulator.ledger.age_movements(60 * MINUTE_MS);
    assert!(listed(&setup, this_hour()).await.is_empty());
    setup.gateway.refund(&back, money(2_500), &refund_key(back.booking, 0), &[]).await.expect("refunded");
    assert_eq!(listed(&setup, this_hour()).await, BTreeMap::from([(Some(back.booking), (2_500, 2_500))]));
    let Window { from, until } = this_hour();
    let before = Window { from: from.plus_ms(-60 * MINUTE_MS), until: until.plus_ms(-60 * MINUTE_MS) };
    let expected = [(Some(old.booking), (2_500, 0)), (Some(back.booking), (2_500, 2_500))];
    assert_eq!(listed(&setup, before).await, BTreeMap::from(expected), "with their current sums");
}
