//! cuDNN's recurrent networks: what is told of them, where their weights lie, and how much room a pass takes.

use std::sync::Mutex;

use crate::network::{Network, Sequences};
use crate::place::{In, Out};
use crate::table::{Handle, Table, lock};
use crate::workspace::{self, width};
use crate::{DONE, Status, calls, nothing};

/// `cudnnRNNMode_t`: with a linear unit, with tanh, LSTM, GRU.
const GATES: [i64; 4] = [1, 1, 4, 3];

/// `CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED`.
const PACKED: i32 = 1;
/// `CUDNN_FWD_MODE_TRAINING`.
const TRAINING: i32 = 1;

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

fn shape(place: Handle, kind: i32, sizes: [i64; 2]) {
    let size = |size: i64| i32::try_from(size).unwrap_or(0);
    *lock(&SHAPES).entry(place) = Shape { kind, sizes: [1, size(sizes[0]), size(sizes[1])] };
}

/// Sizes of a tensor that was described.
pub(crate) fn sizes_of(handle: Handle) -> [i32; 3] {
    lock(&SHAPES).get(handle).map(|shape| shape.sizes).unwrap_or_default()
}

fn bytes_of(network: &Network, elements: i64) -> usize {
    usize::try_from(elements).unwrap_or(0) * width(network.kind)
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
    "cudnnSetRNNDataDescriptor"(
        handle: Handle, _kind: i32, layout: i32, longest: i32, batch: i32, _features: i32, lengths: In<i32>,
    ) {
        let is_packed = layout == PACKED;
        let steps = if is_packed {
            (0..usize::try_from(batch).unwrap_or(0)).filter_map(|at| lengths.get(at)).map(i64::from).sum()
        } else {
            i64::from(longest) * i64::from(batch)
        };
        *lock(&SEQUENCES).entry(handle) = Sequences { longest: longest.into(), batch: batch.into(), steps, is_packed };
        DONE
    }
    "cudnnGetRNNWeightSpaceSize"(_handle: Handle, described: Handle, bytes: Out<usize>) {
        let network = network(described);
        bytes.set(bytes_of(&network, network.elements()));
        DONE
    }
    "cudnnGetRNNTempSpaceSizes"(_handle: Handle, described: Handle, mode: i32, data: Handle, work: Out<usize>, kept: Out<usize>) {
        let sequences = lock(&SEQUENCES).get(data).copied().unwrap_or_default();
        let sizes = workspace::of_network(&network(described), &sequences, mode == TRAINING);
        work.set(sizes.work);
        // A pass that is no training keeps nothing.
        kept.set(if mode == TRAINING { sizes.kept } else { 0 });
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
        at.set(start + bytes_of(&network, offset));
        shape(matrix, network.kind, sizes);
        bias_at.set(bias_offset.map_or(0, |offset| start + bytes_of(&network, offset)));
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
