//! Daily comparison of a gateway's ledger with our payments: each difference is parked once.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::box_office::{acts, hired};
use crate::faults::gateway_proxy::GatewayProxy;
use crate::sql_guards::insert_payment;
use crate::telemetry::{TOKEN, value};
use crate::world::{PRICE, World, text, wait_until};

/// Payments of other systems in the same account: more than a page.
const OTHERS: u32 = 120;

/// Inserts an expired booking of today.
async fn insert_expired_booking(world: &World, money: &str) -> Uuid {
    let id = platform::ids::booking_id(platform::clock::now());
    let insert = "WITH made AS (
                      INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                          buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                      VALUES ($1, $1::text, $2, 'no-owner', $1, 1, 'EXPIRED', $3, 1250, 'EUR', '', '', '', '', now(), now(), now()))
                  INSERT INTO booking_seats (booking_id, seat_no, label, category, price_minor)
                  VALUES ($1, 1, 'A2', 'Gold', 1250)";
    let written = sqlx::query(insert).bind(id).bind(world.show).bind(money).execute(&world.pg).await;
    written.expect("a booking is written");
    id
}

/// Compares today and yesterday, in case it is midnight, and waits for the end.
async fn compare_days(world: &World) {
    let days = "INSERT INTO ledger_comparisons (gateway, day, planned_at, leased_until)
                SELECT 'simulator', (now() AT TIME ZONE 'UTC')::date - ago, now(), now() FROM generate_series(0, 1) AS ago
                ON CONFLICT (gateway, day) DO UPDATE SET finished_at = NULL, payments = NULL, leased_until = now()";
    world.execute(days).await;
    let query = "SELECT count(*) FROM ledger_comparisons WHERE finished_at IS NULL";
    world.wait_for_count("both days are compared", query, 0).await;
}

async fn differences(world: &World) -> BTreeMap<String, (Uuid, i64, i64)> {
    let rows: Vec<(String, Uuid, i64, i64)> = sqlx::query_as(
        "SELECT kind, booking_id, here_minor, there_minor FROM ledger_differences WHERE settled_at IS NULL",
    )
    .fetch_all(&world.pg)
    .await
    .expect("the rows");
    let kinds: BTreeMap<_, _> = rows.iter().cloned().map(|(kind, id, here, there)| (kind, (id, here, there))).collect();
    assert_eq!(kinds.len(), rows.len(), "each difference once: {rows:?}");
    kinds
}

fn id(booking: &serde_json::Value) -> Uuid {
    Uuid::parse_str(text(&booking["id"])).expect("an id")
}

/// Makes one payment of each kind of difference. Returns the differences: booking, our sum, the gateway's sum.
async fn create_differences(
    world: &World,
    gateway: &GatewayProxy,
    by_hand: Uuid,
) -> BTreeMap<String, (Uuid, i64, i64)> {
    let payment = gateway.simulator.ledger.get_by_key(&format!("pay:{by_hand}")).expect("a payment");
    gateway.simulator.refund(&payment.id, "by hand", 500, &BTreeMap::new()).expect("refunded");
    let more = id(&world.visitor().buy_seats(&[31], "tok_paid").await);
    let changed = "UPDATE payments SET charged_minor = amount_minor - 1 WHERE booking_id = $1";
    sqlx::query(changed).bind(more).execute(&world.pg).await.expect("the sum is changed");
    let unrecorded = insert_expired_booking(world, "FAILED").await;
    let voided = "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, updated_at)
                  VALUES ($1, 'simulator', 'voided', 1250, 'EUR', now())";
    sqlx::query(voided).bind(unrecorded).execute(&world.pg).await.expect("the voided payment is written");
    gateway.open_unrecorded_payment(&unrecorded.to_string(), &format!("pay:{unrecorded}"), Some("paid"));
    let stranger = platform::ids::new_id();
    gateway.open_unrecorded_payment(&stranger.to_string(), &format!("pay:{stranger}"), Some("paid"));
    let missing = insert_expired_booking(world, "PAID").await;
    insert_payment(&world.pg, missing, 700).await;
    let sent = id(&world.visitor().buy_seats(&[41], "tok_paid").await);
    let refund = "INSERT INTO refunds VALUES ($1, 1, 300, 0, 'settled', now(), now())";
    sqlx::query(refund).bind(sent).execute(&world.pg).await.expect("the unsent refund is written");

    [
        ("refunded_there", by_hand, 0, 500),
        ("charged_differs", more, PRICE - 1, PRICE),
        ("charged_unpaid", unrecorded, 0, PRICE),
        ("unknown_booking", stranger, 0, PRICE),
        ("missing_there", missing, 700, 0),
        ("refunded_here", sent, 300, 0),
    ]
    .map(|(kind, booking, here, there)| (kind.to_owned(), (booking, here, there)))
    .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_ledger_difference_is_parked_once() {
    let gateway = GatewayProxy::open(Arc::default()).await;
    let world = World::start(2, &[("SIMULATOR_URL", gateway.url.as_str()), ("METRICS_TOKEN", TOKEN)]).await;
    let payment = |booking: Uuid| gateway.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("a payment");
    let metric = async || value(&world.servers[0].url, "rowlock_ledger_differences").await;
    // Matching payments: sold, refunded, or of another system.
    let ann = world.visitor();
    ann.buy_seats(&[1], "tok_paid").await;
    let (part, whole) = (world.visitor().buy_seats(&[11, 12], "tok_paid").await, world.visitor());
    let whole_booking = whole.buy_seats(&[21], "tok_paid").await;
    whole.cancel(&whole_booking, None).await;
    whole.wait_for_money(&whole_booking, "REFUNDED").await;
    for number in 0..OTHERS {
        gateway.open_unrecorded_payment("an order of another shop", &format!("other:{number}"), Some("paid"));
    }
    compare_days(&world).await;
    assert_eq!(differences(&world).await, BTreeMap::new());
    assert_eq!(metric().await, 0.0);

    // Differences.
    let expected = create_differences(&world, &gateway, id(&part)).await;
    let booking = |kind: &str| expected[kind].0;
    let (by_hand, more, missing) = (booking("refunded_there"), booking("charged_differs"), booking("missing_there"));
    let (unrecorded, stranger, sent) =
        (booking("charged_unpaid"), booking("unknown_booking"), booking("refunded_here"));
    for _ in 0..2 {
        compare_days(&world).await;
        assert_eq!(differences(&world).await, expected, "a second comparison finds the same");
    }
    assert_eq!(metric().await, 6.0);

    let mut max = hired(&world, "max@example.org", "manager").await;
    let api = "/api/v1/theatres/aurora/parked";
    let (status, list) = max.get(api).await;
    let listed = list.as_array().expect("a list");
    assert_eq!((status, listed.len()), (StatusCode::OK, 5), "the unknown booking belongs to no theatre: {list}");
    assert!(listed.iter().all(|one| one["effect"] == "compare_ledger" && one["attempts"] == 0), "{list}");
    let number = |booking: Uuid| {
        let one = listed.iter().find(|one| one["booking"] == booking.to_string()).expect("the difference is listed");
        one["id"].as_i64().expect("a number")
    };
    let (_, html) = max.page("/staff/aurora/parked").await;
    assert!(html.contains("data-effect=\"compare_ledger\"") && html.contains("sent €5.00 back"), "{html}");
    assert!(max.page("/staff").await.1.contains("data-parked=\"5\""), "the staff page counts them");
    let (well, said) = world.command(&["parked"]).await;
    assert!(well && said.contains(&stranger.to_string()) && said.contains("6 wait for a person"), "{said}");

    // A retry compares again: the payment is handled as a late one, and refunded.
    let why = json!({ "reason": "The gateway says so." });
    let again = format!("{api}/{}/retry", number(unrecorded));
    assert_eq!(max.post(&again, why.clone()).await.0, StatusCode::NO_CONTENT);
    wait_until("the money is refunded", || async { payment(unrecorded).refunded_minor() == PRICE }).await;
    wait_until("both sides agree", || async { !differences(&world).await.contains_key("charged_unpaid") }).await;
    let back = "SELECT count(*) FROM bookings WHERE money = 'REFUNDED' AND state = 'EXPIRED'";
    world.wait_for_count("the refund is recorded", back, 1).await;
    // A retry that still differs is parked again.
    assert_eq!(max.post(&format!("{api}/{}/retry", number(by_hand)), why.clone()).await.0, StatusCode::NO_CONTENT);
    let query = "SELECT count(*) FROM ledger_differences WHERE settled_at IS NULL AND check_at IS NULL";
    world.wait_for_count("the difference is parked again", query, 5).await;
    for booking in [by_hand, more, missing, sent] {
        let settle = format!("{api}/{}/settle", number(booking));
        assert_eq!(max.post(&settle, why.clone()).await.0, StatusCode::NO_CONTENT, "{booking}");
        assert_eq!(max.post(&settle, why.clone()).await.0, StatusCode::NOT_FOUND, "{booking} is not parked any more");
    }
    let id: i64 = sqlx::query_scalar("SELECT id FROM ledger_differences WHERE kind = 'unknown_booking'")
        .fetch_one(&world.pg)
        .await
        .expect("a number");
    let (well, said) = world.command(&["parked", "settle", &id.to_string(), "--reason", "Of the shop."]).await;
    assert!(well, "{said}");
    compare_days(&world).await;
    assert_eq!(differences(&world).await, BTreeMap::new(), "settled differences are not found again");
    assert_eq!(metric().await, 0.0);
    let acts = acts(&world).await;
    assert_eq!(acts.iter().filter(|act| *act == "parked_settled").count(), 4, "{acts:?}");
    // The test broke their books and the sums on purpose.
    let broken: Vec<String> = expected.values().map(|(booking, ..)| booking.to_string()).collect();
    let mut findings: Vec<&str> = broken.iter().map(String::as_str).collect();
    findings.extend(["which is no booking", "money in"]);
    world.end_with_known_findings(&findings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn day_is_compared_by_one_replica_and_taken_over_if_it_dies() {
    let gateway = GatewayProxy::open(Arc::default()).await;
    let world = World::start(2, &[("SIMULATOR_URL", gateway.url.as_str())]).await;
    let query = "SELECT count(*) FROM ledger_comparisons WHERE finished_at IS NOT NULL AND taken = 1";
    world.wait_for_count("yesterday is compared", query, 1).await;
    assert_eq!(world.count("SELECT count(*) FROM ledger_comparisons").await, 1, "and no other day");
    let gone = "UPDATE ledger_comparisons SET finished_at = NULL, payments = NULL, leased_until = now() + interval '3 seconds'";
    world.execute(gone).await;
    let query = "SELECT count(*) FROM ledger_comparisons WHERE finished_at IS NOT NULL AND taken = 2";
    world.wait_for_count("another replica takes over", query, 1).await;
}
