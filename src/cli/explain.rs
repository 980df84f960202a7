//! `memlint explain`: a rule's page, a group's rules, what a notice or a budget of the configuration means.

use std::fmt::Write;
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, Explain};
use super::error::CliError;
use super::meant::{Meant, meant};
use super::{print, terminal};
use crate::config::{Budget, MaterialityTable, Overrides, SetBy, Settings, Word};
use crate::finding::{Group, Matter, Severity};
use crate::report::rules::ListedRule;
use crate::report::{Detail, Look, page, rules};
use crate::rules::{Meta, metas};
use crate::unit::{shown_name, suggestion};
use crate::verdict::{Bound, RuleBounds};

pub(super) fn run(explain: &Explain, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = explain.locating.configuration(matches)?;
    let look = terminal::look(color, Detail::Normal);
    let explained = match &explain.rule {
        Some(name) if name.starts_with(Budget::PREFIX) => {
            let settings = Settings::of(configuration, Overrides::default())?;
            let budget = settings.budgets.iter().find(|budget| budget.rule == *name);
            page::wrapped(&budget.map(of_budget).ok_or_else(|| unknown_budget(name, &settings))?, &look)
        }
        Some(name) => match thing(name)? {
            Thing::Rule(meta) => of_rule(meta, configuration.materiality(), explain.examples, &look),
            Thing::Group(Group::Budget) => {
                let settings = Settings::of(configuration, Overrides::default())?;
                rules::render_group(Group::Budget, &budgets(&settings), &look)
            }
            Thing::Group(group) => rules::render_group(group, &rules::of_group(group), &look),
            Thing::Notice(matter) => page::wrapped(
                &format!("# {}\n\nA notice of the judging itself.\n\n{}\n", matter.name(), matter.about()),
                &look,
            ),
        },
        None => {
            let page = |meta| of_rule(meta, configuration.materiality(), explain.examples, &look);
            metas().map(page).collect::<Vec<_>>().join("\n")
        }
    };
    print(|out| out.write_all(explained.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// What can be explained by a name of memlint's own.
enum Thing {
    Rule(&'static Meta),
    Group(Group),
    Notice(Matter),
}

/// What a name stands for, or what it must mean; says so where it is not the name.
fn thing(name: &str) -> Result<Thing, CliError> {
    let named = |name: &str| {
        let group = || Group::ALL.into_iter().find(|group| group.name() == name);
        let notice = || Matter::ALL.into_iter().find(|matter| matter.name() == name);
        let rule = metas().find(|meta| meta.name == name).map(Thing::Rule);
        rule.or_else(|| group().map(Thing::Group)).or_else(|| notice().map(Thing::Notice))
    };
    if let Some(thing) = named(name) {
        return Ok(thing);
    }
    // A notice is looked up by the name that stands behind it: who describes what is wrong means a rule.
    let names: Vec<&str> =
        metas().map(|meta| meta.name).chain(Group::ALL.iter().map(|group| group.name())).collect();
    match meant(name, &names) {
        Meant::One(one) => {
            terminal::say(&format!("there is no rule `{}`; this is `{one}`", shown_name(name)));
            named(one).ok_or_else(|| unknown(name, &[]))
        }
        Meant::OneOf(several) => {
            let about = rules_about(name);
            let is_in_names = several.iter().any(|one| one.contains(name));
            Err(unknown(name, if is_in_names || about.is_empty() { &several } else { &about }))
        }
    }
}

/// The rules whose sentence has a word in it: whoever looks for `gradients` knows no name, but what is wrong.
fn rules_about(word: &str) -> Vec<&'static str> {
    metas()
        .filter(|meta| meta.summary.split_whitespace().any(|one| one == word))
        .map(|meta| meta.name)
        .collect()
}

/// A rule's page without its examples, and when the rule counts; then the examples, if they are asked for.
fn of_rule(meta: &Meta, table: &MaterialityTable, with_examples: bool, look: &Look) -> String {
    let counts = when_it_counts(meta.name, table).unwrap_or_default();
    let explained = page::wrapped(&format!("{}\n{counts}", page::guide(meta.page)), look);
    if with_examples {
        return format!("{explained}\n{}\n", page::wrapped(page::examples(meta.page), look).trim_end());
    }
    explained
}

/// The budgets that somebody set.
fn budgets(settings: &Settings) -> Vec<ListedRule> {
    let entry = |budget: &Budget| ListedRule {
        name: budget.rule.clone(),
        level: budget.severity().unwrap_or(Severity::Error),
        summary: format!(
            "{} per {} at most {}",
            budget.metric.value.name(),
            budget.scope.value.word(),
            budget.limit.value
        ),
    };
    settings.budgets.iter().map(entry).collect()
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

/// From which worth on a rule's findings count, and why; nothing for a rule that measures in its own way.
fn when_it_counts(rule: &str, table: &MaterialityTable) -> Option<String> {
    let (_, row) = table.table().row(rule)?;
    let mut told = "\n## When it counts\n\n".to_owned();
    for (level, name) in RuleBounds::LEVELS {
        let bounds: Vec<String> = row.bounds(level).iter().map(Bound::words).collect();
        let words = if bounds.is_empty() { "never".to_owned() } else { bounds.join(", or ") };
        let by = match table.origin(rule, level) {
            SetBy::Default => String::new(),
            set => format!(" ({})", shown_name(&set.to_string())),
        };
        let _ = writeln!(told, "- {name}: {words}{by}");
    }
    let is_set =
        RuleBounds::LEVELS.into_iter().any(|(level, _)| *table.origin(rule, level) != SetBy::Default);
    let why = if is_set { "Why the default" } else { "Why" };
    let _ = writeln!(told, "\n{why}: {}.\n`[materiality.{rule}]` of the configuration changes it.", row.why);
    Some(told)
}

fn unknown(name: &str, near: &[&str]) -> CliError {
    let hint = if near.is_empty() {
        "`memlint rules` lists all rules".to_owned()
    } else {
        let about = |name: &&str| match metas().find(|meta| meta.name == *name) {
            Some(meta) => format!("\n  {name}: {}", meta.summary),
            None => format!("\n  {name}: a group of rules"),
        };
        format!(
            "did you mean{}{}",
            if near.len() > 1 { " one of these?" } else { " this?" },
            near.iter().map(about).collect::<String>()
        )
    };
    CliError::UnknownRule { name: name.to_owned(), hint }
}
