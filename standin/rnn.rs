//! cuDNN's recurrent networks: where each weight lies in the one tensor that holds them all, and how much room a pass takes.

use std::sync::Mutex;

use crate::place::{In, Out};
use crate::table::{Handle, Table, lock};
use crate::workspace::{self, width};
use crate::{DONE, Status, calls, nothing};

/// `cudnnRNNMode_t`: with a linear unit, with tanh, LSTM, GRU.
const GATES: [i64; 4] = [1, 1, 4, 3];

/// A network.
#[derive(Clone, Copy, Default)]
pub(crate) struct Network {
    pub(crate) gates: i64,
    /// Biases of a gate: none, one, or one for the input and one for the state.
    pub(crate) biases: i64,
    pub(crate) directions: i64,
    pub(crate) kind: i32,
    pub(crate) input: i64,
    pub(crate) hidden: i64,
    pub(crate) projected: i64,
    pub(crate) layers: i64,
    /// Whether it leaves values out between its layers.
    pub(crate) drops: bool,
}

/// A batch of sequences.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sequences {
    pub(crate) longest: i64,
    pub(crate) batch: i64,
}

/// Sizes of a tensor, and of what else somebody describes and asks for again.
#[derive(Clone, Copy, Default)]
struct Shape {
    kind: i32,
    sizes: [i32; 3],
}

static NETWORKS: Mutex<Table<Network>> = Mutex::new(Table::new());
static SEQUENCES: Mutex<Table<Sequences>> = Mutex::new(Table::new());
static SHAPES: Mutex<Table<Shape>> = Mutex::new(Table::new());
/// Whether a description of dropout leaves anything out.
static DROPOUTS: Mutex<Table<bool>> = Mutex::new(Table::new());

/// `CUDNN_STATUS_BAD_PARAM`.
const INVALID: Status = 2000;

impl Network {
    /// What a layer's state is to those behind it.
    fn state(&self) -> i64 {
        if self.projected > 0 { self.projected } else { self.hidden }
    }

    /// Columns of the weights of a layer's gate: those for the input, and those for the state.
    fn columns(&self, layer: i64, is_recurrent: bool) -> i64 {
        match (is_recurrent, layer) {
            (true, _) => self.state(),
            (false, 0) => self.input,
            (false, _) => self.state() * self.directions,
        }
    }

    /// Elements of the matrices of one layer and direction.
    fn matrices(&self, layer: i64) -> i64 {
        let both = self.columns(layer, false) + self.columns(layer, true);
        let projection = if self.projected > 0 { self.projected * self.hidden } else { 0 };
        self.gates * self.hidden * both + projection
    }

    /// Elements of all matrices before a layer in one direction, counted as cuDNN does.
    fn matrices_before(&self, pseudo: i64) -> i64 {
        (0..pseudo).map(|before| self.matrices(before / self.directions)).sum()
    }

    /// Elements of all matrices.
    pub(crate) fn matrices_of_all(&self) -> i64 {
        self.matrices_before(self.layers * self.directions)
    }

    fn elements(&self) -> i64 {
        let pseudo = self.layers * self.directions;
        self.matrices_of_all() + pseudo * self.gates * self.biases * self.hidden
    }

    fn bytes(&self, elements: i64) -> usize {
        usize::try_from(elements).unwrap_or(0) * width(self.kind)
    }

    /// Where the matrix and the bias of a gate begin, and the matrix's rows and columns.
    fn weights(&self, pseudo: i64, gate: i64) -> Option<(i64, [i64; 2], Option<i64>)> {
        let layer = pseudo / self.directions;
        let start = self.matrices_before(pseudo);
        let inputs = self.gates * self.hidden * self.columns(layer, false);
        let recurrent = self.gates * self.hidden * self.columns(layer, true);
        if gate == 2 * self.gates {
            // The projection stands behind the gates and has no bias.
            return (self.projected > 0).then_some((
                start + inputs + recurrent,
                [self.projected, self.hidden],
                None,
            ));
        }
        let is_recurrent = gate >= self.gates;
        let columns = self.columns(layer, is_recurrent);
        let before = if is_recurrent { inputs } else { 0 } + gate % self.gates * self.hidden * columns;
        let all = self.matrices_of_all();
        let bias = (self.biases > 0).then(|| {
            all + (pseudo * self.gates * self.biases + gate % (self.gates * self.biases)) * self.hidden
        });
        Some((start + before, [self.hidden, columns], bias))
    }
}

fn shape(place: Handle, kind: i32, sizes: [i64; 2]) {
    let size = |size: i64| i32::try_from(size).unwrap_or(0);
    *lock(&SHAPES).entry(place) = Shape { kind, sizes: [1, size(sizes[0]), size(sizes[1])] };
}

fn network(handle: Handle) -> Network {
    lock(&NETWORKS).get(handle).copied().unwrap_or_default()
}

calls! {
    "cudnnCreateRNNDescriptor"(place: Out<Handle>) { place.set(lock(&NETWORKS).add(Network::default())); DONE }
    "cudnnDestroyRNNDescriptor"(handle: Handle) { lock(&NETWORKS).remove(handle); DONE }
    "cudnnCreateRNNDataDescriptor"(place: Out<Handle>) { place.set(lock(&SEQUENCES).add(Sequences::default())); DONE }
    "cudnnDestroyRNNDataDescriptor"(handle: Handle) { lock(&SEQUENCES).remove(handle); DONE }
    "cudnnCreateTensorDescriptor"(place: Out<Handle>) { place.set(lock(&SHAPES).add(Shape::default())); DONE }
    "cudnnDestroyTensorDescriptor"(handle: Handle) { lock(&SHAPES).remove(handle); DONE }
    "cudnnSetDropoutDescriptor"(described: Handle, _handle: Handle, share: f32) {
        *lock(&DROPOUTS).entry(described) = share > 0.0;
        DONE
    }
    "cudnnRestoreDropoutDescriptor"(described: Handle, _handle: Handle, share: f32) {
        *lock(&DROPOUTS).entry(described) = share > 0.0;
        DONE
    }
    "cudnnSetRNNDescriptor_v8"(
        handle: Handle, _algorithm: i32, cell: i32, biases: i32, directions: i32, _input_mode: i32, kind: i32, _precision: i32, _math: i32,
        input: i32, hidden: i32, projected: i32, layers: i32, dropout: Handle, _flags: u32,
    ) {
        let gates = usize::try_from(cell).ok().and_then(|cell| GATES.get(cell)).copied().unwrap_or(1);
        *lock(&NETWORKS).entry(handle) = Network {
            gates,
            biases: match biases { 0 => 0, 2 => 2, _ => 1 },
            directions: i64::from(directions) + 1,
            kind,
            input: input.into(),
            hidden: hidden.into(),
            // cuDNN takes a projection as large as the state for none.
            projected: if projected == hidden { 0 } else { projected.into() },
            layers: layers.into(),
            drops: lock(&DROPOUTS).get(dropout).copied().unwrap_or(false),
        };
        DONE
    }
    "cudnnSetRNNDataDescriptor"(handle: Handle, _kind: i32, _layout: i32, longest: i32, batch: i32) {
        *lock(&SEQUENCES).entry(handle) = Sequences { longest: longest.into(), batch: batch.into() };
        DONE
    }
    "cudnnGetRNNWeightSpaceSize"(_handle: Handle, described: Handle, bytes: Out<usize>) {
        let network = network(described);
        bytes.set(network.bytes(network.elements()));
        DONE
    }
    "cudnnGetRNNTempSpaceSizes"(_handle: Handle, described: Handle, mode: i32, data: Handle, work: Out<usize>, kept: Out<usize>) {
        let sequences = lock(&SEQUENCES).get(data).copied().unwrap_or_default();
        let sizes = workspace::of_network(&network(described), &sequences);
        work.set(sizes.work);
        // A pass that is no training keeps nothing.
        kept.set(if mode == 1 { sizes.kept } else { 0 });
        DONE
    }
    "cudnnGetRNNWeightParams"(
        _handle: Handle, described: Handle, pseudo: i32, _bytes: usize, start: usize, gate: i32, matrix: Handle, at: Out<usize>, bias: Handle,
        bias_at: Out<usize>,
    ) {
        let network = network(described);
        let Some((offset, sizes, bias_offset)) = network.weights(pseudo.into(), gate.into()) else {
            at.set(0);
            bias_at.set(0);
            return if network.hidden > 0 { DONE } else { INVALID };
        };
        at.set(start + network.bytes(offset));
        shape(matrix, network.kind, sizes);
        bias_at.set(bias_offset.map_or(0, |offset| start + network.bytes(offset)));
        shape(bias, network.kind, [network.hidden, 1]);
        DONE
    }
    "cudnnSetTensorNdDescriptor"(handle: Handle, kind: i32, count: i32, sizes: In<i32>, _strides: In<i32>) {
        let at = |index: i32| if index < count { sizes.get(usize::try_from(index).unwrap_or(0)).unwrap_or(1) } else { 1 };
        *lock(&SHAPES).entry(handle) = Shape { kind, sizes: [at(0), at(1), at(2)] };
        DONE
    }
    "cudnnGetTensorNdDescriptor"(handle: Handle, room: i32, kind: Out<i32>, count: Out<i32>, sizes: Out<i32>, strides: Out<i32>) {
        let shape = lock(&SHAPES).get(handle).copied().unwrap_or_default();
        let [_, rows, columns] = shape.sizes;
        kind.set(shape.kind);
        count.set(3);
        for (at, (size, stride)) in shape.sizes.into_iter().zip([rows * columns, columns, 1]).enumerate() {
            if i32::try_from(at).is_ok_and(|at| at < room) {
                sizes.set_field(at * 4, size);
                strides.set_field(at * 4, stride);
            }
        }
        DONE
    }
}

nothing! { "cudnnRNNForward" "cudnnRNNBackwardData_v8" "cudnnRNNBackwardWeights_v8" }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_each_other_without_a_gap() {
        let network = Network {
            gates: 4,
            biases: 2,
            directions: 2,
            kind: 0,
            input: 5,
            hidden: 7,
            projected: 0,
            layers: 2,
            drops: false,
        };
        let mut matrices = Vec::new();
        let mut biases = Vec::new();
        for pseudo in 0..4 {
            for gate in 0..8 {
                let (start, [rows, columns], bias) = network.weights(pseudo, gate).unwrap();
                matrices.push((start, rows * columns));
                biases.push((bias.unwrap(), 7));
            }
        }
        matrices.extend(biases);
        let mut next = 0;
        for (start, elements) in matrices {
            assert_eq!(start, next);
            next += elements;
        }
        assert_eq!(next, network.elements());
    }
}
