//! What stood at some moment, and how much of it a line made.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::unit::Bytes;

/// A part of what stood at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stood {
    /// How much.
    pub bytes: Bytes,
    /// How much of it was made under the line that it is told at: rarely all of it.
    pub here: Bytes,
    /// Of what: `optimizer state`.
    pub what: Cow<'static, str>,
}

impl Stood {
    /// How much of it the line made.
    pub fn share(&self) -> ShareMade {
        ShareMade::of(self.here, self.bytes)
    }
}

/// How much of something a line made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareMade {
    /// All of it.
    All,
    /// Half of it or more.
    Most,
    /// Less.
    Part,
}

impl ShareMade {
    /// A part of a whole.
    pub fn of(part: Bytes, whole: Bytes) -> ShareMade {
        if part >= whole {
            ShareMade::All
        } else if part.times(2) >= whole {
            ShareMade::Most
        } else {
            ShareMade::Part
        }
    }

    /// What stands before the line, so that nobody takes it for the only one: `mostly `; nothing where it is.
    pub const fn before(self) -> &'static str {
        match self {
            ShareMade::All => "",
            ShareMade::Most => "mostly ",
            ShareMade::Part => "partly ",
        }
    }

    /// The same behind a clause about the line: `, mostly made here`.
    pub const fn aside(self) -> &'static str {
        match self {
            ShareMade::All => "",
            ShareMade::Most => ", mostly made here",
            ShareMade::Part => ", partly made here",
        }
    }
}
