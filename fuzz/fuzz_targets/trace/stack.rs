//! The stacks of the phases, as PyTorch 2.11 records them.

use memlint::snapshot::{Frame, Snapshot};
use memlint::unit::StackId;

use crate::script::{Phase, Place, Stacks};

/// What a user's own names begin with: `anonymize` must leave none of them.
pub(crate) const SECRET: &str = "zqsecret";

type Line = (&'static str, &'static str, u32);

const TORCH: &str = "/usr/lib/python3/site-packages/";
const ENGINE: [Line; 3] = [
    ("lib/libtorch_cuda.so", "at::native::empty_cuda(c10::ArrayRef<long>)", 91),
    ("lib/libtorch_cpu.so", "torch::autograd::generated::ReluBackward0::apply", 17),
    ("lib/libtorch_cpu.so", "torch::autograd::Engine::thread_main", 5),
];
const RELEASE: [Line; 2] = [
    ("lib/libtorch_cpu.so", "torch::autograd::SavedVariable::reset_data()", 7),
    ("lib/libtorch_cpu.so", "torch::autograd::generated::ReluBackward0::release_variables()", 9),
];

/// The frames of a phase inside the user's line, innermost first.
fn inner(phase: Phase, releases: bool) -> &'static [Line] {
    match phase {
        Phase::Plain => &[],
        Phase::Input => &[("torch/utils/data/dataloader.py", "__next__", 701)],
        Phase::Forward | Phase::Evaluation => &[
            ("torch/nn/modules/linear.py", "forward", 134),
            ("torch/nn/modules/module.py", "_call_impl", 1790),
            ("torch/nn/modules/module.py", "_wrapped_call_impl", 1779),
        ],
        Phase::Loss => &[("torch/nn/functional.py", "cross_entropy", 3462)],
        Phase::Backward if releases => &RELEASE,
        Phase::Backward => &ENGINE,
        Phase::BackwardCall => &[
            ("torch/autograd/__init__.py", "_make_grads", 150),
            ("torch/autograd/__init__.py", "backward", 364),
            ("torch/_tensor.py", "backward", 630),
        ],
        Phase::CustomBackward => &[("torch/autograd/function.py", "apply", 311)],
        Phase::Recomputation => &[
            ("torch/nn/modules/linear.py", "forward", 134),
            ("torch/utils/checkpoint.py", "recompute_fn", 1500),
            ("torch/utils/checkpoint.py", "unpack_hook", 1141),
        ],
        Phase::Unscale => {
            &[("torch/amp/grad_scaler.py", "_unscale_grads_", 296), ("torch/amp/grad_scaler.py", "step", 473)]
        }
        Phase::Clip => &[
            ("torch/nn/utils/clip_grad.py", "_get_total_norm", 99),
            ("torch/nn/utils/clip_grad.py", "clip_grad_norm_", 220),
        ],
        Phase::StateOfOptimizer => &[
            ("torch/optim/adam.py", "_init_group", 178),
            ("torch/optim/adam.py", "step", 226),
            ("torch/optim/optimizer.py", "wrapper", 533),
        ],
        Phase::OptimizerStep => &[
            ("torch/optim/adam.py", "_multi_tensor_adam", 610),
            ("torch/optim/adam.py", "step", 226),
            ("torch/optim/optimizer.py", "wrapper", 533),
        ],
        Phase::ZeroGrad => &[("torch/optim/optimizer.py", "zero_grad", 1017)],
        Phase::Compiled => &[
            ("/tmp/torchinductor_root/ab/cabcdef.py", "call", 77),
            ("torch/_inductor/output_code.py", "__call__", 600),
        ],
        Phase::Lightning => &[
            ("lightning/pytorch/loops/optimization/automatic.py", "closure", 130),
            ("torch/optim/adam.py", "step", 226),
            ("lightning/pytorch/strategies/strategy.py", "optimizer_step", 241),
        ],
        Phase::Trainer => &[
            ("transformers/trainer.py", "training_step", 3900),
            ("transformers/trainer.py", "_inner_training_loop", 2500),
        ],
        Phase::Distributed => &[
            ("torch/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param", 1400),
            ("torch/distributed/fsdp/_runtime_utils.py", "_unshard", 300),
        ],
        Phase::Generated => &[("<eval_with_key>.7", "forward", 5)],
        Phase::Native => &[("lib/libcudnn.so", "??", 1), ("Workspace.cpp", "at::cuda::getNewWorkspace()", 3)],
    }
}

/// Whether the phase runs on a thread of its own, on which no line of the user's stands.
fn is_engine(phase: Phase) -> bool {
    matches!(phase, Phase::Backward | Phase::CustomBackward | Phase::Recomputation)
}

/// The stack of an event; `outer` is the line of the outermost frame.
pub(crate) fn stack(
    snapshot: &mut Snapshot,
    kind: Stacks,
    phase: Phase,
    place: Place,
    outer: u32,
    releases: bool,
) -> Option<StackId> {
    let mut lines: Vec<(String, String, u32)> = Vec::new();
    match kind {
        Stacks::Absent => return None,
        Stacks::Empty => {}
        Stacks::Python if phase == Phase::Backward || phase == Phase::Native => {}
        Stacks::All | Stacks::Python => {
            for &(file, name, line) in inner(phase, releases) {
                let folder = if file.starts_with(['/', '<']) { "" } else { TORCH };
                lines.push((format!("{folder}{file}"), name.to_owned(), line));
            }
            if phase == Phase::CustomBackward || !is_engine(phase) {
                user_lines(&mut lines, phase, place, outer);
            }
        }
    }
    let mut frames = Vec::with_capacity(lines.len());
    for (file, name, line) in lines {
        let (name, file) = (snapshot.strings.intern(&name)?, snapshot.strings.intern(&file)?);
        frames.push(snapshot.stacks.intern_frame(Frame { name, file, line })?);
    }
    snapshot.stacks.intern(&frames)
}

fn user_lines(lines: &mut Vec<(String, String, u32)>, phase: Phase, place: Place, outer: u32) {
    let file = |number: u8| match number % 4 {
        0 => format!("/home/{SECRET}/project/{SECRET}_train.py"),
        1 => format!("/home/{SECRET}/project/{SECRET}_model.py"),
        2 => format!("C:\\{SECRET}\\project\\{SECRET}_loop.py"),
        _ => format!("/home/{SECRET}/project/src/lightning/{SECRET}_fit.py"),
    };
    let function = |number: u8| match number % 5 {
        0 => "forward".to_owned(),
        1 => "training_step".to_owned(),
        2 => "<lambda>".to_owned(),
        number => format!("{SECRET}_step{number}"),
    };
    if phase == Phase::Evaluation {
        lines.push((format!("{TORCH}torch/utils/_contextlib.py"), "decorate_context".to_owned(), 120));
    }
    for level in 0..=place.depth % 8 {
        let line =
            u32::from(place.line) * u32::from(!place.line.is_multiple_of(7) || level > 0) + u32::from(level);
        lines.push((
            file(place.file.wrapping_add(level)),
            function(place.function.wrapping_mul(level | 1)),
            line,
        ));
    }
    lines.push((file(0), "main".to_owned(), outer));
    lines.push((file(0), "<module>".to_owned(), 99));
}
