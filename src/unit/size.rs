//! Sizes as people write them: `70GiB`, `1.5 GiB`, `4096 B`.

use std::str::FromStr;

use thiserror::Error;

use super::Bytes;

/// The units in which sizes are written, and what one of each holds.
const UNITS: [(&str, Bytes); 5] =
    [("B", Bytes(1)), ("KiB", Bytes::KIB), ("MiB", Bytes::MIB), ("GiB", Bytes::GIB), ("TiB", Bytes(1 << 40))];

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Something else behind the number.
    #[error("`{0}` is no unit; B, KiB, MiB, GiB and TiB are")]
    Unit(String),
    /// Nothing behind the number: whoever writes 80 means 80 GiB.
    #[error("a size needs a unit: {0}GiB, or {0}B for bytes")]
    NoUnit(String),
    /// No number in front.
    #[error("write a number, such as 20GiB")]
    Number,
    /// More than 64 bits hold.
    #[error("this is more than 16 EiB")]
    TooLarge,
}

impl FromStr for Bytes {
    type Err = SizeError;

    /// A number with a binary unit; it may have decimals, the result is rounded. Nothing is nothing in any unit.
    fn from_str(text: &str) -> Result<Bytes, SizeError> {
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = text.get(number.len()..).unwrap_or_default();
        let number = number.trim_end();
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let whole = digits(number);
        let decimal = number.split_once('.').is_some_and(|(before, after)| digits(before) && digits(after));
        if !whole && !decimal {
            return Err(SizeError::Number);
        }
        if unit.is_empty() {
            let is_nothing = number.bytes().all(|digit| matches!(digit, b'0' | b'.'));
            return if is_nothing { Ok(Bytes::ZERO) } else { Err(SizeError::NoUnit(number.to_owned())) };
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, one) = known.ok_or_else(|| SizeError::Unit(unit.to_owned()))?;
        if whole {
            let product = number.parse::<u64>().ok().and_then(|number| number.checked_mul(one.0));
            return product.map(Bytes).ok_or(SizeError::TooLarge);
        }
        if one.0 == 1 {
            return Err(SizeError::Number);
        }
        let bytes = number.parse::<f64>().map_err(|_| SizeError::Number)? * one.0 as f64;
        if bytes < u64::MAX as f64 { Ok(Bytes::rounded(bytes)) } else { Err(SizeError::TooLarge) }
    }
}

impl Bytes {
    /// The size as it may be written, in the largest unit that loses nothing: `256 MiB`, `1000001 B`.
    pub fn exact(self) -> String {
        let fits = |(_, one): &&(&str, Bytes)| self.0 >= one.0 && self.0.is_multiple_of(one.0);
        let (name, one) = UNITS.iter().rev().find(fits).unwrap_or(&("B", Bytes(1)));
        format!("{} {name}", self.0 / one.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!("3GiB".parse(), Ok(Bytes(3 << 30)));
        assert_eq!("17".parse::<Bytes>(), Err(SizeError::NoUnit("17".to_owned())));
        assert_eq!("0".parse(), Ok(Bytes(0)));
        assert_eq!("17 B".parse(), Ok(Bytes(17)));
        assert_eq!("1.5 KiB".parse(), Ok(Bytes(1536)));
        assert_eq!("3GB".parse::<Bytes>(), Err(SizeError::Unit("GB".to_owned())));
        assert_eq!("99999999999TiB".parse::<Bytes>(), Err(SizeError::TooLarge));
        assert_eq!("99999999999.5TiB".parse::<Bytes>(), Err(SizeError::TooLarge));
        for wrong in ["GiB", "", "-1GiB", "1.5", "1.5B", ".5GiB", "1.GiB", "1e3", "inf", "1.2.3GiB", "+1"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn exact_sizes_are_read_as_they_were() {
        for size in [0, 1, 1023, 1024, 1025, 3 << 29, 256 << 20, 1 << 40, u64::MAX].map(Bytes) {
            assert_eq!(size.exact().parse(), Ok(size));
        }
        assert_eq!(Bytes(3 << 29).exact(), "1536 MiB");
    }
}
