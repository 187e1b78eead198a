//! Taxes and fees: every view of a sale has the same parts of its total, in the database as in the domain.

use domain::money::Currency;
use domain::pricing::{ContainedTaxAndFee, MAX_AMOUNT_MINOR, MAX_TAX_BASIS_POINTS};

use crate::box_office::{desk_path, hired, sale, seller_with_open_till};
use crate::organiser::{API, organiser, post, post_ok, room, screen_of, set_prices, visitor_of, week};
use crate::prelude::*;

/// Parts of a seat's price: 18 % are added to 100.00, then a fee of 1.50.
const NET: i64 = 10_000;
const TAX: i64 = 1_800;
const FEE: i64 = 150;
const GROSS: i64 = NET + TAX + FEE;

fn added_tax_and_fee() -> Value {
    json!({ "strategy": "added", "tax_basis_points": 1_800, "fee_minor": FEE })
}

fn euros(minor: i64) -> Value {
    json!({ "minor": minor, "currency": "EUR" })
}

/// The parts of the total of this many seats.
fn parts(seats: i64) -> Value {
    let [subtotal, taxes, fees, total] = [NET, TAX, FEE, GROSS].map(|part| euros(seats * part));
    json!({ "subtotal": subtotal, "taxes": taxes, "fees": fees, "total": total })
}

/// Sets the tariff: 100.00 for a seat, a fifth more at weekends, with these tax and fee.
async fn set_tax_and_fee(olga: &mut Browser, tax_and_fee: Value) -> (StatusCode, Value) {
    let (_, before) = olga.get(&format!("{API}/tariff")).await;
    let tariff = json!({ "base": { "gold": NET, "silver": NET }, "weekend_percent": 120, "matinee_percent": 100,
        "prime_percent": 100, "tax_and_fee": tax_and_fee, "version": before["version"] });
    post(olga, "/tariff", json!({ "tariff": tariff, "reason": "A new tax." })).await
}

/// Plans a show on Monday, 7 January 2030, at 20:00.
async fn plan_show(olga: &mut Browser, screen: &Value, sales: &str) -> Value {
    let mut plan = week(&screen["id"], "2030-01-07", "monday", &["20:00"]);
    plan["terms"] = json!({ "sales": sales, "hold_seconds": 300, "flash_sale": false, "per_person": 10 });
    post_ok(olga, "/programme", plan).await["shows"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_a_sale_has_the_same_parts() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    expect_answer(set_tax_and_fee(&mut olga, added_tax_and_fee()).await, StatusCode::OK);
    let ann = visitor_of(&world, &plan_show(&mut olga, &screen, "open").await);
    let show = format!("/api/v1/shows/{}", ann.show);

    let plan = expect_answer(ann.get(&format!("{show}/plan")).await, StatusCode::OK);
    assert_eq!(plan["categories"][0]["price"], euros(GROSS));
    let best = expect_answer(ann.get(&format!("{show}/best?count=2")).await, StatusCode::OK);
    assert_eq!(best["suggestions"][0]["total"], euros(2 * GROSS), "{best}");
    let hold = expect_answer(ann.hold(&[0, 1]).await, StatusCode::CREATED);
    assert_eq!((&hold["breakdown"], &hold["total"]), (&parts(2), &euros(2 * GROSS)));
    assert_eq!(ann.current_hold().await["breakdown"], parts(2));
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    let paid = expect_answer(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK);
    for view in [&booking, &paid, &ann.booking(&paid).await] {
        assert_eq!((&view["breakdown"], &view["total"]), (&parts(2), &euros(2 * GROSS)), "{view}");
    }

    let mut bo = seller_with_open_till(&world, "bo@example.org").await;
    let desk = desk_path(&format!("shows/{}", ann.show));
    let caller = json!({ "seats": [10], "name": "Mrs Ortega", "minutes": 60 });
    let caller = expect_answer(bo.post(&format!("{desk}/caller-holds"), caller).await, StatusCode::CREATED);
    assert_eq!((&caller["breakdown"], &caller["total"]), (&parts(1), &euros(GROSS)));
    let held = expect_answer(bo.post(&format!("{show}/holds"), json!({ "seats": [4] })).await, StatusCode::CREATED);
    let sold = expect_answer(bo.post(&format!("{desk}/sales"), sale(&held, "cash")).await, StatusCode::CREATED);
    assert_eq!(sold["breakdown"], parts(1));
    let held = expect_answer(bo.post(&format!("{show}/holds"), json!({ "seats": [6] })).await, StatusCode::CREATED);
    let guest = json!({ "hold": held["id"], "means": "free", "total_minor": 0, "reason": "Press." });
    let guest = expect_answer(bo.post(&format!("{desk}/sales"), guest).await, StatusCode::CREATED);
    assert_eq!(guest["breakdown"], parts(0), "a free ticket has neither tax nor fee");

    // The parts of the remaining seat; the report still counts both.
    let smaller = expect_answer(ann.cancel(&paid, Some(&[1])).await, StatusCode::OK);
    assert_eq!(smaller["breakdown"], parts(1));
    let mut max = hired(&world, "max@example.org", "manager").await;
    let path = format!("{API}/bookings/{}", text(&paid["id"]));
    let seen = expect_answer(max.get(&path).await, StatusCode::OK);
    assert_eq!((&seen["breakdown"], &seen["total"]), (&parts(1), &euros(GROSS)), "{seen}");
    let report = expect_answer(max.get(&format!("{API}/reports/sales")).await, StatusCode::OK);
    for sums in ["totals", "by_film", "by_category", "by_show"].map(|group| &report[group][0]) {
        let minor = ["gross_minor", "net_minor", "tax_minor", "fee_minor"].map(|part| sums[part].as_i64());
        assert_eq!(minor, [GROSS, NET, TAX, FEE].map(|part| Some(3 * part)), "{report}");
    }
    let films = expect_answer(max.page(&format!("{API}/reports/csv/films")).await, StatusCode::OK);
    let names = "\"gross_minor\",\"given_back\",\"net_minor\",\"tax_minor\",\"fee_minor\"";
    let sums = format!("\"Tide\",\"EUR\",3,4,{},1,{},{},{},", 3 * GROSS, 3 * NET, 3 * TAX, 3 * FEE);
    assert!(films.contains(names) && films.contains(&sums), "{films}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tax_and_fee_have_limits_and_stay_when_a_request_omits_them() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    for (tax_and_fee, code) in [
        (json!({ "tax_basis_points": MAX_TAX_BASIS_POINTS + 1 }), "price_invalid"),
        (json!({ "fee_minor": MAX_AMOUNT_MINOR + 1 }), "price_invalid"),
        (json!({ "tax_basis_points": 70_000 }), "malformed"),
        (json!({ "tax_basis_points": 7.5 }), "malformed"),
        (json!({ "fee_minor": -1 }), "malformed"),
        (json!({ "strategy": "none" }), "malformed"),
        (json!({ "tax": 700 }), "malformed"),
    ] {
        expect_problem(set_tax_and_fee(&mut olga, tax_and_fee).await, StatusCode::BAD_REQUEST, code);
    }
    assert_eq!(world.count("SELECT count(*) FROM theatre_tariffs").await, 0);
    let most = json!({ "strategy": "added", "tax_basis_points": MAX_TAX_BASIS_POINTS, "fee_minor": MAX_AMOUNT_MINOR });
    let set = expect_answer(set_tax_and_fee(&mut olga, most.clone()).await, StatusCode::OK);
    assert_eq!((&set["tax_and_fee"], &olga.get(&format!("{API}/tariff")).await.1), (&most, &set));
    // A program that knows neither tax nor fee does not remove them.
    set_prices(&mut olga, &["gold"]).await;
    assert_eq!(olga.get(&format!("{API}/tariff")).await.1["tax_and_fee"], most);
}

#[tokio::test(flavor = "multi_thread")]
async fn tariff_stored_before_tax_and_fee_existed_is_read_and_its_shows_have_none() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    world
        .execute(
            "INSERT INTO theatre_tariffs (theatre_id, tariff, version, updated_at)
             VALUES ('aurora', '{\"base\": {\"gold\": 1250}, \"surcharge\": {\"3D\": 200}, \"prime_percent\": 100,
                                 \"matinee_percent\": 80, \"weekend_percent\": 120}', 1, now())",
        )
        .await;
    let (_, tariff) = olga.get(&format!("{API}/tariff")).await;
    let none = json!({ "strategy": "included", "tax_basis_points": 0, "fee_minor": 0 });
    assert_eq!((&tariff["base"]["gold"], &tariff["tax_and_fee"]), (&json!(1_250), &none), "{tariff}");
    let screen = screen_of(&mut olga, &room("A-B")).await;
    let ann = visitor_of(&world, &plan_show(&mut olga, &screen, "open").await);
    let hold = expect_answer(ann.hold(&[0, 1]).await, StatusCode::CREATED);
    let total = euros(2_500);
    let expected = json!({ "subtotal": total, "taxes": euros(0), "fees": euros(0), "total": total });
    assert_eq!(hold["breakdown"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_show_prices_new_categories_with_the_present_tax_and_fee_and_keeps_its_own() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    expect_answer(set_tax_and_fee(&mut olga, Value::Null).await, StatusCode::OK);
    let draft = plan_show(&mut olga, &screen, "planned").await;
    expect_answer(set_tax_and_fee(&mut olga, added_tax_and_fee()).await, StatusCode::OK);

    let mut silver = room("A-C");
    (silver["categories"][0]["name"], silver["zones"][0]["category"]) = (json!("silver"), json!("silver"));
    let screen = screen_of(&mut olga, &silver).await;
    let start = json!({ "at": "2030-01-07T20:00", "version": 1 });
    let to = json!({ "screen": screen["id"], "start": start, "reason": "A larger room." });
    let moved = post_ok(&mut olga, &format!("/programme/{}/move", text(&draft["id"])), to).await;
    assert_eq!(moved["prices"], json!({ "silver": GROSS }), "{moved}");
    let kept = "SELECT count(*) FROM shows WHERE sales = 'planned' AND (tax_basis_points, fee_minor) = (0, 0)";
    assert_eq!(world.count(kept).await, 1);
    for change in ["UPDATE shows SET tax_basis_points = 700", "UPDATE shows SET fee_minor = fee_minor + 1"] {
        assert_refused(change, sqlx::query(change).execute(&world.pg).await, CHECK_VIOLATION, "keeps its tax rate");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contained_tax_is_the_same_in_the_database_and_in_the_domain() {
    let world = World::start(0, &[]).await;
    let (mut prices, mut rates, mut fees, mut expected) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let euro = Currency::parse("EUR").expect("a code");
    for tax_basis_points in [0, 1, 250, 700, 1_200, 1_800, 2_000, 4_999, MAX_TAX_BASIS_POINTS] {
        for fee_minor in [0, 1, 150, 99_999] {
            let tax_and_fee = ContainedTaxAndFee { tax_basis_points, fee_minor };
            for price in (0..300).chain((300..30_000).step_by(101)).chain([1_000_000_000, 100_000_000_000]) {
                prices.push(price);
                rates.push(tax_basis_points.cast_signed());
                fees.push(fee_minor);
                expected.push(tax_and_fee.breakdown([(price, 1)], euro).taxes.minor);
            }
        }
    }
    let sql = "SELECT contained_tax(price, rate, fee)
               FROM unnest($1::bigint[], $2::smallint[], $3::bigint[])
                    WITH ORDINALITY AS amount (price, rate, fee, number)
               ORDER BY number";
    let query = sqlx::query_scalar(sql).bind(&prices).bind(&rates).bind(&fees);
    let taxes: Vec<i64> = world.values(query).await;
    let compared = taxes.iter().zip(&expected).zip(prices.iter().zip(&rates).zip(&fees));
    for ((tax, expected), amount) in compared {
        assert_eq!(tax, expected, "price, rate, fee: {amount:?}");
    }
    assert_eq!(taxes.len(), expected.len());
}
