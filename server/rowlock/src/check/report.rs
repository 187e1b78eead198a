//! The findings, as a table and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Not checked: a prerequisite is missing.
    Skipped,
    /// Seats can be sold, but an operator should look.
    Warning,
    /// Seats cannot be sold, or not safely.
    Bad,
}

impl Severity {
    /// Its word in the table and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Bad => "FAILED",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// Its severity.
    pub state: Severity,
    /// The finding, one line.
    pub words: String,
}

impl CheckFinding {
    pub(super) fn good(words: impl Into<String>) -> Self {
        Self { state: Severity::Good, words: words.into() }
    }

    pub(super) fn skipped(words: impl Into<String>) -> Self {
        Self { state: Severity::Skipped, words: words.into() }
    }

    pub(super) fn warning(words: impl Into<String>) -> Self {
        Self { state: Severity::Warning, words: words.into() }
    }

    pub(super) fn bad(words: impl Into<String>) -> Self {
        Self { state: Severity::Bad, words: words.into() }
    }
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Report(Vec<(String, Duration, CheckFinding)>);

impl Report {
    pub(super) fn add(&mut self, about: &str, took: Duration, findings: impl IntoIterator<Item = CheckFinding>) {
        self.0.extend(findings.into_iter().map(|finding| (about.to_owned(), took, finding)));
    }

    /// True if seats can be sold; warnings do not matter.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.0.iter().all(|(_, _, finding)| finding.state != Severity::Bad)
    }

    /// A line each.
    #[must_use]
    pub fn table(&self) -> String {
        let wide = self.0.iter().map(|(about, ..)| about.len()).max().unwrap_or_default();
        let mut table = String::new();
        for (about, took, finding) in &self.0 {
            // Writing into a text cannot fail.
            let _ = writeln!(
                table,
                "{:<8} {about:<wide$} {:>6} ms  {}",
                finding.state.word(),
                took.as_millis(),
                finding.words
            );
        }
        table
    }

    /// One object: `ok`, and `findings` with `about`, `state`, `words` and `took_ms`.
    #[must_use]
    pub fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .0
            .iter()
            .map(|(about, took, finding)| {
                let state = finding.state.word().to_ascii_lowercase();
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
