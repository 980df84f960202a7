//! Sizes that libraries ask PyTorch for. They are the libraries' own business and written down nowhere, so what stands here was measured: on an
//! H100 with PyTorch 2.11 (CUDA 13.0, cuDNN 9.19), 1,853 passes of recurrent networks drawn at random (tanh, LSTM and GRU, one to three layers,
//! states of 16 to 1,024, one or two directions, padded and packed, in training and not, in 16 and 32 bits), each in a recorded history of its
//! own. Convolutions have [a module](crate::convolution) of their own.

use crate::network::{Network, Sequences};

/// States of cuDNN's generator for dropout in recurrent networks: 24 bytes for each thread that an H100 or H200 runs at a time.
pub(crate) const DROPOUT_STATES: usize = 132 * 2048 * 24;
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
/// What is kept of a layer, and of what is left out, begins at a multiple of this.
const KEPT_LINE: i64 = 32;

/// How many states of all steps together, and how many of one step, a pass holds.
struct States {
    of_steps: i64,
    of_batch: i64,
}

/// What the passes of a network hold.
struct Passes {
    forward: States,
    /// The same for a single layer; more layers need one state a direction more.
    backward: States,
}

const fn passes(forward: [i64; 2], backward: [i64; 2]) -> Passes {
    Passes {
        forward: States { of_steps: forward[0], of_batch: forward[1] },
        backward: States { of_steps: backward[0], of_batch: backward[1] },
    }
}

/// The largest state for which kernels of 32 bits keep the weights in registers, for which they need more: in training and without.
fn most_persistent(gates: i64, trains: bool) -> i64 {
    match (gates, trains) {
        (1, _) => 384,
        (_, true) => 128,
        (_, false) => 192,
    }
}

/// What was measured for padded sequences, by gates, directions, and whether weights stay in registers.
fn of_padded(gates: i64, directions: i64, is_persistent: bool) -> Passes {
    match (gates, directions, is_persistent) {
        (4, 1, false) => passes([5, 10], [2, 11]),
        (4, 1, true) => passes([21, 8], [14, 12]),
        (4, _, false) => passes([14, 12], [6, 13]),
        (4, _, true) => passes([30, 9], [14, 13]),
        (3, 1, false) => passes([4, 5], [2, 5]),
        (3, 1, true) => passes([16, 4], [17, 6]),
        (3, _, false) => passes([12, 7], [6, 7]),
        (3, _, true) => passes([24, 5], [20, 7]),
        (_, 1, false) => passes([2, 3], [2, 5]),
        (_, 1, true) => passes([6, 4], [12, 6]),
        (_, _, false) => passes([8, 5], [6, 7]),
        (_, _, true) => passes([12, 5], [15, 7]),
    }
}

/// What was measured for packed sequences, whose weights never stay in registers.
fn of_packed(gates: i64, directions: i64) -> States {
    let [of_steps, of_batch] = match (gates, directions) {
        (4, 1) => [4, 6],
        (4, _) => [12, 8],
        (3, 1) => [3, 3],
        (3, _) => [10, 5],
        (_, 1) => [2, 1],
        (_, _) => [6, 3],
    };
    States { of_steps, of_batch }
}

/// What a recurrent network needs for a batch. Of the passes that were measured, what is kept is right to the byte in 99 %, the work within 1 % in
/// 87 %, within 3 % in 91 and within 10 % in 96. The rest is mostly of 16 bits or tanh, of which some keep their weights in registers, too.
pub(crate) fn of_network(network: &Network, sequences: &Sequences, trains: bool) -> Room {
    let Network { layers, directions, hidden, .. } = *network;
    let elements = network.matrices_of_all() + states(network, sequences, trains);
    // Where sequences are padded the lengths stand beside.
    let lengths = if sequences.is_packed { 0 } else { 8 * sequences.batch };
    let bytes = |elements: i64| elements * i64::try_from(width(network.kind)).unwrap_or(4);
    let kept_of_layer = match network.gates {
        4 => 5,
        3 => 6,
        _ => 1,
    };
    let kept = sequences.steps * hidden * directions * (kept_of_layer * layers + layers - 1);
    let kept = up_to(bytes(kept), KEPT_LINE) + ENDS;
    let left_out = if network.drops {
        // A bit for each, in every direction, of all that there would be with padding.
        let bits = sequences.longest * sequences.batch * hidden * directions;
        up_to(up_to(bits, 8) / 8, KEPT_LINE) * directions * (layers - 1)
    } else {
        0
    };
    let size = |bytes: i64| usize::try_from(bytes).unwrap_or(0);
    Room {
        work: size(bytes(elements) + OF_LAYER * layers * directions + ENDS + lengths),
        kept: size(kept + left_out),
    }
}

fn up_to(bytes: i64, line: i64) -> i64 {
    (bytes + line - 1) / line * line
}

/// Elements of the states that the work of a pass holds: a training's is that of its larger pass.
fn states(network: &Network, sequences: &Sequences, trains: bool) -> i64 {
    let Network { gates, layers, directions, hidden, input, .. } = *network;
    let steps = sequences.steps;
    // In one direction, what comes out of a layer before some is left out.
    let before = i64::from(network.drops && directions == 1);
    let of = |states: States, more: i64| {
        steps * hidden * (states.of_steps + more)
            + states.of_batch * sequences.batch * hidden * layers * directions
    };
    if sequences.is_packed {
        return of(of_packed(gates, directions), before);
    }
    let is_persistent = width(network.kind) == 4 && hidden <= most_persistent(gates, trains);
    let Passes { forward, backward } = of_padded(gates, directions, is_persistent);
    let forward = of(forward, before) + steps * input;
    if !trains {
        return forward;
    }
    let between = if layers > 1 { directions } else { 0 };
    let wider = if directions > 1 { 4 } else { 1 };
    forward.max(of(backward, between) + steps * (2 * input + wider * input.max(hidden)))
}

/// What cuDNN's CTC loss takes for a sequence, and for each of its steps beside the scores: it has room for the most labels that it takes, 256,
/// however many there are.
const OF_SEQUENCE: usize = 2052;
const OF_LABELS: usize = 4088;

/// Room for the CTC loss of scores of 32 bits, by steps, sequences and classes, in the way that PyTorch takes unless it has to be deterministic. Each
/// of 13,362 losses that were measured has it to the byte.
pub(crate) fn of_ctc([steps, batch, classes]: [i32; 3]) -> usize {
    let [steps, batch, classes] = [steps, batch, classes].map(|size| usize::try_from(size).unwrap_or(0));
    batch * (steps * (classes * 4 + OF_LABELS) + OF_SEQUENCE)
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
        let sequences = Sequences { longest: 10, batch: 4, steps: 40, is_packed: false };
        let Room { work, kept } = of_network(&lstm, &sequences, true);
        assert_eq!((work, kept), (17_243_424, 112_896));
        let gru = Network { gates: 3, layers: 1, ..lstm };
        assert_eq!(of_network(&gru, &sequences, true).kept, 61_696);
        // Two layers of 650 with dropout, on 64 sequences of 35 steps.
        let dropping = Network { input: 650, hidden: 650, drops: true, ..lstm };
        assert_eq!(
            of_network(
                &dropping,
                &Sequences { longest: 35, batch: 64, steps: 35 * 64, is_packed: false },
                true
            )
            .kept,
            64_246_272
        );
    }

    #[test]
    fn a_ctc_loss_has_room_for_all_labels_that_it_takes() {
        assert_eq!(of_ctc([100, 24, 100]), 10_820_448);
        assert_eq!(of_ctc([600, 1, 4000]), 12_054_852);
    }
}
