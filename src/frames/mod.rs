//! What a stack says: whose code each of its frames is, and what that means.
//!
//! In: the distinct frames and stacks of a snapshot. Out: [`Frames`], the one answer to every question about a frame's text;
//! nobody else compares names and files. Always: a frame has exactly one [`Owner`]; what nothing tells from the user's code is
//! the user's, so that a frame that is not understood is blamed rather than passed over.
//!
//! - *Owner*: by the folders that installers use ([`named`]), by the folders of this recording ([`places`]), and by what a C++
//!   frame looks like ([`files`]).
//! - *Signs*: a table of modules and functions ([`table`]), and one of parts of C++ names ([`cpp`]). Modules are matched as they
//!   are imported (`torch/optim/adam`), since every installation has another path in front.
//! - *Works*: a table of what is computed ([`works`]).
//! - *Remedies*: a table of what libraries offer against findings in them ([`knobs`]).
//! - *Python part*: PyTorch writes Python and C++ frames into one list; their order among each other is Python's, but
//!   their places between C++ frames are not (CPython 3.11 and later), so the Python frames are taken out.
//!
//! Where it goes wrong: a package that was installed where nothing shows it counts as the user's; a user's package that was
//! installed like any other counts as a library.

mod cpp;
mod evidence;
mod files;
mod knobs;
mod named;
mod packages;
mod places;
mod signs;
mod standard;
mod table;
#[cfg(test)]
mod tests;
mod works;

pub use signs::{GraphSign, MemorySign, Method, Owner, PhaseSign, WorkSign};

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::snapshot::{Frame, Snapshot};
use crate::unit::{FrameId, FunctionId, Index, StackId, StringId};
use files::Files;
use named::FileStanding;
use places::{FolderHints, FolderMap, SeenFrame};

/// What is known of one distinct frame.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// Whose code it is.
    pub owner: Owner,
    /// What it says about the moment.
    pub phase: PhaseSign,
    /// What it says about the memory under it.
    pub memory: MemorySign,
    /// What it says about the autograd graph.
    pub graph: GraphSign,
    /// What it says about the numbers that are computed under it.
    pub work: WorkSign,
    /// What its bare name says; only of Python functions.
    pub method: Method,
    /// Whether it tells of a half-width number format.
    pub half: bool,
    /// The function.
    pub function: FunctionId,
    /// The line, 1-based; of C++ frames an offset or 0.
    pub line: u32,
}

/// The frames of a snapshot with their meanings, and its stacks reduced to Python.
#[derive(Debug)]
pub struct Frames {
    meanings: Vec<Meaning>,
    /// The Python frames of all stacks, outermost first, one stack after the other.
    python: Vec<FrameId>,
    /// Where each stack's begin; one more than there are stacks.
    starts: Vec<usize>,
    /// The line that stands for each stack.
    sites: Vec<Option<FrameId>>,
    /// Where each file belongs.
    standings: FxHashMap<StringId, FileStanding>,
}

impl Frames {
    /// Looks at every distinct frame and stack once.
    pub fn of(snapshot: &Snapshot) -> Frames {
        let files = Files::of(snapshot);
        let seen: Vec<SeenFrame> = frames(snapshot).map(|frame| seen(snapshot, &files, frame)).collect();
        let standings = standings(snapshot, &files, &seen);
        let mut functions: FxHashMap<(StringId, StringId), FunctionId> = FxHashMap::default();
        let mut meanings = Vec::with_capacity(seen.len());
        for (frame, seen) in frames(snapshot).zip(&seen) {
            let Some(next) = FunctionId::at(functions.len()) else { break };
            let function = *functions.entry((frame.file, frame.name)).or_insert(next);
            let Some(standing) = standings.get(seen.file) else { break };
            meanings.push(meaning(snapshot, standing, frame, (seen.method, function)));
        }
        let numbers = frames(snapshot).filter_map(|frame| Some((frame.file, files.number(frame.file)?)));
        let standings =
            numbers.filter_map(|(file, number)| Some((file, standings.get(number)?.clone()))).collect();
        let mut made = Frames { meanings, python: Vec::new(), starts: vec![0], sites: Vec::new(), standings };
        for stack in snapshot.stacks.ids() {
            let outward = snapshot.stacks.get(stack).iter().rev().copied();
            let is_python = |frame: &FrameId| made.owner(*frame) != Owner::Native;
            let python: Vec<FrameId> = outward.filter(is_python).collect();
            made.sites.push(made.site_of(&python));
            made.python.extend(python);
            made.starts.push(made.python.len());
        }
        made
    }

    /// What is known of a frame.
    pub fn get(&self, frame: FrameId) -> Option<&Meaning> {
        self.meanings.get(frame.position())
    }

    /// Whose code a frame is.
    pub fn owner(&self, frame: FrameId) -> Owner {
        self.get(frame).map_or(Owner::Native, |one| one.owner)
    }

    /// What a frame says about the moment.
    pub fn phase(&self, frame: FrameId) -> PhaseSign {
        self.get(frame).map(|one| one.phase).unwrap_or_default()
    }

    /// What a frame says about the memory under it.
    pub fn memory(&self, frame: FrameId) -> MemorySign {
        self.get(frame).map(|one| one.memory).unwrap_or_default()
    }

    /// What a frame says about the autograd graph.
    pub fn graph(&self, frame: FrameId) -> GraphSign {
        self.get(frame).map(|one| one.graph).unwrap_or_default()
    }

    /// What a Python frame's bare name says.
    pub fn method(&self, frame: FrameId) -> Method {
        self.get(frame).map(|one| one.method).unwrap_or_default()
    }

    /// The function of a frame.
    pub fn function(&self, frame: FrameId) -> Option<FunctionId> {
        self.get(frame).map(|one| one.function)
    }

    /// The line of a frame; 0 where it is not known.
    pub fn line(&self, frame: FrameId) -> u32 {
        self.get(frame).map_or(0, |one| one.line)
    }

    /// Whether a frame is the user's own code: such that a person can edit it.
    pub fn is_own(&self, frame: FrameId) -> bool {
        self.owner(frame) == Owner::User
    }

    /// A stack's Python frames, outermost first.
    pub fn python(&self, stack: StackId) -> &[FrameId] {
        let bounds = self.starts.get(stack.position()).zip(self.starts.get(stack.position() + 1));
        bounds.and_then(|(&start, &end)| self.python.get(start..end)).unwrap_or_default()
    }

    /// A stack's innermost Python frame.
    pub fn innermost(&self, stack: StackId) -> Option<FrameId> {
        self.python(stack).last().copied()
    }

    /// Whether one of a stack's Python frames says this about memory.
    pub fn shows(&self, stack: StackId, sign: MemorySign) -> bool {
        self.python(stack).iter().any(|frame| self.memory(*frame) == sign)
    }

    /// A stack's frames that belong to the user, innermost first.
    pub fn user(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        self.python(stack).iter().rev().copied().filter(|frame| self.is_own(*frame))
    }

    /// The line that stands for a stack: the user's innermost, or, where a packaged program runs without any file of the
    /// user's, the innermost of a package.
    pub fn site(&self, stack: StackId) -> Option<FrameId> {
        self.sites.get(stack.position()).copied().flatten()
    }

    /// The optimizer of PyTorch that a frame is in: `adam`.
    pub fn optimizer<'s>(&'s self, snapshot: &Snapshot, frame: FrameId) -> Option<&'s str> {
        let file = snapshot.stacks.frame(frame)?.file;
        self.standings.get(&file)?.module.strip_prefix("torch/optim/")
    }

    /// What a library through which a stack goes offers itself against what a rule finds there.
    pub fn knob(&self, snapshot: &Snapshot, stack: StackId, rule: &str) -> Option<&'static str> {
        let packaged = self.python(stack).iter().filter(|frame| self.owner(**frame).is_package());
        let function = |frame: &FrameId| {
            let frame = snapshot.stacks.frame(*frame)?;
            Some((self.standings.get(&frame.file)?.module.as_str(), snapshot.text(frame.name)))
        };
        let functions: Vec<(&str, &str)> = packaged.filter_map(function).collect();
        let fits = |knob: &&knobs::Knob| functions.iter().any(|(module, name)| knob.is_at(module, name));
        knobs::of_rule(rule).find(fits).map(knobs::Knob::help)
    }

    /// The node of the autograd graph whose saved tensors a C++ frame lets go: `ReluBackward0`.
    pub fn node<'s>(&self, snapshot: &'s Snapshot, frame: FrameId) -> Option<&'s str> {
        cpp::node(snapshot.text(snapshot.stacks.frame(frame)?.name))
    }

    /// The outermost operator of PyTorch that a stack is in, or the node of the autograd graph: `mm`, `ReluBackward0`.
    pub fn operator<'s>(&self, snapshot: &'s Snapshot, stack: StackId) -> Option<&'s str> {
        let outward = snapshot.stacks.get(stack).iter().rev();
        let native = outward.filter(|frame| self.owner(**frame) == Owner::Native);
        native.filter_map(|frame| snapshot.stacks.frame(*frame)).find_map(|frame| {
            let name = snapshot.text(frame.name);
            cpp::operator(name)
        })
    }

    /// The part of a file's path, in bytes, that is the same on every machine and says nothing of whose it is: a public package
    /// from the folder on in which packages lie, or what the tables know of a package that lies elsewhere.
    pub(crate) fn public_path(&self, snapshot: &Snapshot, file: StringId) -> Option<Range<usize>> {
        let standing = self.standings.get(&file)?;
        let start = standing.shared?;
        let package = standing.module.split('/').next().unwrap_or_default();
        let end = snapshot.text(file).len();
        let known = table::known(&standing.module);
        match standing.owner {
            Owner::Python => Some(start..end),
            _ if !packages::is_public(package) => None,
            _ if standing.by_name || known == standing.module.len() => Some(start..end),
            _ => Some(start..start + known),
        }
    }

    /// The beginning of the name of code that programs made and that is no file: `<eval_with_key>`.
    pub(crate) fn made(file: &str) -> Option<&'static str> {
        named::MADE.into_iter().find(|beginning| file.starts_with(beginning))
    }

    fn site_of(&self, python: &[FrameId]) -> Option<FrameId> {
        let innermost =
            |is: fn(Owner) -> bool| python.iter().rev().copied().find(|frame| is(self.owner(*frame)));
        innermost(|owner| owner == Owner::User).or_else(|| innermost(Owner::is_package))
    }
}

fn frames(snapshot: &Snapshot) -> impl Iterator<Item = Frame> {
    snapshot.stacks.frame_ids().filter_map(|id| snapshot.stacks.frame(id))
}

fn seen(snapshot: &Snapshot, files: &Files, frame: Frame) -> SeenFrame {
    let file = files.number(frame.file).unwrap_or(usize::MAX);
    SeenFrame { file, method: Method::of(snapshot.text(frame.name)) }
}

/// Whose every file is. A launcher is the user's where nothing else could be blamed.
fn standings(snapshot: &Snapshot, files: &Files, seen: &[SeenFrame]) -> Vec<FileStanding> {
    let named: Vec<Option<FileStanding>> = files.all.iter().map(named::standing).collect();
    let places = FolderMap::of(&FolderHints { snapshot, files, named: &named, seen });
    let pairs = files.all.iter().zip(named);
    let mut standings: Vec<FileStanding> =
        pairs.map(|(file, named)| named.unwrap_or_else(|| places.standing(file))).collect();
    let blamable = |one: &FileStanding| one.owner == Owner::User || one.owner.is_package();
    if !standings.iter().any(blamable) {
        for (file, standing) in files.all.iter().zip(&mut standings) {
            if named::is_launcher(file) {
                *standing = FileStanding::alone(Owner::User, file);
            }
        }
    }
    standings
}

fn meaning(
    snapshot: &Snapshot,
    standing: &FileStanding,
    frame: Frame,
    (method, function): (Method, FunctionId),
) -> Meaning {
    let (name, line, owner) = (snapshot.text(frame.name), frame.line, standing.owner);
    let half = cpp::is_half(name) || cpp::is_half(snapshot.text(frame.file));
    if owner == Owner::Native {
        let (memory, graph) = cpp::said(name);
        let (phase, method, work) = (PhaseSign::Nothing, Method::Other, works::of_native(name));
        return Meaning { owner, phase, memory, graph, work, method, half, function, line };
    }
    let said = table::said(&standing.module, name);
    let phase = match said.phase {
        PhaseSign::Nothing if owner.is_package() && table::moves_batches(name) => PhaseSign::Input,
        PhaseSign::Nothing
            if (owner == Owner::User || owner.is_package()) && method == Method::Constructor =>
        {
            PhaseSign::Constructor
        }
        phase => phase,
    };
    let work = works::of_function(&standing.module, name);
    Meaning { owner, phase, memory: said.memory, graph: said.graph, work, method, half, function, line }
}
