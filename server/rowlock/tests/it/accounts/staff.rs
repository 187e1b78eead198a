//! Staff roles: the first manager, further grants, the audit list, and the pages of both.

use super::pages::{open, submit};
use super::register_proven;
use crate::prelude::*;

/// A manager of the Aurora, created on the command line.
async fn manager(world: &World) -> Browser {
    let create = ["admin", "create", "--email", "max@example.org", "--name", "Max Manager", "--theatre", "aurora"];
    let (good, statuses) = world.command(&create).await;
    assert!(good && statuses.contains("manager of aurora"), "{statuses}");
    let mut max = Browser::new(world);
    let (status, answer) = max.log_in("max@example.org", PASSWORD).await;
    assert_eq!((status, &answer["grants"]), (StatusCode::OK, &json!([{ "theatre": "aurora", "role": "manager" }])));
    max
}

#[tokio::test(flavor = "multi_thread")]
async fn first_manager_is_created_on_the_command_line_and_grants_roles() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", PASSWORD)]).await;
    another_theatre(&world).await;
    let mut max = manager(&world).await;
    let mut ann = register_proven(&world, "ann@example.org").await;
    let staff = "/api/v1/theatres/aurora/staff";
    assert_eq!(ann.get(staff).await.0, StatusCode::NOT_FOUND);
    let hire =
        json!({ "email": "Ann@example.org", "role": "box_office", "granted": true, "reason": "Starts on Monday." });
    expect_answer(max.post(staff, hire.clone()).await, StatusCode::NO_CONTENT);
    // A new role ends the session, because its length depends on the role. She signs in again.
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    ann.log_in("ann@example.org", PASSWORD).await;
    let short = "SELECT count(*) FROM sessions WHERE ended_at IS NULL AND expires_at < now() + interval '17 hours'";
    assert_eq!(world.count(short).await, 2, "Ann's session and the manager's");
    assert_eq!(ann.get(staff).await.0, StatusCode::FORBIDDEN);
    assert_eq!(ann.post(staff, hire.clone()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(max.get("/api/v1/theatres/rialto/staff").await.0, StatusCode::NOT_FOUND, "not his theatre");
    let (_, people) = max.get(staff).await;
    let people: Vec<_> =
        people.as_array().expect("a list").iter().map(|one| (text(&one["name"]), &one["roles"])).collect();
    assert_eq!(people, [("Ann Example", &json!(["box_office"])), ("Max Manager", &json!(["manager"]))]);
    // A grant that exists already adds no row to the audit list.
    assert_eq!(max.post(staff, hire).await.0, StatusCode::NO_CONTENT);
    let dismiss =
        json!({ "email": "ann@example.org", "role": "box_office", "granted": false, "reason": "Moved away." });
    assert_eq!(max.post(staff, dismiss).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(ann.get(staff).await.0, StatusCode::NOT_FOUND);
    let lines = expect_answer(max.get("/api/v1/theatres/aurora/audit").await, StatusCode::OK);
    let lines = lines.as_array().expect("a list");
    let acts: Vec<_> = lines.iter().map(|line| (text(&line["act"]), text(&line["reason"]))).collect();
    let expected = [
        ("role_taken", "Moved away."),
        ("role_given", "Starts on Monday."),
        ("role_given", "At the server's command line."),
    ];
    assert_eq!(acts, expected);
    assert_eq!((&lines[0]["actor_name"], lines[2].get("actor")), (&json!("Max Manager"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn theatre_keeps_one_manager_and_grants_need_account_role_and_reason() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", PASSWORD)]).await;
    let mut max = manager(&world).await;
    let staff = "/api/v1/theatres/aurora/staff";
    let grant = |email: &str, role: &str, granted: bool, reason: &str| json!({ "email": email, "role": role, "granted": granted, "reason": reason });
    let long = "x".repeat(301);
    for (body, expected) in [
        (grant("max@example.org", "manager", false, "I resign."), (StatusCode::CONFLICT, "last_manager")),
        (grant("unknown@example.org", "manager", true, "Why not."), (StatusCode::NOT_FOUND, "not_found")),
        (grant("no-address", "manager", true, "Why not."), (StatusCode::BAD_REQUEST, "person_invalid")),
        (grant("max@example.org", "owner", true, "Why not."), (StatusCode::BAD_REQUEST, "malformed")),
        (grant("max@example.org", "organiser", true, " "), (StatusCode::BAD_REQUEST, "malformed")),
        (grant("max@example.org", "organiser", true, "a\nb"), (StatusCode::BAD_REQUEST, "malformed")),
        (grant("max@example.org", "organiser", true, &long), (StatusCode::BAD_REQUEST, "malformed")),
    ] {
        let (status, problem) = max.post(staff, body.clone()).await;
        assert_eq!((status, text(&problem["code"])), expected, "{body}");
    }
    assert_eq!(world.count("SELECT count(*) FROM audit_list").await, 1, "nothing changed");
    register_proven(&world, "mia@example.org").await;
    let answer = max.post(staff, grant("mia@example.org", "manager", true, "Takes over.")).await;
    assert_eq!(answer.0, StatusCode::NO_CONTENT);
    let resign = grant("max@example.org", "manager", false, "I resign.");
    assert_eq!(max.post(staff, resign).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.me().await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn manager_cannot_probe_addresses_by_granting_roles() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", PASSWORD)]).await;
    let mut max = manager(&world).await;
    let staff = "/api/v1/theatres/aurora/staff";
    let mut statuses = Vec::new();
    for number in 0..40 {
        let email = format!("{number}@example.org");
        let hire = json!({ "email": email, "role": "box_office", "granted": true, "reason": "A probe." });
        statuses.push(max.post(staff, hire).await.0);
        if statuses.last() == Some(&StatusCode::TOO_MANY_REQUESTS) {
            break;
        }
    }
    assert!(statuses.len() > 30, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_a_foreign_address_gives_no_role() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", PASSWORD)]).await;
    // Eve has registered the future manager's address first, and Mia's.
    let mut squatter = Browser::new(&world);
    let theirs = "the password of eve";
    for email in ["max@example.org", "mia@example.org"] {
        assert_eq!(squatter.register(email, theirs).await.0, StatusCode::CREATED);
    }
    assert_eq!(squatter.log_in("max@example.org", theirs).await.0, StatusCode::OK);
    let create = ["admin", "create", "--email", "max@example.org", "--name", "Max Manager", "--theatre", "aurora"];
    let (good, statuses) = world.command(&create).await;
    assert!(good && statuses.contains("never confirmed"), "{statuses}");
    assert_eq!(squatter.me().await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(squatter.log_in("max@example.org", theirs).await.0, StatusCode::UNAUTHORIZED);
    let mut max = Browser::new(&world);
    assert_eq!(max.log_in("max@example.org", PASSWORD).await.0, StatusCode::OK);
    let staff = "/api/v1/theatres/aurora/staff";
    let hire = json!({ "email": "mia@example.org", "role": "manager", "granted": true, "reason": "Starts on Monday." });
    expect_problem(max.post(staff, hire).await, StatusCode::CONFLICT, "email_unproven");
    assert_eq!(world.count("SELECT count(*) FROM staff_grants").await, 1, "the manager's own");
    // If the address is proven, the command keeps its password.
    let mut ben = register_proven(&world, "ben@example.org").await;
    let create = ["admin", "create", "--email", "ben@example.org", "--name", "Ben", "--theatre", "aurora"];
    let (good, statuses) = world.command(&create).await;
    assert!(good && statuses.contains("its password stays"), "{statuses}");
    assert_eq!(ben.log_in("ben@example.org", PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_needs_a_password_and_an_existing_theatre() {
    let world = World::start(1, &[]).await;
    let create = async |more: &[&str]| {
        let arguments = [&["admin", "create", "--email", "max@example.org", "--name", "Max"], more].concat();
        world.command(&arguments).await
    };
    let (good, statuses) = create(&[]).await;
    assert!(!good && statuses.contains("ROWLOCK_PASSWORD"), "{statuses}");
    let (good, statuses) = create(&["--theatre", "nowhere"]).await;
    assert!(!good && statuses.contains("nowhere"), "{statuses}");
    let (good, statuses) = create(&["--password", "on the command line"]).await;
    assert!(!good && statuses.contains("--password"), "there is no such flag: {statuses}");
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_list_is_append_only() {
    let world = World::start(0, &[]).await;
    world
        .execute("INSERT INTO audit_list (at, act, subject, reason) VALUES (now(), 'test', 'nothing', 'Because.')")
        .await;
    for (change, why) in [
        ("UPDATE audit_list SET reason = 'Another.'", "audit_list rows are immutable"),
        ("DELETE FROM audit_list", "audit_list rows are immutable"),
        ("TRUNCATE audit_list", "audit_list rows are immutable"),
        // CASCADE would empty other immutable tables too; any of them may refuse first.
        ("TRUNCATE accounts CASCADE", "rows are immutable"),
    ] {
        assert_refused(change, sqlx::query(change).execute(&world.pg).await, CHECK_VIOLATION, why);
    }
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE reason = 'Because.'").await, 1);
}

const TEAM: &str = "/staff/aurora/team";

async fn staff_member(world: &World, email: &str, role: &str) -> Browser {
    let mut browser = register_proven(world, email).await;
    grant(world, email, "aurora", role).await;
    expect_answer(browser.log_in(email, PASSWORD).await, StatusCode::OK);
    browser
}

async fn change(browser: &mut Browser, key: &str, email: &str, role: &str, granted: bool, reason: &str) -> RawAnswer {
    let granted = if granted { "true" } else { "false" };
    let fields = [("key", key), ("email", email), ("role", role), ("granted", granted), ("reason", reason)];
    submit(browser, TEAM, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn manager_grants_roles_on_the_page_and_sees_the_audit_list() {
    let world = World::start(1, &[]).await;
    let mut max = staff_member(&world, "max@example.org", "manager").await;
    let mut ann = register_proven(&world, "ann@example.org").await;
    let given = change(&mut max, "k-1", "ann@example.org", "box_office", true, "Starts on Monday.").await;
    assert_eq!((given.status, given.location()), (StatusCode::SEE_OTHER, "/staff/aurora/team?done=true"));
    let page = open(&mut max, TEAM).await;
    assert_eq!(page.body.matches("data-testid=\"team-person\"").count(), 2, "{}", page.body);
    assert!(page.body.contains("ann@example.org") && page.body.contains("data-role=\"box_office\""), "{}", page.body);
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(open(&mut ann, "/staff/aurora/box-office").await.status, StatusCode::OK);

    let taken = change(&mut max, "k-2", "ann@example.org", "box_office", false, "Moved away.").await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER);
    assert!(!open(&mut max, TEAM).await.body.contains("ann@example.org"));
    let acts = open(&mut max, "/staff/aurora/team/acts").await;
    let (taken, given) = (acts.body.find("data-act=\"role_taken\""), acts.body.find("data-act=\"role_given\""));
    assert!(taken.expect("a line") < given.expect("a line"), "newest first: {}", acts.body);
    assert!(acts.body.contains("Role removed") && acts.body.contains("Moved away."), "{}", acts.body);
    let ids = world.values(sqlx::query_scalar::<_, Uuid>("SELECT id FROM accounts")).await;
    assert!(ids.iter().all(|id| !acts.body.contains(&id.to_string())), "accounts are shown by name: {}", acts.body);
    let first: i64 =
        world.value(sqlx::query_scalar("SELECT min(number) FROM audit_list WHERE theatre_id = 'aurora'")).await;
    let before = open(&mut max, &format!("/staff/aurora/team/acts?before={first}")).await;
    assert!(!before.body.contains("data-testid=\"act\""), "there is no earlier act: {}", before.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_grant_stays_in_its_form_with_the_reason() {
    let world = World::start(1, &[]).await;
    let mut max = staff_member(&world, "max@example.org", "manager").await;
    let unknown = change(&mut max, "k-1", "unknown@example.org", "organiser", true, "New programme.").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.body.contains("No account has this address."), "{}", unknown.body);
    assert!(
        unknown.body.contains("value=\"unknown@example.org\"") && unknown.body.contains("value=\"New programme.\"")
    );
    register_proven(&world, "ann@example.org").await;
    let unsaid = change(&mut max, "k-2", "ann@example.org", "box_office", true, " ").await;
    assert_eq!(unsaid.status, StatusCode::BAD_REQUEST);
    assert!(unsaid.body.contains("data-testid=\"field-error\""), "{}", unsaid.body);
    let last = change(&mut max, "k-3", "max@example.org", "manager", false, "I leave.").await;
    assert_eq!(last.status, StatusCode::CONFLICT);
    assert!(last.body.contains("Make someone else a manager first."), "{}", last.body);
    assert!(last.body.contains("<details open class=\"systems-act\""), "its form stays open: {}", last.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_an_ended_session_is_kept_and_can_be_sent_again_after_signing_in() {
    let world = World::start(1, &[]).await;
    let mut max = staff_member(&world, "max@example.org", "manager").await;
    register_proven(&world, "ann@example.org").await;
    world.execute("UPDATE sessions SET last_seen_at = now() - interval '3 hours'").await;
    let kept = change(&mut max, "k-1", "ann@example.org", "box_office", true, "Starts on Monday.").await;
    assert_eq!((kept.status, kept.location()), (StatusCode::UNAUTHORIZED, ""), "{}", kept.body);
    for part in ["data-testid=\"form-kept\"", "href=\"/login?next=/staff/aurora/team\"", "target=\"_blank\""] {
        assert!(kept.body.contains(part), "{part}: {}", kept.body);
    }
    let new_theatre = submit(&mut max, "/staff/theatres", &[("key", "k-2"), ("name", "Rialto")]).await;
    assert_eq!(new_theatre.status, StatusCode::UNAUTHORIZED, "{}", new_theatre.body);
    expect_answer(max.log_in("max@example.org", PASSWORD).await, StatusCode::OK);
    let again = change(&mut max, "k-1", "ann@example.org", "box_office", true, "Starts on Monday.").await;
    assert_eq!((again.status, again.location()), (StatusCode::SEE_OTHER, "/staff/aurora/team?done=true"));
    assert_eq!(world.count("SELECT count(*) FROM staff_grants WHERE role = 'box_office'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_leads_back_to_the_page_of_staff_with_its_query() {
    let world = World::start(1, &[]).await;
    let mut max = staff_member(&world, "max@example.org", "manager").await;
    world.execute("UPDATE sessions SET ended_at = now()").await;
    let page = "/staff/aurora/reports?from=2026-11-01&to=2026-11-21";
    let away = open(&mut max, page).await;
    let sign_in = "/login?notice=sign-in-first&next=/staff/aurora/reports?from=2026-11-01%26to=2026-11-21";
    assert_eq!((away.status, away.location()), (StatusCode::SEE_OTHER, sign_in));
    let next = open(&mut max, sign_in).await.hidden("next").replace("&amp;", "&");
    assert_eq!(next, page);
    let fields = [("email", "max@example.org"), ("password", PASSWORD), ("next", &*next)];
    assert_eq!(submit(&mut max, "/login", &fields).await.location(), page);
    world.execute("UPDATE sessions SET ended_at = now()").await;
    let long = open(&mut max, &format!("{TEAM}/acts?before={}", "1".repeat(600))).await;
    assert_eq!(long.location(), format!("/login?notice=sign-in-first&next={TEAM}"), "too long to keep");
}

#[tokio::test(flavor = "multi_thread")]
async fn team_pages_are_hidden_from_everyone_but_managers() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let mut ann = staff_member(&world, "ann@example.org", "box_office").await;
    let mut rita = register_proven(&world, "rita@example.org").await;
    grant(&world, "rita@example.org", "rialto", "manager").await;
    rita.log_in("rita@example.org", PASSWORD).await;
    let roles = "SELECT count(*) FROM staff_grants";
    let before = world.count(roles).await;
    for other in [&mut ann, &mut rita] {
        for path in [TEAM, "/staff/aurora/team/acts"] {
            assert_eq!(open(other, path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let tried = change(other, "k-1", "rita@example.org", "manager", true, "Why not.").await;
        assert_eq!(tried.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.count(roles).await, before);
    assert!(open(&mut rita, "/staff/rialto/team").await.body.contains("rita@example.org"));
}
