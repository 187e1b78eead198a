//! Pages of a theatre's staff and of its audit list.

use reqwest::StatusCode;

use super::pages::{Page, open, submit};
use super::{Browser, PASSWORD, another_theatre, grant, register_proven};
use crate::world::{World, expect_answer};

const TEAM: &str = "/staff/aurora/team";

/// A member of the Aurora's staff, signed in after the grant.
async fn staff_member(world: &World, email: &str, role: &str) -> Browser {
    let mut browser = register_proven(world, email).await;
    grant(world, email, "aurora", role).await;
    expect_answer(browser.log_in(email, PASSWORD).await, StatusCode::OK);
    browser
}

async fn change(browser: &mut Browser, key: &str, email: &str, role: &str, granted: bool, reason: &str) -> Page {
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
    assert_eq!((given.status, given.location.as_str()), (StatusCode::SEE_OTHER, "/staff/aurora/team?done=true"));
    let page = open(&mut max, TEAM).await;
    assert_eq!(page.text.matches("data-testid=\"team-person\"").count(), 2, "{}", page.text);
    assert!(page.text.contains("ann@example.org") && page.text.contains("data-role=\"box_office\""), "{}", page.text);
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(open(&mut ann, "/staff/aurora/box-office").await.status, StatusCode::OK);

    let taken = change(&mut max, "k-2", "ann@example.org", "box_office", false, "Moved away.").await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER);
    assert!(!open(&mut max, TEAM).await.text.contains("ann@example.org"));
    let acts = open(&mut max, "/staff/aurora/team/acts").await;
    let (taken, given) = (acts.text.find("data-act=\"role_taken\""), acts.text.find("data-act=\"role_given\""));
    assert!(taken.expect("a line") < given.expect("a line"), "newest first: {}", acts.text);
    assert!(acts.text.contains("Role taken away") && acts.text.contains("Moved away."), "{}", acts.text);
    let ids = sqlx::query_scalar::<_, uuid::Uuid>("SELECT id FROM accounts").fetch_all(&world.pg).await.expect("ids");
    assert!(ids.iter().all(|id| !acts.text.contains(&id.to_string())), "accounts are shown by name: {}", acts.text);
    let first: i64 = sqlx::query_scalar("SELECT min(number) FROM audit_list WHERE theatre_id = 'aurora'")
        .fetch_one(&world.pg)
        .await
        .expect("the list is read");
    let before = open(&mut max, &format!("/staff/aurora/team/acts?before={first}")).await;
    assert!(!before.text.contains("data-testid=\"act\""), "there is no earlier act: {}", before.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_grant_stays_in_its_form_with_the_reason() {
    let world = World::start(1, &[]).await;
    let mut max = staff_member(&world, "max@example.org", "manager").await;
    let unknown = change(&mut max, "k-1", "unknown@example.org", "organiser", true, "New programme.").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.text.contains("No account has this address."), "{}", unknown.text);
    assert!(
        unknown.text.contains("value=\"unknown@example.org\"") && unknown.text.contains("value=\"New programme.\"")
    );
    register_proven(&world, "ann@example.org").await;
    let unsaid = change(&mut max, "k-2", "ann@example.org", "box_office", true, " ").await;
    assert_eq!(unsaid.status, StatusCode::BAD_REQUEST);
    assert!(unsaid.text.contains("data-testid=\"field-error\""), "{}", unsaid.text);
    // The last manager cannot be removed.
    let last = change(&mut max, "k-3", "max@example.org", "manager", false, "I leave.").await;
    assert_eq!(last.status, StatusCode::CONFLICT);
    assert!(last.text.contains("Make someone else a manager first."), "{}", last.text);
    assert!(last.text.contains("<details open class=\"systems-act\""), "its form stays open: {}", last.text);
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
    assert!(open(&mut rita, "/staff/rialto/team").await.text.contains("rita@example.org"));
}
