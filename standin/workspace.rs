//! Sizes that libraries ask PyTorch for. They are the libraries' own business and written down nowhere, so what stands here was measured, and
//! where nothing was measured it is nothing, which [`crate::unmodelled`] notes.

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
pub(crate) struct Tensor {
    /// `cudnnDataType_t`.
    pub(crate) kind: i32,
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// States of cuDNN's generator for dropout in recurrent networks.
pub(crate) const DROPOUT_STATES: usize = 1 << 20;

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
    fn bytes(&self) -> usize {
        self.sizes.iter().map(|size| usize::try_from(*size).unwrap_or(0)).product::<usize>() * width(self.kind)
    }

    /// Whether channels lie closest together.
    fn has_channels_last(&self) -> bool {
        self.strides.get(1) == Some(&1) && self.sizes.get(1).is_some_and(|channels| *channels > 1)
    }
}

/// The workspace of a convolution's first engine: input, weights, output.
pub(crate) fn of_convolution(_direction: Direction, [input, weights, output]: &[Tensor; 3]) -> usize {
    let _ = (input.bytes(), weights.bytes(), output.has_channels_last());
    0
}

/// Room for a pass of a recurrent network.
pub(crate) struct Room {
    pub(crate) work: usize,
    /// Kept for the backward pass.
    pub(crate) kept: usize,
}

/// What a recurrent network needs for a batch.
pub(crate) fn of_network(network: &Network, sequences: &Sequences, is_training: bool) -> Room {
    let states = sequences.longest * sequences.batch * network.hidden * network.directions * network.layers;
    let bytes = |elements: i64| usize::try_from(elements).unwrap_or(0) * width(network.kind);
    Room { work: bytes(states * network.gates), kept: if is_training { bytes(states * (network.gates + 1)) } else { 0 } }
}
