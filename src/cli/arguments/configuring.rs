//! The configuration, and what goes before it.

use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use super::{Naming, Sources};
use crate::cli::error::CliError;
use crate::config::{Configuration, FailOn, Overrides, PathMapping, SetBy, Setting, Settings, Word};
use crate::finding::Group;
use crate::unit::{Bytes, Confidence};

/// Where the configuration is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(in crate::cli) struct Locating {
    /// The configuration [default: memlint.toml, .memlint.toml or [tool.memlint] of pyproject.toml, in the current folder
    /// or the nearest above it within the repository].
    #[arg(long, value_name = "FILE", env = "MEMLINT_CONFIG")]
    pub(in crate::cli) config: Option<PathBuf>,

    /// Look for no configuration.
    #[arg(long)]
    isolated: bool,
}

/// What is judged, and how strictly.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(in crate::cli) struct Configuring {
    #[command(flatten)]
    pub(in crate::cli) locating: Locating,

    /// Run these rules or groups, and no others; `all` is every rule.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    select: Option<Vec<String>>,

    /// Run these rules or groups as well.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    extend_select: Vec<String>,

    /// Give advice as well: what a program in order could trade for memory (the group `advice`); -v shows it in full.
    #[arg(long)]
    advice: bool,

    /// Do not run these rules or groups.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    ignore: Vec<String>,

    /// Report the errors of these rules or groups as warnings.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    warn: Vec<String>,

    /// Report the warnings of these rules or groups as errors.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    deny: Vec<String>,

    /// The least severity that makes the exit status 1 [default: error].
    #[arg(long, value_name = "SEVERITY", value_parser = words::<FailOn>(), env = "MEMLINT_FAIL_ON")]
    fail_on: Option<FailOn>,

    /// Leave less sure findings out, and count them [default: low].
    #[arg(long, value_name = "CONFIDENCE", value_parser = words::<Confidence>(), env = "MEMLINT_MIN_CONFIDENCE")]
    min_confidence: Option<Confidence>,

    /// Where a rule cannot judge a recording, exit with 2 instead of 0.
    #[arg(long, value_parser = BoolishValueParser::new(), env = "MEMLINT_STRICT")]
    strict: bool,

    /// The memory of the device that the program is to run on, such as 80GiB: says whether the peak of reserved memory fits it.
    #[arg(long, value_name = "SIZE")]
    device_memory: Option<Bytes>,
}

/// One of a closed set of words.
fn words<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(|one| one.word())).try_map(|word| T::read(&word))
}

impl Locating {
    /// The configuration; `matches` are those of the subcommand.
    pub(in crate::cli) fn configuration(&self, matches: &ArgMatches) -> Result<Configuration, CliError> {
        match &self.config {
            Some(_) if self.isolated && is_flag(matches, "config") => Err(CliError::IsolatedConfig),
            _ if self.isolated => Ok(Configuration::default()),
            Some(path) => Ok(Configuration::read(path)?),
            None => Ok(Configuration::discover(Path::new("."))?),
        }
    }
}

impl Configuring {
    /// What runs beside the usual.
    fn extended(&self) -> Vec<String> {
        let advice = self.advice.then(|| Group::Advice.name().to_owned());
        self.extend_select.iter().cloned().chain(advice).collect()
    }

    /// What holds in the end; `matches` are those of the subcommand.
    pub(in crate::cli) fn settings(
        &self,
        sources: &Sources,
        naming: &Naming,
        matches: &ArgMatches,
    ) -> Result<Settings, CliError> {
        let configuration = self.locating.configuration(matches)?;
        let from = |id, flag, variable| {
            if is_flag(matches, id) { SetBy::Flag(flag) } else { SetBy::Environment(variable) }
        };
        let fail_on = from("fail_on", "--fail-on", "MEMLINT_FAIL_ON");
        let min_confidence = from("min_confidence", "--min-confidence", "MEMLINT_MIN_CONFIDENCE");
        let strict = from("strict", "--strict", "MEMLINT_STRICT");
        let overrides = Overrides {
            select: self.select.clone(),
            extend_select: self.extended(),
            ignore: self.ignore.clone(),
            warn: self.warn.clone(),
            deny: self.deny.clone(),
            fail_on: self.fail_on.map(|value| Setting { value, origin: fail_on }),
            min_confidence: self.min_confidence.map(|value| Setting { value, origin: min_confidence }),
            strict: self.strict.then_some(Setting { value: true, origin: strict }),
            // Where no baseline can be named, nobody may ask who named it.
            baseline: naming
                .baseline
                .clone()
                .map(|value| Setting { value, origin: from("baseline", "--baseline", "MEMLINT_BASELINE") }),
            tolerance: naming.baseline_tolerance.map(|size| Setting::flag("--baseline-tolerance", size)),
            device_memory: self.device_memory.map(|size| Setting::flag("--device-memory", size)),
            ..sources.overrides()
        };
        Ok(Settings::of(configuration, overrides)?)
    }
}

impl Sources {
    /// What goes before the configuration's `[source]`.
    pub(in crate::cli) fn overrides(&self) -> Overrides {
        let root = |root: &PathBuf| Setting::flag("--source-root", root.clone());
        let mapping = |map: &crate::source::PathMap| {
            Setting::flag("--path-map", PathMapping { from: map.from.clone(), to: map.to.clone() })
        };
        Overrides {
            source_roots: self.source_root.iter().map(root).collect(),
            path_map: self.path_map.iter().map(mapping).collect(),
            ..Overrides::default()
        }
    }
}

fn is_flag(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}
