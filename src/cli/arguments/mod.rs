//! What can be said on the command line.

mod configuring;
mod diff;
mod fix;
mod known;
mod parts;
mod reading;
mod record;
mod whatif;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use self::configuring::{Configuring, Locating};
pub(super) use self::diff::Diff;
pub(super) use self::fix::Fix;
pub(super) use self::known::{Known, Naming};
pub(super) use self::parts::{Conclude, Examine};
pub(super) use self::reading::{Limits, Reading, Sources};
pub(super) use self::record::Record;
pub(super) use self::whatif::WhatIf;
use crate::edit::Iterations;
use crate::report::Format;

/// Finds what wastes GPU memory in a PyTorch program, from its memory snapshot.
#[derive(Debug, Parser)]
#[command(
    name = "memlint",
    version,
    about,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "`memlint PATH` is `memlint check PATH`."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to colour.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", env = "MEMLINT_COLOR")]
    pub(super) color: Color,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a PyTorch program with its GPU memory recorded, and check what comes of it.
    Record(Record),
    /// Check snapshots: what is wrong, at which line, what it costs, and how to mend it.
    Check(Check),
    /// Show the edits that mend what is found, make them, or prove them: only where they are certain.
    Fix(Fix),
    /// Write a page to look at: timelines, findings, what the peak consists of.
    Report(Report),
    /// Examine one snapshot where it lies, and write what it has to say into a small file, for `memlint conclude`.
    Examine(Examine),
    /// Put together what `memlint examine` wrote: the report that `memlint check` would have made of all the snapshots.
    Conclude(Conclude),
    /// Look at snapshots in the terminal: timelines, findings, what is alive at any moment.
    View(View),
    /// Show what snapshots hold, without a verdict.
    Stats(Stats),
    /// Compare two snapshots, or two folders of them: what needs more memory, what needs less, which findings are new.
    Diff(Diff),
    /// Replay a recording under other settings of the allocator, with less memory or larger batches.
    Whatif(WhatIf),
    /// List the rules: name, level, and what each finds.
    Rules(Rules),
    /// Explain a rule or a group of rules.
    Explain(Explain),
    /// Show the settings in effect, and who set each.
    Config(Config),
    /// Cut a few iterations out of a snapshot: a small file that shows the same.
    Slice(Slice),
    /// Replace your own paths and names in a snapshot, so that it can be shown to others.
    Anonymize(Anonymize),
    /// Print the JSON Schema of a document.
    Schema(Schema),
    /// Print a script that completes memlint's arguments in a shell.
    Completions(Completions),
    /// Print memlint's manual page, or write those of all commands into a folder.
    Man(Man),
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
    /// What `check`, `stats`, `diff` and `whatif` write as json and jsonl: memlint/1.
    Output,
    /// What a memlint.toml may say.
    Config,
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
    #[command(flatten)]
    pub(super) judged: Judged,

    #[command(flatten)]
    pub(super) reporting: Reporting,
}

/// How a verdict is shown.
#[derive(Debug, Args)]
pub(super) struct Reporting {
    /// How to write the report to standard output.
    #[arg(long, alias = "format", value_parser = formats(), default_value = Format::Text.name(), value_name = "FORMAT",
          env = "MEMLINT_OUTPUT_FORMAT")]
    pub(super) output_format: Format,

    /// Write the report to a file, too, such as sarif=memlint.sarif; may be given several times. Where there is no verdict
    /// (exit status 2), the file says so.
    #[arg(long, value_name = "FORMAT=PATH")]
    pub(super) output_file: Vec<OutputFile>,

    /// Exit with 0 whatever is found; what cannot be read is still an error.
    #[arg(long)]
    pub(super) exit_zero: bool,

    /// Show notes, stacks, skipped rules and what is ignored or in the baseline in full.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,

    /// Show findings only.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// What is judged, and by which measure.
#[derive(Debug, Args)]
pub(super) struct Judged {
    /// Snapshots, folders that hold some (also in subfolders), quoted patterns such as 'out/*.pickle', or addresses such as
    /// `s3://runs/today/` (s3, gs, az, https); `-` is standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// How many ranks the job has: that one of 0 to N-1 has no snapshot is told, and with `--strict` no verdict. Without it only
    /// gaps between ranks are seen.
    #[arg(long, value_name = "N")]
    pub(super) ranks: Option<NonZeroU32>,

    /// How many snapshots to read at a time; memory grows with it, but the report stays the same. Large snapshots wait for
    /// one another [default: one a processor core].
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) known: Known,

    #[command(flatten)]
    pub(super) configuring: Configuring,

    #[command(flatten)]
    pub(super) reading: Reading,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 written, 2 not written, or not all could be read. Findings do not change it: `memlint check` is \
                        the gate, and writes the same page with `--output-file html=PATH`."
)]
pub(super) struct Report {
    #[command(flatten)]
    pub(super) judged: Judged,

    /// The page to write, one file that needs no network; `-` is standard output.
    #[arg(short, long, value_name = "PATH", default_value = "memlint-report.html")]
    pub(super) output: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "`?` shows the keys. It needs a terminal of 40 columns and 14 lines at least; a page for a browser is written by \
                        `memlint report`.\n\n\
                        Exit status: 0 shown, 2 not shown, or not all could be read. Findings do not change it."
)]
pub(super) struct View {
    #[command(flatten)]
    pub(super) judged: Judged,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 shown, 2 a configuration that is not understood.")]
pub(super) struct Config {
    /// How to write it.
    #[arg(long, alias = "format", value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    pub(super) output_format: PlainFormat,

    /// Show from which worth on every rule's findings count, not only what the configuration says of it.
    #[arg(short, long)]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) configuring: Configuring,

    #[command(flatten)]
    pub(super) naming: Naming,

    #[command(flatten)]
    pub(super) sources: Sources,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Of a folder, a pattern or several paths json is an array of documents, one for each snapshot. For people the ranks of \
                  a job that are alike are told as one, those unlike them by name, and a page is shown of one in the middle.\n\n\
                  Exit status: 0 shown, 2 not all shown."
)]
pub(super) struct Stats {
    /// Snapshots, folders that hold some (also in subfolders), quoted patterns, addresses (s3, gs, az, https), or memory timelines
    /// of PyTorch's profiler (`.raw.json.gz`, `.json`); `-` is standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// How to write it.
    #[arg(long, alias = "format", value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    pub(super) output_format: PlainFormat,

    /// List every allocation (with `--output-format json`).
    #[arg(long)]
    pub(super) allocations: bool,

    /// Show every rank by itself, not those that are alike as one, and all keys and actions that memlint does not know.
    #[arg(short, long)]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) locating: Locating,

    #[command(flatten)]
    pub(super) reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder to write memlint.1, memlint-check.1 and the others into; it has to exist.
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 listed, 2 not listed.")]
pub(super) struct Rules {
    /// How to write it.
    #[arg(long, alias = "format", value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    pub(super) output_format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 explained, 2 several rules may be meant, or none.")]
pub(super) struct Explain {
    /// The name of a rule or notice, as it stands in brackets behind it; part of it, where only one has it; or a group, such
    /// as `leak`.
    #[arg(required_unless_present = "all", value_name = "RULE")]
    pub(super) rule: Option<String>,

    /// Explain every rule.
    #[arg(long, conflicts_with = "rule")]
    pub(super) all: bool,

    /// Show the examples, too: small recordings in which the rule speaks or is silent, each a test.
    #[arg(long)]
    pub(super) examples: bool,

    #[command(flatten)]
    pub(super) locating: Locating,
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

/// A format of what is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PlainFormat {
    /// For people.
    Text,
    /// For machines: memlint/1.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{input, pickle};

    #[test]
    fn the_arguments_are_consistent_and_limits_default_to_the_library() {
        Arguments::command().debug_assert();
        let arguments = Arguments::try_parse_from(["memlint", "check", "a"]).unwrap();
        let Command::Check(check) = arguments.command else { panic!("not a check") };
        assert_eq!(check.judged.reading.limits.of_input(), input::Limits::default());
        assert_eq!(check.judged.reading.limits.of_pickle(), pickle::PickleLimits::default());
    }
}
