//! `memlint whatif`: what the recorded program would need under other settings.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::arguments::{Color, Limits, PlainFormat};
use super::check::refuse_what_cannot_be_compared;
use super::error::CliError;
use super::reading::{read, source_map};
use super::{print, terminal};
use crate::input::Source;
use crate::replay::{Change, TuningError, changes};
use crate::report::{Detail, json, whatif as report};
use crate::unit::Bytes;
use crate::whatif::{self, Question, Scale, Without};

#[derive(Debug, Args)]
#[command(
    after_help = "The recorded requests and frees are played on a model of PyTorch's caching allocator, and first under the \
                        recorded settings: where the model does all that the recorded allocator did, its replay is called exact.\n\n\
                        Exit status: 0 answered, 2 not answered."
)]
pub(super) struct WhatIf {
    /// The snapshot; `-` is standard input.
    #[arg(value_name = "SNAPSHOT")]
    path: PathBuf,

    /// Settings to change, as in `PYTORCH_CUDA_ALLOC_CONF`: `expandable_segments:True`, `max_split_size_mb:64`; may be given
    /// several times, for settings that are tried together [default: those worth trying, one by one, best first].
    #[arg(long, value_name = "SETTINGS", value_parser = changes_in)]
    set: Vec<Changes>,

    /// The memory that PyTorch can have on the device, such as 40GiB: says which request runs out of it. The CUDA context
    /// and other libraries need some hundred MiB beside it.
    #[arg(long, value_name = "SIZE")]
    device_memory: Option<Bytes>,

    /// Multiply what grows with the batch: inputs, activations and temporaries of the passes through the model.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    batch_scale: Option<Scale>,

    /// Imagine a finding mended: the beginning of its fingerprint, or a rule for all of its findings. What the finding is about is
    /// left out, or ends sooner, as its remedy has it; may be given several times.
    #[arg(long, value_name = "FINDING")]
    without: Vec<Without>,

    /// How to write it.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    output_format: PlainFormat,

    /// List all lines whose requests grow with the batch.
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    limits: Limits,
}

/// What one `--set` says.
#[derive(Debug, Clone)]
struct Changes(Vec<Change>);

/// Settings whose names and values PyTorch knows; what the recording was made with makes no difference to that.
fn changes_in(text: &str) -> Result<Changes, TuningError> {
    changes(text).map(Changes)
}

pub(super) fn run(arguments: &WhatIf, color: Color) -> Result<ExitCode, CliError> {
    let question = Question {
        set: arguments.set.iter().flat_map(|set| set.0.iter().cloned()).collect(),
        capacity: arguments.device_memory,
        batch_scale: arguments.batch_scale,
        without: arguments.without.clone(),
    };
    let source = Source::named(&arguments.path);
    let input = read(&source, &arguments.limits)?;
    refuse_what_cannot_be_compared(&input)?;
    let answers = whatif::ask(&input, &question)
        .map_err(|error| CliError::WhatIf { name: input.name.clone(), error })?;
    match arguments.output_format {
        PlainFormat::Text => {
            let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
            let look = terminal::look(color, detail);
            let files = source_map(&[], &[], &[source])?;
            let text = report::render(&input.name, &question, &answers, &files, &look);
            print(|out| out.write_all(text.as_bytes()))?;
        }
        PlainFormat::Json => print(|out| json::whatif(&input.name, &question, &answers, out))?,
    }
    Ok(ExitCode::SUCCESS)
}
