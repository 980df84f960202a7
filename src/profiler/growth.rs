//! Whether memory grows from pass to pass.
//!
//! In: what there is at the end of each pass. Out: growth with its rate, or none, or that too little was recorded. The
//! first pass is left out: in it the optimizer makes its state. Judged as the rules judge growth ([`crate::lives::growth`]);
//! the file has no lines, so nothing can be said of what grows but its category.

use super::{Category, ProfiledPass};
use crate::lives::growth::{FEWEST, of_levels};
use crate::unit::Bytes;

/// Whether memory grows.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryTrend {
    /// Fewer passes than can tell.
    TooShort,
    /// It grows until the end.
    Grows {
        /// The median rise from pass to pass.
        per_pass: Bytes,
        /// The passes that left more behind.
        rises: usize,
        /// What grew most from the second to the last pass, and by how much in all.
        mostly: Option<(Category, Bytes)>,
        /// Passes that were compared.
        passes: usize,
    },
    /// It does not.
    Steady {
        /// The lowest and the highest level at the end of a pass.
        between: (Bytes, Bytes),
        /// Passes that were compared.
        passes: usize,
    },
}

impl MemoryTrend {
    /// The growth over some passes.
    pub(super) fn of(passes: &[ProfiledPass]) -> MemoryTrend {
        let settled = passes.get(1..).unwrap_or_default();
        let totals: Vec<Bytes> = settled.iter().map(|pass| pass.resident.total()).collect();
        let series: Vec<f64> = totals.iter().map(|total| total.get() as f64).collect();
        if series.len() <= FEWEST.get() {
            return MemoryTrend::TooShort;
        }
        if let Some(growth) = of_levels(&series).filter(|growth| growth.slope >= 1.0) {
            let (per_pass, rises) = (Bytes::rounded(growth.slope), growth.rises);
            return MemoryTrend::Grows { per_pass, rises, mostly: mostly(settled), passes: settled.len() };
        }
        let least = totals.iter().copied().min().unwrap_or_default();
        let most = totals.iter().copied().max().unwrap_or_default();
        MemoryTrend::Steady { between: (least, most), passes: settled.len() }
    }
}

/// The category that grew most.
fn mostly(passes: &[ProfiledPass]) -> Option<(Category, Bytes)> {
    let (first, last) = (passes.first()?, passes.last()?);
    let rises = first.resident.iter().zip(last.resident.iter());
    let rises = rises.map(|((category, before), (_, after))| (category, after - before));
    rises.max_by_key(|(_, rise)| *rise).filter(|(_, rise)| *rise > Bytes::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiler::Composition;

    fn growth(totals: &[u64]) -> MemoryTrend {
        let pass = |&bytes: &u64| {
            let mut resident = [Bytes::ZERO; 8];
            resident[7] = Bytes(bytes);
            ProfiledPass { end: None, peak: Bytes(bytes), resident: Composition(resident) }
        };
        MemoryTrend::of(&totals.iter().map(pass).collect::<Vec<_>>())
    }

    #[test]
    fn the_first_pass_is_no_growth_and_few_passes_tell_nothing() {
        assert_eq!(growth(&[1, 9, 9, 9]), MemoryTrend::TooShort);
        assert_eq!(
            growth(&[1, 9, 9, 9, 9]),
            MemoryTrend::Steady { between: (Bytes(9), Bytes(9)), passes: 4 }
        );
    }

    #[test]
    fn a_leak_grows_and_a_saw_or_a_cache_that_fills_does_not() {
        let leak = growth(&[0, 10, 20, 30, 40, 50]);
        assert!(
            matches!(
                leak,
                MemoryTrend::Grows { per_pass: Bytes(10), mostly: Some((Category::Unknown, Bytes(40))), .. }
            ),
            "{leak:?}"
        );
        assert!(matches!(growth(&[0, 10, 40, 10, 40, 10, 40, 10]), MemoryTrend::Steady { .. }));
        assert!(matches!(growth(&[0, 10, 20, 30, 30, 30, 30, 30, 30]), MemoryTrend::Steady { .. }));
    }
}
