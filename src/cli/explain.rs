//! `memlint explain`: a rule's page.

use std::process::ExitCode;

use super::arguments::Explain;
use super::error::CliError;
use super::print;
use crate::comparison::REGRESSIONS;
use crate::rules::{Meta, RULES};

/// Names at least this alike (Jaro-Winkler, 0 to 1) are offered; clap uses 0.7 for the same question.
const ALIKE: f64 = 0.7;

pub(super) fn run(explain: &Explain) -> Result<ExitCode, CliError> {
    let shown = match &explain.rule {
        Some(name) => vec![metas().find(|meta| meta.name == name).ok_or_else(|| unknown(name))?],
        None => metas().collect(),
    };
    let pages: Vec<String> = shown.into_iter().map(page).collect();
    print(|out| out.write_all(pages.join("\n").as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// Every rule, those that need two recordings last.
fn metas() -> impl Iterator<Item = &'static Meta> {
    RULES.iter().map(|rule| rule.meta()).chain(REGRESSIONS)
}

fn page(meta: &Meta) -> String {
    format!("{}\n", meta.page.trim_end())
}

fn unknown(name: &str) -> CliError {
    let names = || metas().map(|meta| meta.name);
    let likeness = |rule: &&str| strsim::jaro_winkler(rule, name);
    let nearest =
        names().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|rule| likeness(rule) > ALIKE);
    let hint = match nearest {
        Some(rule) => format!("did you mean `{rule}`?"),
        None => format!("the rules are: {}", names().collect::<Vec<_>>().join(", ")),
    };
    CliError::UnknownRule { name: name.to_owned(), hint }
}
