//! Sizes as people write them: `70GiB`, `1.5 GiB`, `4096`.

use std::str::FromStr;

use thiserror::Error;

use super::Bytes;

/// The units in which sizes are written, and what one of each holds.
const UNITS: [(&str, Bytes); 6] = [
    ("", Bytes(1)),
    ("B", Bytes(1)),
    ("KiB", Bytes::KIB),
    ("MiB", Bytes::MIB),
    ("GiB", Bytes::GIB),
    ("TiB", Bytes(1 << 40)),
];

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Something else behind the number.
    #[error("`{0}` is no unit; B, KiB, MiB, GiB and TiB are")]
    Unit(String),
    /// No number in front.
    #[error("write a number, such as 20GiB")]
    Number,
    /// More than 64 bits hold.
    #[error("this is more than 16 EiB")]
    TooLarge,
}

impl FromStr for Bytes {
    type Err = SizeError;

    /// A number with or without a binary unit. With a unit it may have decimals; the result is rounded.
    fn from_str(text: &str) -> Result<Bytes, SizeError> {
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = text.get(number.len()..).unwrap_or_default();
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, one) = known.ok_or_else(|| SizeError::Unit(unit.to_owned()))?;
        let number = number.trim_end();
        let whole = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        if whole {
            let product = number.parse::<u64>().ok().and_then(|number| number.checked_mul(one.0));
            return product.map(Bytes).ok_or(SizeError::TooLarge);
        }
        let decimal = number.split_once('.').is_some_and(|(before, after)| {
            [before, after]
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit()))
        });
        if !decimal || one.0 == 1 {
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
        assert_eq!("17".parse(), Ok(Bytes(17)));
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
