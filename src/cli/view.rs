//! `memlint view`: what `memlint check` says, to look at in the terminal.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, View as Arguments};
use super::check::analyse;
use super::drawing::Pictures;
use super::error::CliError;
use super::screen::{self, Screen};
use super::{NO_VERDICT, terminal};
use crate::report::Detail;
use crate::report::view::View;
use crate::unit::count;

pub(super) fn run(arguments: &Arguments, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    // Said before anything large is read.
    screen::permit()?;
    let (report, files) = analyse(&arguments.judged, (&[], Pictures::All, true), matches)?;
    let look = terminal::look(color, Detail::Normal);
    let Some(mut view) = View::of(&report, &files, &look) else { return Err(CliError::NoPicture) };
    Screen::open()?.show(&mut view)?;
    if report.unread.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let (unread, good) = (report.unread.len(), report.recordings.len());
    terminal::show_error(&CliError::Unread { unread, files: count(unread + good, "file") }, color);
    Ok(ExitCode::from(NO_VERDICT))
}
