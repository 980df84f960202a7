//! Call paths: stacks as the main thread sees them, outermost frame first, cut where the user's part ends.
//!
//! In: the stacks and the events that carry them. Out: for each stack of the main thread its [`Path`]. A path ends at the
//! first frame of PyTorch or of generated code (decorators excepted), because loops below that line are loops over layers
//! or parameters, never the program's own; what is cut off costs neither time nor memory. Equal paths have equal ids, so
//! that most events need one comparison.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::frames::{Frames, Method, Owner, PhaseSign};
use crate::snapshot::{Action, Event, Snapshot};
use crate::unit::{FrameId, FunctionId, Index, StackId};

/// Frames deeper than this are left out: a bound on what a hostile file can make of the comparison of paths.
const DEEPEST: usize = 256;

/// One distinct path.
#[derive(Debug)]
pub(super) struct Path {
    /// Outermost first. The last one may be PyTorch's.
    pub(super) frames: Vec<FrameId>,
    /// The function that a module call or a decorator at the end of the path leads to: it tells `model(x)` from
    /// `criterion(y)` on one line.
    pub(super) leaf: Option<FunctionId>,
    /// Whether it ends in a module call.
    pub(super) calls_module: bool,
    /// Whether its last frame is PyTorch's or generated.
    ends_outside: bool,
    /// The id of the path without PyTorch's frames and decorators at its end: equal for all that one line of the user's calls.
    pub(super) site: u32,
    /// The id of the function call around that line: equal for all lines of one call.
    pub(super) body: u32,
}

/// The distinct paths, and each stack's.
#[derive(Debug, Default)]
pub(super) struct Paths {
    of_stack: Vec<Option<u32>>,
    /// Whether a stack is a hook's that the autograd engine called on its own thread.
    is_hook: Vec<bool>,
    distinct: Vec<Path>,
}

/// Whose paths are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    /// The thread that runs the program's file.
    Main,
    /// The one that does most, where that is another: a server's worker.
    Busiest,
}

impl Paths {
    /// The paths of a device's stacks; `None` where no such thread has any. Stacks of other threads have none.
    pub(super) fn of(
        snapshot: &Snapshot,
        frames: &Frames,
        events: &[Event],
        thread: Thread,
    ) -> Option<Paths> {
        let weights = weights(snapshot, events);
        let root = root(snapshot, frames, &weights, thread)?;
        let mut known: FxHashMap<(Vec<FrameId>, Option<FunctionId>), u32> = FxHashMap::default();
        let (mut sites, mut bodies) = (FxHashMap::default(), FxHashMap::default());
        let stacks = snapshot.stacks.len();
        let mut made =
            Paths { of_stack: vec![None; stacks], is_hook: vec![false; stacks], distinct: Vec::new() };
        for stack in snapshot.stacks.ids() {
            let used = weights.get(stack.position()).is_some_and(|&weight| weight > 0);
            if !used {
                continue;
            }
            let Some(mut path) = path(frames, root, stack) else {
                if let Some(slot) = made.is_hook.get_mut(stack.position()) {
                    *slot = is_hook(frames, stack);
                }
                continue;
            };
            let mut callers = path.frames.clone();
            if path.ends_outside {
                callers.pop();
            }
            while callers.last().is_some_and(|&frame| frames.phase(frame) == PhaseSign::Wrapper) {
                callers.pop();
            }
            let innermost = callers.last().and_then(|&frame| frames.get(frame)).map(|entry| entry.function);
            path.site = number(&mut sites, callers.clone());
            callers.pop();
            path.body = number(&mut bodies, (callers, innermost));
            let Ok(next) = u32::try_from(made.distinct.len()) else { break };
            let id = *known.entry((path.frames.clone(), path.leaf)).or_insert(next);
            if id == next {
                made.distinct.push(path);
            }
            if let Some(slot) = made.of_stack.get_mut(stack.position()) {
                *slot = Some(id);
            }
        }
        Some(made)
    }

    /// The path of an event's stack.
    pub(super) fn of_event(&self, event: &Event) -> Option<u32> {
        event.stack.and_then(|stack| self.of_stack.get(stack.position()).copied().flatten())
    }

    /// Whether an event happened in a hook that the autograd engine called.
    pub(super) fn in_hook(&self, event: &Event) -> bool {
        event.stack.and_then(|stack| self.is_hook.get(stack.position())).is_some_and(|&hook| hook)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Path> {
        self.distinct.get(id as usize)
    }

    /// Where an event happened, as seen by the user: the site of its path, which is less than [`Paths::len`], and its body.
    pub(super) fn site_of_event(&self, event: &Event) -> Option<(u32, u32)> {
        self.of_event(event).and_then(|path| self.get(path)).map(|path| (path.site, path.body))
    }

    pub(super) fn len(&self) -> usize {
        self.distinct.len()
    }

    /// Whether no stack has a path: there are no Python frames.
    pub(super) fn is_empty(&self) -> bool {
        self.distinct.is_empty()
    }
}

/// The number of a key, counted in the order of first sight.
fn number<K: Eq + std::hash::Hash>(known: &mut FxHashMap<K, u32>, key: K) -> u32 {
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
    *known.entry(key).or_insert(next)
}

/// How many allocations and frees each stack was recorded with.
fn weights(snapshot: &Snapshot, events: &[Event]) -> Vec<u32> {
    let mut weights = vec![0_u32; snapshot.stacks.len()];
    for event in events {
        let counts = matches!(event.action, Action::Alloc | Action::FreeRequested | Action::OutOfMemory);
        let Some(stack) = event.stack.filter(|_| counts) else { continue };
        if let Some(weight) = weights.get_mut(stack.position()) {
            *weight = weight.saturating_add(1);
        }
    }
    weights
}

/// Whether a stack that does not begin like the main thread's is a hook's: Python threads begin in `threading`, so only the
/// autograd engine is left to call it.
fn is_hook(frames: &Frames, stack: StackId) -> bool {
    frames.python(stack).first().is_some_and(|outermost| frames.phase(*outermost) != PhaseSign::Thread)
}

/// The outermost function of a thread. That of the main one is one under which files' own code runs, or else the one with most events,
/// PyTorch's own threads (autograd engine, pin-memory) and `threading`'s last. The busiest one has most events under the user's own lines;
/// none if that is the main one.
fn root(snapshot: &Snapshot, frames: &Frames, weights: &[u32], thread: Thread) -> Option<FunctionId> {
    let mut roots: FxHashMap<FunctionId, ThreadRoot> = FxHashMap::default();
    for (stack, &weight) in snapshot.stacks.ids().zip(weights).filter(|(_, weight)| **weight > 0) {
        let python = frames.python(stack);
        let Some(outermost) = python.first().and_then(|frame| frames.get(*frame)) else { continue };
        let root = roots.entry(outermost.function).or_default();
        root.own = outermost.owner != Owner::Torch && outermost.phase != PhaseSign::Thread;
        root.script = root.script || python.iter().any(|frame| frames.method(*frame) == Method::Module);
        root.events += u64::from(weight);
        root.users += if frames.user(stack).next().is_some() { u64::from(weight) } else { 0 };
    }
    let main = roots
        .iter()
        .max_by_key(|(function, root)| ((root.own, root.script, root.events), Reverse(**function)));
    match thread {
        Thread::Main => main.map(|(function, _)| *function),
        Thread::Busiest => {
            let busiest = roots.iter().max_by_key(|(function, root)| (root.users, Reverse(**function)));
            busiest
                .map(|(function, _)| *function)
                .filter(|busiest| Some(busiest) != main.map(|(main, _)| main))
        }
    }
}

/// What a thread's outermost function is known by.
#[derive(Default)]
struct ThreadRoot {
    /// Neither PyTorch's nor `threading`'s.
    own: bool,
    /// Files' own code runs under it.
    script: bool,
    /// Its events.
    events: u64,
    /// Those under lines of the user's.
    users: u64,
}

fn path(frames: &Frames, root: FunctionId, stack: StackId) -> Option<Path> {
    let mut inward = frames.python(stack).iter().copied().peekable();
    if frames.function(*inward.peek()?)? != root {
        return None;
    }
    let mut path =
        Path { frames: Vec::new(), leaf: None, calls_module: false, ends_outside: false, site: 0, body: 0 };
    let mut begun = false;
    while let Some(frame) = inward.next() {
        let entry = frames.get(frame)?;
        path.frames.push(frame);
        begun |= entry.owner == Owner::User;
        // What stands outside the program launches it: a file in a temporary folder, which programs write for themselves, too.
        let ends = entry.owner == Owner::Torch || (entry.owner == Owner::Generated && begun);
        let boundary = ends && entry.phase != PhaseSign::Wrapper;
        if boundary || path.frames.len() == DEEPEST {
            path.calls_module = entry.phase == PhaseSign::ModuleCall;
            path.ends_outside = boundary;
            let inner = inward.find(|&one| !passes_through(frames.phase(one)));
            path.leaf = inner.and_then(|one| frames.get(one)).map(|one| one.function);
            break;
        }
    }
    Some(path)
}

/// Whether a function only calls another one.
pub(super) fn passes_through(sign: PhaseSign) -> bool {
    matches!(sign, PhaseSign::ModuleCall | PhaseSign::Wrapper)
}

#[cfg(test)]
mod tests {
    use crate::program::tape::Tape;

    #[test]
    fn what_launches_a_program_from_a_temporary_folder_changes_nothing() {
        let iterations = |outer: &str| {
            let mut tape = Tape::default();
            for _ in 0..4 {
                tape.train(&format!("{outer} <module>:30"), "main", 10);
            }
            let program = tape.program();
            (program.iterations.len(), program.found_by, program.confidence)
        };
        assert_eq!(iterations("").0, 4);
        assert_eq!(iterations("@launcher"), iterations(""));
    }
}
