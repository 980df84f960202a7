//! Days, for suppressions that end. The clock is not read here.

use std::fmt;
use std::str::FromStr;

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// A day that exists; years have four digits.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        let exists = year <= 9999 && (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
        exists.then_some(Date { year, month, day })
    }

    /// The day, in UTC, of a moment in seconds since the Unix epoch; the last day that can be written for later ones.
    pub fn of_unix(seconds: u64) -> Date {
        let mut days = seconds / (24 * 60 * 60);
        let mut date = Date { year: 1970, month: 1, day: 1 };
        while date.year < 9999 && days >= days_of_year(date.year) {
            days -= days_of_year(date.year);
            date.year += 1;
        }
        while date.month < 12 && days >= u64::from(days_of(date.year, date.month)) {
            days -= u64::from(days_of(date.year, date.month));
            date.month += 1;
        }
        let last = days_of(date.year, date.month);
        date.day = u8::try_from(days + 1).unwrap_or(last).min(last);
        date
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u16) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl FromStr for Date {
    type Err = &'static str;

    /// ISO 8601 with hyphens: `2027-01-31`.
    fn from_str(text: &str) -> Result<Date, &'static str> {
        const WRITE: &str = "write a day that exists, such as 2027-01-31";
        let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return Err(WRITE) };
        let digits =
            |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
            return Err(WRITE);
        }
        match (year.parse(), month.parse(), day.parse()) {
            (Ok(year), Ok(month), Ok(day)) => Date::new(year, month, day).ok_or(WRITE),
            _ => Err(WRITE),
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_they_are_written() {
        for day in ["2027-01-01", "2028-02-29", "2000-02-29", "0001-12-31"] {
            assert_eq!(day.parse::<Date>().map(|date| date.to_string()).as_deref(), Ok(day));
        }
        for wrong in
            ["2027-02-29", "2100-02-29", "2027-13-01", "2027-00-01", "2027-04-31", "2027-4-1", "27-01-01"]
        {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
        for wrong in ["", "tomorrow", "2027-01-01T00:00", "+027-01-01", "2027/01/01", "2027-01-01-01"] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_have_their_day_in_utc() {
        let day = |seconds| Date::of_unix(seconds).to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_399), "2000-02-28");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_798_761_599), "2026-12-31");
        assert_eq!(day(1_798_761_600), "2027-01-01");
        assert_eq!(day(u64::MAX), "9999-12-31");
    }

    #[test]
    fn days_are_ordered() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        assert!(day("2026-12-31") < day("2027-01-01") && day("2027-01-31") < day("2027-02-01"));
    }
}
