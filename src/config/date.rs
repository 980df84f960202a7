//! Days, for suppressions that end. The clock is not read here.

use jiff::civil::Date;

/// Reads a day as ISO 8601 writes it with hyphens: `2027-01-31`. The error says what to write.
pub(super) fn day(text: &str) -> Result<Date, &'static str> {
    // Whatever else is a way to write a day is written otherwise again.
    let read = text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    read.ok_or("write a day that exists, such as 2027-01-31")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_they_are_written() {
        for text in ["2027-01-01", "2028-02-29", "2000-02-29", "0001-12-31"] {
            assert_eq!(day(text).map(|date| date.to_string()).as_deref(), Ok(text));
        }
        for wrong in
            ["2027-02-29", "2100-02-29", "2027-13-01", "2027-00-01", "2027-04-31", "2027-4-1", "27-01-01"]
        {
            assert!(day(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["", "tomorrow", "20270101", "2027-01-01T00:00", "+027-01-01", "2027/01/01", "2027-01-01-01"]
        {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
