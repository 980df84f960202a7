//! What is alive at a moment as a tree, whichever way it is grouped: by calls, by lines or by roles.
//!
//! In: a picture. Out: a tree that stays the same at all moments, and for each moment what its nodes hold. Always: a node holds
//! what the nodes below it hold and what it holds itself, and the root holds everything.

use std::collections::BTreeMap;

use crate::familiar::Familiar;
use crate::finding::Location;
use crate::picture::{Cloud, DrawnLife, Label, Lives, Picture, Tree};
use crate::report::paths::{Root, package_path};
use crate::role::Role;
use crate::unit::shown_name;

/// By what a tree is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// By who called whom.
    Calls,
    /// By file, line and role.
    Lines,
    /// By role, what people know it by, file and line.
    Roles,
}

impl Grouping {
    /// What it is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Grouping::Calls => "calls",
            Grouping::Lines => "file, line, role",
            Grouping::Roles => "role, name, file, line",
        }
    }

    /// The one after it.
    pub(super) const fn next(self) -> Grouping {
        match self {
            Grouping::Calls => Grouping::Lines,
            Grouping::Lines => Grouping::Roles,
            Grouping::Roles => Grouping::Calls,
        }
    }
}

/// A tree of what was allocated. Node 0 is the root.
#[derive(Debug, Default)]
pub(super) struct Grove {
    /// For each node the one above it, which stands before it; the root is its own.
    parents: Vec<u32>,
    names: Vec<NodeName>,
    children: Vec<Vec<u32>>,
    /// For each lifetime of a picture its node.
    each: Vec<u32>,
    /// For each cloud its node.
    clouds: Vec<u32>,
}

/// How a node is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeName {
    pub(super) text: String,
    /// Whether it is the user's own code.
    pub(super) own: bool,
}

impl NodeName {
    fn plain(text: &str) -> NodeName {
        NodeName { text: text.to_owned(), own: false }
    }
}

/// What stands before the number of a line below its file.
const LINE: &str = "line ";

impl Grove {
    /// The tree of a picture.
    pub(super) fn of(picture: &Picture, grouping: Grouping) -> Grove {
        let names = NodeNames::of(&picture.tree);
        match grouping {
            Grouping::Calls => Grove::of_calls(picture, &names),
            Grouping::Lines => Grove::grown(picture, |node, role, _| {
                let mut path = names.file_and_line(&picture.tree, node);
                path.push(NodeName::plain(role.plural()));
                path
            }),
            Grouping::Roles => Grove::grown(picture, |node, role, familiar| {
                let mut path = vec![NodeName::plain(role.plural())];
                path.extend(familiar.map(|one| NodeName::plain(one.words())));
                path.extend(names.file_and_line(&picture.tree, node));
                path
            }),
        }
    }

    fn of_calls(picture: &Picture, names: &NodeNames) -> Grove {
        let Picture { tree, lives, .. } = picture;
        let mut grove = Grove {
            parents: tree.callers.clone(),
            names: tree.called.iter().map(|label| names.whole(*label)).collect(),
            each: lives.each.iter().map(|life| life.node).collect(),
            clouds: lives.clouds.iter().map(|cloud| cloud.node).collect(),
            ..Grove::default()
        };
        grove.link();
        grove
    }

    /// Grows a tree out of the path of each lifetime.
    fn grown(picture: &Picture, path: impl Fn(u32, Role, Option<Familiar>) -> Vec<NodeName>) -> Grove {
        let mut grove = Grove { parents: vec![0], names: vec![NodeName::default()], ..Grove::default() };
        let mut known: BTreeMap<(u32, String), u32> = BTreeMap::new();
        let mut paths: BTreeMap<(u32, Role, Option<Familiar>), u32> = BTreeMap::new();
        let mut leaf = |node: u32, role: Role, familiar: Option<Familiar>| {
            *paths.entry((node, role, familiar)).or_insert_with(|| {
                path(node, role, familiar).into_iter().fold(0, |parent, name| {
                    let next = u32::try_from(grove.parents.len()).unwrap_or(u32::MAX);
                    let node = *known.entry((parent, name.text.clone())).or_insert(next);
                    if node == next {
                        grove.parents.push(parent);
                        grove.names.push(name);
                    }
                    node
                })
            })
        };
        let lives = &picture.lives;
        let of_life = |life: &DrawnLife| leaf(life.node, life.role, life.familiar);
        let each: Vec<u32> = lives.each.iter().map(of_life).collect();
        let of_cloud = |cloud: &Cloud| leaf(cloud.node, cloud.role, cloud.familiar);
        let clouds: Vec<u32> = lives.clouds.iter().map(of_cloud).collect();
        (grove.each, grove.clouds) = (each, clouds);
        grove.link();
        grove
    }

    fn link(&mut self) {
        self.children = vec![Vec::new(); self.parents.len()];
        for (node, parent) in (0_u32..).zip(&self.parents).skip(1) {
            if let Some(children) = self.children.get_mut(*parent as usize) {
                children.push(node);
            }
        }
    }

    pub(super) fn name(&self, node: u32) -> Option<&NodeName> {
        self.names.get(node as usize)
    }

    /// Whether a name holds some text in small letters; a line is named as in reports, too, `train.py:36 in step`, however it is grouped.
    pub(super) fn says(&self, node: u32, text: &str) -> bool {
        let Some(name) = self.name(node) else { return false };
        let file = self.name(self.parent(node)).map_or("", |file| file.text.as_str());
        let line = name.text.strip_prefix(LINE).map(|line| format!("{file}:{line}"));
        let says = |name: &str| name.to_lowercase().contains(text);
        says(&name.text) || line.is_some_and(|line| says(&line))
    }

    pub(super) fn parent(&self, node: u32) -> u32 {
        self.parents.get(node as usize).copied().unwrap_or(0)
    }

    pub(super) fn children(&self, node: u32) -> &[u32] {
        self.children.get(node as usize).map_or(&[], Vec::as_slice)
    }

    /// What every node holds in a bin, of the lifetimes and clouds that are asked for.
    pub(super) fn held(
        &self,
        lives: &Lives,
        bin: usize,
        (each, clouds): (impl Iterator<Item = usize>, impl Iterator<Item = usize>),
    ) -> Vec<u64> {
        let mut held = vec![0_u64; self.parents.len()];
        let mut add = |node: Option<&u32>, bytes: u64| {
            if let Some(held) = node.and_then(|node| held.get_mut(*node as usize)) {
                *held = held.saturating_add(bytes);
            }
        };
        for at in each {
            let life = lives.each.get(at).filter(|life| is_alive(life, bin));
            add(self.each.get(at), life.map_or(0, |life| life.bytes.get()));
        }
        for at in clouds {
            add(self.clouds.get(at), lives.clouds.get(at).map_or(0, |cloud| level(cloud, bin)));
        }
        for node in (1..held.len()).rev() {
            let bytes = held.get(node).copied().unwrap_or(0);
            let parent = self.parents.get(node).map_or(0, |parent| *parent as usize);
            if let Some(above) = held.get_mut(parent) {
                *above = above.saturating_add(bytes);
            }
        }
        held
    }
}

/// Whether a lifetime is seen in a bin.
fn is_alive(life: &DrawnLife, bin: usize) -> bool {
    life.start <= bin && life.end.is_none_or(|end| bin < end)
}

/// What a cloud holds in a bin.
fn level(cloud: &Cloud, bin: usize) -> u64 {
    let steps = cloud.steps.iter().take_while(|step| step.bin <= bin);
    let level: i128 = steps.map(|step| i128::from(step.by)).sum();
    u64::try_from(level.max(0)).unwrap_or(u64::MAX)
}

/// The labels of a tree in words.
struct NodeNames {
    /// Of each label the file and the rest; only lines have a file.
    parts: Vec<(Option<String>, NodeName)>,
}

impl NodeNames {
    fn of(tree: &Tree) -> NodeNames {
        let root = Root::of(own_files(tree));
        NodeNames { parts: tree.labels.iter().map(|label| words(label, &root)).collect() }
    }

    /// A label on one line.
    fn whole(&self, label: u32) -> NodeName {
        match self.parts.get(label as usize) {
            Some((Some(file), rest)) => NodeName { text: format!("{file}:{}", rest.text), own: rest.own },
            Some((None, rest)) => rest.clone(),
            None => NodeName::default(),
        }
    }

    /// The file and the line that a node counts for; what it is called where no line is known.
    fn file_and_line(&self, tree: &Tree, node: u32) -> Vec<NodeName> {
        let label = |node: u32| tree.called.get(node as usize).copied().unwrap_or(0);
        match self.parts.get(label(tree.site(node)) as usize) {
            Some((Some(file), rest)) => vec![
                NodeName { text: file.clone(), own: rest.own },
                NodeName { text: format!("{LINE}{}", rest.text), own: rest.own },
            ],
            _ => vec![self.whole(label(node))],
        }
    }
}

/// The user's own files, as recorded.
pub(super) fn own_files(tree: &Tree) -> impl Iterator<Item = &str> {
    own_lines(tree).map(|at| at.file.as_str())
}

/// The lines of the user's own code.
pub(super) fn own_lines(tree: &Tree) -> impl Iterator<Item = &Location> {
    tree.labels.iter().filter_map(|label| match label {
        Label::Line(at, true) => Some(at),
        _ => None,
    })
}

fn words(label: &Label, root: &Root) -> (Option<String>, NodeName) {
    let plain = |text: &str| (None, NodeName::plain(text));
    match label {
        Label::All => plain("everything"),
        Label::Line(at, own) => {
            let file = if *own { root.within(&at.file) } else { package_path(&at.file) };
            let text = format!("{} in {}", at.line, shown_name(&at.function));
            (Some(shown_name(file)), NodeName { text, own: *own })
        }
        Label::Operator(name) => plain(&shown_name(name)),
        Label::Engine => plain("the autograd engine"),
        Label::NoStack => plain("no stack was recorded"),
        Label::Older => plain("older than the recording"),
        Label::Merged => plain("too small to be told apart"),
    }
}
