//! One rank of a job beside the others: what rules may ask that look at several recordings.

use crate::finding::Location;
use crate::role::Role;
use crate::unit::{Bytes, DeviceIndex};

/// A rank, by the device on which it needed most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The recording, as in [`crate::finding::Finding::input`].
    pub input: usize,
    /// The rank.
    pub rank: u32,
    /// The device.
    pub device: DeviceIndex,
    /// The highest requested bytes.
    pub peak: Bytes,
    /// What is alive at the peak, by role.
    pub roles: Vec<(Role, Bytes)>,
    /// What is alive at the peak, by the user's line.
    pub lines: Vec<(Location, Bytes)>,
    /// Requested bytes at the end of each iteration.
    pub resident: Vec<Bytes>,
}

impl Peer {
    /// What one role has at the peak.
    pub fn role(&self, role: Role) -> Bytes {
        self.roles.iter().filter(|(of, _)| *of == role).map(|(_, bytes)| *bytes).sum()
    }

    /// What one line has at the peak. Lines are compared by the file's bare name: a job's hosts may keep the program in
    /// different folders.
    pub fn line(&self, line: &Location) -> Bytes {
        self.lines.iter().filter(|(of, _)| is_same(of, line)).map(|(_, bytes)| *bytes).sum()
    }
}

fn is_same(one: &Location, other: &Location) -> bool {
    let bare = |file: &'_ str| file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    (one.line, &one.function) == (other.line, &other.function) && bare(&one.file) == bare(&other.file)
}
