//! Collects names and messages of failed tests, to print them at the end of a long output.

use serde_json::Value;

/// Lines kept of a message.
const LINES: usize = 8;

/// Collects the failures of cargo's tests, line by line.
#[derive(Default)]
pub struct CargoFailures {
    found: Vec<String>,
    /// Lines still to be kept of the last failure's message.
    left: usize,
}

impl CargoFailures {
    /// Reads a line of the output. A failure is printed as `---- name stdout ----`, the test's output, and its panic.
    pub fn read_line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.found.push(name.to_owned());
            self.left = 0;
            return;
        }
        let Some(failure) = self.found.last_mut() else { return };
        if line.contains(" panicked at ") || line.starts_with("Error: ") {
            self.left = LINES;
        } else if line.trim().is_empty() || line.starts_with("stack backtrace:") || line.starts_with("note: run with") {
            self.left = 0;
        }
        if self.left > 0 {
            self.left -= 1;
            failure.push_str("\n    ");
            failure.push_str(line);
        }
    }

    /// Returns the failures, each with its name in the first line.
    pub fn into_all(self) -> Vec<String> {
        self.found
    }
}

/// Returns the tests of a suite of Playwright's JSON report and its nested suites, each with its name.
pub fn tests_of_playwright(suite: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for inner in suite["suites"].as_array().into_iter().flatten() {
        found.extend(tests_of_playwright(inner));
    }
    for spec in suite["specs"].as_array().into_iter().flatten() {
        for test in spec["tests"].as_array().into_iter().flatten() {
            let name = format!("[{}] {}: {}", text(&test["projectName"]), text(&spec["file"]), text(&spec["title"]));
            found.push((name, test));
        }
    }
    found
}

/// Lists the failures of Playwright's JSON report.
pub fn failures_of_playwright(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (mut failure, test) in tests_of_playwright(report) {
        if !matches!(test["status"].as_str(), Some("unexpected" | "flaky")) {
            continue;
        }
        let results = test["results"].as_array().into_iter().flatten();
        let messages = results.flat_map(|result| result["errors"].as_array().into_iter().flatten());
        for line in messages.flat_map(|error| plain(text(&error["message"]))).take(LINES) {
            failure.push_str("\n    ");
            failure.push_str(&line);
        }
        found.push(failure);
    }
    found
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the non-empty lines without colour codes (`ESC [ … m`).
fn plain(message: &str) -> Vec<String> {
    let mut parts = message.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_cargo_test_is_listed_with_its_message() {
        let mut failures = CargoFailures::default();
        for line in [
            "test holds::two_people ... FAILED",
            "failures:",
            "---- holds::two_people stdout ----",
            "seed 7",
            "",
            "thread 'holds::two_people' (12) panicked at server/rowlock/tests/it/holds.rs:7:5:",
            "assertion failed: one of them has it",
            "stack backtrace:",
            "   0: rust_begin_unwind",
            "---- holds::a_late_one stdout ----",
            "Error: the store is away",
        ] {
            failures.read_line(line);
        }
        let expected = [
            "holds::two_people\n    thread 'holds::two_people' (12) panicked at server/rowlock/tests/it/holds.rs:7:5:\n    \
             assertion failed: one of them has it",
            "holds::a_late_one\n    Error: the store is away",
        ];
        assert_eq!(failures.into_all(), expected);
    }

    #[test]
    fn a_failed_browser_test_is_listed_with_its_message() {
        let failed = json!({
            "title": "a large room", "file": "everyone.spec.ts",
            "tests": [
                { "projectName": "phone", "status": "expected", "results": [] },
                { "projectName": "laptop", "status": "unexpected",
                  "results": [{ "errors": [{ "message": "\u{1b}[31mTest timeout\u{1b}[39m of 60000ms exceeded." }] }] },
            ],
        });
        let report = json!({ "suites": [{ "suites": [{ "specs": [failed] }] }] });
        assert_eq!(
            failures_of_playwright(&report),
            ["[laptop] everyone.spec.ts: a large room\n    Test timeout of 60000ms exceeded."]
        );
    }
}
