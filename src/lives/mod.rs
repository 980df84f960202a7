//! The algebra of lifetimes: when things come and go, through which turns of which loop they live, what the curve would be if
//! they lived otherwise, and whether they pile up.
//!
//! In: timelines and the turns of loops. Out: answers to questions about spans; nothing here knows what an allocation holds or
//! whose it is. Always: for the program a life ends where the block is given back
//! ([`crate::timeline::Allocation::given_back`]), for the allocator where the free is complete: whoever asks about keeping asks
//! for the first, whoever asks about the level of memory for the second.
//!
//! | question | asked of |
//! |---|---|
//! | which turn, how many turns | [`Turns`] |
//! | how much at once | [`Curve`] |
//! | what if it ended sooner, or never was | [`Changes`] |
//! | does it grow, how fast, how sure | [`growth`] |
//! | how steep is a series, whatever moves it | [`slope`] |

mod change;
mod curve;
pub mod growth;
mod theil_sen;
mod turns;

pub use change::{Change, Changes};
pub use curve::Curve;
pub use theil_sen::slope;
pub use turns::Turns;
