//! Checks external systems: gateways, mail, the CDN, and the public address, through all proxies.

use std::time::{Duration, Instant};

use reqwest::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::{CheckFinding, Report, within};
use crate::config::Config;
use crate::web::files;
use catalogue::cdn::{Cdn, parked};
use payments::{Gateways, PaymentIds};
use tickets::Mailer;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// A tag that no page has: purging it has no effect.
const UNUSED_TAG: &str = "rowlock-check";
/// Any sixteen bytes.
const WEBSOCKET_KEY: &str = "cm93bG9jay1jaGVjay0tLQ==";

/// Asks each gateway for the status of a payment that does not exist.
pub(super) async fn gateways(config: &Config, report: &mut Report) {
    let Ok(gateways) = Gateways::from_settings(&config.payments, &config.site.public_url) else {
        return report.add("gateway", Duration::ZERO, [CheckFinding::skipped("its settings cannot be used")]);
    };
    for name in &config.payments.payment_gateways {
        let Some(door) = gateways.find(name) else { continue };
        let began = Instant::now();
        let asked = within(door.status(&PaymentIds { booking: Uuid::nil(), gateway_ref: None })).await;
        let found = match asked {
            Ok(Ok(_)) if config.site.is_https() && config.payments.allow_simulator => CheckFinding::warning(
                "answers, and may be the simulator behind https (ALLOW_SIMULATOR): no money moves there",
            ),
            Ok(Ok(_)) => CheckFinding::good("answers, and believes our key"),
            Ok(Err(cause)) => {
                let why = std::error::Error::source(&cause).map(|why| format!(": {why}")).unwrap_or_default();
                CheckFinding::bad(format!("{cause}{why}"))
            }
            Err(late) => late,
        };
        report.add(&format!("gateway {name}"), began.elapsed(), [found]);
    }
}

pub(super) async fn mail(config: &Config, report: &mut Report) {
    let began = Instant::now();
    let Ok(mailer) = Mailer::from_settings(&config.mail) else {
        return report.add("mail", Duration::ZERO, [CheckFinding::skipped("its settings cannot be used")]);
    };
    let found = match (within(mailer.check()).await, &config.mail.smtp_url) {
        (Ok(Ok(())), Some(_)) => CheckFinding::good("the mail server lets us in"),
        (Ok(Ok(())), None) => CheckFinding::warning("mails are written into a folder (MAILBOX_DIR): they are not sent"),
        (Ok(Err(cause)), _) => CheckFinding::bad(format!("{:#}", anyhow::Error::from(cause))),
        (Err(late), _) => late,
    };
    report.add("mail", began.elapsed(), [found]);
}

/// Checks whether the CDN accepts a purge, and which purges are parked. Every failure is a warning: stale pages are shown for a
/// moment longer, and every seat can be sold.
pub(super) async fn cdn(config: &Config, pg: Option<&PgPool>, report: &mut Report) {
    if config.catalogue.cdn_purge_url.is_none() {
        return;
    }
    let began = Instant::now();
    let mut found = match Cdn::from_settings(&config.catalogue) {
        Ok(cdn) if cdn.is_configured() => vec![within(check_purge(&cdn)).await.unwrap_or_else(|late| late)],
        _ => vec![CheckFinding::skipped("its settings cannot be used")],
    };
    let left = match pg {
        Some(pg) => parked(pg).await.unwrap_or_default(),
        None => Vec::new(),
    };
    if let Some(last) = left.last() {
        let (tags, why) = (left.len(), &last.why);
        found.push(CheckFinding::warning(format!(
            "did not take {tags} tags in any try ({why}): rowlock parked retry-purges"
        )));
    }
    report.add("cdn purge", began.elapsed(), found);
}

async fn check_purge(cdn: &Cdn) -> CheckFinding {
    match cdn.purge(&[UNUSED_TAG]).await {
        Ok(()) => CheckFinding::good("takes purges, and believes our token"),
        Err(cause) => CheckFinding::warning(format!("CDN_PURGE_URL takes no purge: {cause}")),
    }
}

/// The client, as far as it is on this machine.
pub(super) fn site(config: &Config, report: &mut Report) {
    let root = &config.site_root;
    let missing: Vec<&str> = ["pkg", "style", "fonts"].into_iter().filter(|part| !root.join(part).is_dir()).collect();
    let found = match (missing.is_empty(), files::version(root)) {
        (true, Some(version)) => CheckFinding::good(format!("{} is there, version {version}", root.display())),
        (true, None) => CheckFinding::warning(format!(
            "{} has no version, so browsers ask about each file before each use: `cargo xtask site` builds one",
            root.display()
        )),
        (false, _) => CheckFinding::warning(format!(
            "{} lacks {} on this machine (SITE_ROOT)",
            root.display(),
            missing.join(", ")
        )),
    };
    report.add("site", Duration::ZERO, [found]);
}

/// Checks the public address with the requests of a visitor.
pub(super) async fn visit(config: &Config, pg: Option<&PgPool>, report: &mut Report) {
    let Ok(base) = Url::parse(&config.site.public_url) else {
        return report.add("public address", Duration::ZERO, [CheckFinding::skipped("PUBLIC_URL is no address")]);
    };
    let client = Client::builder().connect_timeout(CONNECT_DEADLINE).timeout(ANSWER_DEADLINE).build();
    let client = match client {
        Ok(client) => client,
        Err(cause) => return report.add("public address", Duration::ZERO, [CheckFinding::bad(cause.to_string())]),
    };
    let began = Instant::now();
    let found = within(readiness(&client, &base)).await.unwrap_or_else(|late| vec![late]);
    let is_there = found.iter().all(|finding| finding.state != super::Severity::Bad);
    report.add("public address", began.elapsed(), found);
    if !is_there {
        return;
    }
    let began = Instant::now();
    let found = match pg {
        Some(pg) => within(socket(&client, &base, pg)).await.unwrap_or_else(|late| late),
        None => CheckFinding::skipped("without Postgres no show is known"),
    };
    report.add("live map", began.elapsed(), [found]);
}

async fn readiness(client: &Client, base: &Url) -> Vec<CheckFinding> {
    let mut found = Vec::new();
    let is_here = base.host_str().is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
    if base.scheme() == "http" && !is_here {
        found.push(CheckFinding::warning("is http: cookies and tickets can be read in transit"));
    }
    let asked = match base.join("/readyz") {
        Ok(url) => client.get(url).send().await,
        Err(cause) => return vec![CheckFinding::bad(cause.to_string())],
    };
    let answer = match asked {
        Ok(answer) => answer,
        Err(cause) => {
            found.push(CheckFinding::bad(format!("no answer from {base}: {:#}", anyhow::Error::from(cause))));
            return found;
        }
    };
    let status = answer.status();
    let body: Value = answer.json().await.unwrap_or_default();
    found.push(match (status, body.get("lock_store")) {
        (StatusCode::OK, Some(Value::Bool(false))) => {
            CheckFinding::warning(format!("a server answers at {base}, and cannot reach Redis: no seat can be held"))
        }
        (StatusCode::OK, Some(_)) => CheckFinding::good(format!("a server answers at {base} and is ready")),
        (_, Some(_)) => CheckFinding::bad(format!("a server answers and is not ready: {body}")),
        _ => CheckFinding::bad(format!("another server answers at {base}, with {status}")),
    });
    found
}

/// Checks that proxies pass a WebSocket through.
async fn socket(client: &Client, base: &Url, pg: &PgPool) -> CheckFinding {
    let next = "SELECT id FROM shows WHERE starts_at > now() ORDER BY starts_at LIMIT 1";
    let show = match sqlx::query_scalar::<_, Uuid>(next).fetch_optional(pg).await {
        Ok(Some(show)) => show,
        Ok(None) => return CheckFinding::skipped("there is no show to watch"),
        Err(cause) => return CheckFinding::skipped(format!("no show is known: {cause}")),
    };
    let url = match base.join(&format!("/api/v1/shows/{show}/live")) {
        Ok(url) => url,
        Err(cause) => return CheckFinding::bad(cause.to_string()),
    };
    let asked = client
        .get(url)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, WEBSOCKET_KEY);
    match asked.send().await {
        Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
            CheckFinding::good("opens through all proxies")
        }
        Ok(answer) => CheckFinding::bad(format!(
            "is answered {} in place of 101: does a proxy on the way know WebSockets?",
            answer.status()
        )),
        Err(cause) => CheckFinding::bad(format!("does not open: {:#}", anyhow::Error::from(cause))),
    }
}
