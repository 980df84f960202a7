//! What a recording has to show before it is judged or compared.

use super::error::CliError;
use crate::engine::{Device, Input};
use crate::finding::Hidden;

/// Refuses a recording in which nothing was recorded.
pub(super) fn refuse_without_history(input: &Input) -> Result<(), CliError> {
    let records = |device: &Device| device.evidence.history() != Err(Hidden::Trace);
    if input.devices.iter().any(records) {
        return Ok(());
    }
    Err(CliError::NoHistory { name: input.name.clone() })
}

/// Refuses to compare a recording that does not show how much was in use.
pub(super) fn refuse_what_cannot_be_compared(input: &Input) -> Result<(), CliError> {
    refuse_without_history(input)?;
    match input.devices.iter().find_map(|device| device.evidence.levels().err()) {
        Some(hidden) => Err(CliError::Incomparable { name: input.name.clone(), hidden }),
        None => Ok(()),
    }
}
