//! `memlint snapshot.pickle`: a path where a command is expected is one to check.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command};

/// What is put before the path.
const CHECK: &str = "check";

/// What says nothing of a command.
const GENERAL: [&str; 5] = [COLOR, "--help", "-h", "--version", "-V"];

/// The one of them that takes a value.
const COLOR: &str = "--color";

/// Arguments with the command that is meant: `check`, where the first that is no option is no command and looks like a path. A
/// misspelt command does not, and stays for clap to name the nearest.
pub(super) fn spelt_out(arguments: impl Iterator<Item = OsString>, memlint: &Command) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let mut at = 1;
    while let Some(argument) = arguments.get(at) {
        let is_option = argument.as_encoded_bytes().starts_with(b"-") && argument != "-";
        if !is_option {
            break;
        }
        at += if takes_a_value(argument, memlint) { 2 } else { 1 };
    }
    // Before the options that are the command's own: `memlint -v run.pickle`, `memlint -v check run.pickle`.
    let own = (1..at).find(|&place| is_own(&arguments, place)).unwrap_or(at);
    match arguments.get(at) {
        Some(first) if is_command(first, memlint) => {
            if let Some(options) = arguments.get_mut(own..=at) {
                options.rotate_right(1);
            }
        }
        Some(first) if looks_like_a_path(first) => arguments.insert(own, CHECK.into()),
        _ => {}
    }
    arguments
}

/// Whether an option before the command is the command's: neither general nor the value of one that is.
fn is_own(arguments: &[OsString], place: usize) -> bool {
    let is_general = |option: &OsString| {
        GENERAL.iter().any(|one| option == one) || option.as_encoded_bytes().starts_with(b"--color=")
    };
    let is_value = arguments.get(place.saturating_sub(1)).is_some_and(|before| before == COLOR);
    !is_value && arguments.get(place).is_some_and(|option| !is_general(option))
}

/// Whether what follows an option is its value, wherever `memlint` or `memlint check` know the option.
fn takes_a_value(option: &OsStr, memlint: &Command) -> bool {
    let known = memlint.find_subcommand(CHECK).into_iter().flat_map(Command::get_arguments);
    let mut named = memlint.get_arguments().chain(known).filter(|one| {
        let long = one.get_long().is_some_and(|long| option == OsStr::new(&format!("--{long}")));
        long || one.get_short().is_some_and(|short| option == OsStr::new(&format!("-{short}")))
    });
    let may_stand_alone = |one: &Arg| one.is_require_equals_set();
    named.any(|one| one.get_action().takes_values() && !may_stand_alone(one))
}

fn is_command(argument: &OsStr, memlint: &Command) -> bool {
    // clap adds this one when it parses.
    argument == "help" || memlint.find_subcommand(argument).is_some()
}

/// Whether it is there, or has signs in it that paths have and commands do not.
fn looks_like_a_path(argument: &OsStr) -> bool {
    let has_signs = |text: &str| text == "-" || text.contains(['/', '\\', '.', '*', '?']);
    Path::new(argument).exists() || argument.to_str().is_none_or(has_signs)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::arguments::Arguments;

    fn spelt(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from);
        spelt_out(arguments, &Arguments::command()).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn a_path_in_place_of_a_command_is_checked() {
        for (line, meant) in [
            ("memlint run.pickle -v", "memlint check run.pickle -v"),
            ("memlint - --strict", "memlint check - --strict"),
            ("memlint --color never out/*", "memlint --color never check out/*"),
            ("memlint --color=never src", "memlint --color=never check src"),
            ("memlint -v run.pickle", "memlint check -v run.pickle"),
            ("memlint -v check run.pickle", "memlint check -v run.pickle"),
            ("memlint --color never -q run.pickle", "memlint --color never check -q run.pickle"),
            ("memlint --select leak run.pickle", "memlint check --select leak run.pickle"),
            ("memlint --select=leak run.pickle", "memlint check --select=leak run.pickle"),
            (
                "memlint --output-format json check run.pickle",
                "memlint check --output-format json run.pickle",
            ),
        ] {
            assert_eq!(spelt(line), meant);
        }
    }

    #[test]
    fn commands_and_misspelt_ones_stay_as_they_are() {
        for line in [
            "memlint check run.pickle",
            "memlint stats a/b",
            "memlint help rules",
            "memlint chek run.pickle",
            "memlint --version",
            "memlint --color always stats a",
            "memlint",
        ] {
            assert_eq!(spelt(line), line);
        }
    }
}
