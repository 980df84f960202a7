//! Numbers as a page holds them: a list a column, and what ascends as the steps between.

/// The steps of a column that mostly ascends: the first value, then each against the one before.
pub(super) fn steps(values: impl IntoIterator<Item = usize>) -> Vec<i64> {
    let mut before = 0;
    let step = |value: usize| {
        let value = whole(value);
        let step = value - before;
        before = value;
        step
    };
    values.into_iter().map(step).collect()
}

/// The steps of a column of bytes.
pub(super) fn steps_of_bytes(values: impl IntoIterator<Item = crate::unit::Bytes>) -> Vec<i64> {
    steps(values.into_iter().map(|bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX)))
}

/// A count as a number that has steps.
pub(super) fn whole(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A position, or -1 where there is none.
pub(super) fn or_none(value: Option<usize>) -> i64 {
    value.map_or(-1, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_values() {
        assert_eq!(steps([3, 5, 5, 4]), [3, 2, 0, -1]);
        assert_eq!(steps([usize::MAX, 0]), [i64::MAX, -i64::MAX]);
        assert_eq!((or_none(None), or_none(Some(7))), (-1, 7));
    }
}
