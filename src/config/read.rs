//! From what is written to what it means: every name known, every word of its set, every fault at its place.

use toml::Spanned;

use super::budget::{self, Budget, BudgetScope, CallSite, Metric, MetricName};
use super::catalogue::{Catalogue, Choice, unknown_rule};
use super::document::Document;
use super::error::{ConfigError, Fault};
use super::file::{self, File, Text};
use super::ignore::{Ignore, PathPattern};
use super::materiality;
use super::selection::Layer;
use super::setting::Setting;
use super::word::{Level, Word};
use super::{Configuration, PathMapping, date};
use crate::finding::Severity;
use crate::role::Role;
use crate::rules::metas;
use crate::unit::Bytes;

/// What a file means.
pub(super) fn configuration(document: Document, file: &File) -> Result<Configuration, ConfigError> {
    let budgets = budgets(&document, file)?;
    let catalogue = Catalogue::with(&budgets);
    let (ignores, of_rules) = rules(&document, file)?;
    let layer = layer(&document, &catalogue, file, &budgets, of_rules)?;
    let lint = &file.lint;
    let path_map = file.source.path_map.iter().map(|(from, to)| {
        let mapping = PathMapping { from: from.get_ref().clone(), to: document.beside(to) };
        document.setting(from, mapping)
    });
    Ok(Configuration {
        layer,
        fail_on: lint.fail_on.as_ref().map(|word| document.word(word)).transpose()?,
        min_confidence: lint.min_confidence.as_ref().map(|word| document.word(word)).transpose()?,
        strict: lint.strict.as_ref().map(|strict| document.setting(strict, *strict.get_ref())),
        ignores,
        materiality: materiality::read(&document, file)?,
        source_roots: file.source.roots.iter().map(|root| document.path(root)).collect(),
        path_map: path_map.collect(),
        baseline: file.baseline.file.as_ref().map(|path| document.path(path)),
        tolerance: file.baseline.tolerance.as_ref().map(|amount| document.setting(amount, *amount.get_ref())),
        device_memory: file.device.memory.as_ref().map(|size| memory(&document, size)).transpose()?,
        limits: file.budget.values().map(|budget| budget.limit.span()).collect(),
        budgets,
        passed_over: Vec::new(),
        document: Some(document),
    })
}

fn memory(document: &Document, size: &Text) -> Result<Setting<Bytes>, ConfigError> {
    let bytes = |text: &String| text.parse().map_err(|error| Fault::Toml(format!("`{text}`: {error}")));
    document.made(size, bytes)
}

/// What the file says of rules: `[lint]`, levels of `[rules.<name>]`, and that budgets run because they are there.
fn layer(
    document: &Document,
    catalogue: &Catalogue,
    file: &File,
    budgets: &[Budget],
    of_rules: Layer,
) -> Result<Layer, ConfigError> {
    let choices = |names: &[Text]| -> Result<Vec<Setting<Choice>>, ConfigError> {
        names.iter().map(|name| document.made(name, |name| catalogue.choice(name))).collect()
    };
    let lint = &file.lint;
    let mut layer = of_rules;
    if let Some(select) = &lint.select {
        layer.select = Some(document.setting(select, choices(select.get_ref())?));
    }
    layer.extend_select = choices(&lint.extend_select)?;
    layer.ignore.extend(choices(&lint.ignore)?);
    for (names, severity) in [(&lint.warn, Severity::Warning), (&lint.deny, Severity::Error)] {
        layer.levels.extend(choices(names)?.into_iter().map(|choice| (choice, severity)));
    }
    for budget in budgets {
        let choice =
            Setting { value: Choice::Rule(budget.rule.clone()), origin: budget.metric.origin.clone() };
        match budget.level.value {
            Level::On(_) => layer.extend_select.push(choice),
            Level::Off => layer.ignore.push(choice),
        }
    }
    if let Some((choice, fault)) = layer.contradiction() {
        let same = |name: &&Text| {
            document.setting(name, ()).origin == choice.origin && *name.get_ref() == choice.value.name()
        };
        let span = lint.deny.iter().chain(&lint.warn).find(same).map_or(0..0, Spanned::span);
        return Err(document.wrong(span, fault));
    }
    Ok(layer)
}

/// `[rules.<name>]`: what to put up with, and levels.
fn rules(document: &Document, file: &File) -> Result<(Vec<Ignore>, Layer), ConfigError> {
    let (mut ignores, mut layer) = (Vec::new(), Layer::default());
    for (name, rule) in &file.rules {
        let known = document.made(name, |name| {
            let named = metas().find(|meta| meta.name == name);
            named.map(|meta| meta.name).ok_or_else(|| unknown_rule(name))
        })?;
        if let Some(written) = &rule.level {
            let level = document.word::<Level>(written)?;
            let choice = Setting { value: Choice::Rule(known.value.to_owned()), origin: level.origin };
            match level.value {
                Level::On(severity) => layer.levels.push((choice, severity)),
                Level::Off => layer.ignore.push(choice),
            }
        }
        for entry in &rule.ignore {
            ignores.push(ignore(document, known.value, entry)?);
        }
    }
    Ok((ignores, layer))
}

fn ignore(document: &Document, rule: &str, entry: &Spanned<file::Ignore>) -> Result<Ignore, ConfigError> {
    let written = entry.get_ref();
    let reason = written.reason.as_ref().map_or("", |reason| reason.get_ref().trim());
    if reason.is_empty() {
        let span = written.reason.as_ref().map_or_else(|| entry.span(), Spanned::span);
        return Err(document.wrong(span, Fault::NoReason));
    }
    if written.path.is_none() && written.function.is_none() {
        return Err(document.wrong(entry.span(), Fault::IgnoresEverything));
    }
    let path = written.path.as_ref().map(|path| document.made(path, |path| PathPattern::new(path)));
    let day = |text: &String| date::day(text).map_err(|told| Fault::Toml(format!("`{text}`: {told}")));
    let until = written.until.as_ref().map(|until| document.made(until, day));
    Ok(Ignore {
        rule: rule.to_owned(),
        path: path.transpose()?.map(|path| path.value),
        function: written.function.clone(),
        reason: reason.to_owned(),
        until: until.transpose()?.map(|until| until.value),
        origin: document.origin(&entry.span()),
    })
}

fn budgets(document: &Document, file: &File) -> Result<Vec<Budget>, ConfigError> {
    file.budget.iter().map(|(name, written)| budget(document, name, written)).collect()
}

fn budget(document: &Document, name: &Text, written: &file::Budget) -> Result<Budget, ConfigError> {
    if !budget::is_name(name.get_ref()) {
        return Err(document.wrong(name.span(), Fault::BudgetName(name.get_ref().clone())));
    }
    let metric = document.word::<MetricName>(&written.metric)?;
    let scope = match &written.scope {
        Some(scope) => document.word::<BudgetScope>(scope)?,
        None => Setting::default(metric.value.scope()),
    };
    if let (Some(written), Err(fault)) = (&written.scope, metric.value.has(scope.value)) {
        return Err(document.wrong(written.span(), fault));
    }
    let level = match &written.level {
        Some(level) => document.word(level)?,
        None => Setting::default(Level::On(Severity::Error)),
    };
    Ok(Budget {
        rule: format!("{}{}", Budget::PREFIX, name.get_ref()),
        metric: whole_metric(document, metric, written)?,
        scope,
        limit: document.setting(&written.limit, *written.limit.get_ref()),
        level,
    })
}

/// A metric with the role or the call site that it needs.
fn whole_metric(
    document: &Document,
    name: Setting<MetricName>,
    written: &file::Budget,
) -> Result<Setting<Metric>, ConfigError> {
    let metric = name.value.word();
    let keys = [
        ("role", &written.role, MetricName::RoleBytes, "`role = \"activation\"`"),
        (
            "call-site",
            &written.call_site,
            MetricName::CallSiteBytes,
            "`call-site = \"attention\\\\.py:.*:forward\"`",
        ),
    ];
    for (key, value, wanted, example) in keys {
        match value {
            Some(text) if name.value != wanted => {
                let fault = Fault::NotForMetric { key, metric, wanted: wanted.word() };
                return Err(document.wrong(text.span(), fault));
            }
            None if name.value == wanted => {
                return Err(
                    document.wrong(written.metric.span(), Fault::MetricNeeds { metric, key, example })
                );
            }
            _ => {}
        }
    }
    let whole = match (name.value, &written.role, &written.call_site) {
        (_, Some(role), _) => Metric::RoleBytes(document.word::<Role>(role)?.value),
        (_, _, Some(site)) => Metric::CallSiteBytes(document.made(site, |site| CallSite::new(site))?.value),
        (MetricName::PeakAllocated, ..) => Metric::PeakAllocated,
        (MetricName::PeakReserved, ..) => Metric::PeakReserved,
        (MetricName::GrowthPerIteration, ..) => Metric::GrowthPerIteration,
        (MetricName::Fragmentation, ..) => Metric::Fragmentation,
        // The two that need a key have one by now.
        (MetricName::PeakRequested | MetricName::RoleBytes | MetricName::CallSiteBytes, ..) => {
            Metric::PeakRequested
        }
    };
    Ok(Setting { value: whole, origin: name.origin })
}
