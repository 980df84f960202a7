//! What can be said on the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::edit::Iterations;
use crate::finding::Severity;
use crate::input;
use crate::pickle;
use crate::report::Format;
use crate::source::PathMap;

/// Finds what wastes GPU memory in a PyTorch program, from its memory snapshot.
#[derive(Debug, Parser)]
#[command(name = "memlint", version, about, max_term_width = 100, arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to colour.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check snapshots: what is wrong, at which line, what it costs, and how to mend it.
    Check(Check),
    /// Show what a snapshot holds, without a verdict.
    Stats(Stats),
    /// Explain a rule.
    Explain(Explain),
    /// Cut a few iterations out of a snapshot: a small file that shows the same.
    Slice(Slice),
    /// Replace your own paths and names in a snapshot, so that it can be shown to others.
    Anonymize(Anonymize),
    /// Print the JSON Schema of a document.
    Schema(Schema),
}

#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Of which document.
    #[arg(value_enum, value_name = "DOCUMENT")]
    pub(super) of: SchemaOf,
}

/// A document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// What `check` and `stats` write as json and jsonl: memlint/1.
    Output,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 not written.")]
pub(super) struct Slice {
    /// The snapshot; `-` is standard input.
    #[arg(value_name = "SNAPSHOT")]
    pub(super) path: PathBuf,

    /// Which iterations, counted from 1 as `memlint stats` shows them, both ends included: 3..5, 3.., ..5 or 4.
    #[arg(long, value_name = "A..B")]
    pub(super) iterations: Iterations,

    #[command(flatten)]
    pub(super) writing: Writing,

    #[command(flatten)]
    pub(super) limits: Limits,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Public libraries stay readable. Lines, sizes and times stay, and with them what memlint finds.\n\n\
                        Exit status: 0 written, 2 not written."
)]
pub(super) struct Anonymize {
    /// The snapshot; `-` is standard input.
    #[arg(value_name = "SNAPSHOT")]
    pub(super) path: PathBuf,

    #[command(flatten)]
    pub(super) writing: Writing,

    #[command(flatten)]
    pub(super) limits: Limits,
}

/// Where a snapshot is written.
#[derive(Debug, Args)]
pub(super) struct Writing {
    /// The file to write, a plain pickle; `-` is standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: PathBuf,

    /// Replace the file if it exists.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 clean, 1 findings at or above --fail-on, 2 no trustworthy verdict.")]
pub(super) struct Check {
    /// Snapshots, folders that hold some (also in subfolders), or quoted patterns such as 'out/*.pickle'; `-` is standard
    /// input.
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// How to write the report to standard output.
    #[arg(long, value_parser = formats(), default_value = Format::Text.name(), value_name = "FORMAT")]
    pub(super) output_format: Format,

    /// Write the report to a file, too, such as sarif=memlint.sarif; may be given several times. Where there is no verdict
    /// (exit status 2), the file says so.
    #[arg(long, value_name = "FORMAT=PATH")]
    pub(super) output_file: Vec<OutputFile>,

    /// The least severity that makes the exit status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY")]
    pub(super) fail_on: FailOn,

    /// Exit with 0 whatever is found; what cannot be read is still an error.
    #[arg(long)]
    pub(super) exit_zero: bool,

    /// Show notes, stacks, skipped rules and what is ignored or in the baseline in full.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,

    /// Show findings only.
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// How many snapshots to read at a time; memory grows with it, but the report stays the same. Large snapshots wait for
    /// one another [default: one a processor core].
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Stats {
    /// The snapshot; `-` is standard input.
    #[arg(value_name = "PATH")]
    pub(super) path: PathBuf,

    /// How to write it.
    #[arg(long, value_enum, default_value_t = StatsFormat::Text, value_name = "FORMAT")]
    pub(super) output_format: StatsFormat,

    /// List every allocation (with `--output-format json`).
    #[arg(long)]
    pub(super) allocations: bool,

    /// List all keys and actions that memlint does not know.
    #[arg(short, long)]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The rule's name, as it stands in brackets behind a finding.
    #[arg(required_unless_present = "all", value_name = "RULE")]
    pub(super) rule: Option<String>,

    /// Explain every rule.
    #[arg(long, conflicts_with = "rule")]
    pub(super) all: bool,
}

/// How snapshots are read and sources are found.
#[derive(Debug, Args)]
pub(super) struct Reading {
    /// A folder that holds the program's source; may be given several times [default: the current folder, the
    /// snapshot's, and src, scripts and examples].
    #[arg(long, value_name = "DIR")]
    pub(super) source_root: Vec<PathBuf>,

    /// What stands for a prefix of the recorded paths, such as /opt/job=.; may be given several times.
    #[arg(long, value_name = "FROM=TO")]
    pub(super) path_map: Vec<PathMap>,

    #[command(flatten)]
    pub(super) limits: Limits,
}

/// How much a file may hold: a guard against damaged and hostile ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
#[expect(clippy::struct_field_names, reason = "the fields are named like their flags")]
pub(super) struct Limits {
    /// Bytes of a snapshot after decompression, such as 20GiB.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16GiB")]
    max_bytes: u64,

    /// Containers and memoised values of the pickle.
    #[arg(long, value_name = "COUNT", default_value_t = pickle::Limits::default().nodes,
          value_parser = clap::value_parser!(u64).range(..=pickle::Limits::MOST_NODES))]
    max_nodes: u64,

    /// Values on the pickle's stack at a time.
    #[arg(long, value_name = "COUNT", default_value_t = pickle::Limits::default().stack,
          value_parser = clap::value_parser!(u64).range(..=pickle::Limits::MOST_STACK))]
    max_stack: u64,

    /// Bytes of distinct text in the pickle.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB")]
    max_text: u64,
}

impl Limits {
    pub(super) fn of_input(&self) -> input::Limits {
        input::Limits { bytes: self.max_bytes, ..input::Limits::default() }
    }

    pub(super) fn of_pickle(&self) -> pickle::Limits {
        pickle::Limits { nodes: self.max_nodes, stack: self.max_stack, text: self.max_text }
    }
}

/// A number of bytes with or without a binary unit.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        unit => return Err(format!("`{unit}` is no unit; B, KiB, MiB, GiB and TiB are")),
    };
    let number: u64 = digits.trim_end().parse().map_err(|_| "write a number, such as 20GiB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "this is more than 16 EiB".to_owned())
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// Where the terminal can, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The formats of a check, with their descriptions for the help.
fn formats() -> impl TypedValueParser<Value = Format> {
    let described = |format: Format| PossibleValue::new(format.name()).help(format.summary());
    PossibleValuesParser::new(Format::ALL.map(described)).try_map(|name| name.parse::<Format>())
}

/// A file that gets the report, and in which format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputFile {
    pub(super) format: Format,
    pub(super) path: PathBuf,
}

impl FromStr for OutputFile {
    type Err = String;

    fn from_str(text: &str) -> Result<OutputFile, String> {
        let (format, path) = text.split_once('=').ok_or("write FORMAT=PATH, such as json=report.json")?;
        if path.is_empty() {
            return Err("the path is missing behind `=`".to_owned());
        }
        Ok(OutputFile { format: format.parse()?, path: PathBuf::from(path) })
    }
}

/// A format of `memlint stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StatsFormat {
    /// For people.
    Text,
    /// For machines: memlint/1.
    Json,
}

/// What makes the gate close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Errors.
    Error,
    /// Warnings and errors.
    Warning,
    /// Any finding.
    Info,
    /// Nothing.
    Never,
}

impl FailOn {
    /// The least severity that counts.
    pub(super) const fn severity(self) -> Option<Severity> {
        match self {
            FailOn::Error => Some(Severity::Error),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Info => Some(Severity::Info),
            FailOn::Never => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent_and_limits_default_to_the_library() {
        Arguments::command().debug_assert();
        let arguments = Arguments::try_parse_from(["memlint", "check", "a"]).unwrap();
        let Command::Check(check) = arguments.command else { panic!("not a check") };
        assert_eq!(check.reading.limits.of_input(), input::Limits::default());
        assert_eq!(check.reading.limits.of_pickle(), pickle::Limits::default());
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("3GiB"), Ok(3 << 30));
        assert_eq!(size("17"), Ok(17));
        assert!(size("3GB").unwrap_err().contains("GB"));
        assert!(size("GiB").is_err() && size("99999999999TiB").is_err());
    }
}
