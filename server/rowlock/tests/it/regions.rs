//! Regions: a server sells the shows of its region and redirects to the others.

use crate::prelude::*;
use crate::sale::deliver;

const EU: &str = "http://eu.rowlock.example";
const US: &str = "http://us.rowlock.example";
const REGIONS: (&str, &str) = ("REGIONS", "eu=http://eu.rowlock.example, us=http://us.rowlock.example/");

#[tokio::test(flavor = "multi_thread")]
async fn show_is_sold_in_its_region_and_others_redirect_there() {
    let mut world = World::start(0, &[REGIONS]).await;
    world.execute("UPDATE theatres SET region = 'us'").await;
    let eu = world.add_server(&[("REGION", "eu"), ("PUBLIC_URL", EU)]).await;
    let us = world.add_server(&[("REGION", "us"), ("PUBLIC_URL", US)]).await;
    let (ann, show) = (world.visitor_at(eu), world.show);

    let page = RawAnswer::of(ann.request(Method::GET, &format!("/shows/{show}?from=mail&lang=de"))).await.into_page();
    assert_eq!(page, (StatusCode::TEMPORARY_REDIRECT, format!("{US}/shows/{show}?from=mail&lang=de")));
    let calls = [
        (Method::GET, "", Value::Null),
        (Method::GET, "/seats", Value::Null),
        (Method::GET, "/sold-seats", Value::Null),
        (Method::GET, "/waiting-list", Value::Null),
        (Method::POST, "/holds", json!({ "seats": [1] })),
        (Method::POST, "/waiting-list", json!({ "quantity": 1, "email": "ann@example.org" })),
    ];
    for (method, path, body) in calls {
        let (status, problem) = ann.call(method, &format!("/api/v1/shows/{show}{path}"), body).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::MISDIRECTED_REQUEST, "other_region"), "{path}");
    }
    let answer = ann.client.get(format!("{}/api/v1/shows/{show}/seats", ann.base)).send().await.expect("an answer");
    assert_eq!(answer.headers()["location"], US);

    let bob = world.visitor_at(us);
    let bought = bob.buy_seats(&[1], "tok_paid").await;
    assert_eq!(text(&bought["state"]), "CONFIRMED");
    expect_answer(bob.page(&format!("/shows/{show}")).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_show_is_not_found_and_a_theatre_without_a_region_is_sold_here() {
    let mut world = World::start(0, &[REGIONS]).await;
    // Rows copied from the other region, and one from an unconfigured region.
    let (there, nowhere, lost) = (new_id(), new_id(), new_id());
    world.run(sqlx::query("INSERT INTO show_regions VALUES ($1, 'us'), ($2, 'mars')").bind(there).bind(lost)).await;
    let eu = world.add_server(&[("REGION", "eu"), ("PUBLIC_URL", EU)]).await;
    let ann = world.visitor_at(eu);
    for (show, expected) in [
        (there, StatusCode::MISDIRECTED_REQUEST),
        (nowhere, StatusCode::NOT_FOUND),
        (lost, StatusCode::NOT_FOUND),
        (world.show, StatusCode::OK),
    ] {
        assert_eq!(ann.get(&format!("/api/v1/shows/{show}")).await.0, expected);
    }
    assert_eq!(text(&ann.buy_seats(&[1], "tok_paid").await["state"]), "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_of_a_booking_of_another_region_is_ignored_and_not_stored() {
    let mut world = World::start(0, &[REGIONS]).await;
    let eu = world.add_server(&[("REGION", "eu"), ("PUBLIC_URL", EU)]).await;
    let visitor = world.visitor_at(eu);
    for kind in ["payment.succeeded", "payment.failed"] {
        let event = json!({
            "id": format!("evt_{kind}"), "type": kind, "created_ms": 0,
            "payment": { "id": "p", "reference": new_id(), "amount_minor": PRICE, "currency": "EUR" },
        });
        assert_eq!(deliver(&visitor, &event).await, (StatusCode::OK, json!({ "outcome": "ignored" })), "{kind}");
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn theatre_keeps_its_region_and_its_shows_are_recorded() {
    let world = World::start(0, &[]).await;
    let noted = "SELECT count(*) FROM show_regions WHERE region = 'eu'";
    assert_eq!(world.count(noted).await, 0);
    for region in ["", "EU", "-eu", "e u"] {
        let set = sqlx::query("UPDATE theatres SET region = $1").bind(region).execute(&world.pg).await;
        assert_refused(&format!("{region:?} is not a valid name"), set, CHECK_VIOLATION, "theatres_region_check");
    }
    let set = "UPDATE theatres SET region = 'eu'";
    world.execute(set).await;
    assert_eq!(world.count(noted).await, 1);
    world.execute(set).await;
    crate::world::insert_show(&world.pg, 300_000, 3_600).await;
    assert_eq!(world.count(noted).await, 2, "a later show is recorded too");
    for other in ["UPDATE theatres SET region = 'us'", "UPDATE theatres SET region = NULL"] {
        assert_refused(other, sqlx::query(other).execute(&world.pg).await, CHECK_VIOLATION, "it stays there");
    }
    world.execute("UPDATE theatres SET name = 'Boreal'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_region_settings_prevent_the_start() {
    let world = World::start(0, &[]).await;
    for (settings, said) in [
        (&["--region", "eu"][..], "REGION is eu, which REGIONS does not name"),
        (&["--regions", "eu=https://eu.example"][..], "REGION is not set"),
        (&["--region", "eu", "--regions", "eu"][..], "REGIONS has eu"),
        (&["--region", "eu", "--regions", "eu=https://eu.example/tickets"][..], "REGIONS has an address of eu"),
        (&["--region", "eu", "--regions", "eu=https://eu.example"][..], "PUBLIC_URL is another"),
        (
            &[
                "--region",
                "eu",
                "--public-url",
                "https://e.example",
                "--regions",
                "eu=https://e.example,eu=https://f.example",
            ][..],
            "REGIONS has eu twice",
        ),
    ] {
        let (good, output) = world.command(&[&["serve"][..], settings].concat()).await;
        assert!(!good && output.contains(said), "{settings:?}: {output}");
    }
}
