//! What can be wrong with a configuration, each at its place in the file or with the flag that said it.

use std::fmt;
use std::io;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use thiserror::Error;

/// Why there is no configuration.
#[derive(Debug, Error, Diagnostic)]
pub enum ConfigError {
    /// A file named by the user that is not there.
    #[error("there is no configuration `{name}`")]
    #[diagnostic(help(
        "check the path; without `--config`, memlint.toml, .memlint.toml and pyproject.toml are looked for from the \
         current folder upward"
    ))]
    Missing {
        /// The path as given.
        name: String,
    },
    /// A file that cannot be read.
    #[error("the configuration `{name}` cannot be read: {error}")]
    #[diagnostic(help("without a configuration there is no verdict; `--isolated` does not look for one"))]
    Unreadable {
        /// The path as found.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// A `pyproject.toml` named by the user that does not speak of memlint.
    #[error("`{name}` has no table `[tool.memlint]`")]
    #[diagnostic(help("add the table, or name another file"))]
    NoTable {
        /// The path as given.
        name: String,
    },
    /// Something in a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    InFile(Box<InFile>),
    /// Something in a flag.
    #[error("{flag}: {fault}")]
    #[diagnostic(forward(fault))]
    InFlag {
        /// The flag: `--select`.
        flag: &'static str,
        /// What is wrong.
        fault: Fault,
    },
    /// A selection that leaves nothing.
    #[error("no rule is selected, so there is nothing to judge")]
    #[diagnostic(help("{hint}"))]
    NothingSelected {
        /// Who left nothing.
        hint: String,
    },
}

/// A fault at a place of a configuration file.
#[derive(Debug)]
pub struct InFile {
    fault: Fault,
    source: NamedSource<String>,
    span: Range<usize>,
}

impl ConfigError {
    /// A fault at some bytes of a file.
    pub(super) fn at(name: &str, text: &str, span: Range<usize>, fault: Fault) -> ConfigError {
        let source = NamedSource::new(name, text.to_owned());
        ConfigError::InFile(Box::new(InFile { fault, source, span }))
    }
}

impl InFile {
    /// What is wrong.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source.name(), self.fault)
    }
}

impl std::error::Error for InFile {}

impl Diagnostic for InFile {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.fault.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_primary_with_span(None, self.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// What is wrong, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum Fault {
    /// No TOML, or a value of another type than is wanted.
    #[error("{0}")]
    Toml(String),
    /// A misspelt key.
    #[error("there is no key `{key}` here")]
    #[diagnostic(help("{hint}"))]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest, or all there are.
        hint: String,
    },
    /// A misspelt rule or group.
    #[error("there is no rule or group `{name}`")]
    #[diagnostic(help("{hint}"))]
    UnknownName {
        /// The name.
        name: String,
        /// The nearest, or all there are.
        hint: String,
    },
    /// A misspelt rule, where a group has no meaning.
    #[error("there is no rule `{name}`")]
    #[diagnostic(help("{hint}"))]
    UnknownRule {
        /// The name.
        name: String,
        /// The nearest, or all there are.
        hint: String,
    },
    /// A group where a rule is wanted.
    #[error("`{0}` is a group of rules, and this table is one rule's")]
    #[diagnostic(help("name the group in `warn`, `deny` or `ignore` of `[lint]`"))]
    GroupForRule(String),
    /// A misspelt word of a closed set.
    #[error("`{word}` is no {what}")]
    #[diagnostic(help("{hint}"))]
    UnknownWord {
        /// What it should be.
        what: &'static str,
        /// The word.
        word: String,
        /// The nearest, or all there are.
        hint: String,
    },
    /// Two levels for the same.
    #[error("`{name}` is to be {first} and {second} at once")]
    #[diagnostic(help(
        "name it once; a rule's own level goes before that of its group, and a group's before `all`"
    ))]
    TwoLevels {
        /// The rule, group or `all`.
        name: String,
        /// One level.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// An ignore without a reason.
    #[error("this ignore gives no reason")]
    #[diagnostic(help("say why with `reason = \"...\"`: whoever meets it later must be able to judge it"))]
    NoReason,
    /// An ignore of everything.
    #[error("this ignore names neither a `path` nor a `function`, so it would hide the rule everywhere")]
    #[diagnostic(help("write `level = \"off\"` if that is meant"))]
    IgnoresEverything,
    /// A pattern that means nothing.
    #[error("this is no pattern for paths: {0}")]
    #[diagnostic(help("`*`, `?`, `[a-z]` and `**` have a meaning, as in \"src/**/legacy_*.py\""))]
    Pattern(&'static str),
    /// A budget's name that could not be told from other words.
    #[error("`{0}` is no name for a budget")]
    #[diagnostic(help("use small letters, digits and hyphens, such as `gpu-80gb`"))]
    BudgetName(String),
    /// A budget's key that another metric has.
    #[error("`{key}` has no meaning for the metric `{metric}`")]
    #[diagnostic(help("leave it out, or use the metric `{wanted}`"))]
    NotForMetric {
        /// The key.
        key: &'static str,
        /// The budget's metric.
        metric: &'static str,
        /// The metric that has the key.
        wanted: &'static str,
    },
    /// A budget that lacks what its metric needs.
    #[error("the metric `{metric}` needs `{key}`")]
    #[diagnostic(help("add {example}"))]
    MetricNeeds {
        /// The budget's metric.
        metric: &'static str,
        /// The key that is missing.
        key: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// A metric that is not measured in a scope.
    #[error("the metric `{metric}` has no scope `{scope}`")]
    #[diagnostic(help("{hint}"))]
    Scope {
        /// The budget's metric.
        metric: &'static str,
        /// The scope.
        scope: &'static str,
        /// What can be written.
        hint: &'static str,
    },
    /// A regular expression that does not compile.
    #[error("this is no regular expression: {0}")]
    #[diagnostic(help(
        "it is looked for in the frames of a stack, each written as `path/file.py:line:function`"
    ))]
    Regex(String),
    /// A rule that makes no claims.
    #[error("`{0}` has no row in the table of materiality")]
    #[diagnostic(help(
        "it compares ranks or recordings by its own measure; `warn`, `deny` and `ignore` of `[lint]` take its name"
    ))]
    NoRow(String),
    /// A word that is no bound, or not in this place.
    #[error("`{0}` is no bound")]
    #[diagnostic(help(
        "write a measure such as {{ saved = \"5%\" }}, or `always`; `never` stands alone, for a level that nothing reaches"
    ))]
    NoBound(String),
    /// A list within a list of bounds.
    #[error("this is a list within a list of bounds")]
    #[diagnostic(help("write one list: any bound of it is enough"))]
    ListOfLists,
    /// Braces with nothing to measure.
    #[error("this bound measures nothing")]
    #[diagnostic(help(
        "write `saved`, `held`, `reserved` or `full-within`, as in {{ saved = \"5%\", bytes = \"256MiB\" }}"
    ))]
    NoMeasure,
    /// Two measures between the same braces.
    #[error("`{0}` and `{1}` are two bounds")]
    #[diagnostic(help("give each braces of its own, in a list: any bound of it is enough"))]
    TwoMeasures(&'static str, &'static str),
    /// Bytes without the share that they belong to.
    #[error("`bytes` stands beside a share")]
    #[diagnostic(help(
        "write {{ saved = \"256MiB\" }} for bytes alone, {{ saved = \"5%\", bytes = \"256MiB\" }} for both"
    ))]
    BytesBesideNoShare,
    /// A share where bytes are wanted.
    #[error("`bytes` is a size, not a share")]
    #[diagnostic(help("write it as in {{ saved = \"5%\", bytes = \"256MiB\" }}"))]
    ShareForBytes,
    /// A share that nothing reaches.
    #[error("this is more than all there is, so nothing would reach it")]
    #[diagnostic(help("a share is 100% at most; `never` is for a level that nothing reaches"))]
    MoreThanAll,
    /// A share of a device whose size nobody knows.
    #[error("a share of the device's memory, and no snapshot says how much that is")]
    #[diagnostic(help("add `[device]` with `memory = \"80GiB\"`, or give `--device-memory 80GiB`"))]
    NoDeviceMemory,
}
