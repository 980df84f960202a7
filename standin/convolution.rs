//! The workspace of a convolution, by the way in which cuDNN computes it.
//!
//! cuDNN has about a hundred engines, and which one it takes is its own business. What each of them asks for was measured, with the engine's
//! number and knobs: 203,682 convolutions in three directions, on an H100 with PyTorch 2.11 (CUDA 13.0, cuDNN 9.19; TF32 as PyTorch sets
//! it, `benchmark` off). One of the [`formulas`] is right to 1 KiB for 96 % of those passes forward, 95 % to the input, 86 % to the weights; which
//! one is decided by [`engines`], a table fitted to two thirds of the convolutions. Of the last third, a pass forward is right in 83 %, to the input
//! in 86 %, to the weights in 57 %, and within a tenth of the tensors' own size in 88, 90 and 76 %. Of the layers of public nets in it, that is 93, 95
//! and 89 %. Over all it is too little: by 5, 1 and 8 % of the tensors.

use crate::engines::{self, Direction, Tiles};
use crate::workspace::width;

mod formulas;

/// A tensor as cuDNN knows it.
#[derive(Clone)]
pub(crate) struct Tensor {
    /// `cudnnDataType_t`.
    pub(crate) kind: i32,
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// How a filter moves, by dimension of an image.
#[derive(Clone, Default)]
pub(crate) struct Window {
    pub(crate) strides: Vec<i64>,
    pub(crate) paddings: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
}

impl Tensor {
    fn size(&self, at: usize) -> usize {
        self.sizes.get(at).map_or(1, |size| number(*size))
    }

    /// Everything behind the first two sizes: pixels, or taps of a filter.
    fn area(&self) -> usize {
        (2..self.sizes.len()).map(|at| self.size(at)).product()
    }

    /// Whether channels lie closest together.
    fn has_channels_last(&self) -> bool {
        self.strides.get(1) == Some(&1) && self.area() > 1
    }
}

/// A size, which is at least one.
fn number(value: i64) -> usize {
    usize::try_from(value).unwrap_or(1).max(1)
}

/// `CUDNN_DATA_FLOAT`, `CUDNN_DATA_HALF`, `CUDNN_DATA_BFLOAT16`: the types that were measured.
const KINDS: [i32; 3] = [0, 2, 9];
/// Multiprocessors of an H100, which is also how many blocks of the kernels that matter run at a time; and how many of them where blocks
/// stand in clusters of 0, 1, 2, ... 8, for not every group of multiprocessors holds a whole number of clusters.
const BLOCKS: [usize; 9] = [132, 132, 132, 117, 120, 110, 102, 105, 120];
/// A convolution in numbers.
pub(crate) struct Convolution {
    direction: Direction,
    /// Where [`KINDS`] has the type.
    kind: usize,
    bytes: usize,
    is_last: bool,
    images: usize,
    groups: usize,
    /// Of the input, of a group.
    channels: usize,
    /// Of the output, of a group.
    filters: usize,
    /// Pixels of an image of the input and of the output, taps of the filter.
    input: usize,
    output: usize,
    taps: usize,
    /// Size, filter, stride, padding and dilation by dimension.
    sides: Vec<Side>,
    /// The last but one side of the output.
    rows: usize,
}

#[derive(Clone, Copy)]
struct Side {
    input: usize,
    output: usize,
    filter: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
}

impl Convolution {
    /// From input, weights and output; nothing for a type that was not measured.
    pub(crate) fn new(
        direction: Direction,
        [input, weights, output]: &[Tensor; 3],
        window: &Window,
    ) -> Option<Convolution> {
        let channels = weights.size(1);
        let groups = (input.size(1) / channels).max(1);
        let of = |values: &[i64], at: usize| values.get(at).copied();
        let sides: Vec<_> = (0..input.sizes.len().saturating_sub(2))
            .map(|at| Side {
                input: input.size(at + 2),
                output: output.size(at + 2),
                filter: weights.size(at + 2),
                stride: of(&window.strides, at).map_or(1, number),
                padding: of(&window.paddings, at).and_then(|value| usize::try_from(value).ok()).unwrap_or(0),
                dilation: of(&window.dilations, at).map_or(1, number),
            })
            .collect();
        Some(Convolution {
            direction,
            kind: KINDS.iter().position(|kind| *kind == input.kind)?,
            bytes: width(input.kind),
            is_last: input.has_channels_last() || output.has_channels_last(),
            images: input.size(0),
            groups,
            channels,
            filters: (weights.size(0) / groups).max(1),
            input: input.area(),
            output: output.area(),
            taps: weights.area(),
            rows: sides.iter().rev().nth(1).map_or(1, |side| side.output),
            sides,
        })
    }

    /// Channels that tensor cores read together.
    fn multiple(&self) -> usize {
        if self.bytes == 2 { 8 } else { 4 }
    }

    /// Channels of a group where both sides of it get the same power of two.
    fn even(&self) -> usize {
        self.channels.max(self.filters).max(self.multiple()).next_power_of_two()
    }

    /// Tiles of a result, those of the last round, into how many parts at most each of them may be cut, and how often the kernel loops for one.
    fn tiles(&self, tiles: &Tiles) -> Tail {
        let (channels, filters) = if self.groups > 1 {
            (self.even(), self.groups * self.even())
        } else {
            (self.channels, self.filters)
        };
        let (across, down, depth) = match self.direction {
            Direction::Forward => {
                (self.images * self.output, filters.div_ceil(tiles.columns), channels * self.taps)
            }
            Direction::ToInput => {
                let (made, read) = if self.groups > 1 { (filters, channels) } else { (channels, filters) };
                (self.images * self.input, made.div_ceil(tiles.columns), read * self.taps)
            }
            Direction::ToWeights => {
                (filters, channels.div_ceil(tiles.columns) * self.taps, self.images * self.output)
            }
        };
        let all = across.div_ceil(tiles.rows).next_multiple_of(tiles.cluster[0])
            * down.next_multiple_of(tiles.cluster[1]);
        let cluster = tiles.cluster[0] * tiles.cluster[1];
        let blocks = BLOCKS.get(cluster).copied().unwrap_or(BLOCKS[8]);
        let left = all % blocks;
        Tail {
            left,
            parts: blocks.checked_div(left).unwrap_or(1),
            loops: depth / if self.bytes == 2 { 64 } else { 32 },
            is_after_others: all > blocks,
        }
    }

    /// What [`engines`] asks for, in the order of its names.
    fn traits(&self) -> Vec<usize> {
        let Convolution { images, groups, channels, filters, input, output, taps, .. } = *self;
        let most = |of: fn(&Side) -> usize| self.sides.iter().map(of).max().unwrap_or(0);
        let alignment = |count: usize| 1 << count.trailing_zeros().min(3);
        let (pixels, points) = (images * output, images * input);
        let (depth, pairs) = (channels * taps, channels * filters);
        let tiles = |count: usize| count.div_ceil(128);
        let [forward, to_input, to_weights] = [
            tiles(pixels) * tiles(filters),
            tiles(points) * tiles(channels),
            tiles(filters) * tiles(channels) * taps,
        ];
        let round = BLOCKS[0];
        let last = self.sides.last();
        let mut traits = vec![
            images,
            channels,
            filters,
            groups,
            input,
            output,
            taps,
            last.map_or(1, |side| side.filter),
            most(|side| side.stride),
            most(|side| side.dilation),
            most(|side| side.padding),
            self.sides.len(),
            self.kind,
            usize::from(self.is_last),
            alignment(channels),
            alignment(filters),
            pixels,
            points,
            depth,
            pairs,
            self.sides.first().map_or(1, |side| side.filter),
            self.rows,
            pixels * filters * depth,
            forward,
            forward % round,
            to_weights,
            pairs * taps,
            to_input,
            to_weights % round,
            to_input % round,
            last.map_or(1, |side| side.input),
        ];
        traits.extend(engines::usual(self.direction).iter().flat_map(|tiles| {
            let Tail { left, parts, .. } = self.tiles(tiles);
            [left, parts]
        }));
        traits
    }
}

/// The last round of tiles.
struct Tail {
    left: usize,
    parts: usize,
    loops: usize,
    is_after_others: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: i32 = 0;
    const HALF: i32 = 2;
    const BRAIN: i32 = 9;

    fn tensor(kind: i32, is_last: bool, sizes: [usize; 4]) -> Tensor {
        let [n, c, h, w] = sizes.map(|size| i64::try_from(size).unwrap());
        let strides = if is_last { vec![c * h * w, 1, w * c, c] } else { vec![c * h * w, h * w, w, 1] };
        Tensor { kind, sizes: vec![n, c, h, w], strides }
    }

    /// Rows as they were measured, of those to which nothing was fitted: one for each way of computing that they get right. Engines keep counters that are not modelled: some hundred bytes.
    #[test]
    fn convolutions_take_what_they_were_seen_to_take() {
        use Direction::{Forward, ToInput, ToWeights};
        let rows = [
            // Nothing to copy; copies of everything; of what is read.
            (Forward, SINGLE, true, [16, 2048, 10, 10], [1024, 2048, 1, 1], [16, 1024, 10, 10], 1, 0, 0),
            (Forward, SINGLE, false, [128, 64, 112, 4], [64, 64, 3, 3], [128, 64, 112, 4], 1, 1, 29_507_600),
            (Forward, SINGLE, false, [4, 112, 4, 4], [28, 112, 3, 3], [4, 28, 4, 4], 1, 1, 141_584),
            // In groups; with channels as they are, twice; back to channels first.
            (Forward, SINGLE, false, [3, 512, 9, 384], [512, 128, 3, 3], [3, 512, 5, 192], 2, 1, 29_491_216),
            (Forward, HALF, false, [8, 3, 200, 200], [64, 3, 5, 5], [8, 64, 200, 200], 1, 2, 42_889_616),
            (Forward, SINGLE, true, [256, 3, 64, 64], [24, 3, 5, 5], [256, 24, 16, 16], 4, 2, 12_590_128),
            (Forward, SINGLE, true, [2, 3, 112, 112], [64, 3, 11, 11], [2, 64, 27, 27], 4, 2, 767_248),
            // Five images in a product that is cut in ten; nothing but the last round of tiles.
            (Forward, SINGLE, false, [5, 40, 1, 1], [960, 40, 1, 1], [5, 960, 1, 1], 1, 0, 192_256),
            (
                Forward,
                SINGLE,
                true,
                [16, 256, 13, 13],
                [1024, 256, 3, 3],
                [16, 1024, 13, 13],
                1,
                1,
                7_340_415,
            ),
            (ToInput, SINGLE, false, [12, 3, 224, 224], [192, 3, 32, 32], [12, 192, 7, 7], 32, 0, 10_036_240),
            (ToInput, SINGLE, false, [48, 64, 28, 160], [64, 64, 4, 4], [48, 64, 14, 80], 2, 1, 69_075_091),
            (ToInput, SINGLE, true, [48, 12, 84, 84], [32, 12, 8, 8], [48, 32, 20, 20], 4, 0, 2_555_920),
            (ToInput, SINGLE, true, [128, 3, 64, 64], [64, 3, 7, 7], [128, 64, 32, 32], 2, 3, 39_883_536),
            // By Winograd; for each image; in three parts; in parts of tiles; in the last round of tiles.
            (ToWeights, SINGLE, false, [512, 32, 2, 2], [128, 32, 3, 3], [512, 128, 2, 2], 1, 1, 12_386_304),
            (ToWeights, SINGLE, false, [16, 20, 7, 7], [20, 20, 1, 1], [16, 20, 7, 7], 1, 0, 25_600),
            (
                ToWeights,
                BRAIN,
                false,
                [64, 3, 128, 128],
                [384, 3, 16, 16],
                [64, 384, 8, 8],
                16,
                0,
                30_933_136,
            ),
            (ToWeights, SINGLE, false, [32, 64, 14, 14], [128, 64, 3, 3], [32, 128, 7, 7], 2, 1, 2_999_023),
            (ToWeights, SINGLE, false, [4, 96, 160, 160], [96, 96, 3, 3], [4, 96, 80, 80], 2, 1, 57_741_991),
        ];
        for (direction, kind, is_last, input, weights, output, stride, padding, measured) in rows {
            let tensors = [input, weights, output].map(|sizes| tensor(kind, is_last, sizes));
            let window =
                Window { strides: vec![stride; 2], paddings: vec![padding; 2], dilations: vec![1; 2] };
            let modelled = Convolution::new(direction, &tensors, &window).unwrap().workspace();
            assert!(
                modelled.abs_diff(measured) <= 1024,
                "{direction:?} {input:?} {weights:?}: {modelled}, and not {measured}"
            );
        }
    }

    /// What `vmap` makes of a gradient of each sample: 9,753,984 bytes on an H100.
    #[test]
    fn a_gradient_of_each_sample_takes_no_room_for_all() {
        let tensors = [[1, 1920, 26, 26], [19_200, 32, 3, 3], [1, 19_200, 24, 24]]
            .map(|sizes| tensor(SINGLE, false, sizes));
        let window = Window { strides: vec![1; 2], paddings: vec![0; 2], dilations: vec![1; 2] };
        let bytes = Convolution::new(Direction::ToWeights, &tensors, &window).unwrap().workspace();
        assert!(bytes < 10 << 20, "{bytes}");
    }

    #[test]
    fn what_was_not_measured_has_no_workspace() {
        const DOUBLE: i32 = 1;
        let tensors =
            [[8, 64, 56, 56], [64, 64, 3, 3], [8, 64, 56, 56]].map(|sizes| tensor(DOUBLE, false, sizes));
        assert!(Convolution::new(Direction::Forward, &tensors, &Window::default()).is_none());
    }
}
