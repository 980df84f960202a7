//! A snapshot without its owner's names.
//!
//! In: a snapshot. Out: the same one with other paths, functions, annotation names and metadata. Always: equal names get
//! equal replacements and different ones different ones; files stay Python, C++, installed or temporary, and lines, sizes,
//! times and the shape of every stack stay as they are, so that the findings are the same. Frames of public libraries
//! stay readable from their package on; only the folders above it are replaced.
//!
//! What is public is a table ([`super::public`], [`super::native`], the packages of [`crate::frames`]); everything else is replaced, also packages that
//! nobody listed. Lines, sizes and times stay:
//! they tell how large a model is and when it ran.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{methods, native, public};
use crate::frames::{Frames, Owner};
use crate::snapshot::{Ended, Excerpt, Frame, Modelled, Particulars, Snapshot, Stacks};
use crate::unit::{FrameId, Index, StackId, StringId, StringInterner};

/// Replaces every name that says something of the user.
#[must_use]
pub fn anonymize(snapshot: Snapshot) -> Snapshot {
    let frames = Frames::of(&snapshot);
    let mut names = Pseudonyms::default();
    let (stacks, moved) = rename_stacks(&snapshot, &frames, &mut names);
    let stack = |old: Option<StackId>| old.and_then(|old| moved.get(old.position()).copied().flatten());
    let mut anonymous = Snapshot { stacks, settings: snapshot.settings.clone(), ..Snapshot::default() };
    anonymous.settings.conf = snapshot.settings.conf.as_deref().map(|conf| names.conf(conf));
    anonymous.particulars =
        snapshot.particulars.iter().map(|one| names.particulars(&snapshot, *one)).collect();
    for trace in &snapshot.devices {
        let mut trace = trace.clone();
        for event in &mut trace.events {
            event.stack = stack(event.stack);
            event.metadata = event.metadata.and_then(|text| names.numbered("metadata", snapshot.text(text)));
        }
        anonymous.devices.push(trace);
    }
    for segment in &snapshot.segments {
        let mut segment = segment.clone();
        segment.stack = stack(segment.stack);
        for block in &mut segment.blocks {
            block.stack = stack(block.stack);
        }
        anonymous.segments.push(segment);
    }
    for annotation in &snapshot.annotations {
        let name = names.annotation(snapshot.text(annotation.name));
        let name = names.strings.intern(&name);
        anonymous.annotations.extend(name.map(|name| crate::snapshot::Annotation { name, ..*annotation }));
    }
    anonymous.excerpt = snapshot.excerpt.clone().map(|excerpt| names.excerpt(&snapshot, &frames, excerpt));
    anonymous.modelled = snapshot.modelled.clone().map(|modelled| names.modelled(modelled));
    anonymous.ended = snapshot.ended.clone().map(Ended::unnamed);
    anonymous.collections.clone_from(&snapshot.collections);
    anonymous.strings = names.strings;
    anonymous.streams = snapshot.streams;
    anonymous.gaps = snapshot.gaps;
    anonymous
}

/// The stacks with other names, and where each one of old is now.
fn rename_stacks(
    snapshot: &Snapshot,
    frames: &Frames,
    names: &mut Pseudonyms,
) -> (Stacks, Vec<Option<StackId>>) {
    let mut stacks = Stacks::default();
    let mut renamed: Vec<Option<FrameId>> = Vec::with_capacity(snapshot.stacks.frame_count());
    for id in snapshot.stacks.frame_ids() {
        let frame = names.frame(snapshot, frames, id);
        renamed.push(frame.and_then(|frame| stacks.intern_frame(frame)));
    }
    let mut moved = Vec::with_capacity(snapshot.stacks.len());
    for id in snapshot.stacks.ids() {
        let old = snapshot.stacks.get(id);
        let new: Vec<FrameId> =
            old.iter().filter_map(|frame| renamed.get(frame.position()).copied().flatten()).collect();
        moved.push(stacks.intern(&new));
    }
    (stacks, moved)
}

/// The replacements made so far, and the text of the new snapshot.
#[derive(Default)]
pub(super) struct Pseudonyms {
    pub(super) strings: StringInterner,
    replaced: FxHashMap<(&'static str, String), usize>,
    counts: FxHashMap<&'static str, usize>,
}

impl Pseudonyms {
    /// Which of its kind a name is, counted from 1 in the order of first sight.
    pub(super) fn number(&mut self, kind: &'static str, name: &str) -> usize {
        if let Some(&number) = self.replaced.get(&(kind, name.to_owned())) {
            return number;
        }
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        self.replaced.insert((kind, name.to_owned()), *count);
        *count
    }

    pub(super) fn replacement(&mut self, kind: &'static str, name: &str) -> String {
        format!("{kind}{}", self.number(kind, name))
    }

    fn numbered(&mut self, kind: &'static str, name: &str) -> Option<StringId> {
        let name = self.replacement(kind, name);
        self.strings.intern(&name)
    }

    fn frame(&mut self, snapshot: &Snapshot, frames: &Frames, id: FrameId) -> Option<Frame> {
        let frame = snapshot.stacks.frame(id)?;
        let public = frames.public_path(snapshot, frame.file);
        let place = (snapshot.text(frame.name), snapshot.text(frame.file));
        let (name, file) = self.place(place, frames.owner(id), public);
        let (name, file) = (self.strings.intern(&name)?, self.strings.intern(&file)?);
        Some(Frame { name, file, line: frame.line })
    }

    fn modelled(&mut self, mut modelled: Modelled) -> Modelled {
        for branch in &mut modelled.branches {
            branch.file = self.path(&branch.file, Owner::User, None);
        }
        modelled
    }

    /// A function and the file that it stands in.
    fn place(
        &mut self,
        (name, recorded): (&str, &str),
        owner: Owner,
        public: Option<Range<usize>>,
    ) -> (String, String) {
        let path = recorded.replace('\\', "/");
        // A whole file that is public has public functions.
        let known = public.as_ref().is_some_and(|part| part.end == recorded.len());
        let name = if owner == Owner::Native {
            let known = known || native::is_public(name);
            if known { name.to_owned() } else { self.replacement("native", name) }
        } else {
            // Generated code calls its functions as it likes, and not as the user does.
            let kept = known || methods::is_public(name) || (owner == Owner::Generated && name == "call");
            if kept { name.to_owned() } else { self.replacement("function", name) }
        };
        let file = self.path(&path, owner, public);
        // Windows is told by its separators.
        let file = if path == recorded { file } else { file.replace('/', "\\") };
        (name, file)
    }

    /// What a slice says of the whole: only its places are somebody's own.
    fn excerpt(&mut self, snapshot: &Snapshot, frames: &Frames, mut excerpt: Excerpt) -> Excerpt {
        for place in
            excerpt.findings.iter_mut().flat_map(|finding| finding.place.iter_mut().chain(&mut finding.stack))
        {
            let file = snapshot.strings.find(&place.file);
            let public = file.and_then(|file| frames.public_path(snapshot, file));
            (place.function, place.file) = self.place((&place.function, &place.file), Owner::User, public);
        }
        excerpt
    }

    /// A path with other folders and another file; its public part stays.
    fn path(&mut self, path: &str, owner: Owner, public: Option<Range<usize>>) -> String {
        if path.starts_with('<') {
            return self.unreal(path);
        }
        let mut renamed = String::with_capacity(path.len());
        let own = match public
            .and_then(|part| Some((path.get(..part.start)?, path.get(part.clone())?, part.end)))
        {
            Some((above, kept, end)) => {
                for folder in above.split_terminator('/') {
                    renamed.push_str(&self.folder(folder));
                    renamed.push('/');
                }
                renamed.push_str(kept);
                path.get(end..).unwrap_or_default()
            }
            None => path,
        };
        if own.is_empty() {
            return renamed;
        }
        let (folders, file) =
            own.rsplit_once('/').map_or((None, own), |(folders, file)| (Some(folders), file));
        let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
        let hashed = owner == Owner::Generated && public::is_hash(stem);
        let last = folders.map_or(0, |folders| folders.split('/').count());
        for (at, folder) in folders.into_iter().flat_map(|folders| folders.split('/')).enumerate() {
            // A compiler's folder is the beginning of the hash in it.
            let kept = hashed && at + 1 == last;
            renamed.push_str(&if kept { folder.to_owned() } else { self.folder(folder) });
            renamed.push('/');
        }
        renamed.push_str(&if hashed { file.to_owned() } else { self.file(file, owner == Owner::Native) });
        renamed
    }

    fn folder(&mut self, name: &str) -> String {
        if public::is_folder(name) {
            name.to_owned()
        } else if name.starts_with("torchinductor_") {
            // The compiler's cache, named after the user.
            "torchinductor_user".to_owned()
        } else {
            let ending = public::folder_ending(name).unwrap_or_default();
            format!("{}{ending}", self.replacement("folder", name))
        }
    }

    fn file(&mut self, name: &str, is_native: bool) -> String {
        let hash = name.strip_prefix("fx_generated_").map(|hash| hash.trim_end_matches(".py"));
        let made = hash.is_some_and(|hash| hash.chars().all(|one| one.is_ascii_hexdigit() || one == '_'))
            || ["", "__init__.py", "__main__.py"].contains(&name);
        if made || (is_native && public::is_native_file(name)) {
            return name.to_owned();
        }
        let beginning = public::file_beginning(name).unwrap_or_default();
        match public::ending(name) {
            Some(ending) => {
                let stem = name.strip_suffix(ending).unwrap_or(name);
                format!("{beginning}{}.{ending}", self.replacement("file", stem))
            }
            // `libacme.so.6` is a library still.
            None if is_native => format!("{}.so", self.replacement("file", name)),
            None => format!("{beginning}{}", self.replacement("file", name)),
        }
    }

    /// `<stdin>` and the like; a notebook's cell stays one, and generated code generated.
    fn unreal(&mut self, path: &str) -> String {
        // `torch.fx` adds whose code it traced: `<eval_with_key>.3 from /home/ann/net.py:7 in forward`.
        let (bare, _) = path.split_once(" from ").unwrap_or((path, ""));
        if public::is_unreal(bare) {
            bare.to_owned()
        } else if path.starts_with("<ipython-input") {
            format!("<ipython-input-{}>", self.number("cell", path))
        } else if path.starts_with("<frozen ") {
            format!("<frozen {}>", self.replacement("code", path))
        } else if let Some(made) = Frames::made(path) {
            format!("{made} {}>", self.replacement("code", path))
        } else {
            format!("<{}>", self.replacement("code", path))
        }
    }

    fn particulars(&mut self, snapshot: &Snapshot, old: Particulars) -> Particulars {
        let mut kept = |kind, text: Option<StringId>, is_public: fn(&str) -> bool| {
            let text = snapshot.text(text?);
            if is_public(text) { self.strings.intern(text) } else { self.numbered(kind, text) }
        };
        let action = kept("action", old.action, public::is_action);
        let internal_metadata = kept("internal", old.internal_metadata, public::is_internal);
        let compile_context = old.compile_context.and_then(|text| {
            let text = snapshot.text(text);
            let region = text.strip_prefix("Torch-Compiled Region").unwrap_or("own");
            if text == "N/A" || !region.contains(char::is_alphabetic) {
                self.strings.intern(text)
            } else {
                self.numbered("context", text)
            }
        });
        Particulars { action, compile_context, internal_metadata, ..old }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file's new name in a recording that begins in a script of ann's.
    fn renamed(file: &str) -> String {
        let mut snapshot = Snapshot::default();
        let frames = [("/home/ann/acme/train.py", "<module>"), (file, "run")];
        let ids: Vec<FrameId> = frames
            .iter()
            .rev()
            .map(|(file, name)| {
                let file = snapshot.strings.intern(file).unwrap();
                let name = snapshot.strings.intern(name).unwrap();
                snapshot.stacks.intern_frame(Frame { name, file, line: 3 }).unwrap()
            })
            .collect();
        snapshot.stacks.intern(&ids).unwrap();
        let mut names = Pseudonyms::default();
        let frame = names.frame(&snapshot, &Frames::of(&snapshot), ids[0]).unwrap();
        names.strings.get(frame.file).to_owned()
    }

    #[test]
    fn paths_keep_their_shape_and_their_public_part() {
        for (path, expected) in [
            ("/home/ann/acme/net.py", "/home/folder1/folder2/file1.py"),
            ("/home/ann/acme/models/__init__.py", "/home/folder1/folder2/folder3/__init__.py"),
            (
                "/home/ann/venv/lib/python3.12/site-packages/torch/_tensor.py",
                "/home/folder1/venv/lib/python3.12/site-packages/torch/_tensor.py",
            ),
            (
                "/usr/lib/python3.12/site-packages/acme/net.py",
                "/usr/lib/python3.12/site-packages/folder1/file1.py",
            ),
            ("/usr/lib/python3.12/copy.py", "/usr/lib/python3.12/copy.py"),
            ("/tmp/torchinductor_ann/ab/cab.py", "/tmp/torchinductor_user/folder1/file1.py"),
            ("/tmp/ipykernel_17/55.py", "/tmp/ipykernel_17/file1.py"),
            ("C:\\Users\\ann\\net.py", "C:\\Users\\folder1\\file1.py"),
            ("net.py", "file1.py"),
            ("/opt/x/torch/optim/adam.py", "/opt/folder1/torch/optim/file1.py"),
            ("/opt/x/torch/optim/optimizer.py", "/opt/folder1/torch/optim/optimizer.py"),
            ("/home/ann/acme/src/lightning/secret.py", "/home/folder1/folder2/src/folder3/file1.py"),
            ("/home/ann/lib/python3.11/acme/secret.py", "/home/folder1/lib/python3.11/folder2/file1.py"),
            (
                "/home/ann/venv/acme-1.0-py3-none-any.whl/acme/net.py",
                "/home/folder1/venv/folder2.whl/folder3/file1.py",
            ),
            ("<frozen acme>", "<frozen code1>"),
            ("<stdin>", "<stdin>"),
            ("<attrs generated init acme.Net>", "<attrs generated code1>"),
            ("<eval_with_key>.3 from /home/ann/net.py:7 in forward", "<eval_with_key>.3"),
        ] {
            assert_eq!(renamed(path), expected, "{path}");
        }
    }
}
