//! What a recorded program would need under other settings, on another device, with other batches.
//!
//! In: a recording and a [`Question`]. Out: an [`Answer`] for each device: the recorded figures, each scenario's, and the
//! estimate of the textbooks. The recorded requests and frees are played on a model of the caching allocator; how far it
//! can be trusted, its proof on the recording itself says.
//!
//! Where it can fail: which requests grow with the batch is told by their roles where only one batch was recorded; after a request that got
//! no memory nothing is known of the program; and addresses that nobody recorded are modelled, which decides between equally
//! large free blocks.

mod answer;
mod batch;
mod error;
mod estimate;
mod sizes;
mod without;

pub use answer::{Answer, OutOfMemory, Played, RecordedFigures};
pub use batch::{BatchScale, Grown, ScaleError, ToldBy};
pub use error::WhatIfError;
pub use estimate::Estimate;
pub use without::{Mended, Without, WithoutError};

use crate::engine::Input;
use crate::replay::SettingChange;
use crate::unit::Bytes;

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Settings to change, all at once; where there are none, those worth trying are tried one by one.
    pub set: Vec<SettingChange>,
    /// How much memory PyTorch can have.
    pub capacity: Option<Bytes>,
    /// By what all batches are multiplied.
    pub batch_scale: Option<BatchScale>,
    /// The findings that are imagined to be mended.
    pub without: Vec<Without>,
}

/// Answers a question for each device that has a history, by ordinal.
///
/// # Errors
/// Where a setting cannot be tried, the capacity does not even hold the parameters, a finding is not there or cannot be left out,
/// or a recording contradicts itself so that it cannot be played.
pub fn ask(input: &Input, question: &Question) -> Result<Vec<Answer>, WhatIfError> {
    let devices = input.devices.iter().zip(without::left_out(input, &question.without)?);
    devices
        .filter_map(|(device, left_out)| Answer::of((input, device), question, left_out).transpose())
        .collect()
}
