//! A script whose private pools are one: what would have been, had the program shared them.

use super::script::{Operation, Script};
use crate::snapshot::Segment;

impl Script {
    /// The same requests, those from some pools made of another one of them, or of the default one. What these pools held before
    /// the first event is the other's then.
    #[must_use]
    pub fn with_pools_shared(&self, pools: &[(u64, u64)], with: (u64, u64)) -> Script {
        let number = |id: (u64, u64)| {
            (0..).zip(&self.pools).find(|(_, known)| **known == id).map(|(number, _)| number)
        };
        let Some(to) = number(with) else { return self.clone() };
        let shared: Vec<u16> = pools.iter().filter_map(|id| number(*id)).collect();
        let of = |pool: u16| if shared.contains(&pool) { to } else { pool };
        let step = |step: Operation| match step {
            Operation::LetGo(pool) => Operation::LetGo(of(pool)),
            Operation::ReleasePrivate(pool) => Operation::ReleasePrivate(of(pool)),
            other => other,
        };
        let held = |(segment, pool): &(Segment, u16)| (segment.clone(), of(*pool));
        Script {
            steps: self.steps.iter().map(|(at, one)| (*at, step(*one))).collect(),
            pool_of: self.pool_of.iter().map(|pool| of(*pool)).collect(),
            at_start: self.at_start.iter().map(held).collect(),
            ..self.clone()
        }
    }
}
