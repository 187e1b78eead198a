//! The time that the parts of the tests took, and the slowest tests of some parts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::failures::tests_of_playwright;
use crate::progress::seconds;

/// Tests listed of a part.
const LISTED: usize = 10;

/// The time of a test, with its name.
type TestTime = (String, Duration);

/// Parts in their order, each with the times of its tests, if they are known.
#[derive(Default)]
pub struct Durations(Vec<(&'static str, Duration, Vec<TestTime>)>);

impl Durations {
    /// Notes a part that ends now.
    pub fn note(&mut self, part: &'static str, began: Instant, tests: Vec<TestTime>) {
        self.0.push((part, began.elapsed(), tests));
    }

    pub fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Returns the lines to print: the parts, and the slowest tests.
    pub fn lines(&self) -> Vec<String> {
        let line = |took: Duration, name: &str| format!("{:>8}  {name}", seconds(took));
        let mut lines: Vec<String> = self.0.iter().map(|(part, took, _)| line(*took, part)).collect();
        for (part, _, tests) in self.0.iter().filter(|(_, _, tests)| !tests.is_empty()) {
            lines.push(format!("slowest of {part}:"));
            let mut slowest: Vec<&TestTime> = tests.iter().collect();
            slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
            lines.extend(slowest.into_iter().take(LISTED).map(|(name, took)| line(*took, name)));
        }
        lines
    }
}

/// Reads the file that integration tests append to: the name of a test, and when one of its worlds began and ended, in
/// milliseconds. A test lasts from its first world to its last. Without a file no test had a world.
pub fn read_worlds(file: &Path) -> Vec<TestTime> {
    let mut tests: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        let mut words = line.split(' ');
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let Some((name, began, ended)) =
            words.next().and_then(|name| Some((name, number(words.next())?, number(words.next())?)))
        else {
            continue;
        };
        let whole = tests.entry(name.to_owned()).or_insert((began, ended));
        *whole = (whole.0.min(began), whole.1.max(ended));
    }
    let took = |(began, ended): (u64, u64)| Duration::from_millis(ended.saturating_sub(began));
    tests.into_iter().map(|(name, times)| (name, took(times))).collect()
}

/// Reads the times of Playwright's JSON report.
pub fn of_playwright(report: &Value) -> Vec<TestTime> {
    let took = |test: &Value| {
        let results = test["results"].as_array().into_iter().flatten();
        Duration::from_millis(results.filter_map(|result| result["duration"].as_u64()).sum())
    };
    tests_of_playwright(report).into_iter().map(|(name, test)| (name, took(test))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_listed_in_their_order_and_tests_by_their_time() {
        let tests = (0..12).map(|number| (format!("test {number}"), Duration::from_millis(100 * number))).collect();
        let minute = Duration::from_secs(61);
        let durations = Durations(vec![("build", minute, Vec::new()), ("it", Duration::from_secs(3), tests)]);
        let lines = durations.lines();
        assert_eq!(lines[..4], ["   1m01s  build", "    3.0s  it", "slowest of it:", "    1.1s  test 11"]);
        assert_eq!(lines.len(), 3 + LISTED);
    }

    #[test]
    fn a_test_lasts_from_its_first_world_to_its_last() {
        let file = std::env::temp_dir().join(format!("rowlock-worlds-{}", std::process::id()));
        std::fs::write(&file, "a::b 100 300\nc 5 6\na::b 250 1100\na::b broken\n").expect("the file is written");
        let read = read_worlds(&file);
        std::fs::remove_file(&file).expect("the file is removed");
        let ms = Duration::from_millis;
        assert_eq!(read, [("a::b".to_owned(), ms(1_000)), ("c".to_owned(), ms(1))]);
        assert!(read_worlds(&file).is_empty(), "no file, no times");
    }

    #[test]
    fn browser_tests_have_the_time_of_their_results() {
        let test = json!({ "projectName": "phone", "results": [{ "duration": 1_500 }] });
        let spec = json!({ "title": "a map", "file": "map.spec.ts", "tests": [test] });
        let report = json!({ "suites": [{ "suites": [{ "specs": [spec] }] }] });
        assert_eq!(of_playwright(&report), [("[phone] map.spec.ts: a map".to_owned(), Duration::from_millis(1_500))]);
    }
}
