//! Results: text on standard error, and with `--json` one JSON object a line on standard output.
//!
//! A round is a row. At the end each group of rows gets a median with its range, and each promised bound
//! is compared with it and printed as kept or lost.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::checker::Findings;
use crate::cpu::Cpu;

/// One row of results.
#[derive(Clone, Debug)]
pub struct ReportRow(Map<String, Value>);

impl ReportRow {
    /// Creates a row of a benchmark's variant: "candidate" or the name of a baseline.
    pub fn of(bench: &str, variant: &str) -> Self {
        let mut row = Map::new();
        row.insert("bench".into(), json!(bench));
        row.insert("variant".into(), json!(variant));
        Self(row)
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a figure, rounded to five digits: more would be noise.
    #[must_use]
    pub fn figure(self, key: &str, value: f64) -> Self {
        self.with(key, rounded(value))
    }

    /// Adds the quantiles of a histogram.
    #[must_use]
    pub fn latencies(self, histogram: &crate::histogram::Histogram) -> Self {
        self.figure("p50_ms", histogram.quantile_ms(0.5))
            .figure("p95_ms", histogram.quantile_ms(0.95))
            .figure("p99_ms", histogram.quantile_ms(0.99))
            .figure("max_ms", histogram.max_ms())
    }

    /// Adds the CPU time per operation between two readings of these programs.
    #[must_use]
    pub fn cpu_per_op<const N: usize>(self, names: [&str; N], before: &[Cpu; N], after: &[Cpu; N], ops: f64) -> Self {
        let readings = before.iter().zip(after).map(|(before, after)| after.micros_since(before) / ops);
        names
            .iter()
            .zip(readings)
            .fold(self, |row, (name, micros)| row.figure(&format!("{name}_cpu_us_per_op"), micros))
    }

    /// Formats the row as text: texts first, then figures with their ranges.
    fn to_text(&self) -> String {
        let cell = |(key, value): (&String, &Value)| match (key.as_str(), value) {
            ("bench" | "ranges" | "rounds" | "violations", _) => None,
            (_, Value::String(text)) => Some((false, format!("{text:<13}"))),
            _ => {
                let range = self.0.get("ranges").and_then(|ranges| ranges.get(key));
                let range =
                    range.map(|range| format!(" {}", range.to_string().replace(',', " to "))).unwrap_or_default();
                Some((true, format!("{key} {value}{range}")))
            }
        };
        let mut cells: Vec<_> = self.0.iter().filter_map(cell).collect();
        cells.sort_by_key(|(is_figure, _)| *is_figure);
        cells.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("  ")
    }

    /// Returns the key of comparable rows: all their texts and settings such as rate and size.
    fn group_key(&self) -> String {
        let is_setting = |key: &str, value: &Value| key != "round" && (value.is_string() || SETTINGS.contains(&key));
        let settings = self.0.iter().filter(|(key, value)| is_setting(key, value));
        settings
            .map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Numbers that are settings, not measurements.
const SETTINGS: [&str; 4] = ["rate_per_s", "seats", "sockets", "attempts_per_call"];
const DIGITS: i32 = 5;

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

pub struct Report {
    json: bool,
    /// Figures of a quick run are compared with nothing, and an error fails it.
    quick: bool,
    rows: Vec<ReportRow>,
    violations: u64,
    errors: u64,
    lost: Cell<u64>,
}

impl Report {
    /// Creates an empty report; `json` also prints rows on standard output.
    pub const fn new(json: bool, quick: bool) -> Self {
        Self { json, quick, rows: Vec::new(), violations: 0, errors: 0, lost: Cell::new(0) }
    }

    /// Prints and keeps the results of a round.
    pub fn round(&mut self, row: ReportRow) {
        self.print(&row);
        self.errors += row.0.get("errors").and_then(Value::as_u64).unwrap_or(0);
        self.rows.push(row);
    }

    fn print(&self, row: &ReportRow) {
        if self.json {
            println!("{}", Value::Object(row.0.clone()));
        }
        eprintln!("        {}", row.to_text());
    }

    /// Adds the number of violations to the row of a round, and prints and keeps both.
    pub fn checked_round(&mut self, row: ReportRow, found: &Findings) {
        self.round(row.with("violations", found.count()));
        self.findings(found);
    }

    /// Prints and counts violations; one voids the figures.
    pub fn findings(&mut self, found: &Findings) {
        self.violations += found.count();
        for line in found.first() {
            eprintln!("        VIOLATION: {line}");
        }
    }

    /// Prints the median and the range of every figure, per group of comparable rows.
    pub fn summarise(&self) {
        eprintln!("\n        medians");
        let mut groups: Vec<(String, Vec<ReportRow>)> = Vec::new();
        for row in &self.rows {
            let group_key = row.group_key();
            match groups.iter_mut().find(|(known, _)| *known == group_key) {
                Some((_, rows)) => rows.push(row.clone()),
                None => groups.push((group_key, vec![row.clone()])),
            }
        }
        for (_, rows) in &groups {
            self.print(&median_row(rows));
        }
        eprintln!();
    }

    /// Returns the median of a figure over the rows with these values.
    pub fn median(&self, values: &[(&str, Value)], key: &str) -> Option<f64> {
        median(self.figures(values, key))
    }

    /// Returns minimum and maximum of a figure over the rows with these values.
    pub fn extremes(&self, values: &[(&str, Value)], key: &str) -> Option<(f64, f64)> {
        let figures = self.figures(values, key);
        let most = figures.iter().copied().max_by(f64::total_cmp)?;
        figures.into_iter().min_by(f64::total_cmp).map(|least| (least, most))
    }

    fn figures(&self, values: &[(&str, Value)], key: &str) -> Vec<f64> {
        let matches = |row: &&ReportRow| values.iter().all(|(key, value)| row.0.get(*key) == Some(value));
        self.rows.iter().filter(matches).filter_map(|row| row.0.get(key)?.as_f64()).collect()
    }

    /// Compares a figure with the promised bound and prints the result, except in a quick run.
    pub fn promise(&self, what: &str, found: Option<f64>, bound: Bound) {
        let Some(found) = found.filter(|_| !self.quick) else { return };
        let kept = bound.holds(found);
        self.lost.set(self.lost.get() + u64::from(!kept));
        let (sign, limit) = bound.shown();
        let found = rounded(found);
        if self.json {
            println!("{}", json!({"promise": what, "found": found, "bound": format!("{sign} {limit}"), "kept": kept}));
        }
        eprintln!("  {}  {what}: {found} (promised {sign} {limit})", if kept { "kept" } else { "LOST" });
    }

    /// Prints a line of the comparison with a peer: its figure, ours, the ratio (higher is better for us) and its goal.
    pub fn compare(&self, what: &str, peer: f64, rowlock: f64, ratio: f64, goal: Option<f64>) {
        let goal = goal.filter(|_| !self.quick);
        let is_kept = goal.map(|goal| ratio >= goal);
        self.lost.set(self.lost.get() + u64::from(is_kept == Some(false)));
        let [peer, rowlock, ratio] = [peer, rowlock, ratio].map(rounded);
        if self.json {
            let line = json!({
                "comparison": what, "peer": peer, "rowlock": rowlock, "ratio": ratio, "goal": goal, "kept": is_kept,
            });
            println!("{line}");
        }
        let verdict = match is_kept {
            Some(true) => "kept",
            Some(false) => "LOST",
            None if ratio < 1.0 && !self.quick => "loss",
            None => "",
        };
        let goal = goal.map_or_else(|| "none".to_owned(), |goal| goal.to_string());
        eprintln!("  {verdict:<4}  {what:<52}{peer:>12}{rowlock:>12}{ratio:>9.2}{goal:>7}");
    }

    /// Prints the verdict. `true` means that no violation was found, and in a quick run no error.
    pub fn close(&self) -> bool {
        if self.violations > 0 {
            eprintln!("\n  VOID: {} violations. None of the figures above counts.", self.violations);
        } else if self.quick {
            eprintln!("\n  No violation was found; {} answers were errors.", self.errors);
        } else {
            eprintln!("\n  No violation was found; {} promises are lost.", self.lost.get());
        }
        self.violations == 0 && !(self.quick && self.errors > 0)
    }
}

/// The promised bound of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, found: f64) -> bool {
        match self {
            Self::AtMost(limit) => found <= limit,
            Self::AtLeast(limit) => found >= limit,
        }
    }

    const fn shown(self) -> (&'static str, f64) {
        match self {
            Self::AtMost(limit) => ("<=", limit),
            Self::AtLeast(limit) => (">=", limit),
        }
    }
}

/// Returns the median; for an even count, the mean of the two middle figures.
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(figures[middle]),
        _ => Some(f64::midpoint(figures[middle - 1], figures[middle])),
    }
}

pub fn ratio(figure: Option<f64>, by: Option<f64>) -> Option<f64> {
    figure.zip(by).map(|(figure, by)| figure / by)
}

fn median_row(rows: &[ReportRow]) -> ReportRow {
    let mut figures: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for row in rows {
        for (key, value) in &row.0 {
            if let Some(figure) = value.as_f64().filter(|_| key != "round" && !SETTINGS.contains(&key.as_str())) {
                figures.entry(key).or_default().push(figure);
            }
        }
    }
    let mut result = rows[0].clone();
    result.0.insert("round".into(), json!("median"));
    result.0.insert("rounds".into(), json!(rows.len()));
    let mut ranges = Map::new();
    for (key, figures) in figures {
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most > least {
            ranges.insert(key.clone(), json!([least, most]));
        }
        if let Some(middle) = median(figures) {
            result.0.insert(key.clone(), json!(rounded(middle)));
        }
    }
    result.0.insert("ranges".into(), Value::Object(ranges));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_row_has_the_median_and_range_of_every_figure() {
        let rows: Vec<ReportRow> = [3.0, 1.0, 2.0]
            .iter()
            .enumerate()
            .map(|(round, ms)| {
                ReportRow::of("locks", "candidate").with("round", round).with("rate_per_s", 500).figure("p99_ms", *ms)
            })
            .collect();
        let middle = median_row(&rows).0;
        assert_eq!(middle["p99_ms"], json!(2.0));
        assert_eq!(middle["ranges"], json!({"p99_ms": [1.0, 3.0]}));
        assert_eq!((&middle["round"], &middle["rate_per_s"]), (&json!("median"), &json!(500)));
    }

    #[test]
    fn rounds_of_one_rate_are_one_group_and_other_rates_are_others() {
        let row =
            |rate: u64, round: u64| ReportRow::of("locks", "candidate").with("rate_per_s", rate).with("round", round);
        assert_eq!(row(500, 1).group_key(), row(500, 2).group_key());
        assert_ne!(row(500, 1).group_key(), row(600, 1).group_key());
        assert_eq!(median(vec![1.0, 2.0, 9.0, 4.0]), Some(3.0));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn one_violation_in_one_round_voids_the_report() {
        let mut report = Report::new(false, false);
        report.findings(&Findings::default());
        assert!(report.close());
        let mut found = Findings::default();
        found.add(|| "a planted one".into());
        report.findings(&found);
        report.findings(&Findings::default());
        assert!(!report.close());
    }

    #[test]
    fn an_error_fails_a_quick_report_only_and_a_bound_only_a_long_one() {
        for quick in [false, true] {
            let mut report = Report::new(false, quick);
            report.round(ReportRow::of("locks", "candidate").with("errors", 1));
            report.promise("a figure", Some(2.0), Bound::AtMost(1.0));
            report.compare("a figure", 3.0, 2.0, 1.5, Some(3.5));
            assert_eq!(report.lost.get(), if quick { 0 } else { 2 });
            assert_eq!(report.close(), !quick);
        }
        assert!(Bound::AtMost(2.0).holds(2.0) && !Bound::AtLeast(2.0).holds(1.9));
    }
}
