//! `memlint config`: the settings in effect, and who set each.

use std::fmt::Write;
use std::io;

use serde::Serialize;

use super::Detail;
use crate::config::{Budget, Cell, Ignore, SetBy, Settings, Word};
use crate::finding::Severity;
use crate::unit::{shown_line, shown_page};

/// The version of the JSON.
const SCHEMA: &str = "memlint-config/1";

/// All of it, in the order in which it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    schema: &'static str,
    file: Option<String>,
    passed_over: Vec<String>,
    settings: Vec<Entry>,
    rules: Vec<Rule>,
    materiality: Vec<Counted>,
    budgets: Vec<Capped>,
    ignores: Vec<Ignored>,
}

/// A value under its key.
#[derive(Debug, Serialize)]
struct Entry {
    key: &'static str,
    value: String,
    origin: String,
}

#[derive(Debug, Serialize)]
struct Rule {
    name: String,
    group: &'static str,
    level: &'static str,
    origin: String,
}

/// From which worth on a rule's findings have a level.
#[derive(Debug, Serialize)]
struct Counted {
    rule: &'static str,
    level: &'static str,
    bounds: String,
    origin: String,
    #[serde(skip)]
    is_default: bool,
}

#[derive(Debug, Serialize)]
struct Capped {
    rule: String,
    metric: &'static str,
    of: Option<String>,
    scope: &'static str,
    limit: String,
    origin: String,
}

#[derive(Debug, Serialize)]
struct Ignored {
    rule: String,
    path: Option<String>,
    function: Option<String>,
    reason: String,
    until: Option<String>,
    origin: String,
}

/// For people: a table without lines. Of the table of materiality what somebody set, or all of it where it is verbose.
pub fn text(settings: &Settings, detail: Detail) -> String {
    let shown = Shown::of(settings);
    let mut out = String::new();
    let _ = match &shown.file {
        Some(file) => writeln!(out, "configuration: {file}"),
        None => writeln!(out, "configuration: none"),
    };
    for file in &shown.passed_over {
        let _ = writeln!(out, "not read, because one is enough: {file}");
    }
    table(&mut out, "", shown.settings.iter().map(|one| [one.key, &one.value, &one.origin]));
    table(&mut out, "rules", shown.rules.iter().map(|one| [&*one.name, one.level, &one.origin]));
    let counted = shown.materiality.iter().filter(|one| detail == Detail::Verbose || !one.is_default);
    let counted: Vec<(String, &Counted)> = counted.map(|one| (one.key(), one)).collect();
    table(&mut out, "materiality", counted.iter().map(|(key, one)| [key.as_str(), &one.bounds, &one.origin]));
    let limits: Vec<(String, &Capped)> = shown.budgets.iter().map(|one| (one.words(), one)).collect();
    table(&mut out, "budgets", limits.iter().map(|(words, one)| [&*one.rule, words, &one.origin]));
    let ignores: Vec<(String, &Ignored)> = shown.ignores.iter().map(|one| (one.words(), one)).collect();
    table(&mut out, "ignores", ignores.iter().map(|(words, one)| [&*one.rule, words, &one.origin]));
    shown_page(&out, false)
}

/// For machines.
///
/// # Errors
/// Where the output cannot be written.
pub fn json(settings: &Settings, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Shown::of(settings))?;
    writeln!(out)
}

/// Rows of three columns under a heading; nothing where there are none.
fn table<'a>(out: &mut String, heading: &str, rows: impl Iterator<Item = [&'a str; 3]>) {
    let rows: Vec<[String; 3]> = rows.map(|row| row.map(shown_line)).collect();
    if rows.is_empty() {
        return;
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let _ = if heading.is_empty() { writeln!(out) } else { writeln!(out, "\n{heading}:") };
    for [name, value, origin] in &rows {
        let _ = writeln!(out, "  {name:first$}  {value:second$}  {origin}");
    }
}

impl Shown {
    fn of(settings: &Settings) -> Shown {
        Shown {
            schema: SCHEMA,
            file: settings.file.clone(),
            passed_over: settings.passed_over.iter().map(|path| path.display().to_string()).collect(),
            settings: values(settings),
            rules: rules(settings),
            materiality: settings.materiality.cells().map(|cell| Counted::of(&cell)).collect(),
            budgets: settings.budgets.iter().map(Capped::of).collect(),
            ignores: settings.ignores.iter().map(Ignored::of).collect(),
        }
    }
}

fn values(settings: &Settings) -> Vec<Entry> {
    let value = |key, value: String, origin: &SetBy| Entry { key, value, origin: origin.to_string() };
    let mut values = vec![
        value("fail-on", settings.fail_on.value.word().to_owned(), &settings.fail_on.origin),
        value(
            "min-confidence",
            settings.min_confidence.value.word().to_owned(),
            &settings.min_confidence.origin,
        ),
        value("strict", settings.strict.value.to_string(), &settings.strict.origin),
    ];
    for root in &settings.source_roots {
        values.push(value("source-root", root.value.display().to_string(), &root.origin));
    }
    for map in &settings.path_map {
        let shown = format!("{}={}", map.value.from, map.value.to.display());
        values.push(value("path-map", shown, &map.origin));
    }
    if let Some(baseline) = &settings.baseline {
        values.push(value("baseline", baseline.value.display().to_string(), &baseline.origin));
    }
    if let Some(tolerance) = &settings.tolerance {
        values.push(value("tolerance", tolerance.value.to_string(), &tolerance.origin));
    }
    if let Some(memory) = &settings.device_memory {
        values.push(value("device-memory", memory.value.to_string(), &memory.origin));
    }
    values
}

/// Every rule with its level, `off` where it does not run.
fn rules(settings: &Settings) -> Vec<Rule> {
    let rule = |decision: &crate::config::Decision| {
        let (level, origin) = match (&decision.level, decision.runs.value) {
            (_, false) => ("off", &decision.runs.origin),
            (Some(level), true) if decision.rule.level > Severity::Info || decision.raises_notes() => {
                (level.value.name(), &level.origin)
            }
            (_, true) => (decision.rule.level.name(), &decision.runs.origin),
        };
        Rule {
            name: decision.rule.name.clone(),
            group: decision.rule.group,
            level,
            origin: origin.to_string(),
        }
    };
    settings.selection.decisions().iter().map(rule).collect()
}

impl Counted {
    fn of(cell: &Cell<'_>) -> Counted {
        Counted {
            rule: cell.rule,
            level: cell.level,
            bounds: cell.bounds.clone(),
            origin: cell.origin.to_string(),
            is_default: *cell.origin == SetBy::Default,
        }
    }

    fn key(&self) -> String {
        format!("{}.{}", self.rule, self.level)
    }
}

impl Capped {
    fn of(budget: &Budget) -> Capped {
        Capped {
            rule: budget.rule.clone(),
            metric: budget.metric.value.name(),
            of: budget.metric.value.subject().map(str::to_owned),
            scope: budget.scope.value.word(),
            limit: budget.limit.value.to_string(),
            origin: budget.limit.origin.to_string(),
        }
    }

    fn words(&self) -> String {
        let of = self.of.as_ref().map(|of| format!(" of {of}")).unwrap_or_default();
        format!("{}{of} per {}, at most {}", self.metric, self.scope, self.limit)
    }
}

impl Ignored {
    fn of(ignore: &Ignore) -> Ignored {
        Ignored {
            rule: ignore.rule.clone(),
            path: ignore.path.as_ref().map(|path| path.as_str().to_owned()),
            function: ignore.function.clone(),
            reason: ignore.reason.clone(),
            until: ignore.until.map(|until| until.to_string()),
            origin: ignore.origin.to_string(),
        }
    }

    fn words(&self) -> String {
        let path = self.path.as_ref().map(|path| format!("in {path}"));
        let function = self.function.as_ref().map(|function| format!("in {function}()"));
        let until = self.until.as_ref().map(|until| format!("until {until}"));
        let places: Vec<String> = [path, function, until].into_iter().flatten().collect();
        format!("{}: {}", places.join(" "), self.reason)
    }
}
