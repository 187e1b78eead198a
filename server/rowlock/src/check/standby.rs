//! Checks the standby for public lists: reachable, follows our primary, small lag, our schema.
//!
//! Every failure is a warning: the primary is read in its place, and every seat can be sold.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use super::{CheckFinding, DEADLINE, Report, Severity, postgres, within};
use crate::config::Config;
use crate::start::MIGRATOR;
use catalogue::{LAG_LIMIT, PrimaryPosition, primary_position, standby_position};
use platform::database;

/// Interval in which its position is compared with the primary's.
const ASK_EVERY: Duration = Duration::from_millis(20);

pub(super) async fn check(config: &Config, primary: Option<&PgPool>, report: &mut Report) {
    let Some(url) = &config.catalogue_database_url else { return };
    let began = Instant::now();
    let found = match database::connect_later(url, 1, DEADLINE / 3) {
        Ok(standby) => within(follows(&standby, primary)).await.unwrap_or_else(|late| vec![late]),
        Err(cause) => vec![CheckFinding::bad(format!("CATALOGUE_DATABASE_URL: {cause}"))],
    };
    let found = found.into_iter().map(|found| CheckFinding { state: found.state.min(Severity::Warning), ..found });
    report.add("postgres standby", began.elapsed(), found);
}

async fn follows(standby: &PgPool, primary: Option<&PgPool>) -> Vec<CheckFinding> {
    let there = match standby_position(standby).await {
        Ok(there) => there,
        Err(cause) => return vec![CheckFinding::bad(format!("does not answer at CATALOGUE_DATABASE_URL: {cause}"))],
    };
    if !there.follows {
        return vec![CheckFinding::bad("is no standby, it takes its own writes: nothing is read from it")];
    }
    let asked = match primary {
        Some(primary) => primary_position(primary).await,
        None => Err(sqlx::Error::PoolClosed),
    };
    let near = match asked {
        Ok(here) if here.identity != there.identity => {
            return vec![CheckFinding::bad("is of another database than DATABASE_URL: nothing is read from it")];
        }
        Ok(here) => comes_to(standby, &here).await,
        Err(_) => CheckFinding::skipped("how far it is behind is not known: the primary does not say where it is"),
    };
    vec![near, postgres::schema(standby, &MIGRATOR).await]
}

/// Waits until it has come to where the primary was.
async fn comes_to(standby: &PgPool, primary: &PrimaryPosition) -> CheckFinding {
    let began = Instant::now();
    loop {
        let behind = match standby_position(standby).await {
            Ok(there) => primary.position - there.position.unwrap_or_default(),
            Err(cause) => return CheckFinding::bad(format!("answers no more: {cause}")),
        };
        let took = began.elapsed();
        if behind <= 0 {
            return CheckFinding::good(format!("follows the primary, {} ms behind at most", took.as_millis()));
        }
        if took >= LAG_LIMIT {
            return CheckFinding::bad(format!(
                "is {behind} bytes behind for more than {} s: nothing is read from it until it is nearer",
                LAG_LIMIT.as_secs()
            ));
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
