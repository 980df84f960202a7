//! What the hook is told: JSON in one environment variable, so that it reaches every process of a job.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use serde::{Serialize, Serializer};

use super::Wish;
use super::destination::Destination;
use crate::unit::Bytes;

/// The variable that holds an order. `python/memlint/_recorder/order.py` reads it.
pub const VARIABLE: &str = "MEMLINT_RECORDING";

/// Which frames a stack has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StackFrames {
    /// Those of Python and of C++.
    All,
    /// Those of Python.
    Python,
}

/// When snapshots are written, beside the end, an allocation that fails, and a signal.
#[derive(Debug, Clone, Copy, Default)]
pub struct When {
    /// After so many optimizer steps, after which nothing is recorded.
    pub iterations: Option<NonZeroU32>,
    /// Whether the program ends then.
    pub stop: bool,
    /// One more after every so many optimizer steps.
    pub every: Option<NonZeroU32>,
    /// The same one anew after every so many optimizer steps.
    pub watch: Option<NonZeroU32>,
}

/// The devices that are modelled where there are none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DeviceModel {
    /// How many.
    pub devices: NonZeroU32,
    /// The memory of each.
    #[serde(serialize_with = "number")]
    pub bytes: Bytes,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn number<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.0)
}

/// The order as the hook reads it.
#[derive(Debug, Serialize)]
pub(super) struct Order<'a> {
    ledger: &'a Path,
    folder: &'a Path,
    name: &'a str,
    named: bool,
    iterations: Option<NonZeroU32>,
    stop: bool,
    every: Option<NonZeroU32>,
    watch: Option<NonZeroU32>,
    stacks: StackFrames,
    max_entries: Option<NonZeroU64>,
    model: Option<DeviceModel>,
}

impl<'a> Order<'a> {
    pub(super) fn of(wish: &Wish, destination: &'a Destination, ledger: &'a Path) -> Order<'a> {
        let When { iterations, stop, every, watch } = wish.when;
        Order {
            ledger,
            folder: &destination.folder,
            name: &destination.name,
            named: destination.is_file,
            iterations,
            stop,
            every,
            watch,
            stacks: wish.stacks,
            max_entries: wish.max_entries,
            model: wish.model,
        }
    }
}
