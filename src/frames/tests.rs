//! Whose code is whose, and what it means, over small recordings.

use super::*;
use crate::testing::Recorder;

/// A recording with the given stacks: each frame is a file and a function, outermost first, one line further each.
fn recording(stacks: &[&[(&str, &str)]]) -> Snapshot {
    let mut recorder = Recorder::default();
    for stack in stacks {
        let frames = stack.iter().zip(8..).map(|((file, name), line)| recorder.frame(file, name, line));
        let mut frames: Vec<FrameId> = frames.collect();
        frames.reverse();
        recorder.snapshot.stacks.intern(&frames).unwrap();
    }
    recorder.snapshot
}

/// The owner of each frame of the first stack, outermost first.
fn owners(stacks: &[&[(&str, &str)]]) -> Vec<Owner> {
    let snapshot = recording(stacks);
    let frames = Frames::of(&snapshot);
    let stack = snapshot.stacks.get(StackId::at(0).unwrap());
    stack.iter().rev().map(|frame| frames.owner(*frame)).collect()
}

/// The owner of a file, in a program that begins in `/home/me/train.py` and runs PyTorch from an environment.
fn owner(file: &str) -> Owner {
    let torch = "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py";
    owners(&[&[("/home/me/train.py", "<module>"), (torch, "_call_impl"), (file, "work")]])[2]
}

#[test]
fn names_tell_installed_code() {
    for (file, expected) in [
        ("/home/me/net.py", Owner::User),
        ("/home/me/net", Owner::User),
        ("C:\\Users\\me\\project\\net.py", Owner::User),
        ("/home/me/transformers/net.py", Owner::User),
        ("/home/me/src/lightning/net.py", Owner::User),
        ("/home/me/torch/optim/lion.py", Owner::User),
        ("/opt/torch/.venv/lib/python3.12/site-packages/timm/models/vit.py", Owner::Library),
        ("/opt/conda/lib/python3.11/site-packages/transformers/trainer.py", Owner::Framework),
        ("C:\\Users\\me\\miniconda3\\Lib\\site-packages\\einops\\einops.py", Owner::Library),
        ("/usr/lib/python3/dist-packages/torch/_tensor.py", Owner::Torch),
        ("/usr/lib/python3.12/contextlib.py", Owner::Python),
        ("/usr/lib/python312.zip/contextlib.py", Owner::Python),
        ("/home/me/.pyenv/versions/3.11.7/lib/python3.11/copy.py", Owner::Python),
        ("/home/me/lib/python3.11/acme/net.py", Owner::Library),
        ("<frozen runpy>", Owner::Python),
        ("/home/me/.pex/installed_wheels/0a/timm-1.0-py3-none-any.whl/timm/vit.py", Owner::Library),
        ("/home/me/.pex/unzipped_pexes/0a/.bootstrap/pex/pex.py", Owner::Python),
        ("/tmp/torchinductor_me/ql/cqlct.py", Owner::Generated),
        ("/cache/ql/cqlcttsjdoech732rghahksgyllfxap6o646zzkvwhqxenxfc445.py", Owner::Generated),
        ("/data/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_z3.py", Owner::Generated),
        ("/tmp/me_pyg/conv_propagate_x1.py", Owner::Generated),
        ("/tmp/template_a1b2.py", Owner::Generated),
        ("C:\\Users\\me\\AppData\\Local\\Temp\\template_a1b2.py", Owner::Generated),
        ("<eval_with_key>.5 from /home/me/net.py:7 in forward", Owner::Generated),
        ("/tmp/ipykernel_17/55.py", Owner::User),
        ("/tmp/ipython-input-3-1792.py", Owner::User),
        ("<ipython-input-3-0123>", Owner::User),
        ("/root/.ipykernel/1234/command-5678-90", Owner::User),
        ("<command-5678>", Owner::User),
        ("<stdin>", Owner::User),
        ("/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so", Owner::Native),
    ] {
        assert_eq!(owner(file), expected, "{file}");
    }
}

#[test]
fn torch_shows_where_packages_lie() {
    let script: (&str, &str) = ("/home/me/train.py", "<module>");
    let torch: (&str, &str) = ("/srv/deps/torch/nn/modules/module.py", "_call_impl");
    let timm: (&str, &str) = ("/srv/deps/timm/models/vit.py", "forward");
    assert_eq!(owners(&[&[script, torch, timm]])[1..], [Owner::Torch, Owner::Library]);
    // The program lies beside them: an unpacked archive. Then only packages that everybody knows are told from it.
    let script = ("/srv/deps/train.py", "<module>");
    let own = ("/srv/deps/models/net.py", "forward");
    let expected = [Owner::User, Owner::Torch, Owner::Library, Owner::User];
    assert_eq!(owners(&[&[script, torch, timm, own]]), expected);
    // Relative paths, as of a frozen program.
    let frozen = [("train.py", "<module>"), ("torch/_tensor.py", "backward"), ("contextlib.py", "inner")];
    assert_eq!(owners(&[&frozen]), [Owner::User, Owner::Torch, Owner::Python]);
    // One process has one PyTorch: a folder of that name beside an installed one is the user's.
    let installed = ("/v/lib/python3.12/site-packages/torch/_tensor.py", "backward");
    let own = ("/home/me/torch/optim/adam.py", "step");
    assert_eq!(
        owners(&[&[("/home/me/train.py", "<module>"), own, installed]])[1..],
        [Owner::User, Owner::Torch]
    );
}

#[test]
fn python_is_found_by_its_functions() {
    let script = ("D:\\work\\train.py", "<module>");
    let copy = ("C:\\Python312\\Lib\\copy.py", "deepcopy");
    let queue = ("C:\\Python312\\Lib\\queue.py", "get");
    assert_eq!(owners(&[&[script, copy, queue]])[1..], [Owner::Python, Owner::Python]);
    let own = ("D:\\work\\copy.py", "copy_weights");
    assert_eq!(owners(&[&[script, own]])[1], Owner::User);
}

#[test]
fn a_checkout_of_a_framework_is_no_project_of_its_name() {
    let script = ("/home/me/run.py", "<module>");
    let trainer = ("/home/me/hf/src/transformers/trainer.py", "_inner_training_loop");
    let step = ("/home/me/hf/src/transformers/trainer.py", "training_step");
    let model = ("/home/me/hf/src/transformers/models/llama/modeling_llama.py", "forward");
    assert_eq!(owners(&[&[script, trainer, step, model]])[1..], [Owner::Framework; 3]);
    let script = ("/home/me/transformers/train.py", "<module>");
    let trainer = ("/home/me/transformers/trainer.py", "training_step");
    let own = ("/home/me/transformers/trainer.py", "train");
    assert_eq!(owners(&[&[script, trainer, own]]), [Owner::User; 3]);
}

#[test]
fn launchers_are_nobodys() {
    let program = ("/home/me/pkg/train.py", "main");
    let launched = |launcher: (&str, &str)| owners(&[&[launcher, program]])[0];
    assert_eq!(launched(("/opt/venv/bin/train", "<module>")), Owner::Python);
    assert_eq!(launched(("C:\\venv\\Scripts\\train.exe\\__main__.py", "<module>")), Owner::Python);
    assert_eq!(launched(("<string>", "<module>")), Owner::User, "on line 8 it is a program");
    assert_eq!(launched(("/home/me/train", "<module>")), Owner::User);
    // A script with functions of its own is no launcher.
    let script = ("/opt/venv/bin/train", "<module>");
    assert_eq!(owners(&[&[script, ("/opt/venv/bin/train", "main")]]), [Owner::User; 2]);
    // Where nothing else could be blamed, the launcher is.
    let torch = ("/opt/venv/lib/python3.12/site-packages/torch/_tensor.py", "backward");
    assert_eq!(owners(&[&[script, torch]]), [Owner::User, Owner::Torch]);
}

#[test]
fn texts_that_are_run_are_the_users_and_made_methods_nobodys() {
    let script = ("/home/me/run.py", "<module>");
    let batch = ("/home/me/run.py", "__post_init__");
    assert_eq!(owners(&[&[script, ("<string>", "__init__"), batch]])[1], Owner::Generated);
    assert_eq!(owners(&[&[script, ("<string>", "train")]])[1], Owner::User);
    assert_eq!(owners(&[&[("<string>", "<module>"), ("<string>", "__init__")]]), [Owner::User; 2]);
}

#[test]
fn a_script_in_a_temporary_folder_is_the_users_with_all_below_it() {
    let script = ("/tmp/run/train.py", "<module>");
    let net = ("/tmp/run/models/net.py", "forward");
    let template = ("/tmp/template_a1b2.py", "work");
    assert_eq!(owners(&[&[script, net, template]]), [Owner::User, Owner::User, Owner::Generated]);
    // A module that is imported from there is a template, although its own code runs.
    let import = ("<frozen importlib._bootstrap>", "_call_with_frames_removed");
    let script = ("/home/me/train.py", "<module>");
    assert_eq!(owners(&[&[script, import, ("/tmp/a/template.py", "<module>")]])[2], Owner::Generated);
    // An unpacked archive in memory.
    let script = ("/dev/shm/uid-1/app/main.py", "<module>");
    let torch = ("/dev/shm/uid-1/torch/_tensor.py", "backward");
    let net = ("/dev/shm/uid-1/models/net.py", "forward");
    assert_eq!(owners(&[&[script, torch, net]]), [Owner::User, Owner::Torch, Owner::User]);
}

#[test]
fn bazel_keeps_the_program_apart_from_what_it_needs() {
    let script = ("/out/bin/train.runfiles/_main/app/train.py", "<module>");
    let torch = ("/out/bin/train.runfiles/pypi__torch/torch/_tensor.py", "backward");
    let timm = ("/out/bin/train.runfiles/pypi__timm/timm/vit.py", "forward");
    let own = ("/out/bin/train.runfiles/_main/models/net.py", "forward");
    assert_eq!(
        owners(&[&[script, torch, timm, own]]),
        [Owner::User, Owner::Torch, Owner::Library, Owner::User]
    );
}

#[test]
fn the_site_is_the_users_innermost_line_or_a_packages() {
    let site = |stack: &[(&str, &str)]| {
        let snapshot = recording(&[stack]);
        let frames = Frames::of(&snapshot);
        let site = frames.site(StackId::at(0).unwrap()).and_then(|frame| snapshot.stacks.frame(frame))?;
        Some(snapshot.text(site.file).to_owned())
    };
    let torch = ("/v/site-packages/torch/nn/functional.py", "linear");
    let timm = ("/v/site-packages/timm/vit.py", "forward");
    let native = ("/v/libtorch_cpu.so", "at::empty");
    let user = ("/home/me/train.py", "main");
    assert_eq!(site(&[user, timm, torch, native]).as_deref(), Some("/home/me/train.py"));
    assert_eq!(
        site(&[("/v/bin/serve", "<module>"), timm, torch]).as_deref(),
        Some("/v/site-packages/timm/vit.py")
    );
    assert_eq!(site(&[torch, native]), None);
}

#[test]
fn signs_follow_the_package_and_not_the_path() {
    let sign = |file: &str, name: &str| {
        let snapshot = recording(&[&[("/home/me/train.py", "<module>"), (file, name)]]);
        let frames = Frames::of(&snapshot);
        *frames.get(FrameId::at(1).unwrap()).unwrap()
    };
    for prefix in ["/v/lib/python3.12/site-packages/", "C:\\v\\Lib\\site-packages\\", "/srv/deps/"] {
        for ending in [".py", ".pyc", ""] {
            let file = format!("{prefix}torch/optim/optimizer{ending}");
            assert_eq!(sign(&file, "zero_grad").phase, PhaseSign::ZeroGrad, "{file}");
        }
    }
    assert_eq!(sign("/home/me/muon.py", "step").phase, PhaseSign::Nothing);
    assert_eq!(sign("/home/me/muon.py", "step").method, Method::Step);
    assert_eq!(sign("/home/me/muon.py", "__init__").phase, PhaseSign::Constructor);
    assert_eq!(sign("/v/site-packages/acme/data.py", "send_to_device").phase, PhaseSign::Input);
    assert_eq!(sign("/home/me/data.py", "send_to_device").phase, PhaseSign::Nothing);
}
