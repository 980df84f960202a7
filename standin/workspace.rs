//! Sizes that libraries ask PyTorch for. They are the libraries' own business and written down nowhere, so what stands here was measured: on an
//! H100 with PyTorch 2.11 (CUDA 13.0, cuDNN 9.19), 354 convolutions and 96 passes of recurrent networks, each in a recorded history of its own.

use crate::rnn::{Network, Sequences};

/// What a convolution computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    /// The gradient of the input.
    ToInput,
    /// The gradient of the weights.
    ToWeights,
}

/// A tensor as cuDNN knows it.
#[derive(Clone)]
pub(crate) struct Tensor {
    /// `cudnnDataType_t`.
    pub(crate) kind: i32,
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

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

impl Tensor {
    fn size(&self, at: usize) -> usize {
        self.sizes.get(at).and_then(|size| usize::try_from(*size).ok()).unwrap_or(1)
    }

    /// Everything behind the first two sizes: pixels, or taps of a filter.
    fn area(&self) -> usize {
        (2..self.sizes.len()).map(|at| self.size(at)).product()
    }

    /// Elements, with both of the first sizes a multiple of something where that is asked for.
    fn elements(&self, multiple: [usize; 2]) -> usize {
        self.size(0).next_multiple_of(multiple[0]) * self.size(1).next_multiple_of(multiple[1]) * self.area()
    }

    /// Whether channels lie closest together.
    fn has_channels_last(&self) -> bool {
        self.strides.get(1) == Some(&1) && self.area() > 1
    }
}

/// Tensor cores read channels by eight in 16 bits.
const CHANNELS: usize = 8;
/// Blocks that an H100 runs at a time in the kernels that compute the gradient of weights: one a multiprocessor.
const PARTS: usize = 132;
/// Below so many taps a filter over few channels goes without tensor cores.
const FEW_TAPS: usize = 25;

/// The workspace of a convolution's first engine: input, weights, output.
///
/// Its kernels want channels last, and in 16 bits a multiple of eight of them; what lies otherwise is copied first, and what comes out,
/// afterwards. The gradient of the weights is summed up in parts, of 32 bits each. Kernels for one tap, for each channel alone, and for a few
/// channels of a small filter copy nothing. For half of what was measured that is right to a few bytes, and for seven of
/// ten within a tenth of the tensors' own size (of gradients of weights for half).
pub(crate) fn of_convolution(direction: Direction, [input, weights, output]: &[Tensor; 3]) -> usize {
    let channels = weights.size(1);
    let groups = (input.size(1) / channels.max(1)).max(1);
    let filter = weights.elements([1, 1]);
    let is_last = input.has_channels_last() || output.has_channels_last();
    if groups > 1 {
        return 0;
    }
    let bytes = width(input.kind);
    let is_pointwise = weights.area() == 1 && input.area() == output.area();
    if is_pointwise {
        // A product of matrices for each image, summed up.
        let sums = filter * size_of::<f32>() * if is_last { CHANNELS } else { input.size(0) };
        let most = (input.elements([1, 1]) + output.elements([1, 1])) * bytes;
        return if direction == Direction::ToWeights { sums.min(most) } else { 0 };
    }
    let multiple = if bytes == 2 { CHANNELS } else { 1 };
    let is_direct = channels < CHANNELS && weights.area() < FEW_TAPS;
    // In 32 bits that is so in both directions, which programs of the corpus show (`mzg-gan-disc-bug`, `graph-rl-values-bug`).
    if is_direct && !is_last && (direction == Direction::Forward || bytes == 4) {
        return 0;
    }
    let copied = |tensor: &Tensor, multiples: [usize; 2]| {
        let elements = tensor.elements(multiples);
        // With one tap it lies the same either way.
        let is_copied = (!is_last && tensor.area() > 1) || elements != tensor.elements([1, 1]);
        if is_copied { elements * bytes } else { 0 }
    };
    let copies =
        copied(input, [1, multiple]) + copied(output, [1, multiple]) + copied(weights, [multiple, multiple]);
    let parts = if direction == Direction::ToWeights {
        let tiles = weights.area() * weights.size(0).div_ceil(64) * channels.div_ceil(256);
        let parts = PARTS / tiles.max(1);
        if parts > 1 { parts * filter * size_of::<f32>() } else { 0 }
    } else {
        0
    };
    copies + parts
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

    fn tensor(kind: i32, sizes: [i64; 4]) -> Tensor {
        let [_, b, c, d] = sizes;
        Tensor { kind, sizes: sizes.to_vec(), strides: vec![b * c * d, c * d, d, 1] }
    }

    const SINGLE: i32 = 0;
    const BRAIN: i32 = 9;

    /// Rows as they were measured: cuDNN aligns what it asks for, which is a few hundred bytes.
    #[test]
    fn convolutions_take_what_they_were_seen_to_take() {
        let rows = [
            (BRAIN, [8, 3, 224, 224], [64, 3, 7, 7], [8, 64, 112, 112], Direction::Forward, 19_317_776),
            (SINGLE, [8, 256, 14, 14], [256, 256, 3, 3], [8, 256, 14, 14], Direction::Forward, 5_570_576),
            (SINGLE, [8, 256, 56, 56], [512, 256, 1, 1], [8, 512, 28, 28], Direction::Forward, 38_535_184),
            (SINGLE, [4, 3, 256, 256], [64, 3, 3, 3], [4, 64, 256, 256], Direction::Forward, 0),
            (SINGLE, [192, 3, 64, 64], [128, 3, 4, 4], [192, 128, 32, 32], Direction::ToInput, 0),
            (SINGLE, [128, 3, 64, 64], [16, 3, 3, 3], [128, 16, 64, 64], Direction::ToWeights, 0),
            (SINGLE, [8, 64, 56, 56], [64, 64, 3, 3], [8, 64, 56, 56], Direction::ToWeights, 15_057_575),
            (SINGLE, [32, 64, 56, 56], [256, 64, 1, 1], [32, 256, 56, 56], Direction::ToWeights, 2_097_152),
        ];
        for (kind, input, weights, output, direction, measured) in rows {
            let modelled = of_convolution(
                direction,
                &[tensor(kind, input), tensor(kind, weights), tensor(kind, output)],
            );
            assert!(
                modelled.abs_diff(measured) <= 1024,
                "{input:?} {weights:?} {direction:?}: {modelled}, and not {measured}"
            );
        }
    }

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
