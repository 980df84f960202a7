//! Amounts of memory, as such or as a share of something.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::unit::{Bytes, exact_percent};

/// An amount of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// So many bytes: `70GiB`, or a bare number.
    Bytes(Bytes),
    /// A share, 1 being the whole: `5%`.
    Share(f64),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let Some(number) = text.strip_suffix('%') else {
            return text
                .parse()
                .map(Amount::Bytes)
                .map_err(|error: crate::unit::SizeError| error.to_string());
        };
        let number = number.trim_end();
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match number.parse::<f64>() {
            Ok(percent) if plain && percent.is_finite() => Ok(Amount::Share(percent / 100.0)),
            _ => Err("write a percentage as 5% or 2.5%".to_owned()),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Bytes(bytes) => write!(f, "{bytes}"),
            Amount::Share(share) => f.write_str(&exact_percent(*share)),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        struct WrittenAmount;

        impl Visitor<'_> for WrittenAmount {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount such as \"70GiB\", \"5%\" or a number of bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                let bytes = u64::try_from(number).map_err(|_| E::custom("an amount is not negative"))?;
                Ok(Amount::Bytes(Bytes(bytes)))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount::Bytes(Bytes(number)))
            }
        }

        deserializer.deserialize_any(WrittenAmount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_sizes_or_shares() {
        assert_eq!("70GiB".parse(), Ok(Amount::Bytes(Bytes(70 << 30))));
        assert_eq!("5%".parse(), Ok(Amount::Share(0.05)));
        assert_eq!("2.5 %".parse(), Ok(Amount::Share(0.025)));
        for wrong in ["%", "-5%", "inf%", "nan%", "1e3%", "5 percent", ""] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_shown_as_they_were_meant() {
        let shown = |text: &str| text.parse::<Amount>().unwrap().to_string();
        assert_eq!(
            (shown("7%"), shown("2.5%"), shown("0.3%")),
            ("7 %".into(), "2.5 %".into(), "0.3 %".into())
        );
        assert_eq!(shown("1536MiB"), "1.5 GiB");
    }
}
