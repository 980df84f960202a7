//! A snapshot without its owner's names.
//!
//! In: a snapshot. Out: the same one with other paths, functions, annotation names and metadata. Always: equal names get
//! equal replacements and different ones different ones; files stay Python, C++, installed or temporary, and lines, sizes,
//! times and the shape of every stack stay as they are, so that the findings are the same. Frames of public libraries
//! stay readable from their package on; only the folders above it are replaced.
//!
//! What is public is a table ([`super::public`], [`super::native`], the packages of [`crate::frames`]); everything else is replaced, also packages that
//! nobody listed. Numbers in annotation names stay, because they count iterations. Lines, sizes and times stay, too:
//! they tell how large a model is and when it ran.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{methods, native, public};
use crate::frames::{Frames, Owner};
use crate::snapshot::{Excerpt, Frame, Particulars, Snapshot, Stacks};
use crate::unit::{FrameId, Index, StackId, StringId, StringInterner};

/// Replaces every name that says something of the user.
#[must_use]
pub fn anonymize(snapshot: Snapshot) -> Snapshot {
    let frames = Frames::of(&snapshot);
    let mut names = Names::default();
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
    anonymous.modelled = snapshot.modelled.clone();
    anonymous.strings = names.strings;
    anonymous.streams = snapshot.streams;
    anonymous.gaps = snapshot.gaps;
    anonymous
}

/// The stacks with other names, and where each one of old is now.
fn rename_stacks(snapshot: &Snapshot, frames: &Frames, names: &mut Names) -> (Stacks, Vec<Option<StackId>>) {
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
struct Names {
    strings: StringInterner,
    replaced: FxHashMap<(&'static str, String), usize>,
    counts: FxHashMap<&'static str, usize>,
}

impl Names {
    /// Which of its kind a name is, counted from 1 in the order of first sight.
    fn number(&mut self, kind: &'static str, name: &str) -> usize {
        if let Some(&number) = self.replaced.get(&(kind, name.to_owned())) {
            return number;
        }
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        self.replaced.insert((kind, name.to_owned()), *count);
        *count
    }

    fn replacement(&mut self, kind: &'static str, name: &str) -> String {
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

    /// The allocator's settings: PyTorch's own words and their values, whatever else somebody passed.
    fn conf(&mut self, conf: &str) -> String {
        let mut renamed = String::with_capacity(conf.len());
        for part in conf.split_inclusive(|one: char| ",:[]>= ".contains(one)) {
            let word = part.trim_end_matches(|one: char| ",:[]>= ".contains(one));
            let known = word.is_empty() || public::is_setting(word);
            renamed.push_str(&if known { word.to_owned() } else { self.replacement("setting", word) });
            renamed.push_str(part.get(word.len()..).unwrap_or_default());
        }
        renamed
    }

    /// An annotation's name: PyTorch's own stay but for the user's classes and modules in them.
    fn annotation(&mut self, name: &str) -> String {
        let split = name.split_once('#').and_then(|(what, rest)| Some((what, rest.split_once('.')?)));
        if let Some((
            what @ ("Optimizer.step" | "Optimizer.zero_grad" | "enumerate(DataLoader)"),
            (class, method),
        )) = split
            && ["step", "zero_grad", "__next__"].contains(&method)
        {
            let class =
                if public::is_class(class) { class.to_owned() } else { self.replacement("Class", class) };
            return format!("{what}#{class}.{method}");
        }
        let (head, rest) = name.split_once(' ').map_or((name, None), |(head, rest)| (head, Some(rest)));
        let counted = head.strip_prefix("ProfilerStep#");
        let counted = counted.is_some_and(|number| number.parse::<u64>().is_ok());
        match (counted || public::is_range(head), rest) {
            (true, None) => name.to_owned(),
            (true, Some(rest)) => format!("{head} ({})", self.lettered(rest)),
            (false, _) => self.lettered(name),
        }
    }

    /// A name of the user's. The numbers in it stay, and it is told from others by letters: `step 7` and `step 8` are the
    /// same range in two iterations.
    fn lettered(&mut self, name: &str) -> String {
        let bare: String = name.chars().filter(|one| !one.is_ascii_digit()).collect();
        let mut renamed = format!("annotation-{}", letters(self.number("annotation", &bare)));
        for number in name.split(|one: char| !one.is_ascii_digit()).filter(|number| !number.is_empty()) {
            renamed.push(' ');
            renamed.push_str(number);
        }
        renamed
    }
}

/// 1, 2, ... as a, b, ..., z, aa, ab, ...
fn letters(mut number: usize) -> String {
    let mut letters = Vec::new();
    while let Some(rest) = number.checked_sub(1) {
        letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
        number = rest / 26;
    }
    letters.iter().rev().collect()
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
        let mut names = Names::default();
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

    #[test]
    fn annotations_keep_what_pytorch_wrote_and_count_on() {
        let mut names = Names::default();
        let mut name = |name: &str| names.annotation(name);
        assert_eq!(name("Optimizer.step#AdamW.step"), "Optimizer.step#AdamW.step");
        assert_eq!(name("Optimizer.step#AcmeOpt.step"), "Optimizer.step#Class1.step");
        assert_eq!(name("ProfilerStep#12"), "ProfilerStep#12");
        assert_eq!(name("acme step 7"), "annotation-a 7");
        assert_eq!(name("acme eval"), "annotation-b");
        assert_eq!(name("acme step 8"), "annotation-a 8");
        assert_eq!(name("FSDP::all_gather (acme.layer)"), "FSDP::all_gather (annotation-c)");
        assert_eq!(name("FSDP::backward_prefetch for acme.layer"), "FSDP::backward_prefetch (annotation-d)");
        assert_eq!(name("FSDP::acme_secret"), "annotation-e");
        let own = "FullyShardedDataParallel._pre_forward";
        assert_eq!(name(own), own);
        assert_eq!(name("FullyShardedDataParallel.acme_secret"), "annotation-f");
        assert_eq!(name("DistributedDataParallel.forward#acme"), "annotation-g");
    }

    #[test]
    fn settings_keep_what_the_allocator_knows() {
        let mut names = Names::default();
        let mut conf = |conf: &str| names.conf(conf);
        for known in [
            "",
            "expandable_segments:True,max_split_size_mb:128",
            "roundup_power2_divisions:[256:1,512:2,>:8], garbage_collection_threshold:0.8",
            "backend:cudaMallocAsync",
        ] {
            assert_eq!(conf(known), known);
        }
        assert_eq!(conf("acme_pool:True,backend:/home/ann/alloc.so"), "setting1:True,backend:setting2");
        assert_eq!(conf("expandable_segments:True;acme"), "expandable_segments:setting3");
    }

    #[test]
    fn letters_go_on_behind_z() {
        assert_eq!([1, 26, 27, 702, 703].map(letters), ["a", "z", "aa", "zz", "aaa"]);
    }
}
