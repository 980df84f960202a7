//! The command `memlint`.

use std::process::ExitCode;

fn main() -> ExitCode {
    memlint::cli::run()
}
