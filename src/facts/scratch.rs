//! What operators take for themselves.
//!
//! In: lives of tensors in the order of their birth, each with the line that made it. Out: which of them go while their line still runs, and before all
//! that the line made meanwhile. An expression's temporary lives until its result is there, which outlives it.

/// When a tensor lives, as positions of events, and the line that makes it, with its calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScratchSpan<L> {
    /// Its birth.
    pub born: usize,
    /// Its end.
    pub dies: usize,
    /// The line.
    pub line: L,
}

/// Which are scratch.
pub(super) fn scratch<L: PartialEq + Copy>(spans: &[ScratchSpan<L>]) -> Vec<bool> {
    // Of those that come after: when another line first makes something, and the ones that outlive all before them, the next last.
    let (mut left, mut line) = (0, None);
    let mut outliving: Vec<(usize, usize)> = Vec::new();
    let mut next_born = 0;
    let mut found = vec![false; spans.len()];
    for (span, found) in spans.iter().zip(&mut found).rev() {
        if line != Some(span.line) {
            (left, line) = (next_born, Some(span.line));
        }
        while outliving.last().is_some_and(|(_, dies)| *dies <= span.dies) {
            outliving.pop();
        }
        let outlived = outliving.last().map_or(usize::MAX, |(born, _)| *born);
        *found = span.dies < left.min(outlived);
        outliving.push((span.born, span.dies));
        next_born = span.born;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of some lives are scratch, by birth, end and line.
    fn of(spans: &[(usize, usize, usize)]) -> Vec<bool> {
        let span = |&(born, dies, line): &(usize, usize, usize)| ScratchSpan { born, dies, line };
        scratch(&spans.iter().map(span).collect::<Vec<_>>())
    }

    #[test]
    fn scratch_goes_within_its_line_and_before_what_the_line_makes_meanwhile() {
        assert_eq!(
            of(&[(0, 90, 1), (1, 6, 1), (2, 4, 1), (8, 90, 2)]),
            [false, true, true, false],
            "an operator's result, then what it computes with, and its own scratch in that"
        );
        assert_eq!(of(&[(0, 3, 1), (2, 90, 1), (5, 9, 2)]), [false, false, false], "torch.relu(a + b)");
        assert_eq!(of(&[(0, 9, 1), (2, 7, 2), (10, 90, 3)]), [false, true, false], "what another line uses");
        assert_eq!(of(&[(0, usize::MAX, 1)]), [false], "what stays to the end");
    }
}
