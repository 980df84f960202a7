//! Bounds of materiality as they are written: `"always"`, `"never"`, `{ saved = "5%" }`, or a list of such.
//!
//! Reading and writing stand side by side, so that what `memlint config` shows can be written into a file.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use super::amount::Amount;
use super::document::Document;
use super::error::{ConfigError, Fault};
use crate::unit::{Bytes, exact_percent};
use crate::verdict::Bound;

/// The word for a bound that everything reaches.
pub(super) const ALWAYS: &str = "always";
/// The word for a level that nothing reaches.
pub(super) const NEVER: &str = "never";

/// What may stand for the bounds of a level.
#[derive(Debug)]
pub(super) enum WrittenBounds {
    /// `"always"`, `"never"`.
    Word(String),
    /// `{ saved = "5%" }`.
    Measure(Box<WrittenMeasure>),
    /// Several: any is enough.
    List(Vec<Spanned<WrittenBounds>>),
}

/// A bound between braces.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenMeasure {
    saved: Option<Spanned<Amount>>,
    held: Option<Spanned<Amount>>,
    reserved: Option<Spanned<Amount>>,
    bytes: Option<Spanned<Amount>>,
    full_within: Option<Spanned<u64>>,
}

/// A measure of which so much is wanted, beside another measure's key.
struct Wanted<'m> {
    key: &'static str,
    amount: &'m Spanned<Amount>,
    bound: fn(f64, Bytes) -> Bound,
}

/// The bounds of a level.
pub(super) fn read(document: &Document, written: &Spanned<WrittenBounds>) -> Result<Vec<Bound>, ConfigError> {
    match written.get_ref() {
        WrittenBounds::Word(word) if word == NEVER => Ok(Vec::new()),
        WrittenBounds::List(list) => list.iter().map(|one| bound(document, one)).collect(),
        WrittenBounds::Word(_) | WrittenBounds::Measure(_) => Ok(vec![bound(document, written)?]),
    }
}

/// One bound.
fn bound(document: &Document, written: &Spanned<WrittenBounds>) -> Result<Bound, ConfigError> {
    let wrong = |fault| document.wrong(written.span(), fault);
    match written.get_ref() {
        WrittenBounds::Word(word) if word == ALWAYS => Ok(Bound::Always),
        WrittenBounds::Word(word) => Err(wrong(Fault::NoBound(word.clone()))),
        WrittenBounds::List(_) => Err(wrong(Fault::ListOfLists)),
        WrittenBounds::Measure(measure) => measure.bound(document, written),
    }
}

impl WrittenMeasure {
    fn bound(&self, document: &Document, whole: &Spanned<WrittenBounds>) -> Result<Bound, ConfigError> {
        let measures = [
            ("saved", &self.saved, Bound::Peak as fn(f64, Bytes) -> Bound),
            ("held", &self.held, Bound::Held),
            ("reserved", &self.reserved, Bound::Reserved),
        ];
        let mut wanted = measures
            .into_iter()
            .filter_map(|(key, amount, bound)| amount.as_ref().map(|amount| Wanted { key, amount, bound }));
        match (wanted.next(), wanted.next(), &self.full_within) {
            (Some(one), Some(other), _) => {
                Err(document.wrong(other.amount.span(), Fault::TwoMeasures(one.key, other.key)))
            }
            (Some(one), None, Some(turns)) => {
                Err(document.wrong(turns.span(), Fault::TwoMeasures(one.key, "full-within")))
            }
            (Some(one), None, None) => one.read(document, self.bytes.as_ref()),
            (None, _, Some(turns)) => match &self.bytes {
                Some(bytes) => Err(document.wrong(bytes.span(), Fault::BytesBesideNoShare)),
                None => Ok(Bound::Full(*turns.get_ref())),
            },
            (None, _, None) => Err(document.wrong(whole.span(), Fault::NoMeasure)),
        }
    }
}

impl Wanted<'_> {
    /// The bound, with the bytes that are wanted beside a share.
    fn read(&self, document: &Document, least: Option<&Spanned<Amount>>) -> Result<Bound, ConfigError> {
        let wrong = |written: &Spanned<Amount>, fault| Err(document.wrong(written.span(), fault));
        match (*self.amount.get_ref(), least.map(|least| (least, *least.get_ref()))) {
            (Amount::Share(share), _) if share > 1.0 => wrong(self.amount, Fault::MoreThanAll),
            (Amount::Share(share), None) => Ok((self.bound)(share, Bytes::ZERO)),
            (Amount::Share(share), Some((_, Amount::Bytes(bytes)))) => Ok((self.bound)(share, bytes)),
            (Amount::Share(_), Some((least, Amount::Share(_)))) => wrong(least, Fault::ShareForBytes),
            (Amount::Bytes(bytes), None) => Ok((self.bound)(0.0, bytes)),
            (Amount::Bytes(_), Some((least, _))) => wrong(least, Fault::BytesBesideNoShare),
        }
    }
}

/// Bounds as they may be written.
pub(super) fn written(bounds: &[Bound]) -> String {
    match bounds {
        [] => format!("\"{NEVER}\""),
        [one] => written_one(one),
        several => format!("[{}]", several.iter().map(written_one).collect::<Vec<_>>().join(", ")),
    }
}

fn written_one(bound: &Bound) -> String {
    let measured = |key: &str, share: f64, bytes: Bytes| {
        let close = |text: String| text.replace(' ', "");
        let (share_of, size) = (close(exact_percent(share)), close(bytes.exact()));
        match (share > 0.0, bytes > Bytes::ZERO) {
            (true, true) => format!("{{ {key} = \"{share_of}\", bytes = \"{size}\" }}"),
            (false, true) => format!("{{ {key} = \"{size}\" }}"),
            (_, false) => format!("{{ {key} = \"{share_of}\" }}"),
        }
    };
    match *bound {
        Bound::Always => format!("\"{ALWAYS}\""),
        Bound::Peak(share, bytes) => measured("saved", share, bytes),
        Bound::Held(share, bytes) => measured("held", share, bytes),
        Bound::Reserved(share, bytes) => measured("reserved", share, bytes),
        Bound::Full(turns) => format!("{{ full-within = {turns} }}"),
    }
}

impl<'de> Deserialize<'de> for WrittenBounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WrittenBounds, D::Error> {
        struct Kinds;

        impl<'de> Visitor<'de> for Kinds {
            type Value = WrittenBounds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bound such as { saved = \"5%\" }, \"always\", \"never\" or a list of bounds")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<WrittenBounds, E> {
                Ok(WrittenBounds::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenBounds, A::Error> {
                WrittenMeasure::deserialize(MapAccessDeserializer::new(map))
                    .map(Box::new)
                    .map(WrittenBounds::Measure)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WrittenBounds, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(WrittenBounds::List)
            }
        }

        deserializer.deserialize_any(Kinds)
    }
}
