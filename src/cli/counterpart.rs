//! Which recording of a base belongs to one of the head.

/// What names tell of a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub(super) rank: Option<u32>,
    pub(super) moment: &'a [u64],
}

/// The position of the recording in the base that belongs to the one at `position` of `heads`: of the same rank, and if there
/// are several of the same moment; or, where names tell no ranks, at the same place of as many. A base of one is that of all.
pub(super) fn counterpart(base: &[Identity], head: Identity, position: usize, heads: usize) -> Option<usize> {
    if base.len() == 1 {
        return Some(0);
    }
    let of_rank = |(_, one): &(usize, &Identity)| head.rank.is_some() && one.rank == head.rank;
    let same = base.iter().enumerate().filter(of_rank);
    let found = same
        .clone()
        .find(|(_, one)| one.moment == head.moment)
        .or_else(|| same.max_by(|(_, a), (_, b)| a.moment.cmp(b.moment)));
    let in_order = || base.get(position).filter(|one| base.len() == heads && one.rank.is_none());
    found.map(|(at, _)| at).or_else(|| in_order().map(|_| position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_meet_at_the_same_moment_and_the_nameless_in_order() {
        let at = |rank, moment| Identity { rank, moment };
        let base = [at(Some(0), &[1]), at(Some(0), &[2]), at(Some(1), &[2]), at(Some(1), &[1])];
        assert_eq!(counterpart(&base, at(Some(1), &[1]), 0, 2), Some(3));
        assert_eq!(counterpart(&base, at(Some(1), &[9]), 0, 2), Some(2), "the latest");
        assert_eq!(counterpart(&base, at(Some(2), &[1]), 0, 4), None);
        let nameless = [at(None, &[]), at(None, &[])];
        assert_eq!(counterpart(&nameless, at(None, &[]), 1, 2), Some(1));
        assert_eq!(counterpart(&nameless, at(None, &[]), 1, 3), None);
        assert_eq!(counterpart(&nameless[..1], at(Some(7), &[]), 4, 5), Some(0));
    }
}
