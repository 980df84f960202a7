//! Sizes that libraries ask PyTorch for. They are the libraries' own business and written down nowhere, so what stands here was measured: on an
//! H100 with PyTorch 2.11 (CUDA 13.0, cuDNN 9.19), 96 passes of recurrent networks, each in a recorded history of its own. Convolutions have
//! [a module](crate::convolution) of their own.

use crate::network::{Network, Sequences};

/// States of cuDNN's generator for dropout in recurrent networks: 24 bytes for each thread that an H100 or H200 runs at a time.
pub(crate) const DROPOUT_STATES: usize = 132 * 2048 * 24;
/// What is left out is kept as bits, in lines of so many bytes.
const LINE: usize = 64;

/// Bytes of an element of `cudnnDataType_t`.
pub(crate) fn width(kind: i32) -> usize {
    match kind {
        1 | 10 => 8,
        2 | 9 => 2,
        3 | 7 => 1,
        _ => 4,
    }
}

/// Room for a pass of a recurrent network.
pub(crate) struct Room {
    pub(crate) work: usize,
    /// Kept for the backward pass.
    pub(crate) kept: usize,
}

/// What every layer and direction takes for itself.
const OF_LAYER: i64 = 8 << 20;
/// The end of what is kept, and of the work.
const ENDS: i64 = 256;
/// The largest state for which 32-bit kernels keep the weights in registers, for which they need more.
const PERSISTENT: i64 = 128;

/// What a recurrent network needs for a batch. What is kept agrees with every row that was measured, the work within 3 %.
pub(crate) fn of_network(network: &Network, sequences: &Sequences) -> Room {
    let Network { gates, layers, directions, hidden, .. } = *network;
    let steps = sequences.longest * sequences.batch;
    let kept_of_layer = match gates {
        4 => 5,
        3 => 6,
        _ => 1,
    };
    let kept = steps * hidden * directions * (kept_of_layer * layers + layers - 1);
    let is_persistent = width(network.kind) == 4 && hidden <= PERSISTENT;
    let (usual, persistent, of_direction) = match gates {
        4 => (5, 21, 9),
        3 => (4, 18, 8),
        _ => (4, 13, 6),
    };
    let states = if is_persistent { persistent } else { usual } + of_direction * (directions - 1);
    let states = steps * hidden * states + 8 * sequences.batch * hidden * layers * directions;
    let work = network.matrices_of_all() + steps * network.input + states;
    let (states_of_dropout, left_out) = if network.drops {
        let bits = usize::try_from(steps * hidden * directions * (layers - 1)).unwrap_or(0);
        (DROPOUT_STATES, bits.div_ceil(8).next_multiple_of(LINE))
    } else {
        (0, 0)
    };
    let bytes = |elements: i64, more: i64| {
        let width = i64::try_from(width(network.kind)).unwrap_or(4);
        usize::try_from(elements * width + more).unwrap_or(0)
    };
    Room {
        work: bytes(work, OF_LAYER * layers * directions + ENDS + 8 * sequences.batch) + states_of_dropout,
        kept: bytes(kept, ENDS) + left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recurrent_networks_keep_what_they_were_seen_to_keep() {
        let lstm = Network {
            gates: 4,
            biases: 2,
            directions: 1,
            kind: 0,
            input: 32,
            hidden: 64,
            projected: 0,
            layers: 2,
            drops: false,
        };
        let sequences = Sequences { longest: 10, batch: 4 };
        let Room { work, kept } = of_network(&lstm, &sequences);
        assert_eq!((work, kept), (17_243_424, 112_896));
        let gru = Network { gates: 3, layers: 1, ..lstm };
        assert_eq!(of_network(&gru, &sequences).kept, 61_696);
        // Two layers of 650 with dropout, on 64 sequences of 35 steps.
        let dropping = Network { input: 650, hidden: 650, drops: true, ..lstm };
        assert_eq!(of_network(&dropping, &Sequences { longest: 35, batch: 64 }).kept, 64_246_272);
    }
}
