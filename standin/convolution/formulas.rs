//! What the ways of computing a convolution need.

use super::{Convolution, Direction, Side, Tail};
use crate::engines::{self, Answer, Copies, More, Tiles};

/// Sums are kept in 32 bits.
const SUM: usize = size_of::<f32>();
/// What is copied is followed by a counter.
const COUNTER: usize = 16;
/// Parts of a product are aligned, and a counter follows them.
const ALIGNED: usize = 256 + COUNTER;
/// Winograd's transform of four by four results of a filter of three by three has so many numbers.
const WINOGRAD: usize = 36;
const WINOGRAD_SIDE: usize = 4;

impl Convolution {
    /// Bytes that the engine asks for which cuDNN is taken to choose.
    pub(crate) fn workspace(&self) -> usize {
        let bytes = match engines::of(self.direction, &self.traits()) {
            Answer::Winograd => return self.winograd(),
            Answer::Images => return self.images * self.sums(1),
            Answer::Folded { always } => self.folded(always),
            Answer::Products(parts) => return parts * self.result() * SUM + ALIGNED,
            Answer::Tensors(sixteenths) => self.tensors() * sixteenths / 16,
            Answer::Copies(copies, more) => self.copied(copies) + self.more(copies, more),
        };
        if bytes > 0 { bytes + COUNTER } else { 0 }
    }

    /// Elements of what comes out, forward and to the input.
    fn result(&self) -> usize {
        let (channels, area) = match self.direction {
            Direction::ToInput => (self.channels, self.input),
            _ => (self.filters, self.output),
        };
        self.images * self.groups * channels * area
    }

    /// All tensors.
    fn tensors(&self) -> usize {
        let weights = self.groups * self.filters * self.channels * self.taps;
        let pixels = self.channels * self.input + self.filters * self.output;
        (self.images * self.groups * pixels + weights) * self.bytes
    }

    /// The gradient of the weights once, in 32 bits and with channels in multiples.
    fn sums(&self, multiple: usize) -> usize {
        let filters = (self.groups * self.filters).next_multiple_of(multiple);
        filters * self.channels.next_multiple_of(multiple) * self.taps * SUM
    }

    /// Copies of tensors in the order and with the channels that a kernel wants.
    fn copied(&self, copies: Copies) -> usize {
        let (input, output, weights) = match copies {
            Copies::None => return 0,
            Copies::Groups => return self.copied_evenly(),
            Copies::ToFirst => return self.copied_to_first(),
            Copies::Inputs => (Some(true), None, Some(true)),
            Copies::Filter => (None, None, Some(true)),
            Copies::All => (Some(true), Some(true), Some(true)),
            Copies::Needed | Copies::NeededAsIs => (Some(false), Some(false), Some(false)),
            Copies::Rounded | Copies::RoundedAsIs => {
                let reads = |direction| Some(self.direction != direction);
                (reads(Direction::ToInput), reads(Direction::Forward), reads(Direction::ToWeights))
            }
        };
        let multiple = self.pad(copies);
        let of = |is_always: Option<bool>,
                  lies: bool,
                  [count, padded]: [usize; 2],
                  channels: usize,
                  area: usize| {
            let wide = channels.next_multiple_of(multiple);
            let lies_right = (lies || self.is_last || area == 1) && [count, channels] == [padded, wide];
            match is_always {
                Some(is_always) if is_always || !lies_right => padded * wide * area * self.bytes,
                _ => 0,
            }
        };
        let Convolution { groups, channels, filters, .. } = *self;
        let images = [self.images * groups; 2];
        let all = [filters, filters.next_multiple_of(multiple)].map(|filters| groups * filters);
        of(input, groups * channels == 1, images, channels, self.input)
            + of(output, groups * filters == 1, images, filters, self.output)
            + of(weights, channels == 1, all, channels, self.taps)
    }

    /// Copies with as many channels as filters in each group.
    fn copied_evenly(&self) -> usize {
        let even = self.even();
        let of = |channels: [usize; 2], count: usize, area: usize| {
            let lies_right = (self.is_last || area == 1) && channels == [even; 2];
            if lies_right { 0 } else { count * self.groups * even * area * self.bytes }
        };
        of([self.channels, even], self.images, self.input)
            + of([self.filters, even], self.images, self.output)
            + of([self.channels, self.filters], even, self.taps)
    }

    /// Copies back to channels first.
    fn copied_to_first(&self) -> usize {
        let of = |count: usize, channels: usize, area: usize| {
            if self.is_last && area > 1 && channels > 1 { count * channels * area * self.bytes } else { 0 }
        };
        of(self.images, self.groups * self.channels, self.input)
            + of(self.images, self.groups * self.filters, self.output)
            + of(self.groups * self.filters, self.channels, self.taps)
    }

    /// The multiple that channels are brought to.
    fn pad(&self, copies: Copies) -> usize {
        match copies {
            Copies::None | Copies::NeededAsIs | Copies::RoundedAsIs => 1,
            _ => self.multiple(),
        }
    }

    fn more(&self, copies: Copies, more: More) -> usize {
        let pad = self.pad(copies);
        match more {
            More::Nothing => 0,
            More::Bytes(bytes) => bytes,
            More::Parts(parts) => parts * self.sums(pad),
            More::PartsOfTiles { parts, filters, values } => {
                let depth = self.channels.next_multiple_of(pad) * self.taps;
                let rounded = (self.groups * self.filters).next_multiple_of(filters);
                parts * rounded * depth.next_multiple_of(values) * SUM
            }
            More::Tail(tiles) => self.tail(&tiles),
        }
    }

    /// Sums of the tiles of the last round, each computed by several blocks, so that no multiprocessor is idle ("stream-K").
    fn tail(&self, tiles: &Tiles) -> usize {
        let Tail { left, parts, loops, is_after_others } = self.tiles(tiles);
        let loops = if is_after_others { loops * 4 } else { loops };
        let parts = parts.min(loops / tiles.loops.max(1));
        if parts > 1 { left * parts * tiles.rows * tiles.columns * SUM } else { 0 }
    }

    /// Copies where the steps of the filter are made channels.
    fn folded(&self, is_output_copied: bool) -> usize {
        let multiple = self.multiple();
        let product = |of: fn(&Side) -> usize| self.sides.iter().map(of).product::<usize>();
        let pixels = product(|side| side.input.div_ceil(side.stride));
        let taps = product(|side| {
            let shift = (side.stride - side.padding % side.stride) % side.stride;
            (side.filter + shift).div_ceil(side.stride)
        });
        let channels = (self.groups * self.channels * product(|side| side.stride)).next_multiple_of(multiple);
        let filters = self.groups * self.filters;
        let wide = filters.next_multiple_of(multiple);
        let lies_right = (self.is_last || self.output == 1 || filters == 1) && wide == filters;
        let output = if lies_right && !is_output_copied { 0 } else { self.images * wide * self.output };
        (self.images * channels * pixels + wide * channels * taps + output) * self.bytes
    }

    /// Winograd's transforms of both tensors and of the filter. Groups come one after the other: sixty of 32 and 320 channels, which are a gradient
    /// of each sample (`torch.func.vmap`), were seen to take less than a hundredth of what all their transforms would.
    fn winograd(&self) -> usize {
        let side = |side: &Side| if self.direction == Direction::ToInput { side.input } else { side.output };
        let tiles: usize = self.sides.iter().map(|one| side(one).div_ceil(WINOGRAD_SIDE)).product();
        let (channels, filters) = (self.channels, self.filters);
        WINOGRAD * (self.images * tiles * (channels + filters) + channels * filters) * SUM
    }
}
