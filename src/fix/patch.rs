//! Edits put together: which of them are taken, and what the files say then.
//!
//! Always: of edits that meet, the one for the worse finding is taken; what comes out of a file parses, or the edit is left out.

use std::collections::BTreeMap;

use super::script::{Edit, Reason};
use super::{Applicability, Fix, Proposal};
use crate::source::SourceFile;

/// What is taken of some proposals.
#[derive(Debug, Default)]
pub struct Patch {
    /// The fixes that are taken, each with the findings that it mends: positions in the report.
    pub taken: Vec<(Fix, Vec<usize>)>,
    /// Fixes that only `--unsafe` takes, with their findings.
    pub held_back: Vec<(Fix, Vec<usize>)>,
    /// Findings without an edit, and why.
    pub without: Vec<(usize, Reason)>,
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// As messages name it.
    pub name: String,
    /// What it says.
    pub before: String,
    /// What it would say.
    pub after: String,
}

impl Patch {
    /// Chooses among proposals; unsafe ones only where they are `allowed`.
    pub fn of(proposals: Vec<Proposal>, allowed: bool) -> Patch {
        let mut patch = Patch::default();
        for Proposal { finding, outcome } in proposals {
            match outcome {
                Err(reason) => patch.without.push((finding, reason)),
                Ok(fix) => patch.add(fix, finding, allowed),
            }
        }
        patch
    }

    /// One fix and nothing else.
    pub fn alone(fix: Fix) -> Patch {
        Patch { taken: vec![(fix, Vec::new())], ..Patch::default() }
    }

    fn add(&mut self, fix: Fix, finding: usize, allowed: bool) {
        let taken = allowed || fix.applicability == Applicability::Safe;
        let list = if taken { &mut self.taken } else { &mut self.held_back };
        if let Some((_, findings)) =
            list.iter_mut().find(|(other, _)| other.file == fix.file && other.edits == fix.edits)
        {
            findings.push(finding);
            return;
        }
        let meets = |other: &Fix| {
            other.file == fix.file && other.edits.iter().any(|one| fix.edits.iter().any(|own| own.meets(one)))
        };
        if list.iter().any(|(other, _)| meets(other)) {
            self.without
                .push((finding, "its edit meets another one: run `memlint fix` again after that".to_owned()));
        } else {
            list.push((fix, vec![finding]));
        }
    }

    /// Leaves a fix out after all, and says why.
    pub fn withdraw(&mut self, position: usize, reason: &str) {
        if position < self.taken.len() {
            let (_, findings) = self.taken.remove(position);
            self.without.extend(findings.into_iter().map(|finding| (finding, reason.to_owned())));
        }
    }

    /// The files that change, by name. `texts` gives what a file says.
    pub fn files(&self, texts: impl Fn(&str) -> Option<String>) -> Vec<Patched> {
        let mut edits: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
        for (fix, _) in &self.taken {
            edits.entry(&fix.file).or_default().extend(&fix.edits);
        }
        let patched = edits.into_iter().filter_map(|(name, edits)| {
            let before = texts(name)?;
            let after = apply(&before, edits)?;
            Some(Patched { name: name.to_owned(), before, after })
        });
        patched.collect()
    }
}

/// A text with edits made, of which none meets another.
fn apply<'e>(text: &str, edits: impl IntoIterator<Item = &'e Edit>) -> Option<String> {
    let mut edits: Vec<&Edit> = edits.into_iter().collect();
    edits.sort();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.start)?);
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// Whether a file still parses with a fix, and differs.
pub(super) fn holds(fix: &Fix, text: &str) -> Result<(), Reason> {
    let after = apply(text, &fix.edits).ok_or("its edits meet each other")?;
    if after == text {
        return Err("the code says so already".to_owned());
    }
    let parses = SourceFile::new(fix.file.clone(), after).tree().is_some();
    if parses { Ok(()) } else { Err("the file would not parse any more".to_owned()) }
}
