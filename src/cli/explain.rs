//! `memlint explain`: a rule's page, or what a budget of the configuration means.

use std::fmt::Write;
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::Explain;
use super::error::CliError;
use super::print;
use crate::config::{Budget, MaterialityTable, Origin, Overrides, Settings, Word};
use crate::rules::{Meta, metas};
use crate::unit::{shown_name, suggestion};
use crate::verdict::{Bound, Row};

pub(super) fn run(explain: &Explain, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let configuration = explain.locating.configuration(matches)?;
    let table = configuration.materiality().clone();
    let pages = match &explain.rule {
        Some(name) if name.starts_with(Budget::PREFIX) => {
            let settings = Settings::of(configuration, Overrides::default())?;
            let budget = settings.budgets.iter().find(|budget| budget.rule == *name);
            vec![budget.map(of_budget).ok_or_else(|| unknown_budget(name, &settings))?]
        }
        Some(name) => {
            vec![page(metas().find(|meta| meta.name == name).ok_or_else(|| unknown(name))?, &table)]
        }
        None => metas().map(|meta| page(meta, &table)).collect(),
    };
    print(|out| out.write_all(pages.join("\n").as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// What there is to say of a limit that the user set.
fn of_budget(budget: &Budget) -> String {
    let Budget { rule, metric, scope, limit, level, .. } = budget;
    let of = metric.value.subject().map(|of| format!(" of `{of}`")).unwrap_or_default();
    format!(
        "# {rule}\n\n\
         `{}`{of} per {}: at most {} ({}).\n\
         Passing it counts as {} ({}).\n\n\
         ## What it measures\n\n{}\n\n\
         ## How to fix it\n\n\
         See what holds the memory at that moment: the finding names the line that holds most. Where the limit is wrong,\n\
         change `limit` of `[{rule}]`.\n",
        metric.value.name(),
        scope.value.word(),
        limit.value,
        limit.origin,
        level.value.word(),
        level.origin,
        metric.value.about(),
    )
}

fn unknown_budget(name: &str, settings: &Settings) -> CliError {
    let budgets = || settings.budgets.iter().map(|budget| budget.rule.as_str());
    let hint = match &settings.file {
        None => "there is no configuration, and budgets stand there".to_owned(),
        Some(file) if settings.budgets.is_empty() => format!("{file} sets no budgets"),
        Some(_) => suggestion(name, "budgets", budgets()),
    };
    CliError::UnknownRule { name: name.to_owned(), hint }
}

fn page(meta: &Meta, table: &MaterialityTable) -> String {
    format!("{}\n{}", meta.page.trim_end(), when_it_counts(meta.name, table).unwrap_or_default())
}

/// From which worth on a rule's findings count, and why; nothing for a rule that measures in its own way.
fn when_it_counts(rule: &str, table: &MaterialityTable) -> Option<String> {
    let (_, row) = table.table().row(rule)?;
    let mut told = "\n## When it counts\n\n".to_owned();
    for (level, name) in Row::LEVELS {
        let bounds: Vec<String> = row.bounds(level).iter().map(Bound::words).collect();
        let words = if bounds.is_empty() { "never".to_owned() } else { bounds.join(", or ") };
        let by = match table.origin(rule, level) {
            Origin::Default => String::new(),
            set => format!(" ({})", shown_name(&set.to_string())),
        };
        let _ = writeln!(told, "- {name}: {words}{by}");
    }
    let is_set = Row::LEVELS.into_iter().any(|(level, _)| *table.origin(rule, level) != Origin::Default);
    let why = if is_set { "Why the default" } else { "Why" };
    let _ = writeln!(told, "\n{why}: {}.\n`[materiality.{rule}]` of the configuration changes it.", row.why);
    Some(told)
}

fn unknown(name: &str) -> CliError {
    let hint = suggestion(name, "rules", metas().map(|meta| meta.name));
    CliError::UnknownRule { name: name.to_owned(), hint }
}
