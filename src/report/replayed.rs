//! How far the model of the allocator agrees with a recording, in words.

use crate::replay::{DifferenceKind, Divergence, DriverCall, Proof};
use crate::snapshot::Action;
use crate::unit::Index;

/// `exact`, or where the model first differs.
pub(super) fn proof(proof: &Proof) -> String {
    match &proof.difference {
        None => "exact: the model makes the driver's calls and places the blocks as recorded".to_owned(),
        Some(one) => format!("approximate, {}", difference(one)),
    }
}

/// `first differs at event 12: 20 MiB got from the driver, where 2 MiB was recorded`.
pub(super) fn difference(difference: &Divergence) -> String {
    let what = match difference.kind {
        DifferenceKind::Call { modelled, recorded: Some(recorded) } => {
            format!("the model has {}, the recording {}", call(modelled), call(recorded))
        }
        DifferenceKind::Call { modelled, recorded: None } => {
            format!("the model has {}, the recording nothing", call(modelled))
        }
        DifferenceKind::NoCall { recorded } => {
            format!("the recording has {}, the model nothing", call(recorded))
        }
        DifferenceKind::Place { modelled, recorded } => {
            format!("the model places the block at {modelled:#x}, the recording at {recorded:#x}")
        }
        DifferenceKind::Served => "the model finds memory for a request that failed".to_owned(),
        DifferenceKind::End => "the segments and blocks at the end are others".to_owned(),
        DifferenceKind::GivenUp => "the recording contradicts itself, or asks for too much work".to_owned(),
    };
    match difference.event {
        Some(event) => format!("first differs at event {}: {what}", event.position()),
        None => format!("differs at the end only: {what}"),
    }
}

fn call(call: DriverCall) -> String {
    let what = match call.action {
        Action::SegmentAlloc => "a segment got",
        Action::SegmentFree => "a segment given back",
        Action::SegmentMap => "pages mapped",
        Action::SegmentUnmap => "pages unmapped",
        _ => "a call",
    };
    format!("{what} ({})", call.size)
}
