//! `memlint explain`: a rule's page.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::Explain;
use super::error::CliError;
use super::print;
use crate::rules::{self, RULES, Rule};
use crate::unit::suggestion;

pub(super) fn run(explain: &Explain, _matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let shown = match &explain.rule {
        Some(name) => vec![rules::named(name).ok_or_else(|| unknown(name))?],
        None => RULES.to_vec(),
    };
    let pages: Vec<String> = shown.into_iter().map(page).collect();
    print(|out| out.write_all(pages.join("\n").as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn page(rule: &dyn Rule) -> String {
    format!("{}\n", rule.meta().page.trim_end())
}

fn unknown(name: &str) -> CliError {
    let hint = suggestion(name, "rules", RULES.iter().map(|rule| rule.meta().name));
    CliError::UnknownRule { name: name.to_owned(), hint }
}
