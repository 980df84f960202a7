//! The rows of both forms, from the JSON to what they add up to.
//!
//! `.raw.json.gz` is a list of rows of four numbers, `.json` a list of two lists: times, and rows of nine sizes. Which it
//! is shows in the second element: it begins with a number in the one and with a row in the other.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

use super::levels::{CategoryBytes, RunningLevel, composition};
use super::passes::{PassSplitter, ProfiledEvent, Steps, TensorAction};
use super::{Category, Form, MemoryTrend, PassSign, ProfilerTimeline};
use crate::unit::{Confidence, Micros};

/// Numbers that one pass takes.
const NUMBERS_OF_PASS: u64 = 10;
/// Numbers of a row of sizes: a constant 0, and one for each category.
const SIZES: usize = 9;
/// Passes from which on their count is more than an accident.
const SEVERAL: usize = 3;

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Rows of four numbers.
    Events,
    /// Times, and rows of nine sizes.
    Levels,
}

/// What was read so far.
#[derive(Debug)]
pub(super) struct RowsRead {
    most: u64,
    held: u64,
    shape: Shape,
    levels: RunningLevel,
    steps: Steps,
    older: CategoryBytes,
    kept: Vec<(Micros, CategoryBytes)>,
}

impl RowsRead {
    /// Holds this many numbers at most.
    pub(super) fn within(most: u64) -> RowsRead {
        RowsRead {
            most,
            held: 0,
            shape: Shape::Events,
            levels: RunningLevel::default(),
            steps: Steps::default(),
            older: CategoryBytes::default(),
            kept: Vec::new(),
        }
    }

    /// Whether reading ended because there was too much.
    pub(super) fn are_too_many(&self) -> bool {
        self.held > self.most
    }

    fn hold<E: Error>(&mut self, numbers: u64) -> Result<(), E> {
        self.held += numbers;
        if self.are_too_many() { Err(E::custom("too many numbers")) } else { Ok(()) }
    }

    /// A row of `.raw.json.gz`: nanoseconds (-1 before the recording), action, bytes, category.
    fn event<E: Error>(&mut self, [time, action, bytes, category]: [i64; 4]) -> Result<(), E> {
        let row = self.levels.rows + 1;
        let category = usize::try_from(category).ok().and_then(|at| Category::ALL.get(at).copied());
        let category = category.ok_or_else(|| E::custom(format!("row {row} is of no category")))?;
        let action = match action {
            1 => TensorAction::Preexisting,
            2 => TensorAction::Create,
            3 => TensorAction::IncrementVersion,
            4 => TensorAction::Destroy,
            _ => return Err(E::custom(format!("row {row} has the unknown action {action}"))),
        };
        let time = (time >= 0).then_some(Micros(time / 1_000));
        let known = self.steps.passes.len();
        self.steps.look(ProfiledEvent { time, action, category }, &mut self.levels);
        if self.steps.passes.len() > known {
            self.hold(NUMBERS_OF_PASS)?;
        }
        let mut level = self.levels.now;
        add(&mut level, category, bytes);
        if action == TensorAction::Preexisting {
            add(&mut self.older, category, bytes);
        }
        self.levels.set(time, level);
        Ok(())
    }

    /// A row of `.json`: microseconds, and what there is from then on.
    fn sizes<E: Error>(&mut self, time: i64, [_, level @ ..]: [Number; SIZES]) -> Result<(), E> {
        self.hold(SIZES as u64)?;
        let level = level.map(|number| number.0);
        self.kept.push((Micros(time), level));
        self.levels.set(Some(Micros(time)), level);
        Ok(())
    }

    pub(super) fn finish(self) -> ProfilerTimeline {
        let RowsRead { shape, levels, steps, older, kept, .. } = self;
        let (passes, agrees) = match shape {
            Shape::Events => (steps.passes, true),
            Shape::Levels => {
                let found = PassSplitter::of(&kept);
                (found.passes, found.gradients_agree)
            }
        };
        let found_by = match shape {
            _ if passes.is_empty() => PassSign::Nothing,
            Shape::Events => PassSign::OptimizerSteps,
            Shape::Levels => PassSign::Activations,
        };
        let is_sure = agrees && passes.len() >= SEVERAL;
        ProfilerTimeline {
            form: match shape {
                Shape::Events => Form::Events,
                Shape::Levels => Form::Levels,
            },
            rows: levels.rows,
            times: levels.times,
            older: (shape == Shape::Events).then(|| composition(&older)),
            peak_time: levels.peak_time,
            peak: composition(&levels.peak),
            reserved: None,
            at_end: composition(&levels.now),
            growth: MemoryTrend::of(&passes),
            found_by,
            confidence: if is_sure { Confidence::Medium } else { Confidence::Low },
            passes,
            below_zero: levels.below_zero,
            backwards: levels.backwards,
        }
    }
}

fn add(level: &mut CategoryBytes, category: Category, bytes: i64) {
    if let Some(place) = level.get_mut(category as usize) {
        *place = place.saturating_add(bytes);
    }
}

/// A whole number; the fraction of one that has any is cut off.
#[derive(Debug, Clone, Copy)]
struct Number(i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                i64::try_from(number).map(Number).map_err(|_| E::custom("a number beyond 63 bits"))
            }
            #[expect(clippy::cast_possible_truncation, reason = "such casts saturate")]
            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number as i64))
            }
        }
        deserializer.deserialize_i64(Any)
    }
}

/// The whole file.
pub(super) struct RowsDocument<'a>(pub(super) &'a mut RowsRead);

impl<'de> DeserializeSeed<'de> for RowsDocument<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowsDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let rows = self.0;
        let Some(first) = seq.next_element_seed(First(&mut *rows))? else { return Ok(()) };
        match seq.next_element_seed(Second { rows: &mut *rows, first: &first })? {
            None => rows.event(row(&first)?),
            Some(Shape::Events) => {
                while let Some(row) = seq.next_element::<[Number; 4]>()? {
                    rows.event(row.map(|number| number.0))?;
                }
                Ok(())
            }
            Some(Shape::Levels) => match seq.next_element::<Number>()? {
                None => Ok(()),
                Some(_) => Err(A::Error::custom("a third part behind times and sizes")),
            },
        }
    }
}

/// The first element: a row of events, or all times.
struct First<'a>(&'a mut RowsRead);

impl<'de> DeserializeSeed<'de> for First<'_> {
    type Value = Vec<i64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<i64>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for First<'_> {
    type Value = Vec<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<i64>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(Number(number)) = seq.next_element()? {
            self.0.hold(1)?;
            numbers.push(number);
        }
        Ok(numbers)
    }
}

fn row<E: Error>(numbers: &[i64]) -> Result<[i64; 4], E> {
    let length = numbers.len();
    numbers.try_into().map_err(|_| E::custom(format!("a row of {length} numbers instead of 4")))
}

/// The second element: the next row of events, or all sizes. It says which.
struct Second<'a> {
    rows: &'a mut RowsRead,
    first: &'a [i64],
}

impl<'de> DeserializeSeed<'de> for Second<'_> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Second<'_> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of numbers or a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let Second { rows, first } = self;
        let mut times = first.iter();
        let mut next = match seq.next_element::<Inner>()? {
            Some(Inner::Number(number)) => {
                rows.event(row(first)?)?;
                let mut numbers = vec![number];
                while let Some(Number(number)) = seq.next_element()? {
                    rows.hold(1)?;
                    numbers.push(number);
                }
                rows.event(row(&numbers)?)?;
                return Ok(Shape::Events);
            }
            Some(Inner::Sizes(sizes)) => Some(sizes),
            None => None,
        };
        rows.shape = Shape::Levels;
        while let Some(sizes) = next {
            let time = times.next().ok_or_else(|| A::Error::custom("more rows of sizes than times"))?;
            rows.sizes(*time, sizes)?;
            next = seq.next_element::<[Number; SIZES]>()?;
        }
        match times.next() {
            None => Ok(Shape::Levels),
            Some(_) => Err(A::Error::custom("fewer rows of sizes than times")),
        }
    }
}

/// What the second element begins with.
enum Inner {
    Number(i64),
    Sizes([Number; SIZES]),
}

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Inner, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Inner;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a row of sizes")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Inner, E> {
                Ok(Inner::Number(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Inner, E> {
                i64::try_from(number).map(Inner::Number).map_err(|_| E::custom("a number beyond 63 bits"))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Inner, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Inner::Sizes)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
