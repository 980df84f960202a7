//! What `stats`, `diff` and `whatif` print where they are asked about several snapshots: a page each as soon as it is known, or a JSON
//! array of their documents. What is wrong with one of several does not hide the others.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::arguments::{Color, PlainFormat};
use super::error::CliError;
use super::{NO_VERDICT, print, terminal};
use crate::input::Source;
use crate::unit::count;

/// Snapshots of which people are told why they have no page: of a thousand that a full disk cut off the first tell enough.
const MOST_ERRORS: usize = 8;

/// The pages written so far.
pub(super) struct Pages {
    format: PlainFormat,
    /// Whether there is one page and cannot be more: then it is all there is, and so is its error.
    alone: bool,
    color: Color,
    written: usize,
    failed: usize,
}

impl Pages {
    /// No page yet. It stays alone where each path names the very file that is read, and there are no others: whether a
    /// folder gives an array does not depend on how much is in it.
    pub(super) fn of(
        format: PlainFormat,
        color: Color,
        paths: &[&[PathBuf]],
        sources: &[&[Source]],
    ) -> Pages {
        let is_one = |(paths, sources): (&&[PathBuf], &&[Source])| match (paths, sources) {
            ([path], [source]) => Source::named(path) == *source,
            _ => false,
        };
        let alone = paths.iter().zip(sources).all(is_one);
        Pages { format, alone, color, written: 0, failed: 0 }
    }

    /// Tells why there is no page.
    ///
    /// # Errors
    /// Where it would be the only one.
    pub(super) fn fail(&mut self, error: CliError) -> Result<(), CliError> {
        if self.alone {
            return Err(error);
        }
        if self.failed < MOST_ERRORS || self.format == PlainFormat::Json {
            terminal::show_error(&error, self.color);
        }
        self.failed += 1;
        Ok(())
    }

    /// Writes a page.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn add(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let before = match (self.format, self.written) {
            _ if self.alone => "",
            (PlainFormat::Text, 0) => "",
            (PlainFormat::Text, _) => "\n",
            (PlainFormat::Json, 0) => "[\n",
            (PlainFormat::Json, _) => ",\n",
        };
        self.written += 1;
        print(|out| {
            out.write_all(before.as_bytes())?;
            write(out)
        })
    }

    /// Ends what was written; the exit status.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn end(self) -> Result<ExitCode, CliError> {
        if self.format == PlainFormat::Json && !self.alone {
            let end: &[u8] = if self.written == 0 { b"[]\n" } else { b"]\n" };
            print(|out| out.write_all(end))?;
        }
        if self.format == PlainFormat::Text && self.failed > MOST_ERRORS {
            let more = count(self.failed - MOST_ERRORS, "more snapshot");
            terminal::say(&format!("error: {more} could not be shown; `--output-format json` names each"));
        }
        Ok(if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(NO_VERDICT) })
    }
}
