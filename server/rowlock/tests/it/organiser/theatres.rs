//! Theatres: created by managers of all theatres, changed by managers of the one.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::API;
use crate::accounts::{another_theatre, form, grant, register_and_log_in};
use crate::reports::staff;
use crate::world::{World, expect_answer, text};

fn theatre(city: Value) -> Value {
    let mut request_body =
        json!({ "name": "Foz", "address": "Rua do Farol 3", "currency": "EUR", "reason": "It opens in May." });
    for (key, value) in city.as_object().expect("an object") {
        request_body[key] = value.clone();
    }
    request_body
}

#[tokio::test(flavor = "multi_thread")]
async fn manager_of_all_theatres_creates_one_and_manages_it() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let porto = json!({ "new_city": { "name": "Porto", "country": "PT", "time_zone": "Europe/Lisbon" } });
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (status, problem) = max.post("/api/v1/theatres", theatre(porto.clone())).await;
    assert_eq!(
        (status, text(&problem["code"])),
        (StatusCode::FORBIDDEN, "not_allowed"),
        "he manages one of two theatres"
    );
    register_and_log_in(&world, "mia@example.org").await;
    for place in ["aurora", "rialto"] {
        grant(&world, "mia@example.org", place, "manager").await;
    }
    let mut mia = crate::accounts::Browser::new(&world);
    mia.log_in("mia@example.org", crate::accounts::PASSWORD).await;
    for (wrong, status) in [
        (json!({ "city": "atlantis" }), StatusCode::NOT_FOUND),
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({ "city": "lisbon", "currency": "euro" }), StatusCode::BAD_REQUEST),
        (json!({ "new_city": { "name": "Porto", "country": "PT", "time_zone": "Porto" } }), StatusCode::BAD_REQUEST),
        (json!({ "city": "lisbon", "reason": "" }), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(mia.post("/api/v1/theatres", theatre(wrong.clone())).await.0, status, "{wrong}");
    }
    assert_eq!(world.count("SELECT count(*) FROM theatres").await, 2, "nothing was written");
    let (status, made) = mia.post("/api/v1/theatres", theatre(porto)).await;
    assert_eq!((status, &made["time_zone"]), (StatusCode::CREATED, &json!("Europe/Lisbon")), "{made}");
    let id = text(&made["id"]);
    assert_eq!(
        mia.get(&format!("/api/v1/theatres/{id}/screens")).await.0,
        StatusCode::OK,
        "she manages the new theatre"
    );
    let (_, listed) = mia.get(&format!("/api/v1/cities/{}/theatres", text(&made["city"]))).await;
    assert_eq!(listed[0]["name"], "Foz", "the theatre is listed");
    let (status, second) = mia.post("/api/v1/theatres", theatre(json!({ "city": made["city"] }))).await;
    assert_eq!(status, StatusCode::CREATED, "she still manages all theatres: {second}");
    assert_ne!(second["id"], made["id"]);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_created'").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn theatre_can_be_renamed_and_keeps_its_currency_once_a_show_is_planned() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, before) = max.get(API).await;
    let (_, page) = max.visitor().raw(reqwest::Method::GET, "/staff/aurora/theatre", Value::Null, "k").await;
    let links = page.split("<a ").filter_map(|rest| rest.split('>').next());
    let current: Vec<&str> =
        links.filter(|link| link.contains("/staff/") && link.contains("aria-current=\"page\"")).collect();
    assert!(matches!(&current[..], [link] if link.contains("href=\"/staff/aurora/theatre\"")), "{current:?}");
    let change = |name: &str, currency: &str, version: &Value| json!({ "name": name, "address": "Rua 9", "currency": currency, "version": version, "reason": "Sold." });
    let (status, problem) = max.post(API, change("Aurora", "USD", &before["version"])).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "a show is planned in euros");
    let (status, after) = max.post(API, change("Aurora Nova", "EUR", &before["version"])).await;
    assert_eq!((status, &after["name"], &after["address"]), (StatusCode::OK, &json!("Aurora Nova"), &json!("Rua 9")));
    let (status, _) = max.post(API, change("Once more", "EUR", &before["version"])).await;
    assert_eq!(status, StatusCode::CONFLICT, "the change is based on an older version");
    let (_, page) = world.visitor().raw(reqwest::Method::GET, "/theatres/aurora", Value::Null, "k").await;
    assert!(page.contains("Aurora Nova"));
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_changed'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_is_shown_in_the_page_language_with_a_remedy() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, before) = max.get(API).await;
    let visitor = max.visitor();
    let send = async |key: &str, name: &str, version: u64| {
        let version = version.to_string();
        let fields = [
            ("key", key),
            ("version", version.as_str()),
            ("name", name),
            ("address", "Rua 9"),
            ("currency", "EUR"),
            ("reason", "Sold."),
        ];
        let request = visitor.client.post(format!("{}/staff/aurora/theatre", visitor.base));
        let request = request.header("cookie", format!("{}; lang=de", visitor.cookie));
        let answer = form(request, &fields).send().await.expect("the server answers");
        (answer.status(), answer.text().await.expect("a page"))
    };
    let version = before["version"].as_u64().expect("a number");
    let (status, page) = send("k-1", "Nova", version + 7).await;
    assert_eq!(status, StatusCode::CONFLICT);
    // The text for buyers, about a booking, does not appear.
    assert!(page.contains("So wie die Dinge stehen, geht das nicht.") && !page.contains("Buchung hat sich"), "{page}");
    let detail = "Someone else has changed this theatre in the meantime. Look at it again, then change it.";
    assert!(page.contains(&format!("<bdi lang=\"en\">{detail}</bdi>")), "{page}");
    let (status, page) = send("k-2", &"x".repeat(200), version).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(page.contains("Mit diesen Angaben") && !page.contains("Bei uns ist etwas"), "{page}");
    assert!(page.contains("<bdi lang=\"en\">") && page.contains("is longer than"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_theatre_is_created_on_the_command_line() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", crate::accounts::PASSWORD)]).await;
    // As after `rowlock migrate`: no theatre. Rows that refer to one do not matter here.
    let nothing = "BEGIN; SET LOCAL session_replication_role = replica;
                   DELETE FROM shows; DELETE FROM screens; DELETE FROM theatres; DELETE FROM cities; COMMIT";
    sqlx::raw_sql(nothing).execute(&world.pg).await.expect("the tables are empty");
    let manager = ["admin", "create", "--email", "max@example.org", "--name", "Max"];
    let (good, said) = world.command(&manager).await;
    assert!(!good && said.contains("rowlock theatre create"), "{said}");

    let create = async |more: &[&str]| {
        let what = ["theatre", "create", "--name", "Foz", "--address", "Rua do Farol 3", "--currency", "EUR"];
        world.command(&[&what, more].concat()).await
    };
    let reason = ["--reason", "It opens in May."];
    for (wrong, why) in [
        (&["--city", "porto"][..], "no such city"),
        (&["--new-city", "Porto", "--country", "PT", "--time-zone", "Porto"], "no time zone"),
        (&["--new-city", "Porto"], "--time-zone"),
        (&[], "--city"),
    ] {
        let (good, said) = create(&[wrong, &reason].concat()).await;
        assert!(!good && said.to_lowercase().contains(why), "{wrong:?}: {said}");
    }
    assert_eq!(world.count("SELECT count(*) FROM cities").await, 0, "nothing was written");
    let porto = ["--new-city", "Porto", "--country", "PT", "--time-zone", "Europe/Lisbon"];
    let (good, said) = create(&[&porto, &reason[..]].concat()).await;
    assert!(good && said.starts_with("theatre foz-"), "{said}");
    let (good, said) = world.command(&manager).await;
    assert!(good && said.contains("is a manager of foz-"), "{said}");
    let lines = "SELECT count(*) FROM audit_list WHERE act = 'theatre_created' AND actor IS NULL";
    assert_eq!(world.count(lines).await, 1);

    // From here on pages and the API do the rest.
    let mut max = crate::accounts::Browser::new(&world);
    max.log_in("max@example.org", crate::accounts::PASSWORD).await;
    let city: String = sqlx::query_scalar("SELECT id FROM cities").fetch_one(&world.pg).await.expect("there is one");
    expect_answer(max.post("/api/v1/theatres", theatre(json!({ "city": city }))).await, StatusCode::CREATED);
}
