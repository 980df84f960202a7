//! The sample repository's pull request, played as its CI would: stopped on the added line, passed when mended, when meant and
//! when known, stopped again when it outgrows what was known.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The line that the pull request adds.
const ADDED: &str = "features.append(model.features(images))";

/// A checkout of the sample repository.
struct Checkout(PathBuf);

impl Checkout {
    fn new(name: &str) -> Checkout {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sample-repository").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join(".git")).unwrap();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sample-repository");
        for file in ["train.py", "model.py", "memlint.toml"] {
            fs::copy(sample.join(file), folder.join(file)).unwrap();
        }
        for file in ["main", "leak", "fixed"] {
            let file = format!("{file}.pickle.zst");
            fs::copy(sample.join("snapshots").join(&file), folder.join(file)).unwrap();
        }
        Checkout(folder)
    }

    /// Makes a version of the pull request the program.
    fn take(&self, version: &str) -> &Checkout {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sample-repository");
        fs::copy(sample.join(format!("pull-request/train-{version}.py")), self.0.join("train.py")).unwrap();
        self
    }

    /// Exit status and standard output.
    fn check(&self, recording: &str, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_memlint"))
            .current_dir(&self.0)
            .args(["check", &format!("{recording}.pickle.zst")])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.0.join(file)).unwrap()).unwrap()
    }

    /// The number of the line that was added.
    fn added(&self) -> u64 {
        let program = fs::read_to_string(self.0.join("train.py")).unwrap();
        program.lines().position(|line| line.contains(ADDED)).unwrap() as u64 + 1
    }
}

#[test]
fn the_main_branch_passes() {
    let (code, report) = Checkout::new("main").check("main", &["--strict"]);
    assert_eq!(code, 0, "{report}");
}

#[test]
fn the_added_line_stops_the_merge() {
    let checkout = Checkout::new("leak");
    checkout.take("leak");
    let (code, annotations) =
        checkout.check("leak", &["--output-format", "github", "--output-file", "sarif=memlint.sarif"]);
    assert_eq!(code, 1);
    let added = checkout.added();
    assert!(annotations.contains(&format!("::error file=train.py,line={added},")), "{annotations}");
    let run = &checkout.json("memlint.sarif")["runs"][0];
    let result = &run["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"retained-graph".into(), &"error".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "train.py");
    assert_eq!(place["region"]["startLine"], added);
}

#[test]
fn the_mended_program_passes() {
    let checkout = Checkout::new("fixed");
    let (code, report) = checkout.take("fixed").check("fixed", &[]);
    assert_eq!(code, 0, "{report}");
}

#[test]
fn a_reason_at_the_line_lets_it_pass_and_is_shown() {
    let checkout = Checkout::new("ignored");
    checkout.take("leak");
    let program = fs::read_to_string(checkout.0.join("train.py")).unwrap();
    let say = |comment: &str| {
        fs::write(checkout.0.join("train.py"), program.replace(ADDED, &format!("{ADDED}  {comment}")))
            .unwrap();
        checkout.check("leak", &["--output-file", "json=report.json"]).0
    };
    assert_eq!(say("# memlint: ignore[retained-graph]"), 1, "without a reason it is not applied");
    assert_eq!(say("# memlint: ignore[fragmentation] another rule"), 1);
    assert_eq!(say("# memlint: ignore[retained-graph] ten steps are analysed together"), 0);
    let report = checkout.json("report.json");
    assert_eq!(report["summary"]["ignored"], 1);
    assert!(report.to_string().contains("ten steps are analysed together"));
}

#[test]
fn a_baseline_lets_it_pass_until_it_grows_and_tells_when_it_is_gone() {
    let checkout = Checkout::new("baseline");
    checkout.take("leak");
    let known = ["--baseline", "memlint-baseline.json"];
    assert_eq!(checkout.check("leak", &known).0, 2, "a baseline that is not there is no verdict");
    assert_eq!(checkout.check("leak", &[&known[..], &["--update-baseline"]].concat()).0, 0);
    assert_eq!(checkout.check("leak", &known).0, 0);
    let path = checkout.0.join("memlint-baseline.json");
    let mut baseline = checkout.json("memlint-baseline.json");
    for entry in baseline["entries"].as_array_mut().unwrap() {
        for measure in entry["measure"].as_object_mut().unwrap().values_mut() {
            *measure = measure.as_u64().map_or(Value::Null, |bytes| (bytes / 4).into());
        }
    }
    fs::write(&path, baseline.to_string()).unwrap();
    assert_eq!(checkout.check("leak", &known).0, 1, "it has grown to four times what is known");
    let (code, report) = checkout.take("fixed").check("fixed", &known);
    assert_eq!(code, 0);
    assert!(report.contains("stale-baseline-entry"), "{report}");
}

#[test]
fn the_budget_of_the_configuration_is_a_rule() {
    let checkout = Checkout::new("budget");
    let smaller = fs::read_to_string(checkout.0.join("memlint.toml")).unwrap().replace("4GiB", "100MiB");
    fs::write(checkout.0.join("memlint.toml"), smaller).unwrap();
    let (code, report) = checkout.check("main", &[]);
    assert_eq!(code, 1);
    assert!(report.contains("budget.shared-card"), "{report}");
}

/// The gate on a machine without a GPU: the pull request's program runs, is recorded and judged in one command.
#[test]
#[ignore = "needs PyTorch's wheel for CUDA in TORCH_PYTHON: .ci/run runs it"]
fn a_runner_without_a_gpu_stops_the_leak() {
    let python = std::env::var("TORCH_PYTHON").unwrap();
    let checkout = Checkout::new("no-gpu");
    let gate = |version: &str| {
        checkout.take(version);
        let output = Command::new(env!("CARGO_BIN_EXE_memlint"))
            .current_dir(&checkout.0)
            .args(["record", "--no-gpu", "--gate", "--force", "-o", "memory.pickle.zst", "--"])
            .args([&python, "train.py", "own.pickle"])
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, report) = gate("leak");
    assert_eq!(status, 1, "{report}");
    assert!(report.contains(&format!("train.py:{}:", checkout.added())), "{report}");
    assert!(report.contains("modelled without a GPU (1 device of 80 GiB)"), "{report}");
    let (status, report) = gate("fixed");
    assert_eq!(status, 0, "{report}");
}

/// Inside `torch.func` a tensor stands for another one, and has no memory that could be looked at.
#[test]
#[ignore = "needs PyTorch's wheel for CUDA in TORCH_PYTHON: .ci/run runs it"]
fn transformed_functions_run_without_a_gpu() {
    const PROGRAM: &str = "
import torch
from torch.func import functional_call, jacrev, vmap
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5)).cuda()
weights = dict(net.named_parameters())
one = lambda weights, image: functional_call(net, weights, (image[None],))[0]
images = torch.ones(6, 3, 8, 8, device='cuda')
print(vmap(jacrev(one), (None, 0))(weights, images)['0.weight'].shape)
";
    let python = std::env::var("TORCH_PYTHON").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sample-func");
    fs::create_dir_all(&folder).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_memlint"))
        .current_dir(&folder)
        .args(["record", "--no-gpu", "--no-check", "--force", "-o", "memory.pickle.zst", "--"])
        .args([&python, "-c", PROGRAM])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "torch.Size([6, 5, 4, 3, 3, 3])\n", "{said}");
}
