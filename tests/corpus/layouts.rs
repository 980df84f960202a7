//! The same program on another machine: wherever it, Python and its packages lie, and whatever started it, every recording
//! has the same findings, roles and iterations.

use std::collections::BTreeMap;
use std::mem;

use memlint::engine::{Input, Plan, examine};
use memlint::finding::{Finding, Severity};
use memlint::frames::{Frames, Method, Owner};
use memlint::program::Iteration;
use memlint::role::Role;
use memlint::rules::RULES;
use memlint::snapshot::{Frame, Snapshot, Stacks};
use memlint::unit::{FrameId, StringInterner};

use crate::case;

/// Whose a file of the corpus is, and its path inside: `torch/_tensor.py`, `copy.py`, `train.py`.
#[derive(Clone, Copy)]
enum Part<'a> {
    Program(&'a str),
    Package(&'a str),
    Standard(&'a str),
    Temporary(&'a str),
    /// A name that is no path.
    Other(&'a str),
}

impl<'a> Part<'a> {
    fn of(file: &'a str) -> Part<'a> {
        if let Some((_, inside)) = file.rsplit_once("-packages/") {
            Part::Package(inside)
        } else if let Some((_, inside)) =
            file.rsplit_once("/lib/python3.12/").or_else(|| file.rsplit_once("/lib/python3.11/"))
        {
            // Debian's, or pyenv's.
            Part::Standard(inside)
        } else if let Some(inside) = file.strip_prefix("/tmp/") {
            Part::Temporary(inside)
        } else if file.starts_with('<') {
            Part::Other(file)
        } else {
            Part::Program(file.rsplit('/').next().unwrap())
        }
    }
}

/// A way to install and start a program.
struct Layout {
    name: &'static str,
    /// Where a file lies.
    place: fn(Part<'_>) -> String,
    /// Frames outside the program's own, outermost first.
    launcher: &'static [(&'static str, &'static str, u32)],
}

/// The package of a path inside it.
fn top(inside: &str) -> &str {
    inside.split('/').next().unwrap()
}

fn on_linux(part: Part<'_>, program: &str, packages: &str) -> String {
    match part {
        Part::Program(inside) => format!("{program}/{inside}"),
        Part::Package(inside) => format!("{packages}/{inside}"),
        Part::Standard(inside) => format!("/opt/python/lib/python3.12/{inside}"),
        Part::Temporary(inside) => format!("/tmp/{inside}"),
        Part::Other(file) => file.to_owned(),
    }
}

fn on_windows(part: Part<'_>) -> String {
    let (folder, inside) = match part {
        Part::Program(inside) => ("D:\\work\\vision", inside),
        Part::Package(inside) => ("C:\\Users\\me\\miniconda3\\envs\\dl\\Lib\\site-packages", inside),
        Part::Standard(inside) => ("C:\\Users\\me\\miniconda3\\envs\\dl\\Lib", inside),
        Part::Temporary(inside) => ("C:\\Users\\me\\AppData\\Local\\Temp", inside),
        Part::Other(file) => return file.to_owned(),
    };
    format!("{folder}\\{}", inside.replace('/', "\\"))
}

/// The same file without the ending of Python's sources, or with another.
fn with_ending(file: &str, ending: &str) -> String {
    file.strip_suffix(".py").map_or(file.to_owned(), |stem| format!("{stem}{ending}"))
}

const VENV: &str = "/home/me/.venv/lib/python3.11/site-packages";

const LAYOUTS: &[Layout] = &[
    Layout { name: "Windows", place: on_windows, launcher: &[] },
    Layout {
        name: "no endings",
        place: |part| with_ending(&on_linux(part, "/home/me/run", VENV), ""),
        launcher: &[],
    },
    Layout {
        name: "compiled",
        place: |part| with_ending(&on_linux(part, "/home/me/run", VENV), ".pyc"),
        launcher: &[],
    },
    Layout { name: "capitals", place: |part| with_ending(&on_windows(part), ".PY"), launcher: &[] },
    Layout {
        name: "pip --target",
        place: |part| on_linux(part, "/home/me/vision/src", "/srv/deps"),
        launcher: &[],
    },
    Layout {
        name: "unpacked archive",
        place: |part| match part {
            Part::Program(_) | Part::Package(_) => {
                on_linux(part, "/mnt/xarfuse/uid-7/0a1b", "/mnt/xarfuse/uid-7/0a1b")
            }
            _ => on_linux(part, "", ""),
        },
        launcher: &[
            ("/usr/lib/python3.12/runpy.py", "_run_module_as_main", 198),
            ("/usr/lib/python3.12/runpy.py", "_run_code", 88),
        ],
    },
    Layout {
        name: "conda",
        place: |part| match part {
            Part::Standard(inside) => format!("/opt/miniconda3/envs/dl/lib/python3.12/{inside}"),
            _ => on_linux(part, "/data/me/vision", "/opt/miniconda3/envs/dl/lib/python3.12/site-packages"),
        },
        launcher: &[],
    },
    Layout {
        name: "relative paths",
        place: |part| match part {
            Part::Program(inside) => inside.to_owned(),
            Part::Package(inside) => format!("deps/{inside}"),
            _ => on_linux(part, "", ""),
        },
        launcher: &[],
    },
    Layout {
        // PyInstaller and cx_Freeze write paths inside of the program.
        name: "frozen program",
        place: |part| match part {
            Part::Program(inside) | Part::Package(inside) | Part::Standard(inside) => inside.to_owned(),
            _ => on_linux(part, "", ""),
        },
        launcher: &[],
    },
    Layout {
        name: "zip application",
        place: |part| on_linux(part, "/home/me/app.pyz", "/home/me/.shiv/app_0a1b/site-packages"),
        launcher: &[("<frozen runpy>", "_run_module_as_main", 198), ("<frozen runpy>", "_run_code", 88)],
    },
    Layout {
        name: "PEX",
        place: |part| match part {
            Part::Package(inside) => {
                format!("/home/me/.pex/installed_wheels/0a1b/{0}-1.0-py3-none-any.whl/{inside}", top(inside))
            }
            _ => on_linux(part, "/home/me/.pex/unzipped_pexes/2c3d", ""),
        },
        launcher: &[
            ("<frozen runpy>", "_run_module_as_main", 198),
            ("/home/me/.pex/unzipped_pexes/2c3d/.bootstrap/pex/pex.py", "execute", 560),
            ("/home/me/.pex/unzipped_pexes/2c3d/.bootstrap/pex/pex.py", "execute_script", 702),
        ],
    },
    Layout {
        name: "Bazel",
        place: |part| match part {
            Part::Package(inside) => {
                format!("/home/me/.cache/bazel/bin/train.runfiles/pypi__{}/{inside}", top(inside))
            }
            _ => on_linux(part, "/home/me/.cache/bazel/bin/train.runfiles/_main/vision", ""),
        },
        launcher: &[],
    },
    Layout {
        name: "Debian",
        place: |part| on_linux(part, "/root", "/usr/lib/python3/dist-packages"),
        launcher: &[],
    },
    Layout {
        name: "a project called transformers",
        place: |part| on_linux(part, "/home/me/src/transformers", VENV),
        launcher: &[],
    },
    Layout {
        name: "a project called torch",
        place: |part| {
            on_linux(part, "/home/me/torch/optim", "/home/me/torch/.venv/lib/python3.12/site-packages")
        },
        launcher: &[],
    },
    Layout {
        name: "notebook",
        place: |part| match part {
            Part::Program(inside) => format!("/tmp/ipykernel_4711/{}.py", 100 + inside.len()),
            _ => on_linux(part, "", VENV),
        },
        launcher: &[
            ("<frozen runpy>", "_run_module_as_main", 198),
            ("/home/me/.venv/lib/python3.11/site-packages/ipykernel_launcher.py", "<module>", 18),
            (
                "/home/me/.venv/lib/python3.11/site-packages/traitlets/config/application.py",
                "launch_instance",
                1075,
            ),
            ("/opt/python/lib/python3.12/asyncio/base_events.py", "run_forever", 639),
            (
                "/home/me/.venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py",
                "run_code",
                3577,
            ),
        ],
    },
    Layout {
        name: "Databricks",
        place: |part| match part {
            Part::Program(inside) => format!("/root/.ipykernel/4711/command-{}-7", 100 + inside.len()),
            _ => on_linux(part, "", "/databricks/python/lib/python3.11/site-packages"),
        },
        launcher: &[],
    },
    Layout {
        name: "typed in",
        place: |part| match part {
            Part::Program("train.py") => "<stdin>".to_owned(),
            Part::Program(inside) => format!("<ipython-input-{}-0a1b>", inside.len()),
            _ => on_linux(part, "", VENV),
        },
        launcher: &[],
    },
    Layout {
        name: "torchrun",
        place: |part| on_linux(part, "/home/me/vision", VENV),
        launcher: &[
            ("/home/me/.venv/bin/torchrun", "<module>", 8),
            (
                "/home/me/.venv/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py",
                "wrapper",
                357,
            ),
            ("/home/me/.venv/lib/python3.11/site-packages/torch/distributed/run.py", "main", 901),
            ("/home/me/.venv/lib/python3.11/site-packages/torch/distributed/run.py", "run", 892),
            ("/opt/python/lib/python3.12/runpy.py", "run_path", 287),
        ],
    },
    Layout {
        name: "accelerate",
        place: |part| on_linux(part, "/home/me/vision", VENV),
        launcher: &[
            ("/home/me/.venv/bin/accelerate", "<module>", 10),
            ("/home/me/.venv/lib/python3.11/site-packages/accelerate/commands/accelerate_cli.py", "main", 48),
            (
                "/home/me/.venv/lib/python3.11/site-packages/accelerate/commands/launch.py",
                "launch_command",
                1198,
            ),
            ("/opt/python/lib/python3.12/runpy.py", "run_path", 287),
        ],
    },
];

/// A finding by rule, severity, line and function.
type Found = (String, Severity, Option<(u32, String)>);

/// What must not change: findings, roles by allocation, iterations.
#[derive(Debug, PartialEq)]
struct Said {
    findings: Vec<Found>,
    roles: Vec<Vec<Role>>,
    iterations: Vec<Vec<Iteration>>,
}

impl Said {
    fn of(input: &Input) -> Said {
        let found = examine(input, &Plan::of_rules(RULES)).findings;
        let place = |one: &Finding| one.location.as_ref().map(|place| (place.line, place.function.clone()));
        let findings = found.iter().map(|one| (one.rule.to_string(), one.severity, place(one)));
        Said {
            findings: findings.collect(),
            roles: input.devices.iter().map(|device| device.roles.of.clone()).collect(),
            iterations: input.devices.iter().map(|device| device.program.iterations.clone()).collect(),
        }
    }

    /// What another run says otherwise, in a line.
    fn difference(&self, other: &Said) -> String {
        let roles = self.roles.iter().flatten().zip(other.roles.iter().flatten());
        let roles: Vec<_> = roles.filter(|(one, other)| one != other).take(3).collect();
        let only = |one: &Said, other: &Said| -> Vec<String> {
            let findings = one.findings.iter().filter(|finding| !other.findings.contains(finding));
            findings.map(|finding| format!("{finding:?}")).collect()
        };
        let iterations = [self, other].map(|said| said.iterations.iter().map(Vec::len).collect::<Vec<_>>());
        format!("-{:?} +{:?} {iterations:?} {roles:?}", only(self, other), only(other, self))
    }
}

/// The stacks of a recording as another machine would have recorded them.
fn moved(original: &Stacks, frames: &Frames, strings: &mut StringInterner, layout: &Layout) -> Stacks {
    let mut stacks = Stacks::default();
    let mut renamed: BTreeMap<FrameId, FrameId> = BTreeMap::new();
    for id in original.frame_ids() {
        let mut frame = original.frame(id).unwrap();
        if frames.owner(id) != Owner::Native {
            let file = (layout.place)(Part::of(strings.get(frame.file)));
            frame.file = strings.intern(&file).unwrap();
        }
        renamed.insert(id, stacks.intern_frame(frame).unwrap());
    }
    let launcher = layout.launcher.iter().rev().map(|(file, name, line)| {
        let (name, file) = (strings.intern(name).unwrap(), strings.intern(file).unwrap());
        stacks.intern_frame(Frame { name, file, line: *line }).unwrap()
    });
    let launcher: Vec<FrameId> = launcher.collect();
    for stack in original.ids() {
        let mut new: Vec<FrameId> = original.get(stack).iter().map(|frame| renamed[frame]).collect();
        let is_main = frames.python(stack).first().is_some_and(|one| frames.method(*one) == Method::Module);
        if is_main {
            new.extend(&launcher);
        }
        assert_eq!(stacks.intern(&new), Some(stack), "{}: two stacks became one", layout.name);
    }
    stacks
}

/// Holds recordings against themselves in other layouts: those for which `wanted` says so, by the numbers of both.
fn compare(wanted: impl Fn(usize, usize) -> bool) {
    let mut wrong = Vec::new();
    for (at, case) in case::all().iter().enumerate() {
        let layouts = LAYOUTS.iter().enumerate().filter(|(number, _)| wanted(at, *number));
        let mut input = Input::of(case.name.clone(), case.snapshot());
        let here = Said::of(&input);
        let original = mem::take(&mut input.snapshot.stacks);
        let frames = mem::replace(&mut input.frames, Frames::of(&Snapshot::default()));
        for (_, layout) in layouts {
            let mut snapshot = input.snapshot;
            snapshot.stacks = moved(&original, &frames, &mut snapshot.strings, layout);
            input = Input::of(case.name.clone(), snapshot);
            let there = Said::of(&input);
            if there != here {
                wrong.push(format!("{} in {}: {}", case.name, layout.name, here.difference(&there)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn another_machine_changes_nothing() {
    // Each recording in two layouts, each layout on a good part of the recordings.
    compare(|recording, layout| (recording * 7 + layout) % LAYOUTS.len() < 2);
}

#[test]
#[ignore = "takes minutes: every recording in every layout"]
fn no_machine_changes_anything() {
    compare(|_, _| true);
}
