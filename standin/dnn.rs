//! cuDNN: descriptions that are kept as far as somebody asks for them again, and graphs of operations with one plan each.
//!
//! PyTorch builds a graph of one operation, asks a heuristic for configurations of engines, makes plans of them and takes the first. There are
//! two here: one whose workspace is that of [`Convolution::workspace`], and one without. Batch normalisation needs none.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::convolution::{Convolution, Tensor, Window};
use crate::engines::Direction;
use crate::place::{In, Out};
use crate::table::{Handle, Table, lock};
use crate::unmodelled::meet;
use crate::{DONE, Status, calls, device, nothing, rnn, workspace};

/// `CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC`.
const NOT_DETERMINISTIC: i32 = 1;

/// `CUDNN_ATTR_*`, by cuDNN's header (`cudnn_graph.h`).
const DILATIONS: i32 = 102;
const STRIDES: i32 = 103;
const PADDINGS: i32 = 105;
const GRAPH_OF_HEURISTIC: i32 = 201;
const RESULTS_OF_HEURISTIC: i32 = 202;
const ENGINE_OF_CONFIGURATION: i32 = 300;
const CONFIGURATION_OF_PLAN: i32 = 401;
const WORKSPACE_OF_PLAN: i32 = 402;
const OPERATIONS_OF_GRAPH: i32 = 801;
const TYPE_OF_TENSOR: i32 = 901;
const SIZES_OF_TENSOR: i32 = 902;
const STRIDES_OF_TENSOR: i32 = 903;
/// What is made of an operation, and keeps its workspace.
const WHOLES: [i32; 3] = [OPERATIONS_OF_GRAPH, GRAPH_OF_HEURISTIC, CONFIGURATION_OF_PLAN];
/// Input, weights and output of a convolution, by direction.
const TENSORS: [(Direction, [i32; 3]); 3] = [
    (Direction::Forward, [704, 703, 705]),
    (Direction::ToInput, [710, 709, 711]),
    (Direction::ToWeights, [716, 715, 717]),
];

/// `CUDNN_TYPE_INT64`, `CUDNN_TYPE_BACKEND_DESCRIPTOR`.
const INT64: i32 = 3;
const DESCRIPTOR: i32 = 15;
/// Types of which a description has a list, which is empty here: knobs, notes on numbers and on behaviour.
const LISTS: [i32; 3] = [9, 11, 19];

/// A description: what was said of it, by attribute. Parts may be gone before the whole is asked, so what is wanted of them is taken at once.
#[derive(Default)]
struct Described {
    numbers: BTreeMap<i32, Vec<i64>>,
    kind: i32,
    tensors: BTreeMap<i32, Tensor>,
    /// How the filter of an operation moves.
    window: Window,
    /// Of an operation, and of what is made of it: a graph, its heuristic, a configuration, a plan.
    workspace: i64,
}

static DESCRIBED: Mutex<Table<Described>> = Mutex::new(Table::new());

impl Described {
    fn tensor(&self) -> Option<Tensor> {
        let list = |attribute| self.numbers.get(&attribute).cloned();
        Some(Tensor { kind: self.kind, sizes: list(SIZES_OF_TENSOR)?, strides: list(STRIDES_OF_TENSOR)? })
    }

    /// What a description of a convolution says.
    fn window(&self) -> Option<Window> {
        let list = |attribute| self.numbers.get(&attribute).cloned();
        Some(Window { strides: list(STRIDES)?, paddings: list(PADDINGS)?, dilations: list(DILATIONS)? })
    }

    /// The workspace of an operation whose tensors are known.
    fn computed(&self) -> Option<i64> {
        TENSORS.iter().find_map(|(direction, attributes)| {
            let [input, weights, output] = attributes.map(|attribute| self.tensors.get(&attribute).cloned());
            let convolution = Convolution::new(*direction, &[input?, weights?, output?], &self.window)?;
            i64::try_from(convolution.workspace()).ok()
        })
    }
}

/// Makes a description a part of another.
fn put(whole: Handle, attribute: i32, part: Handle) {
    let mut described = lock(&DESCRIBED);
    let Some((tensor, window, workspace)) =
        described.get(part).map(|part| (part.tensor(), part.window(), part.workspace))
    else {
        return;
    };
    let row = described.entry(whole);
    if let Some(tensor) = tensor {
        row.tensors.insert(attribute, tensor);
        row.workspace = row.computed().unwrap_or(0);
    } else if let Some(window) = window {
        row.window = window;
        row.workspace = row.computed().unwrap_or(0);
    } else if WHOLES.contains(&attribute) {
        row.workspace = workspace;
    }
}

fn set(handle: Handle, attribute: i32, kind: i32, count: i64, values: &In<'_, u8>) -> Status {
    let count = usize::try_from(count).unwrap_or(0);
    match kind {
        INT64 => {
            let numbers = (0..count).map_while(|at| values.field(at * 8)).collect();
            lock(&DESCRIBED).entry(handle).numbers.insert(attribute, numbers);
        }
        DESCRIPTOR => {
            if let Some(part) = values.field(0) {
                put(handle, attribute, part);
            }
        }
        _ if attribute == TYPE_OF_TENSOR => {
            lock(&DESCRIBED).entry(handle).kind = values.field(0).unwrap_or(0);
        }
        _ => {}
    }
    DONE
}

/// Answers what is asked of a description. Descriptions that are asked for are the caller's own, to be filled.
fn get(handle: Handle, attribute: i32, kind: i32, wanted: i64, found: &Out<i64>, values: &Out<u8>) -> Status {
    match attribute {
        RESULTS_OF_HEURISTIC => {
            // The second has no workspace, for where there is no room for one.
            found.set(if wanted == 0 { 2 } else { wanted.min(2) });
            if let Some(configuration) = values.field::<Handle>(0).filter(|_| wanted > 0) {
                let mut described = lock(&DESCRIBED);
                let workspace = described.get(handle).map_or(0, |row| row.workspace);
                described.entry(configuration).workspace = workspace;
            }
        }
        ENGINE_OF_CONFIGURATION => found.set(1),
        WORKSPACE_OF_PLAN => {
            found.set(1);
            values.set_field(0, lock(&DESCRIBED).get(handle).map_or(0, |plan| plan.workspace));
        }
        _ if kind == DESCRIPTOR || LISTS.contains(&kind) => found.set(0),
        _ => {
            found.set(i64::from(wanted > 0));
            if wanted > 0 {
                values.set_field(0, 0_i32);
            }
        }
    }
    DONE
}

/// Exports what makes a description of some kind.
macro_rules! creations {
    ($($name:literal)*) => {
        calls! { $($name(place: Out<Handle>) { place.set(lock(&DESCRIBED).add(Described::default())); DONE })* }
    };
}

creations! {
    "cudnnCreate" "cudnnCreateActivationDescriptor" "cudnnCreateCTCLossDescriptor" "cudnnCreateConvolutionDescriptor"
    "cudnnCreateDropoutDescriptor" "cudnnCreateFilterDescriptor" "cudnnCreatePoolingDescriptor"
    "cudnnCreateSpatialTransformerDescriptor"
}

calls! {
    "cudnnGetVersion"() -> usize { device::model().cudnn as usize }
    "cudnnGetCudartVersion"() -> usize { device::model().cuda as usize }
    "cudnnGetErrorString"(_status: Status) -> *const u8 { c"not supported without a GPU".as_ptr().cast() }
    "cudnnGetLastErrorString"(text: Out<u8>, room: usize) { text.set_text(0, "", room); DONE }
    // Major, minor and patch.
    "cudnnGetProperty"(which: i32, place: Out<i32>) {
        let version = device::model().cudnn;
        let part = match which {
            0 => version / 10_000,
            1 => version / 100 % 100,
            _ => version % 100,
        };
        place.set(i32::try_from(part).unwrap_or(0));
        DONE
    }
    "cudnnGetStream"(_handle: Handle, place: Out<Handle>) { place.set(0); DONE }
    "cudnnDropoutGetStatesSize"(_handle: Handle, bytes: Out<usize>) { bytes.set(workspace::DROPOUT_STATES); DONE }

    "cudnnGetCTCLossWorkspaceSize"(
        _handle: Handle, scores: Handle, _gradients: Handle, _labels: usize, _label_lengths: usize, _input_lengths: usize, way: i32,
        _loss: Handle, bytes: Out<usize>,
    ) {
        if way != NOT_DETERMINISTIC {
            return meet("cudnnGetCTCLossWorkspaceSize");
        }
        bytes.set(workspace::of_ctc(rnn::sizes_of(scores)));
        DONE
    }
    "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize"(
        _handle: Handle, _mode: i32, _operations: i32, _x: Handle, _z: Handle, _y: Handle, _scale: Handle, _activation: Handle, bytes: Out<usize>,
    ) { bytes.set(0); DONE }
    "cudnnGetBatchNormalizationBackwardExWorkspaceSize"(
        _handle: Handle, _mode: i32, _operations: i32, _x: Handle, _y: Handle, _dy: Handle, _dz: Handle, _dx: Handle, _scale: Handle,
        _activation: Handle, bytes: Out<usize>,
    ) { bytes.set(0); DONE }
    "cudnnGetBatchNormalizationTrainingExReserveSpaceSize"(
        _handle: Handle, _mode: i32, _operations: i32, _activation: Handle, _x: Handle, bytes: Out<usize>,
    ) { bytes.set(0); DONE }

    "cudnnBackendCreateDescriptor"(_kind: i32, place: Out<Handle>) { place.set(lock(&DESCRIBED).add(Described::default())); DONE }
    "cudnnBackendDestroyDescriptor"(handle: Handle) { lock(&DESCRIBED).remove(handle); DONE }
    "cudnnBackendSetAttribute"(handle: Handle, attribute: i32, kind: i32, count: i64, values: In<u8>) {
        set(handle, attribute, kind, count, &values)
    }
    "cudnnBackendGetAttribute"(handle: Handle, attribute: i32, kind: i32, wanted: i64, found: Out<i64>, values: Out<u8>) {
        get(handle, attribute, kind, wanted, &found, &values)
    }
}

nothing! { "cudnnBackendFinalize" "cudnnBackendExecute" "cudnnSetStream" "cudnnDestroy" }
