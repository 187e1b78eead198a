//! `rowlock check`: tests from outside, from end to end, whether a running system can sell.
//!
//! It reads the settings of a server, contacts every system they name, holds seats in a hidden show, and visits the public
//! address. It sells nothing, sends nothing, and leaves nothing behind.

mod lock_store;
mod outside;
mod postgres;
mod report;

use std::time::{Duration, Instant};

use crate::config::Config;
use platform::clock;
use platform::tls;

pub use report::{CheckFinding, Report, Severity};

const DEADLINE: Duration = Duration::from_secs(15);
/// Clock skew that is a warning, milliseconds…
const SKEW_WARNING_MS: i64 = 1_000;
/// …and that is a failure: webhooks are refused when they are five minutes old.
const SKEW_BAD_MS: i64 = 60_000;

/// Runs all checks. A failed check stops no other.
pub async fn check(config: &Config) -> Report {
    tls::use_one_provider();
    let mut report = Report::default();
    let wrong = config.validate();
    if wrong.is_empty() {
        report.add("settings", Duration::ZERO, [CheckFinding::good("can be used")]);
    } else {
        report.add("settings", Duration::ZERO, wrong.iter().map(|wrong| CheckFinding::bad(wrong.to_string())));
    }
    let began = Instant::now();
    let (pg, found) = within(postgres::check(config)).await.unwrap_or_else(|late| (None, vec![late]));
    report.add("postgres", began.elapsed(), found);
    postgres::standby(config, pg.as_ref(), &mut report).await;
    lock_store::check(config, &mut report).await;
    outside::gateways(config, &mut report).await;
    outside::mail(config, &mut report).await;
    outside::cdn(config, pg.as_ref(), &mut report).await;
    outside::site(config, &mut report);
    outside::visit(config, pg.as_ref(), &mut report).await;
    report
}

/// The result, or a finding that the deadline has passed.
async fn within<T>(looked: impl Future<Output = T>) -> Result<T, CheckFinding> {
    let late = |_| CheckFinding::bad(format!("no answer within {} s", DEADLINE.as_secs()));
    tokio::time::timeout(DEADLINE, looked).await.map_err(late)
}

/// The skew of a clock against this machine's, which was read before and after.
fn clock_of(whose: &str, theirs_ms: i64, before_ms: i64, after_ms: i64) -> CheckFinding {
    // The clock was read at an unknown moment in between.
    let ahead = theirs_ms - theirs_ms.clamp(before_ms, after_ms);
    let words = format!(
        "{whose} clock is {:.1} s {} ours",
        ahead.abs() as f64 / 1_000.0,
        if ahead < 0 { "behind" } else { "ahead of" }
    );
    if ahead.abs() <= SKEW_WARNING_MS {
        CheckFinding::good(format!("{whose} clock is ours, within {} ms", after_ms - before_ms + ahead.abs()))
    } else if ahead.abs() <= SKEW_BAD_MS {
        CheckFinding::warning(format!("{words}: have both follow NTP"))
    } else {
        CheckFinding::bad(format!("{words}: webhooks will be refused as too old"))
    }
}

fn now_ms() -> i64 {
    clock::now().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_its_certain_skew() {
        assert_eq!(clock_of("its", 1_000, 900, 1_100).state, Severity::Good);
        assert_eq!(clock_of("its", 3_000, 900, 2_100).state, Severity::Good, "900 ms ahead at least");
        assert_eq!(clock_of("its", 3_101, 900, 2_100).state, Severity::Warning);
        assert_eq!(clock_of("its", -59_000, 900, 2_100).state, Severity::Warning);
        assert_eq!(clock_of("its", -60_101, 900, 2_100).state, Severity::Bad);
    }
}
