//! Which engine cuDNN takes for a convolution, as far as its workspace tells: a table of questions and answers.

use std::str::SplitWhitespace;
use std::sync::LazyLock;

/// What was measured, as trees: the file says how it is read, and what it was fitted to.
const TABLE: &str = include_str!("engines.txt");
/// What is asked of a convolution, in the order of its traits: sizes (of a group; `in`, `out` and `taps` are pixels of an image and of the
/// filter), the filter's last side and how it moves at most, dimensions, type, whether channels come last, powers of two in both channels up to
/// eight, products of these, the filter's first side, rows of the output, multiplications, tiles of 128 by 128 of each direction (`tf`, `ti`,
/// `tw`) and what remains of them after whole rounds (`rf`, `ri`, `rw`), the last side of the input, and for each of four usual tilings the tiles
/// of the last round (`t`) and the parts of each (`s`).
const TRAITS: [&str; 39] = [
    "n", "c", "k", "groups", "in", "out", "taps", "width", "stride", "dilation", "padding", "dims", "type",
    "last", "c8", "k8", "pixels", "points", "depth", "pairs", "height", "rows", "work", "tf", "rf", "tw",
    "filter", "ti", "rw", "ri", "across", "t1", "s1", "t2", "s2", "t3", "s3", "t4", "s4",
];

/// What a convolution computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    /// The gradient of the input.
    ToInput,
    /// The gradient of the weights.
    ToWeights,
}

/// Copies that are made of input, weights and output before or after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copies {
    None,
    /// To channels last, and these in multiples, of what lies otherwise.
    Needed,
    /// The same, and what is read is always copied, because it is rounded to TF32.
    Rounded,
    /// Both without multiples.
    NeededAsIs,
    RoundedAsIs,
    /// Input and weights always, the output never.
    Inputs,
    /// To channels first of what lies otherwise.
    ToFirst,
    All,
    Filter,
    /// Needed ones, with equal channels on both sides of each group.
    Groups,
}

/// What stands beside the copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum More {
    Nothing,
    Bytes(usize),
    /// The gradient of the weights in so many parts, to be summed up.
    Parts(usize),
    /// The same in tiles.
    PartsOfTiles {
        parts: usize,
        filters: usize,
        values: usize,
    },
    /// Tiles of the last round, in parts.
    Tail(Tiles),
}

/// Tiles in which a result is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tiles {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Blocks that stand together, along both.
    pub(crate) cluster: [usize; 2],
    /// A part is worth so many loops.
    pub(crate) loops: usize,
}

/// What a workspace consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Copies(Copies, More),
    /// Copies with the filter's steps as channels.
    Folded {
        always: bool,
    },
    Winograd,
    /// The gradient of the weights for each image.
    Images,
    /// The result in so many parts, in 32 bits, to be summed up: products of matrices that are cut along what they sum over.
    Products(usize),
    /// Sixteenths of all tensors, for engines of which no formula is known.
    Tensors(usize),
}

/// A question or an answer of a tree. What follows a question holds if the trait is at most so much; what holds else begins at `no`.
enum Node {
    Question { asked: usize, most: usize, no: usize },
    Answer(Answer),
}

static TREES: LazyLock<[Vec<Node>; 3]> = LazyLock::new(|| {
    ["[forward]", "[input]", "[weights]"].map(|name| {
        let text = TABLE.split_once(name).map_or("", |(_, text)| text);
        let mut nodes = Vec::new();
        grow(&mut text.split_whitespace(), &mut nodes);
        nodes
    })
});

/// Reads a tree.
fn grow(words: &mut SplitWhitespace<'_>, nodes: &mut Vec<Node>) -> Option<()> {
    let word = words.next()?;
    let Some((name, most)) = word.split_once('<') else {
        nodes.push(Node::Answer(answer(word)?));
        return Some(());
    };
    let asked = TRAITS.iter().position(|known| *known == name)?;
    let most = most.parse().ok()?;
    let place = nodes.len();
    nodes.push(Node::Question { asked, most, no: 0 });
    grow(words, nodes)?;
    let no = nodes.len();
    if let Some(node) = nodes.get_mut(place) {
        *node = Node::Question { asked, most, no };
    }
    grow(words, nodes)
}

/// Reads an answer: `nhwc`, `nhwc*7` (parts), `nhwc*7:64x32` (of tiles), `nhwc+256` (KiB), `nhwc@128x64/1x2/16` (tiles, cluster, loops).
fn answer(word: &str) -> Option<Answer> {
    let number = |text: &str| text.parse().ok();
    let pair = |text: &str| {
        let (first, second) = text.split_once('x')?;
        Some([number(first)?, number(second)?])
    };
    let end = word.find(['*', '+', '@']).unwrap_or(word.len());
    let (name, more) = word.split_at(end);
    let copies = match name {
        "folded" | "folded-y" => return Some(Answer::Folded { always: name == "folded-y" }),
        "winograd" => return Some(Answer::Winograd),
        "images" => return Some(Answer::Images),
        "products" => return Some(Answer::Products(number(more.strip_prefix('*')?)?)),
        "tensors" => return Some(Answer::Tensors(number(more.strip_prefix('*')?)?)),
        "none" => Copies::None,
        "nhwc" => Copies::Needed,
        "rounded" => Copies::Rounded,
        "packed" => Copies::NeededAsIs,
        "rounded-packed" => Copies::RoundedAsIs,
        "inputs" => Copies::Inputs,
        "nchw" => Copies::ToFirst,
        "all" => Copies::All,
        "filter" => Copies::Filter,
        "groups" => Copies::Groups,
        _ => return None,
    };
    let more = if let Some(text) = more.strip_prefix('+') {
        More::Bytes(number(text)? << 10)
    } else if let Some(text) = more.strip_prefix('*') {
        match text.split_once(':') {
            Some((parts, tile)) => {
                let [filters, values] = pair(tile)?;
                More::PartsOfTiles { parts: number(parts)?, filters, values }
            }
            None => More::Parts(number(text)?),
        }
    } else if let Some(text) = more.strip_prefix('@') {
        let (tile, rest) = text.split_once('/')?;
        let (cluster, loops) = rest.split_once('/')?;
        let [rows, columns] = pair(tile)?;
        More::Tail(Tiles { rows, columns, cluster: pair(cluster)?, loops: number(loops)? })
    } else {
        More::Nothing
    };
    Some(Answer::Copies(copies, more))
}

/// What is taken to hold for a convolution of these traits.
pub(crate) fn of(direction: Direction, traits: &[usize]) -> Answer {
    let [forward, input, weights] = &*TREES;
    let nodes = match direction {
        Direction::Forward => forward,
        Direction::ToInput => input,
        Direction::ToWeights => weights,
    };
    let mut at = 0;
    loop {
        match nodes.get(at) {
            Some(Node::Question { asked, most, no }) => {
                at = if traits.get(*asked).is_some_and(|value| value <= most) { at + 1 } else { *no };
            }
            Some(Node::Answer(answer)) => return *answer,
            None => return Answer::Copies(Copies::None, More::Nothing),
        }
    }
}

const fn tiles(rows: usize, columns: usize, cluster: [usize; 2]) -> Tiles {
    Tiles { rows, columns, cluster, loops: 1 }
}

/// The tilings of which the last rounds are traits: those that leave something over most often.
pub(crate) const fn usual(direction: Direction) -> &'static [Tiles; 4] {
    match direction {
        Direction::Forward => {
            &const {
                [
                    tiles(128, 128, [8, 1]),
                    tiles(256, 128, [1, 2]),
                    tiles(64, 256, [4, 1]),
                    tiles(64, 64, [2, 4]),
                ]
            }
        }
        Direction::ToInput => {
            &const {
                [
                    tiles(128, 64, [5, 1]),
                    tiles(128, 64, [1, 3]),
                    tiles(256, 128, [1, 2]),
                    tiles(128, 128, [4, 1]),
                ]
            }
        }
        Direction::ToWeights => {
            &const {
                [
                    tiles(128, 128, [1, 1]),
                    tiles(128, 64, [1, 2]),
                    tiles(128, 128, [1, 2]),
                    tiles(64, 64, [1, 1]),
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word that is not understood would leave a tree without its rest.
    #[test]
    fn every_word_of_the_table_is_read() {
        for (tree, name) in TREES.iter().zip(["[forward]", "[input]", "[weights]"]) {
            let text = TABLE.split_once(name).map_or("", |(_, text)| text);
            let words = text.split_whitespace().take_while(|word| !word.starts_with('[')).count();
            assert_eq!(tree.len(), words, "{name}");
            let questions = tree.iter().filter(|node| matches!(node, Node::Question { no: 1.., .. })).count();
            assert_eq!(tree.len(), 2 * questions + 1, "{name}");
        }
    }

    #[test]
    fn answers_are_read_as_they_are_written() {
        assert_eq!(answer("nhwc"), Some(Answer::Copies(Copies::Needed, More::Nothing)));
        assert_eq!(answer("rounded+256"), Some(Answer::Copies(Copies::Rounded, More::Bytes(256 << 10))));
        assert_eq!(answer("none*7"), Some(Answer::Copies(Copies::None, More::Parts(7))));
        let parts = More::PartsOfTiles { parts: 5, filters: 64, values: 32 };
        assert_eq!(answer("nhwc*5:64x32"), Some(Answer::Copies(Copies::Needed, parts)));
        let tail = More::Tail(Tiles { rows: 128, columns: 64, cluster: [1, 2], loops: 16 });
        assert_eq!(answer("nhwc@128x64/1x2/16"), Some(Answer::Copies(Copies::Needed, tail)));
        assert_eq!(answer("products*16"), Some(Answer::Products(16)));
        assert_eq!(answer("tensors*24"), Some(Answer::Tensors(24)));
        assert_eq!(answer("unheard"), None);
    }
}
