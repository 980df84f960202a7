//! Whose code a frame is, and the Python part of a stack.
//!
//! In: the snapshot's frames and stacks. Out: for each frame its owner, for each stack its Python frames, outermost
//! first. A user's frame is one that a person can edit: not PyTorch, not an installed package, not the standard
//! library, not a file that a compiler wrote into a temporary folder.

use crate::finding::Location;
use crate::snapshot::{Frame, Snapshot};
use crate::unit::{FrameId, Index, StackId};

/// Who wrote the code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A C++ frame.
    Native,
    /// PyTorch's own Python code.
    Torch,
    /// Another installed package.
    Library,
    /// Python's standard library.
    Standard,
    /// A file written by a program: compiled graphs, templates, `eval`.
    Generated,
    /// The user's own code.
    User,
}

/// The frames of a snapshot by owner, and its stacks reduced to Python.
#[derive(Debug, Default)]
pub struct Code {
    owners: Vec<Owner>,
    python: Vec<Vec<FrameId>>,
}

impl Code {
    /// Classifies every frame once.
    pub fn of(snapshot: &Snapshot) -> Code {
        let frames: Vec<Frame> =
            snapshot.stacks.frame_ids().filter_map(|id| snapshot.stacks.frame(id)).collect();
        let mut owners: Vec<Owner> = frames.iter().map(|frame| owner(snapshot.text(frame.file))).collect();
        keep_scripts_of_temporary_folders(snapshot, &frames, &mut owners);
        let is_python = |id: &FrameId| owners.get(id.position()) != Some(&Owner::Native);
        let python = snapshot
            .stacks
            .ids()
            .map(|stack| snapshot.stacks.get(stack).iter().rev().copied().filter(is_python).collect())
            .collect();
        Code { owners, python }
    }

    /// Who wrote a frame's code.
    pub fn owner(&self, frame: FrameId) -> Owner {
        self.owners.get(frame.position()).copied().unwrap_or(Owner::Native)
    }

    /// A stack's Python frames, outermost first.
    pub fn python(&self, stack: StackId) -> &[FrameId] {
        self.python.get(stack.position()).map_or(&[], Vec::as_slice)
    }

    /// A stack's frames that belong to the user, innermost first.
    pub fn user(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        self.python(stack).iter().rev().copied().filter(|frame| self.owner(*frame) == Owner::User)
    }
}

/// A frame as the place of a finding.
pub(super) fn location(snapshot: &Snapshot, frame: FrameId) -> Option<Location> {
    let frame = snapshot.stacks.frame(frame)?;
    let (file, function) = (snapshot.text(frame.file).to_owned(), snapshot.text(frame.name).to_owned());
    Some(Location { file, line: frame.line, function })
}

/// The owner by the path alone.
fn owner(file: &str) -> Owner {
    const CELLS: [&str; 3] = ["<stdin>", "<ipython-input", "ipykernel_"];
    const TEMPORARY: [&str; 4] = ["/tmp/", "/var/tmp/", "/private/var/folders/", "/dev/shm/"];
    let path = file.replace('\\', "/");
    if CELLS.iter().any(|cell| path.contains(cell)) {
        return Owner::User;
    }
    if path.starts_with('<') || path.contains("torchinductor_") || path.contains("fx_generated_") {
        return Owner::Generated;
    }
    if !path.ends_with(".py") {
        return Owner::Native;
    }
    if path.contains("-packages/torch/") {
        return Owner::Torch;
    }
    if path.contains("site-packages/") || path.contains("dist-packages/") {
        return Owner::Library;
    }
    if path.contains("/lib/python3") || path.contains("/lib64/python3") || path.contains("/Lib/") {
        return Owner::Standard;
    }
    if TEMPORARY.iter().any(|folder| path.starts_with(folder)) { Owner::Generated } else { Owner::User }
}

/// A program that lies in a temporary folder is still the user's: files beside a module that was run or imported
/// by name (`<module>`) are no generated ones.
fn keep_scripts_of_temporary_folders(snapshot: &Snapshot, frames: &[Frame], owners: &mut [Owner]) {
    let folder = |frame: &Frame| snapshot.text(frame.file).rsplit_once('/').map(|(folder, _)| folder);
    let is_script = |frame: &Frame| {
        let file = snapshot.text(frame.file);
        snapshot.text(frame.name) == "<module>" && file.ends_with(".py") && !file.contains("torchinductor_")
    };
    let mut homes: Vec<&str> = frames
        .iter()
        .zip(owners.iter())
        .filter(|(frame, owner)| **owner == Owner::Generated && is_script(frame))
        .filter_map(|(frame, _)| folder(frame))
        .collect();
    homes.sort_unstable();
    homes.dedup();
    for (frame, owner) in frames.iter().zip(owners) {
        let at_home = folder(frame).is_some_and(|folder| homes.binary_search(&folder).is_ok());
        if *owner == Owner::Generated && at_home {
            *owner = Owner::User;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_their_owner() {
        assert_eq!(
            owner("/opt/torch/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py"),
            Owner::Torch
        );
        assert_eq!(owner("/venv/lib/python3.12/site-packages/transformers/trainer.py"), Owner::Library);
        assert_eq!(owner("/usr/lib/python3.12/contextlib.py"), Owner::Standard);
        assert_eq!(owner("/home/me/torch/project/train.py"), Owner::User);
        assert_eq!(owner("/tmp/ipykernel_4711/123.py"), Owner::User);
        assert_eq!(owner("/tmp/torchinductor_me/ab/cab.py"), Owner::Generated);
        assert_eq!(owner("<eval_with_key>.7"), Owner::Generated);
        assert_eq!(owner("/usr/lib/libtorch_cpu.so"), Owner::Native);
        assert_eq!(owner("??"), Owner::Native);
    }
}
