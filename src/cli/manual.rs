//! `memlint completions` and `memlint man`: what packages of memlint install beside it.

use std::process::ExitCode;

use clap::CommandFactory;

use super::arguments::{Arguments, Completions, Man};
use super::error::CliError;
use super::print;

pub(super) fn complete(completions: &Completions) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "memlint", &mut script);
    print(|out| out.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn describe(man: &Man) -> Result<ExitCode, CliError> {
    let command = Arguments::command();
    match &man.folder {
        None => print(|out| clap_mangen::Man::new(command).render(out))?,
        Some(folder) => clap_mangen::generate_to(command, folder)
            .map_err(|error| CliError::Unwritable { name: folder.display().to_string(), error })?,
    }
    Ok(ExitCode::SUCCESS)
}
