//! Variables of the environment that are meant for memlint and that it does not know: a misspelt `MEMLINT_STRICT` would
//! leave the gate open.

use std::env;

use clap::builder::Resettable;
use clap::{Arg, Command};

use super::error::CliError;
use crate::record;
use crate::unit::suggestion;

/// What the names of all of them begin with.
const PREFIX: &str = "MEMLINT_";

/// A command that heeds no variable that is set to nothing: CI systems export all that a job may have, whether it has a
/// value or not.
pub(super) fn heeding(command: Command) -> Command {
    let is_empty = |argument: &Arg| {
        let value = argument.get_env().and_then(env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command = command
        .mut_args(|argument| if is_empty(&argument) { argument.env(Resettable::Reset) } else { argument });
    command.mut_subcommands(heeding)
}

/// Refuses variables that no option of any command goes by.
pub(super) fn permit(command: &Command) -> Result<(), CliError> {
    let mut known = known(command);
    // A program that `memlint record` runs may run memlint itself.
    known.push(record::VARIABLE.to_owned());
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    let mut given: Vec<String> = set.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    given.sort_unstable();
    match given.into_iter().find(|name| name.starts_with(PREFIX) && !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let hint = suggestion(&name, "variables", known.iter().map(String::as_str));
            Err(CliError::UnknownVariable { name, hint })
        }
    }
}

/// The variables of a command and of those below it, each once.
fn known(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(Arg::get_env);
    let mut names: Vec<String> = own.map(|name| name.to_string_lossy().into_owned()).collect();
    names.extend(command.get_subcommands().flat_map(known));
    names.sort_unstable();
    names.dedup();
    names
}
