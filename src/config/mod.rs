//! The configuration: found, read, checked, and merged with what the command line says.
//!
//! In: `memlint.toml`, `.memlint.toml` or `[tool.memlint]` of `pyproject.toml`, and the flags. Out: [`Settings`], each
//! value with who set it. Always: what is not understood is an error at its place, never passed over; paths in a file are
//! relative to that file; no clock is read.

mod amount;
mod bound;
mod budget;
mod catalogue;
mod date;
mod discover;
mod document;
mod error;
mod fields;
mod file;
mod ignore;
mod materiality;
mod read;
mod schema;
mod selection;
mod setting;
mod settings;
mod word;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use amount::Amount;
pub use budget::{Budget, BudgetScope, CallSite, Metric};
pub use catalogue::{Catalogue, Choice, Detector};
pub use discover::is_named_like_one;
pub use error::{ConfigError, Fault, InFile};
pub use ignore::{Ignore, PathPattern};
pub use jiff::civil::Date;
pub use materiality::{Cell, MaterialityTable};
pub use schema::schema;
pub use selection::{Decision, Layer, Selection};
pub use setting::{SetBy, Setting};
pub use settings::{Overrides, Settings};
pub use word::{FailOn, Level, Word};

use document::Document;

/// What a configuration file says; nothing, where there is none.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    layer: Layer,
    fail_on: Option<Setting<FailOn>>,
    min_confidence: Option<Setting<crate::unit::Confidence>>,
    strict: Option<Setting<bool>>,
    ignores: Vec<Ignore>,
    budgets: Vec<Budget>,
    /// Where the limits of the budgets are written.
    limits: Vec<Range<usize>>,
    materiality: MaterialityTable,
    source_roots: Vec<Setting<PathBuf>>,
    path_map: Vec<Setting<PathMapping>>,
    baseline: Option<Setting<PathBuf>>,
    tolerance: Option<Setting<Amount>>,
    device_memory: Option<Setting<crate::unit::Bytes>>,
    passed_over: Vec<PathBuf>,
    document: Option<Document>,
}

/// A prefix of recorded paths and what stands for it here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMapping {
    /// The recorded prefix: `/opt/job`.
    pub from: String,
    /// The local one.
    pub to: PathBuf,
}

impl Configuration {
    /// Looks in a folder and those above it, up to the root of the repository. The first folder that holds `memlint.toml`,
    /// `.memlint.toml` or a `pyproject.toml` with `[tool.memlint]` decides, and of several in it the first in this order:
    /// nothing is merged, as with ruff.
    pub fn discover(folder: &Path) -> Result<Configuration, ConfigError> {
        let Some(found) = discover::discover(folder)? else { return Ok(Configuration::default()) };
        let configuration = Configuration::of(&found.path, found.text)?;
        let configuration = configuration.unwrap_or_default();
        Ok(Configuration { passed_over: found.passed_over, ..configuration })
    }

    /// Reads the file that the user names.
    pub fn read(path: &Path) -> Result<Configuration, ConfigError> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ConfigError::Missing { name: name() },
            _ => ConfigError::Unreadable { name: name(), error },
        })?;
        Configuration::of(path, text)?.ok_or_else(|| ConfigError::NoTable { name: name() })
    }

    /// A file of this path and text; `None` where it is one of several tools and does not speak of this one.
    pub fn of(path: &Path, text: String) -> Result<Option<Configuration>, ConfigError> {
        let document = Document::new(path, text);
        let file = if discover::is_shared(path) {
            document.parse::<file::Shared>()?.tool.memlint
        } else {
            Some(document.parse::<file::File>()?)
        };
        file.map(|file| read::configuration(document, &file)).transpose()
    }

    /// The file as messages name it.
    pub fn name(&self) -> Option<&str> {
        self.document.as_ref().map(|document| &**document.name())
    }

    /// Files in the same folder that would be read if this one were not there.
    pub fn passed_over(&self) -> &[PathBuf] {
        &self.passed_over
    }

    /// From which worth on findings count: the file alone says so, whatever else is given.
    pub const fn materiality(&self) -> &MaterialityTable {
        &self.materiality
    }

    /// Where the limit of a budget is a share of a memory that nobody knows.
    fn no_device_memory(&self, budget: usize) -> Option<ConfigError> {
        let (document, span) = (self.document.as_ref()?, self.limits.get(budget)?);
        Some(document.wrong(span.clone(), Fault::NoDeviceMemory))
    }
}
