//! `memlint report`: what `memlint check` says, as a page to look at.

use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, Report};
use super::check::analyse;
use super::drawing::Pictures;
use super::error::CliError;
use super::{NO_VERDICT, file, print, terminal};
use crate::report::{Format, Look};
use crate::unit::{count, shown_name};

pub(super) fn run(arguments: &Report, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let to_terminal = arguments.output == Path::new("-");
    let path = arguments.output.as_path();
    let written = if to_terminal { &[][..] } else { &[path][..] };
    let (report, files) = analyse(&arguments.judged, (written, Pictures::Page, true), matches)?;
    if to_terminal {
        print(|out| Format::Html.write(&report, &files, &Look::PLAIN, out))?;
    } else {
        file::replace(path, |out| Format::Html.write(&report, &files, &Look::PLAIN, out))?;
        let findings = count(report.open().count(), "finding");
        terminal::say(&format!(
            "{}: {findings}; open it in a browser",
            shown_name(&path.display().to_string())
        ));
    }
    if report.unread.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let (unread, good) = (report.unread.len(), report.recordings.len());
    terminal::show_error(&CliError::Unread { unread, files: count(unread + good, "file") }, color);
    Ok(ExitCode::from(NO_VERDICT))
}
