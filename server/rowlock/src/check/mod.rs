//! `rowlock check`: tests from outside, from end to end, whether a running system can sell.
//!
//! It reads the settings of a server, contacts every system they name, holds seats in a hidden show, and visits the public
//! address. It sells nothing, sends nothing, and leaves nothing behind.

mod lock_store;
mod outside;
mod postgres;

use std::fmt::Write;
use std::time::{Duration, Instant};

use domain::VariantName;
use serde_json::{Value, json};
use strum::IntoStaticStr;

use crate::config::Config;
use platform::clock;
use platform::tls;

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
async fn within<T>(check: impl Future<Output = T>) -> Result<T, CheckFinding> {
    let late = |_| CheckFinding::bad(format!("no answer within {} s", DEADLINE.as_secs()));
    tokio::time::timeout(DEADLINE, check).await.map_err(late)
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

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    /// The check passed.
    #[strum(serialize = "ok")]
    Good,
    /// Not checked: a prerequisite is missing.
    Skipped,
    /// Seats can be sold, but an operator should look.
    Warning,
    /// Seats cannot be sold, or not safely.
    #[strum(serialize = "FAILED")]
    Bad,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// Its severity.
    pub state: Severity,
    /// The finding, one line.
    pub words: String,
}

impl CheckFinding {
    fn good(words: impl Into<String>) -> Self {
        Self { state: Severity::Good, words: words.into() }
    }

    fn skipped(words: impl Into<String>) -> Self {
        Self { state: Severity::Skipped, words: words.into() }
    }

    fn warning(words: impl Into<String>) -> Self {
        Self { state: Severity::Warning, words: words.into() }
    }

    fn bad(words: impl Into<String>) -> Self {
        Self { state: Severity::Bad, words: words.into() }
    }
}

/// All findings, each with the checked system and the time it took.
#[derive(Debug, Default)]
pub struct Report(Vec<(String, Duration, CheckFinding)>);

impl Report {
    fn add(&mut self, about: &str, took: Duration, findings: impl IntoIterator<Item = CheckFinding>) {
        self.0.extend(findings.into_iter().map(|finding| (about.to_owned(), took, finding)));
    }

    /// True if seats can be sold; warnings do not matter.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.0.iter().all(|(_, _, finding)| finding.state != Severity::Bad)
    }

    /// The findings as text, one line each.
    #[must_use]
    pub fn table(&self) -> String {
        let wide = self.0.iter().map(|(about, ..)| about.len()).max().unwrap_or_default();
        let mut table = String::new();
        for (about, took, finding) in &self.0 {
            // Writing into a text cannot fail.
            let _ = writeln!(
                table,
                "{:<8} {about:<wide$} {:>6} ms  {}",
                finding.state.as_str(),
                took.as_millis(),
                finding.words
            );
        }
        table
    }

    /// The findings as one JSON object: `ok`, and `findings` with `about`, `state`, `words` and `took_ms`.
    #[must_use]
    pub fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .0
            .iter()
            .map(|(about, took, finding)| {
                let state = finding.state.as_str().to_ascii_lowercase();
                json!({ "about": about, "state": state, "words": finding.words, "took_ms": took.as_millis() as u64 })
            })
            .collect();
        json!({ "ok": self.is_good(), "findings": findings })
    }
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

    #[test]
    fn a_report_with_warnings_is_good_and_with_a_failure_is_not() {
        let mut report = Report::default();
        report.add("mail", Duration::from_millis(7), [CheckFinding::good("a"), CheckFinding::warning("b")]);
        assert!(report.is_good());
        report.add("postgres", Duration::ZERO, [CheckFinding::bad("c")]);
        assert!(!report.is_good());
        assert_eq!(
            report.table(),
            "ok       mail          7 ms  a\nwarning  mail          7 ms  b\nFAILED   postgres      0 ms  c\n"
        );
        assert_eq!(report.json()["ok"], false);
        assert_eq!(report.json()["findings"][2]["state"], "failed");
    }
}
