//! What a recording says of the GPU that was not there (`memlint record --no-gpu`).
//!
//! In and out: the text of the key `memlint_record`, JSON with a version. Always: bounded and validated on reading; a text that is not all as it
//! should be is a key that memlint does not know.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::unit::{Bytes, count};

/// The version of the text.
const VERSION: u32 = 2;
/// Longer texts are not read.
const LONGEST: usize = 1 << 20;
/// No function of CUDA's has a longer name; the longest has 65 letters.
const LONGEST_NAME: usize = 200;
/// The longest path of Linux, and more branches than the recorder writes.
const LONGEST_PATH: usize = 4096;
const MOST_BRANCHES: usize = 1000;

/// A statement of the program that went one way or the other by a value that nobody computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its file, as stacks name it.
    pub file: String,
    /// Its first line.
    pub line: u32,
    /// Its last line: what stands in between is done or not.
    pub end: u32,
}

/// A recording of a program that ran without a GPU: its allocator worked, its kernels computed nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modelled {
    version: u32,
    /// How many devices were modelled.
    devices: u32,
    /// The memory of each, in bytes.
    bytes: u64,
    /// Where the program decided by values that were not computed: on a GPU it may take another way there.
    pub branches: Vec<Branch>,
    /// Functions that were asked how much room they need, and whose answer nobody knows: they got none.
    pub sizes_not_known: Vec<String>,
    /// Functions that failed because there was no GPU.
    pub refused: Vec<String>,
    /// Whether the program asked for compiled code (`torch.compile`), and ran its operators one by one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_eagerly: bool,
    /// Whether the program made an optimizer, and none has been asked to step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_steps: bool,
}

impl Modelled {
    /// Reads the text of the key; `None` where anything in it is not as it should be.
    pub(super) fn read(text: &str) -> Option<Modelled> {
        if text.len() > LONGEST {
            return None;
        }
        let modelled: Modelled = serde_json::from_str(text).ok()?;
        let mut names = modelled.sizes_not_known.iter().chain(&modelled.refused);
        let is_name = |name: &String| {
            name.len() <= LONGEST_NAME && name.chars().all(|letter| letter.is_ascii_graphic())
        };
        let is_branch = |branch: &Branch| {
            branch.file.len() <= LONGEST_PATH
                && !branch.file.chars().any(char::is_control)
                && branch.line <= branch.end
        };
        let are_branches =
            modelled.branches.len() <= MOST_BRANCHES && modelled.branches.iter().all(is_branch);
        (modelled.version == VERSION && names.all(is_name) && are_branches).then_some(modelled)
    }

    /// The memory of each device.
    pub const fn memory(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Whether it may be for want of values that the program never updated what it trains: it decided by some that nobody computed, and an optimizer
    /// that it made was left alone. On a GPU it may hold gradients and states of which nothing is seen here.
    pub fn hides_steps(&self) -> bool {
        self.never_steps && !self.branches.is_empty()
    }

    /// The text of the key.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for Modelled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = usize::try_from(self.devices).unwrap_or(usize::MAX);
        write!(out, "modelled without a GPU ({} of {})", count(devices, "device"), Bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let text = r#"{"version":2,"devices":1,"bytes":85899345920,"branches":[{"file":"/job/train.py","line":7,"end":9}],"sizes_not_known":["cusolverDnSpotrf_bufferSize"],"refused":[]}"#;
        let modelled = Modelled::read(text).unwrap();
        assert_eq!(modelled.text(), text);
        assert_eq!(modelled.to_string(), "modelled without a GPU (1 device of 80 GiB)");
        let eager = text.replace("\"refused\":[]", "\"refused\":[],\"runs_eagerly\":true");
        assert!(
            Modelled::read(&eager).is_some_and(|modelled| modelled.runs_eagerly && modelled.text() == eager)
        );
        let idle = text.replace("\"refused\":[]", "\"refused\":[],\"never_steps\":true");
        let read = Modelled::read(&idle).unwrap();
        assert_eq!((read.text(), read.hides_steps(), modelled.hides_steps()), (idle, true, false));
        for other in [
            text.replace("\"version\":2", "\"version\":1"),
            text.replace("cusolver", "cu\\u001b solver"),
            text.replace("\"refused\":[]", "\"refused\":[],\"more\":1"),
            text.replace("\"end\":9", "\"end\":6"),
            text.replace("/job/", "/job\\u0007/"),
            text.replace('}', ""),
        ] {
            assert_eq!(Modelled::read(&other), None, "{other}");
        }
    }
}
