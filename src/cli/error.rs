//! What keeps memlint from a verdict.

use std::io;

use miette::Diagnostic;
use thiserror::Error;

use crate::config::ConfigError;
use crate::edit::SliceError;
use crate::finding::Hidden;
use crate::gate::BaselineError;
use crate::input::InputError;
use crate::part::PartError;
use crate::profiler::ProfilerError;
use crate::record::RecordError;
use crate::snapshot::SnapshotError;
use crate::whatif::WhatIfError;

/// Why there is no verdict.
#[derive(Debug, Error, Diagnostic)]
pub(super) enum CliError {
    /// A path that cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// A program that was not recorded.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Record(#[from] RecordError),
    /// A configuration that is not understood.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(#[from] ConfigError),
    /// A configuration named and none wanted.
    #[error("`--isolated` looks for no configuration, and `--config` names one")]
    #[diagnostic(help("leave one of them out"))]
    IsolatedConfig,
    /// Rules that could not see, where everything is to be seen.
    #[error("{rules} could not judge {what}, so with `--strict` there is no verdict")]
    #[diagnostic(help("{remedy}; `-v` says why, and `--ignore` leaves these rules out"))]
    Blind {
        /// How many of how many, and the names of the first.
        rules: String,
        /// This recording, or some of several.
        what: &'static str,
        /// What lets most of them see.
        remedy: &'static str,
    },
    /// Something that was not looked at, where everything is to be seen.
    #[error("{what}, so with `--strict` there is no verdict")]
    #[diagnostic(help("{remedy}"))]
    LeftOut {
        /// In which way.
        what: &'static str,
        /// What to do.
        remedy: String,
    },
    /// Rules that compare with a base, and nothing else to judge by.
    #[error("all rules that are selected compare with a base, and there is none")]
    #[diagnostic(help("name the base with `--against BASE`, or select other rules"))]
    NoBase,
    /// Some of several files.
    #[error("{unread} of {files} could not be read, so there is no verdict")]
    #[diagnostic(help(
        "the report names each and what is wrong with it, and shows what was found in the others"
    ))]
    Unread {
        /// How many could not be read.
        unread: usize,
        /// Of how many, with their noun.
        files: String,
    },
    /// A recording that no rule could judge.
    #[error("no rule could judge the program, so there is no verdict")]
    #[diagnostic(help("{remedy}; `-v` says why"))]
    Unjudged {
        /// What lets most of them see.
        remedy: &'static str,
    },
    /// A file that is no snapshot.
    #[error("`{name}`: {error}")]
    #[diagnostic(forward(error))]
    Snapshot {
        /// The path as given.
        name: String,
        /// What is wrong with it.
        error: SnapshotError,
    },
    /// A part that cannot be read.
    #[error("`{name}` cannot be concluded: {error}")]
    #[diagnostic(forward(error))]
    Part {
        /// The path as given.
        name: String,
        /// What is wrong with it.
        error: PartError,
    },
    /// A part that was made under other settings.
    #[error(
        "`{name}` was examined by other rules, levels, budgets or memory of the device than are asked for here"
    )]
    #[diagnostic(help("examine and conclude with the same configuration and the same flags"))]
    PartOfOthers {
        /// The path as given.
        name: String,
    },
    /// Two parts of one snapshot.
    #[error("`{name}` and `{other}` are both of the snapshot `{snapshot}`")]
    #[diagnostic(help(
        "leave one out; where they are of different snapshots, examine each with a `--name` of its own"
    ))]
    PartTwice {
        /// One path.
        name: String,
        /// The other.
        other: String,
        /// What both call their snapshot.
        snapshot: String,
    },
    /// Parts without pictures, where a page is wanted.
    #[error("`{name}` was not drawn for a page of {parts}")]
    #[diagnostic(help("examine every snapshot with `--page {parts}`"))]
    PartNotDrawn {
        /// What the snapshot is called.
        name: String,
        /// How many parts there are.
        parts: usize,
    },
    /// A rank of which there is no part.
    #[error("{what}, so there is no verdict")]
    #[diagnostic(help("examine the snapshots of all ranks; see why a process wrote none"))]
    PartMissing {
        /// Which one, as a notice says it.
        what: String,
    },
    /// Parts where nothing can be held against a base.
    #[error("parts cannot be held against a base")]
    #[diagnostic(help(
        "`memlint check --against BASE` compares snapshots; a baseline (`--baseline FILE`) works for both"
    ))]
    AgainstParts,
    /// A part that is no file.
    #[error("a part is a file, and standard input is none")]
    #[diagnostic(help("name the files that `memlint examine SNAPSHOT -o FILE` has written"))]
    PartFromPipe,
    /// A recording that is to lie elsewhere.
    #[error("`{name}` is an address, and recordings are written to files")]
    #[diagnostic(help("write to this machine, and copy what was recorded: `memlint check` reads it there"))]
    RecordedElsewhere {
        /// The address.
        name: String,
    },
    /// A part that lies elsewhere.
    #[error("`{name}` is an address, and parts are read from files")]
    #[diagnostic(help("copy the parts to this machine: they are small"))]
    PartElsewhere {
        /// The address.
        name: String,
    },
    /// A profiler's timeline that cannot be read.
    #[error("`{name}`: {error}")]
    #[diagnostic(forward(error))]
    Profiler {
        /// The path as given.
        name: String,
        /// What is wrong with it.
        error: ProfilerError,
    },
    /// A snapshot in which nothing can be wrong, because nothing was recorded.
    #[error("`{name}` holds no history, so there is nothing to judge")]
    #[diagnostic(help(
        "call `torch.cuda.memory._record_memory_history()` before the program allocates, and \
         `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` before it stops recording; `memlint stats` shows what \
         the file does hold"
    ))]
    NoHistory {
        /// The path as given.
        name: String,
    },
    /// A recording that does not show how much was in use.
    #[error("`{name}` does not show how much memory was in use: {}", hidden.reason())]
    #[diagnostic(help("{}", hidden.remedy()))]
    Incomparable {
        /// The path as given.
        name: String,
        /// What it hides.
        hidden: Hidden,
    },
    /// A variable that sets nothing.
    #[error("there is no variable `{name}`")]
    #[diagnostic(help("{hint}"))]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The nearest, or all.
        hint: String,
    },
    /// A folder of sources that is not there.
    #[error("the source root `{name}` ({origin}) is no folder")]
    #[diagnostic(help("name the folder that holds the program, from where memlint is started"))]
    NoSourceRoot {
        /// The path as given.
        name: String,
        /// Who says so.
        origin: String,
    },
    /// A baseline that is to be written, and no word of where.
    #[error("`{flag}` does not say which file")]
    #[diagnostic(help("name it: `--baseline memlint-baseline.json {flag}`"))]
    NoBaseline {
        /// What was asked for.
        flag: &'static str,
    },
    /// A baseline that is not there, or cannot be read.
    #[error("the baseline `{name}` cannot be read: {error}")]
    #[diagnostic(help("{hint}"))]
    UnreadableBaseline {
        /// The path as given.
        name: String,
        /// What the system says.
        error: io::Error,
        /// What may help.
        hint: &'static str,
    },
    /// A file that is no baseline.
    #[error("the baseline `{name}` cannot be trusted: {error}")]
    #[diagnostic(forward(error))]
    Baseline {
        /// The path as given.
        name: String,
        /// What is wrong with it.
        error: BaselineError,
    },
    /// Standard input for both sides of a comparison.
    #[error("standard input cannot be both snapshots")]
    StdinTwice,
    /// A snapshot of several that has no counterpart.
    #[error("`{base}` has no snapshot to hold `{name}` against")]
    #[diagnostic(help(
        "name a base with one snapshot, with one for each rank, or with as many in the same order"
    ))]
    Unpaired {
        /// The snapshot.
        name: String,
        /// The base as given.
        base: String,
    },
    /// A misspelt rule.
    #[error("there is no rule `{name}`")]
    #[diagnostic(help("{hint}"))]
    UnknownRule {
        /// What was asked for.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A rule whose findings memlint writes no edits for.
    #[error("there are no edits for `{name}`")]
    #[diagnostic(help("{hint}"))]
    NoEdits {
        /// The rule.
        name: String,
        /// Those for which there may be.
        hint: String,
    },
    /// A snapshot that cannot be cut as asked.
    #[error("`{name}`: {error}")]
    #[diagnostic(forward(error))]
    Slice {
        /// The path as given.
        name: String,
        /// Why not.
        error: SliceError,
    },
    /// A question about a recording that has no answer.
    #[error("`{name}`: {error}")]
    #[diagnostic(forward(error))]
    WhatIf {
        /// The path as given.
        name: String,
        /// Why not.
        error: WhatIfError,
    },
    /// A file that would be lost.
    #[error("`{name}` exists")]
    #[diagnostic(help("`--force` replaces it"))]
    Exists {
        /// The path as given.
        name: String,
    },
    /// A snapshot that would replace the one it is made from.
    #[error("`{name}` is the snapshot itself, which memlint does not replace")]
    #[diagnostic(help("write to another file"))]
    SameFile {
        /// The path as given.
        name: String,
    },
    /// A report that would replace a snapshot or another report.
    #[error("`{name}` cannot be given with --output-file: {why}")]
    #[diagnostic(help("write to another file"))]
    OutputTaken {
        /// The path as given.
        name: String,
        /// What it is already.
        why: &'static str,
    },
    /// A file that cannot be written.
    #[error("`{name}` cannot be written: {error}")]
    Unwritable {
        /// The path as given.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// A program that cannot be run in a copy.
    #[error("the current folder cannot be copied: {error}")]
    #[diagnostic(help("`--verify` runs the program in copies of the folder in which memlint is started"))]
    Uncopied {
        /// What the system says.
        error: io::Error,
    },
    /// Edits that cannot be proved.
    #[error("the edits cannot be proved: {why}")]
    #[diagnostic(help(
        "name the command that trains, from the current folder: --verify SNAPSHOT -- python train.py"
    ))]
    Unverified {
        /// Why not.
        why: String,
    },
    /// Edits that nobody asked to prove.
    #[error("the edits are unsafe, so none was run")]
    #[diagnostic(help("`--unsafe` takes them, and `--verify` says whether they help"))]
    HeldBack,
    /// A panic.
    #[error("this is a bug in memlint: {what}")]
    #[diagnostic(help(
        "nothing is known about your program; please report this message, if you can with the snapshot as `memlint \
         anonymize` writes it"
    ))]
    Fault {
        /// Where and why, on one line.
        what: String,
    },
    /// Nothing to look at something on.
    #[error("`memlint view` needs a terminal, and standard output is none that it could draw on")]
    #[diagnostic(help(
        "`memlint check` and `memlint stats` print text anywhere, and `memlint report PATH -o report.html` writes a page \
         for a browser; over SSH without a terminal, try `ssh -t`"
    ))]
    NoTerminal,
    /// A terminal that fails.
    #[error("the terminal cannot be used: {error}")]
    #[diagnostic(help("`memlint report PATH -o report.html` writes a page for a browser instead"))]
    Terminal {
        /// What the system says.
        error: io::Error,
    },
    /// Recordings that do not show how much was in use.
    #[error("there is nothing to look at: no device shows how much memory was in use")]
    #[diagnostic(help("`memlint stats` says what is missing"))]
    NoPicture,
    /// Standard output is full, or gone.
    #[error("the report cannot be written: {error}")]
    Output {
        /// What the system says.
        error: io::Error,
    },
}
