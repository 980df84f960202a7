//! Which rules run, and what their findings count as.
//!
//! Layers, the weaker first: the configuration, then the command line. Within one layer what is more specific goes before
//! what is less: a rule before its group, a group before `all`. Of equals, `ignore` goes before `select`. A layer with
//! `select` starts from nothing; without one it changes what the layers before it left. (ruff does the same.)

use super::catalogue::{Catalogue, Choice, Detector};
use super::error::{ConfigError, Fault};
use super::setting::Setting;
use crate::finding::{Finding, Group, Severity};

/// What one source of settings says of rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layer {
    /// What runs, and nothing else.
    pub select: Option<Setting<Vec<Setting<Choice>>>>,
    /// What runs as well.
    pub extend_select: Vec<Setting<Choice>>,
    /// What does not run.
    pub ignore: Vec<Setting<Choice>>,
    /// What findings count as.
    pub levels: Vec<(Setting<Choice>, Severity)>,
}

/// What was decided of each rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    rules: Vec<Decision>,
}

/// What was decided of one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The rule.
    pub rule: Detector,
    /// Whether it runs, and who said so.
    pub runs: Setting<bool>,
    /// What its findings count as, where somebody said so.
    pub level: Option<Setting<Severity>>,
    /// Whether somebody said so of this very rule, and not of its group: only then are notes raised that are all that a
    /// rule makes of its own.
    pub by_name: bool,
}

impl Layer {
    /// Two levels for the same name, if there are such.
    pub(super) fn contradiction(&self) -> Option<(&Setting<Choice>, Fault)> {
        self.levels.iter().enumerate().find_map(|(position, (choice, second))| {
            let before = self.levels.get(..position)?;
            let (_, first) =
                before.iter().find(|(other, first)| other.value == choice.value && first != second)?;
            let name = choice.value.name().to_owned();
            Some((choice, Fault::TwoLevels { name, first: first.name(), second: second.name() }))
        })
    }

    /// Whether a rule runs, where this layer has a say.
    fn runs(&self, rule: &Detector) -> Option<Setting<bool>> {
        let select = self
            .select
            .iter()
            .flat_map(|select| &select.value)
            .chain(&self.extend_select)
            .map(|choice| (choice, true));
        let ignore = self.ignore.iter().map(|choice| (choice, false));
        let strongest = select
            .chain(ignore)
            .filter(|(choice, _)| choice.value.covers(rule))
            .max_by_key(|(choice, runs)| (choice.value.specificity(), !runs));
        match strongest {
            Some((choice, runs)) => Some(Setting { value: runs, origin: choice.origin.clone() }),
            // `select` names others. A budget is the user's own word, and chosen where it is written: who looks at some rules more closely must
            // not lose a limit by it.
            None if rule.group == Group::Budget.name() => None,
            None => {
                self.select.as_ref().map(|select| Setting { value: false, origin: select.origin.clone() })
            }
        }
    }

    /// What a rule's findings count as, where this layer has a say; and whether it names the very rule.
    fn level(&self, rule: &Detector) -> Option<(Setting<Severity>, bool)> {
        let (choice, severity) = self
            .levels
            .iter()
            .filter(|(choice, _)| choice.value.covers(rule))
            .max_by_key(|(choice, _)| choice.value.specificity())?;
        let by_name = matches!(choice.value, Choice::Rule(_));
        Some((Setting { value: *severity, origin: choice.origin.clone() }, by_name))
    }
}

impl Decision {
    /// Whether the level is meant for notes, too.
    pub fn raises_notes(&self) -> bool {
        self.by_name && self.rule.level == Severity::Info
    }
}

impl Selection {
    /// What runs where nobody says anything: all but advice, each at the level of its own.
    pub fn by_default(catalogue: &Catalogue) -> Selection {
        let decision = |rule: &Detector| Decision {
            rule: rule.clone(),
            runs: Setting::default(rule.by_default),
            level: None,
            by_name: false,
        };
        Selection { rules: catalogue.known().iter().map(decision).collect() }
    }

    /// What layers make of the catalogue, the last being the strongest. That nothing is left is an error: a gate that
    /// looks at nothing would always be open.
    pub fn of(catalogue: &Catalogue, layers: &[Layer]) -> Result<Selection, ConfigError> {
        let mut selection = Selection::by_default(catalogue);
        for decision in &mut selection.rules {
            for layer in layers {
                if let Some(runs) = layer.runs(&decision.rule) {
                    decision.runs = runs;
                }
                if let Some((level, by_name)) = layer.level(&decision.rule) {
                    (decision.level, decision.by_name) = (Some(level), by_name);
                }
            }
        }
        if selection.rules.iter().any(|decision| decision.runs.value) {
            return Ok(selection);
        }
        let origins = selection.rules.iter().map(|decision| decision.runs.origin.to_string());
        let mut origins: Vec<String> = origins.collect();
        origins.sort_unstable();
        origins.dedup();
        Err(ConfigError::NothingSelected { hint: format!("this is what {} left", origins.join(", ")) })
    }

    /// What was decided, in the order of the catalogue.
    pub fn decisions(&self) -> &[Decision] {
        &self.rules
    }

    /// Those that run where nobody says anything and are switched off here.
    pub fn switched_off(&self) -> impl Iterator<Item = &Decision> {
        self.rules.iter().filter(|one| one.rule.by_default && !one.runs.value)
    }

    /// Whether there is such a rule.
    pub fn knows(&self, rule: &str) -> bool {
        self.decision(rule).is_some()
    }

    /// Whether a rule runs.
    pub fn runs(&self, rule: &str) -> bool {
        self.decision(rule).is_some_and(|decision| decision.runs.value)
    }

    /// Gives a finding the level that was chosen for its rule: its warnings and errors count as that. Its notes stay
    /// notes; they explain, and nobody has to mend them. Only where notes are all that a rule makes of its own, naming
    /// that rule raises them.
    pub fn level(&self, finding: &mut Finding) {
        let Some(decision) = self.decision(&finding.rule) else { return };
        let Some(level) = &decision.level else { return };
        if finding.severity > Severity::Info || decision.raises_notes() {
            finding.severity = level.value;
        }
    }

    fn decision(&self, rule: &str) -> Option<&Decision> {
        self.rules.iter().find(|decision| decision.rule.name == rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SetBy;

    fn choices(names: &[&str], origin: &SetBy) -> Vec<Setting<Choice>> {
        let catalogue = Catalogue::with(&[]);
        let choice = |name: &&str| Setting { value: catalogue.choice(name).unwrap(), origin: origin.clone() };
        names.iter().map(choice).collect()
    }

    fn flags(select: Option<&[&str]>, extend: &[&str], ignore: &[&str]) -> Layer {
        Layer {
            select: select.map(|names| Setting::flag("--select", choices(names, &SetBy::Flag("--select")))),
            extend_select: choices(extend, &SetBy::Flag("--extend-select")),
            ignore: choices(ignore, &SetBy::Flag("--ignore")),
            levels: Vec::new(),
        }
    }

    fn levels(of: &[(&str, Severity)]) -> Layer {
        let level = |(name, severity): &(&str, Severity)| {
            choices(&[name], &SetBy::Flag("--deny"))
                .into_iter()
                .map(|choice| (choice, *severity))
                .collect::<Vec<_>>()
        };
        Layer { levels: of.iter().flat_map(level).collect(), ..Layer::default() }
    }

    fn selected(layers: &[Layer]) -> Vec<String> {
        let selection = Selection::of(&Catalogue::with(&[]), layers).unwrap();
        let running = selection.decisions().iter().filter(|decision| decision.runs.value);
        running.map(|decision| decision.rule.name.clone()).collect()
    }

    #[test]
    fn everything_runs_unless_somebody_says_otherwise() {
        // Beside the rules that look at one recording those that need two.
        assert_eq!(selected(&[]).len(), crate::rules::by_default().len() + 2);
        assert_eq!(selected(&[flags(None, &["advice"], &[])]).len(), Catalogue::with(&[]).known().len());
        assert_eq!(selected(&[flags(Some(&["amp"]), &[], &[])]), ["skipped-optimizer-step"]);
        assert_eq!(selected(&[flags(Some(&["amp"]), &["oom"], &[])]), ["skipped-optimizer-step", "oom"],);
        assert!(!selected(&[flags(None, &[], &["oom"])]).contains(&"oom".to_owned()));
    }

    #[test]
    fn what_is_more_specific_goes_first_and_ignore_before_select() {
        assert_eq!(
            selected(&[flags(Some(&["input"]), &[], &["no-stacks"])]),
            ["truncated-history", "no-iterations"]
        );
        assert_eq!(selected(&[flags(Some(&["no-stacks"]), &[], &["input"])]), ["no-stacks"]);
        assert_eq!(selected(&[flags(Some(&["oom"]), &["no-stacks"], &["all"])]), ["oom", "no-stacks"]);
        assert_eq!(selected(&[flags(Some(&["oom", "no-stacks"]), &[], &["oom"])]), ["no-stacks"]);
    }

    #[test]
    fn a_later_layer_wins_whatever_it_says() {
        let file = flags(Some(&["leak"]), &[], &["growing-residency"]);
        assert_eq!(selected(&[file.clone(), flags(Some(&["oom"]), &[], &[])]), ["oom"]);
        let both = selected(&[file.clone(), flags(None, &["oom"], &["retained-graph"])]);
        assert!(both.contains(&"oom".to_owned()) && both.contains(&"missing-zero-grad".to_owned()));
        assert!(
            !both.contains(&"retained-graph".to_owned()) && !both.contains(&"growing-residency".to_owned())
        );
        let group = selected(&[flags(None, &[], &["oom"]), flags(Some(&["allocator"]), &[], &[])]);
        assert!(group.contains(&"oom".to_owned()), "the command line's group goes before the file's rule");
    }

    #[test]
    fn selecting_nothing_is_an_error_that_says_who_did_it() {
        let told = |layers: &[Layer]| match Selection::of(&Catalogue::with(&[]), layers) {
            Err(ConfigError::NothingSelected { hint }) => hint,
            other => panic!("{other:?}"),
        };
        assert_eq!(told(&[flags(Some(&["oom"]), &[], &["oom"])]), "this is what --ignore, --select left");
        assert_eq!(told(&[flags(None, &[], &["all"])]), "this is what --ignore left");
        assert_eq!(told(&[flags(Some(&["budget"]), &[], &[])]), "this is what --select left");
    }

    #[test]
    fn levels_move_warnings_and_errors_but_leave_notes() {
        let leveled = |rule: &'static str, severity, layers: &[Layer]| {
            let mut finding = Finding::of(rule, Group::Leak, severity);
            Selection::of(&Catalogue::with(&[]), layers).unwrap().level(&mut finding);
            finding.severity
        };
        let deny = levels(&[("all", Severity::Error)]);
        assert_eq!(leveled("fragmentation", Severity::Warning, std::slice::from_ref(&deny)), Severity::Error);
        assert_eq!(leveled("fragmentation", Severity::Info, std::slice::from_ref(&deny)), Severity::Info);
        assert_eq!(leveled("no-iterations", Severity::Info, std::slice::from_ref(&deny)), Severity::Info);
        assert_eq!(
            leveled("skipped-optimizer-step", Severity::Warning, std::slice::from_ref(&deny)),
            Severity::Error
        );
        let named = [levels(&[("no-iterations", Severity::Error), ("input", Severity::Warning)])];
        assert_eq!(leveled("no-iterations", Severity::Info, &named), Severity::Error);
        let mixed = levels(&[
            ("all", Severity::Error),
            ("leak", Severity::Warning),
            ("retained-graph", Severity::Info),
        ]);
        let mixed = std::slice::from_ref(&mixed);
        assert_eq!(leveled("retained-graph", Severity::Error, mixed), Severity::Info);
        assert_eq!(leveled("growing-residency", Severity::Error, mixed), Severity::Warning);
        assert_eq!(leveled("oom", Severity::Warning, mixed), Severity::Error);
        assert_eq!(leveled("oom", Severity::Warning, &[]), Severity::Warning);
        let flags = [levels(&[("oom", Severity::Warning)]), levels(&[("all", Severity::Error)])];
        assert_eq!(leveled("oom", Severity::Error, &flags), Severity::Error);
    }

    #[test]
    fn one_name_has_one_level() {
        let layer =
            levels(&[("leak", Severity::Error), ("oom", Severity::Error), ("leak", Severity::Warning)]);
        let (choice, fault) = layer.contradiction().unwrap();
        assert_eq!(choice.value.name(), "leak");
        assert_eq!(fault.to_string(), "`leak` is to be error and warning at once");
        assert!(levels(&[("leak", Severity::Error), ("leak", Severity::Error)]).contradiction().is_none());
    }
}
