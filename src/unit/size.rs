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
}
