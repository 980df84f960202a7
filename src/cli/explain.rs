//! `memlint explain`: a rule's page, or what a budget of the configuration means.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::Explain;
use super::error::CliError;
use super::print;
use crate::config::{Budget, Overrides, Settings, Word};
use crate::rules::{Meta, metas};
use crate::unit::suggestion;

pub(super) fn run(explain: &Explain, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let pages = match &explain.rule {
        Some(name) if name.starts_with(Budget::PREFIX) => {
            let settings = Settings::of(explain.locating.configuration(matches)?, Overrides::default())?;
            let budget = settings.budgets.iter().find(|budget| budget.rule == *name);
            vec![budget.map(of_budget).ok_or_else(|| unknown_budget(name, &settings))?]
        }
        Some(name) => vec![page(metas().find(|meta| meta.name == name).ok_or_else(|| unknown(name))?)],
        None => metas().map(page).collect(),
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

fn page(meta: &Meta) -> String {
    format!("{}\n", meta.page.trim_end())
}

fn unknown(name: &str) -> CliError {
    let hint = suggestion(name, "rules", metas().map(|meta| meta.name));
    CliError::UnknownRule { name: name.to_owned(), hint }
}
