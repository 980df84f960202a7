//! What a person should know of the judging itself.

use super::{Location, Severity};

/// Something about the judging that a person should know: a suppression that suppresses nothing, an entry of the baseline
/// that has gone. It counts for the verdict like a finding of its severity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which matter it is about.
    pub kind: Matter,
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter: lower-case start, no final stop.
    pub message: String,
    /// What to do, in the imperative.
    pub help: String,
    /// The line that says so: of a configuration, a baseline or a source file.
    pub location: Option<Location>,
}

/// What a notice may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matter {
    /// Something that belongs to the input was not looked at.
    LeftOut,
    /// A rank of a job has no snapshot.
    MissingRank,
    /// A rank has a snapshot that its job cannot have.
    UnexpectedRank,
    /// A program ended with an exception that nobody caught, or after fewer steps than were to be recorded.
    EndedEarly,
    /// Two recordings cannot be compared in full.
    NotCompared,
    /// A budget was measured nowhere.
    UnmeasuredBudget,
    /// An entry of the baseline matches nothing.
    StaleBaselineEntry,
    /// A baseline is set, and the base of a comparison stands in for it.
    BaselineNotHeeded,
    /// The last day of an ignore has passed.
    ExpiredIgnore,
    /// An ignore hides nothing.
    UnusedIgnore,
    /// A comment is no ignore, although it is meant to be one.
    MalformedIgnore,
    /// An ignore names a rule that does not exist.
    UnknownRule,
    /// An ignore in a file that has changed since the recording.
    IgnoreOutOfPlace,
    /// An ignore in a file of which only the name is the recorded one's.
    IgnoreByName,
    /// A source was not opened.
    SourceOutside,
    /// A prefix of paths for which something else was to stand is that of none.
    UnusedPathMap,
    /// What was recorded needs more memory than the device is said to have.
    DoesNotFit,
    /// Rules that run where nobody says anything are switched off.
    RulesOff,
}

impl Matter {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Matter; 18] = [
        Matter::LeftOut,
        Matter::MissingRank,
        Matter::UnexpectedRank,
        Matter::EndedEarly,
        Matter::NotCompared,
        Matter::UnmeasuredBudget,
        Matter::StaleBaselineEntry,
        Matter::BaselineNotHeeded,
        Matter::ExpiredIgnore,
        Matter::UnusedIgnore,
        Matter::MalformedIgnore,
        Matter::UnknownRule,
        Matter::IgnoreOutOfPlace,
        Matter::IgnoreByName,
        Matter::SourceOutside,
        Matter::UnusedPathMap,
        Matter::DoesNotFit,
        Matter::RulesOff,
    ];

    /// kebab-case: `unused-ignore`.
    pub const fn name(self) -> &'static str {
        match self {
            Matter::LeftOut => "left-out",
            Matter::MissingRank => "missing-rank",
            Matter::UnexpectedRank => "unexpected-rank",
            Matter::EndedEarly => "ended-early",
            Matter::NotCompared => "not-compared",
            Matter::UnmeasuredBudget => "unmeasured-budget",
            Matter::StaleBaselineEntry => "stale-baseline-entry",
            Matter::BaselineNotHeeded => "baseline-not-heeded",
            Matter::ExpiredIgnore => "expired-ignore",
            Matter::UnusedIgnore => "unused-ignore",
            Matter::MalformedIgnore => "malformed-ignore",
            Matter::UnknownRule => "unknown-rule",
            Matter::IgnoreOutOfPlace => "ignore-out-of-place",
            Matter::IgnoreByName => "ignore-by-name",
            Matter::SourceOutside => "source-outside",
            Matter::UnusedPathMap => "unused-path-map",
            Matter::DoesNotFit => "does-not-fit",
            Matter::RulesOff => "rules-off",
        }
    }

    /// What it means and what to do, in sentences.
    pub const fn about(self) -> &'static str {
        match self {
            Matter::LeftOut => {
                "Something in a folder looks like a snapshot or holds some, and was not looked at: a hidden file, a link to a folder, a pipe, a folder \
                 that lies too deep. What is wrong in it nobody knows. Name it if it belongs to the job, and move it away if not."
            }
            Matter::MissingRank => {
                "Other ranks of the job have a snapshot and this one has none, or the base has one: the process may have died before it wrote, or the \
                 file was not copied. The rank without a snapshot is often the one that went wrong."
            }
            Matter::UnexpectedRank => {
                "A snapshot's name tells a rank that the job does not have by `--ranks`. It may be left from a run on more devices, and what it shows may \
                 be mended long since. Move it away, or say how many ranks there are."
            }
            Matter::EndedEarly => {
                "The program that `memlint record` ran ended with an exception that nobody caught, or after fewer steps than were asked for. What it would have gone on to do nobody knows: a \
                 finding that is not there need not be mended. Mend the program first, or ask for fewer iterations, and record again."
            }
            Matter::NotCompared => {
                "The two recordings that `--against` compares differ in what they show: a device that only one of them has, no iterations, fewer than the \
                 base has, optimizer steps in the base alone, rules that could judge only one, or no call site in common. What cannot be compared cannot be worse. \
                 Record both in the same way."
            }
            Matter::UnmeasuredBudget => {
                "No device did anything that the budget measures: the phase was never seen, or the call site's expression fits no line. It may be \
                 misspelt, or of code that is gone. It limits nothing."
            }
            Matter::StaleBaselineEntry => {
                "The baseline knows a finding that is not found any more. As long as the entry stands, the same finding could come back unseen. \
                 `--prune-baseline` takes such entries out."
            }
            Matter::BaselineNotHeeded => {
                "The configuration sets a baseline, and `--against` compares with a base. What the base has, too, does not count; the baseline is not \
                 read beside it."
            }
            Matter::ExpiredIgnore => {
                "An ignore of the configuration had a last day, and that has passed. What it hid counts again. Mend it, or give the ignore another day."
            }
            Matter::UnusedIgnore => {
                "An ignore hides nothing, although its rule judged all that was read. Remove it if that is so for all of your snapshots: it would hide \
                 the next finding at its line."
            }
            Matter::MalformedIgnore => {
                "A comment begins like an ignore and is none: it names no rule or gives no reason. It is not applied. It is to be written as \
                 `# memlint: ignore[rule] reason`."
            }
            Matter::UnknownRule => {
                "An ignore names a rule that memlint does not have, and so hides nothing. `memlint rules` lists all."
            }
            Matter::IgnoreOutOfPlace => {
                "An ignore stands in the function that a finding blames, in a file that has changed since the recording, and nothing tells which line is \
                 meant now. It is not applied. Record again."
            }
            Matter::IgnoreByName => {
                "An ignore would apply, but of the recorded file's path only the name is the same as here: it may be another program's. It is not \
                 applied. `--source-root` or `--path-map` says where the program lies."
            }
            Matter::SourceOutside => {
                "A source that the recording names is there, outside of the working copy or of the folders that `--source-root` names. memlint opens \
                 nothing there unless it is told to."
            }
            Matter::UnusedPathMap => {
                "No recorded path begins with the prefix that `--path-map` or the configuration names, or what is to stand for it is not there. It maps \
                 nothing: sources are not found, and ignores in them not applied. `memlint stats` shows the recorded paths."
            }
            Matter::DoesNotFit => {
                "The peak of reserved memory is above the memory that `--device-memory` names. Where that of allocated memory is, too, the program does not \
                 fit; else PyTorch could give back what it reserves in vain. `memlint whatif` replays the recording with so much memory. The CUDA context and other libraries need \
                 memory besides."
            }
            Matter::RulesOff => {
                "Rules that run where nobody says anything are switched off, by a configuration or on the command line: what they would find is not \
                 looked for, and a gate that stays open says nothing of it. `memlint config` shows each rule with who set it; `--isolated` leaves \
                 configurations out, and `--config` names another."
            }
        }
    }
}

impl Notice {
    /// In which way not all was judged that was to be, where it says that something was not: lower-case start, no final stop.
    pub const fn unseen(&self) -> Option<&'static str> {
        match self.kind {
            Matter::LeftOut | Matter::MissingRank => Some("not all snapshots were looked at"),
            Matter::EndedEarly => Some("not all of the program was recorded"),
            // What goes on beyond the base has nothing that it could be held against, and is judged by the rules.
            Matter::NotCompared if matches!(self.severity, Severity::Info) => None,
            Matter::NotCompared => Some("not all could be compared with the base"),
            Matter::UnmeasuredBudget => Some("not all budgets could be measured"),
            _ => None,
        }
    }
}
