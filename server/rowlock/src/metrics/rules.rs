//! Tests of the shipped alerts and dashboards: they query existing series, each alert has a test and a chapter for the
//! operator on call, and Prometheus' own tool accepts them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use metrics::{counter, gauge, histogram};
use serde_json::{Value, json};

use platform::telemetry::{HTTP_DURATION, HTTP_REQUESTS, builder, expect_gateway};

use super::{gauges, register};

const RULES: &str = include_str!("../../../../deploy/prometheus/rowlock.rules.yml");
const TESTS: &str = include_str!("../../../../deploy/prometheus/rowlock.rules.test.yml");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana/rowlock.json");
const OPERATING: &str = include_str!("../../../../docs/operating.md");
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
/// Labels that the scraper adds to every series.
const SCRAPER_LABELS: [&str; 2] = ["instance", "job"];
/// Series that the scraper adds, not the replica.
const SCRAPER_SERIES: [&str; 1] = ["up"];

/// Every metric there is, as a scrape has them.
fn exposition() -> String {
    let recorder = builder().expect("buckets").build_recorder();
    metrics::with_local_recorder(&recorder, || {
        register();
        expect_gateway("simulator");
        counter!(HTTP_REQUESTS, "method" => "GET", "route" => "/", "status" => "200").increment(1);
        histogram!(HTTP_DURATION, "method" => "GET", "route" => "/").record(0.1);
        for (name, ..) in gauges::DESCRIBED {
            if name.ends_with("_connections") {
                gauge!(name, "state" => "busy").set(1.0);
            } else {
                gauge!(name).set(1.0);
            }
        }
    });
    recorder.handle().render()
}

/// Names of series, each with the labels it has.
fn series(exposition: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut known = BTreeMap::<_, BTreeSet<_>>::new();
    for line in exposition.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, labels) = selector(line).expect("a line begins with a name");
        known.entry(name).or_default().extend(labels);
    }
    known
}

/// The name in front of a text and the labels in braces behind it.
fn selector(text: &str) -> Option<(&str, Vec<&str>)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(labels, _)| labels);
    let labels = labels.split(',').filter_map(|label| label.trim().split(['=', '!']).next());
    (!name.is_empty()).then(|| (name, labels.filter(|label| !label.is_empty()).collect()))
}

/// The unknown series and labels in a query.
fn unknown(query: &str, known: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, _) in query.match_indices("rowlock_") {
        let Some((name, labels)) = selector(&query[at..]) else { continue };
        match known.get(name) {
            None => wrong.push(format!("there is no {name}")),
            Some(there) => {
                let missing = labels.iter().filter(|label| !there.contains(*label) && !SCRAPER_LABELS.contains(label));
                wrong.extend(missing.map(|label| format!("{name} has no {label}")));
            }
        }
    }
    wrong
}

fn alerts() -> Vec<&'static str> {
    let names = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 10, "the rules are read: {names:?}");
    names
}

/// Every panel's queries.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let queries = panels.iter().flat_map(|panel| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| (title.clone(), target["expr"].as_str().expect("a query").to_owned()))
    });
    queries.collect()
}

#[test]
fn alerts_and_panels_query_existing_series() {
    let exposition = exposition();
    let known = series(&exposition);
    assert_eq!(unknown("rate(rowlock_nothing[5m]) + rowlock_outbox_parked{colour=\"red\"}", &known).len(), 2);
    assert_eq!(unknown(RULES, &known), Vec::<String>::new(), "in the rules");
    let queries = queries();
    assert!(queries.len() > 15, "the dashboard is read");
    for (title, query) in queries {
        assert!(
            query.contains("rowlock_") || SCRAPER_SERIES.iter().any(|other| query.contains(other)),
            "{title}: {query}"
        );
        assert_eq!(unknown(&query, &known), Vec::<String>::new(), "in {title}");
    }
}

#[test]
fn every_metric_is_documented_for_operators() {
    let exposition = exposition();
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names: Vec<&str> = types.map(|(name, _)| name).collect();
    assert!(names.len() > 20, "they are read: {names:?}");
    for name in names {
        assert!(exposition.contains(&format!("# HELP {name} ")), "{name} has no description");
        assert!(OPERATING.contains(&format!("`{name}`")), "docs/operating.md does not explain {name}");
    }
}

#[test]
fn every_alert_has_a_firing_and_a_silent_test_and_a_chapter() {
    for alert in alerts() {
        assert!(TESTS.contains(&format!("name: \"{alert}: ")), "nothing causes {alert}");
        assert!(TESTS.contains(&format!("name: \"no {alert}: ")), "nothing is said not to cause {alert}");
        assert!(OPERATING.contains(&format!("### {alert}\n")), "docs/operating.md does not say what to do");
        assert!(RULES.contains(&format!("docs/operating.md#{}\"", alert.to_lowercase())), "{alert} leads nowhere");
    }
}

#[test]
fn panels_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "two panels have one number: {panel}");
        let place = |of: &str| panel["gridPos"][of].as_u64().expect("a place");
        assert!(place("x") + place("w") <= 24, "it is 24 columns wide: {panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "{} lies on another", panel["title"]);
            }
        }
    }
}

/// Prometheus' own tool: `PROMTOOL`, else the one on the path. `cargo xtask test` installs it.
fn promtool(arguments: &[&str], input: &str) {
    let named = std::env::var_os("PROMTOOL").map(PathBuf::from);
    let is_named = named.is_some();
    let tool = named.unwrap_or_else(|| "promtool".into());
    let child = Command::new(tool)
        .args(arguments)
        .current_dir(DEPLOY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(cause) if !is_named && cause.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("promtool is not here: {arguments:?} is left to `cargo xtask test`");
            return;
        }
        Err(cause) => panic!("promtool does not start: {cause}"),
    };
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn prometheus_takes_rules_and_lines_and_each_alert_fires() {
    promtool(&["check", "metrics"], &exposition());
    promtool(&["check", "rules", "prometheus/rowlock.rules.yml"], "");
    promtool(&["test", "rules", "prometheus/rowlock.rules.test.yml"], "");
    promtool(&["check", "config", "--syntax-only", "prometheus/prometheus.yml"], "");
}

#[test]
fn prometheus_parses_the_query_of_every_panel() {
    let rules: Vec<Value> = queries()
        .into_iter()
        .enumerate()
        .map(|(number, (_, query))| {
            let query = query.replace("$__rate_interval", "5m").replace("$__range", "1h").replace("$instance", ".*");
            json!({ "record": format!("panel:{number}"), "expr": query })
        })
        .collect();
    let folder = std::env::temp_dir().join(format!("rowlock-panels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("panels.yml");
    // Its own format is a larger JSON.
    let groups = json!({ "groups": [{ "name": "panels", "rules": rules }] });
    std::fs::write(&file, groups.to_string()).expect("it is written");
    promtool(&["check", "rules", file.to_str().expect("a path")], "");
    std::fs::remove_dir_all(&folder).expect("it is tidied up");
}
