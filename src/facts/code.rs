//! Whose code a frame is, and the Python part of a stack.
//!
//! In: the snapshot's frames and stacks. Out: for each stack its Python frames, outermost first, and which of them are the
//! user's: such that a person can edit. Files that a program wrote into a temporary folder (templates of
//! `torch_geometric`, for one) look like anybody's Python; they are nobody's.

use crate::program::{Origin, Vocabulary};
use crate::snapshot::{Frame, Snapshot};
use crate::unit::{FrameId, Index, StackId};

/// The frames of a snapshot by owner, and its stacks reduced to Python.
#[derive(Debug)]
pub struct Code {
    /// Origin and meaning of every frame.
    pub vocabulary: Vocabulary,
    /// Whether a frame is the user's, by its id.
    own: Vec<bool>,
    python: Vec<Vec<FrameId>>,
    /// The line that stands for each stack.
    sites: Vec<Option<FrameId>>,
}

impl Code {
    /// Looks at every frame and stack once.
    pub fn of(snapshot: &Snapshot) -> Code {
        let vocabulary = Vocabulary::of(snapshot);
        let homes = homes(snapshot, &vocabulary);
        let is_own = |id: FrameId| {
            let Some(frame) = snapshot.stacks.frame(id) else { return false };
            let file = snapshot.text(frame.file);
            let kept = !is_temporary(file) || folder(file).is_some_and(|one| homes.contains(&one));
            vocabulary.origin(id) == Origin::User && kept
        };
        let own: Vec<bool> = snapshot.stacks.frame_ids().map(is_own).collect();
        let is_python = |id: &FrameId| vocabulary.origin(*id) != Origin::Native;
        let python: Vec<Vec<FrameId>> = snapshot
            .stacks
            .ids()
            .map(|stack| snapshot.stacks.get(stack).iter().rev().copied().filter(is_python).collect())
            .collect();
        let site = |frames: &Vec<FrameId>| {
            let inner = |is: &dyn Fn(FrameId) -> bool| frames.iter().rev().copied().find(|frame| is(*frame));
            let users = inner(&|frame| own.get(frame.position()) == Some(&true));
            users.or_else(|| inner(&|frame| vocabulary.origin(frame) == Origin::Library))
        };
        let sites = python.iter().map(site).collect();
        Code { vocabulary, own, python, sites }
    }

    /// Whether a frame is the user's own code.
    pub fn is_own(&self, frame: FrameId) -> bool {
        self.own.get(frame.position()).copied().unwrap_or(false)
    }

    /// A stack's Python frames, outermost first.
    pub fn python(&self, stack: StackId) -> &[FrameId] {
        self.python.get(stack.position()).map_or(&[], Vec::as_slice)
    }

    /// A stack's frames that belong to the user, innermost first.
    pub fn user(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        self.python(stack).iter().rev().copied().filter(|frame| self.is_own(*frame))
    }

    /// The line that stands for a stack: the user's innermost, or, where a packaged program runs without any file of the
    /// user's, the innermost outside PyTorch.
    pub fn site(&self, stack: StackId) -> Option<FrameId> {
        self.sites.get(stack.position()).copied().flatten()
    }
}

/// Whether a file lies where programs write files for themselves. Cells of a notebook lie there, too, and are the user's.
fn is_temporary(file: &str) -> bool {
    const FOLDERS: [&str; 4] = ["/tmp/", "/var/tmp/", "/private/var/folders/", "/dev/shm/"];
    FOLDERS.iter().any(|folder| file.starts_with(folder)) && !file.contains("ipykernel_")
}

/// The temporary folders from which a script was run: their files are the user's all the same. A generated module has a
/// `<module>` frame as well while it is imported, but never the outermost one.
fn homes<'a>(snapshot: &'a Snapshot, vocabulary: &Vocabulary) -> Vec<&'a str> {
    let is_script =
        |frame: &Frame| snapshot.text(frame.name) == "<module>" && is_temporary(snapshot.text(frame.file));
    let outermost = |stack: StackId| {
        let python = |id: &&FrameId| vocabulary.origin(**id) != Origin::Native;
        snapshot.stacks.get(stack).iter().rev().find(python).and_then(|id| snapshot.stacks.frame(*id))
    };
    let scripts = snapshot.stacks.ids().filter_map(outermost).filter(is_script);
    let mut folders: Vec<&str> = scripts.filter_map(|frame| folder(snapshot.text(frame.file))).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

fn folder(file: &str) -> Option<&str> {
    file.rsplit_once('/').map(|(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot with one stack of these frames (file and function), outermost first.
    fn stack(frames: &[(&str, &str)]) -> (Snapshot, StackId) {
        let mut snapshot = Snapshot::default();
        let ids: Vec<FrameId> = frames
            .iter()
            .rev()
            .map(|(file, name)| {
                let (file, name) =
                    (snapshot.strings.intern(file).unwrap(), snapshot.strings.intern(name).unwrap());
                snapshot.stacks.intern_frame(Frame { name, file, line: 1 }).unwrap()
            })
            .collect();
        let stack = snapshot.stacks.intern(&ids).unwrap();
        (snapshot, stack)
    }

    fn innermost_own_file(frames: &[(&str, &str)]) -> Option<String> {
        let (snapshot, stack) = stack(frames);
        let code = Code::of(&snapshot);
        let own = code.user(stack).next()?;
        let frame = snapshot.stacks.frame(own)?;
        Some(snapshot.text(frame.file).to_owned())
    }

    #[test]
    fn generated_files_are_nobodys() {
        let frames = [
            ("/home/me/train.py", "<module>"),
            ("/tmp/me_pyg/conv_propagate_x1.py", "propagate"),
            ("/tmp/torchinductor_me/ab/cab.py", "call"),
            ("/venv/lib/python3.12/site-packages/torch/nn/functional.py", "linear"),
            ("/venv/lib/libtorch_cpu.so", "at::empty"),
        ];
        assert_eq!(innermost_own_file(&frames).as_deref(), Some("/home/me/train.py"));
    }

    #[test]
    fn a_script_that_runs_from_a_temporary_folder_is_the_users() {
        let frames = [("/tmp/run/train.py", "<module>"), ("/tmp/run/model.py", "forward")];
        assert_eq!(innermost_own_file(&frames).as_deref(), Some("/tmp/run/model.py"));
        assert!(innermost_own_file(&[("/tmp/ipykernel_7/12.py", "step")]).is_some());
    }
}
