//! Whether a file is still the one that a recording saw.
//!
//! In: a file's outline and the lines of it that stood on stacks. Out: that all of them fit, or the first that does not.
//! Always: what is held against a file is certain. A line fits unless it cannot be where the program was: nothing begins
//! there, another function stands there, the recorded call stands at another line of the function, or nothing on the line
//! could have led to what ran. Names that decorators, aliases and properties hide are no evidence against a file.

use std::collections::BTreeSet;

use super::bindings::Reach;
use super::outline::{CallPoint, CodeScope, Invocation, Outline};
use crate::engine::{Called, Callee, RecordedFile, RecordedLine};

/// How a file differs from the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The recorded line that does not fit.
    pub line: u32,
    /// Why, in words for a person: "is not in `train`".
    pub why: String,
}

/// Where the lines of a recording are in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineFit {
    /// How many lines further on all of them are, those that came in not counted.
    moved: i64,
    /// Lines that came in later, in order.
    added: Vec<u32>,
}

impl LineFit {
    /// Lines that a recording did not see yet, in order.
    pub(super) fn without(added: Vec<u32>) -> LineFit {
        LineFit { moved: 0, added }
    }

    /// The same, moved so that a recorded line is at `place`.
    fn moved(&self, recorded: u32, place: u32) -> LineFit {
        let before = self.added.iter().filter(|added| **added < place).map(|_| 1_i64).sum::<i64>();
        LineFit { moved: i64::from(place) - before - i64::from(recorded), added: self.added.clone() }
    }

    /// The line of the file that was recorded as this one; 0, which is none, before the first.
    pub(super) fn here(&self, recorded: u32) -> u32 {
        let moved = u32::try_from(i64::from(recorded) + self.moved).unwrap_or(0);
        self.added.iter().fold(moved, |line, &added| if added <= line { line + 1 } else { line })
    }
}

/// Holds recorded lines of a file against it.
pub(super) fn check(outline: &Outline, recorded: &[RecordedLine], lines: &LineFit) -> Result<(), Misfit> {
    let named: BTreeSet<(u32, &str)> = recorded
        .iter()
        .flat_map(|line| names(line).iter().map(|callee| (lines.here(line.line), callee.name.as_str())))
        .collect();
    let fit = Alignment { outline, named };
    recorded.iter().try_for_each(|line| {
        fit.line(line, lines.here(line.line)).map_err(|why| Misfit { line: line.line, why })
    })
}

/// Where a recorded line stands in a file that has changed: at the only call of its function of the only name that was
/// recorded there, if neither the file nor the recording has another, and all recorded lines of the function fit as far
/// on as that one, with other calls of recorded names above it and below. Without these nothing tells the call from
/// another one of its name that was there before, too, and never recorded: of a deleted `optimizer.step()` the next
/// line's `scheduler.step()`.
pub(super) fn found_again(
    outline: &Outline,
    recorded: &RecordedFile,
    lines: &LineFit,
    (line, function): (u32, &str),
) -> Option<u32> {
    let all: Vec<RecordedLine> =
        recorded.lines.iter().filter(|one| one.function == function).cloned().collect();
    let certain = |one: &RecordedLine| {
        names(one)
            .iter()
            .filter(|callee| callee.certain && !is_special(&callee.name))
            .map(|callee| callee.name.clone())
            .collect::<Vec<_>>()
    };
    let here: BTreeSet<String> = all.iter().filter(|one| one.line == line).flat_map(certain).collect();
    let scope = outline.only(function)?;
    let mut found = here.iter().filter_map(|name| {
        let elsewhere = all.iter().any(|one| one.line != line && certain(one).contains(name));
        match outline.calls(scope, name) {
            [only] if !elsewhere => Some(*only),
            _ => None,
        }
    });
    let first = found.next().filter(|first| found.all(|other| other == *first))?;
    let fits = |lines: &LineFit| {
        let lines = lines.moved(line, first);
        let is_named = |one: &RecordedLine| {
            certain(one).iter().any(|name| outline.calls(scope, name).contains(&lines.here(one.line)))
        };
        all.iter().any(|one| one.line < line && is_named(one))
            && all.iter().any(|one| one.line > line && is_named(one))
            && check(outline, &all, &lines).is_ok()
    };
    (fits(&LineFit::default()) || fits(lines)).then_some(first)
}

/// The names of what a line called.
fn names(line: &RecordedLine) -> &[Callee] {
    match &line.called {
        Called::Function(names) => names,
        Called::Native { .. } | Called::Module | Called::Unknown => &[],
    }
}

struct Alignment<'a> {
    outline: &'a Outline,
    /// What was recorded to be called by name, and where.
    named: BTreeSet<(u32, &'a str)>,
}

impl Alignment<'_> {
    /// Whether a recorded line can be this one; if not, why.
    fn line(&self, recorded: &RecordedLine, line: u32) -> Result<(), String> {
        if !self.outline.begins(line) {
            return Err("holds no code".to_owned());
        }
        let function = as_written(&recorded.function);
        match self.outline.scope(line) {
            // The head of a definition stands for all of it where a compiler made the code.
            CodeScope::Head => return Ok(()),
            _ if function.starts_with('<') && function != "<module>" => {
                if !self.outline.makes(line, function) {
                    return Err(format!("holds no {function}"));
                }
            }
            CodeScope::Module if function != "<module>" => return Err(format!("is not in `{function}`")),
            CodeScope::Of(name) if name != function => {
                return Err(format!("is in `{name}`, not in `{function}`"));
            }
            CodeScope::Module | CodeScope::Of(_) => {}
        }
        match &recorded.called {
            Called::Unknown | Called::Native { allocates: false } => Ok(()),
            Called::Native { allocates: true } => self.allocates(line),
            Called::Module => self.calls_module(line),
            Called::Function(names) => self.calls(line, names),
        }
    }

    fn allocates(&self, line: u32) -> Result<(), String> {
        let runs = self.outline.sites(line).iter().any(|site| site.kind != Invocation::Release);
        if runs { Ok(()) } else { Err("allocates nothing".to_owned()) }
    }

    /// A module is called under whichever name the program has for it, but by a call.
    fn calls_module(&self, line: u32) -> Result<(), String> {
        let may = |site: &CallPoint| matches!(site.kind, Invocation::Call(Reach::Any) | Invocation::Import);
        let called = self.outline.sites(line).iter().any(may);
        if called { Ok(()) } else { Err("calls no module".to_owned()) }
    }

    fn calls(&self, line: u32, names: &[Callee]) -> Result<(), String> {
        let Some(first) = names.first().filter(|first| !runs_anywhere(&first.name)) else { return Ok(()) };
        let sites = self.outline.sites(line);
        if sites.iter().any(|site| names.iter().any(|callee| callee.name == site.name)) {
            return Ok(());
        }
        if !sites.iter().any(|site| may_run(site, &first.name, first.certain)) {
            return Err(format!("calls no `{}`", first.name));
        }
        match names.iter().find_map(|callee| Some((callee, self.elsewhere(line, sites, callee)?))) {
            Some((callee, at)) => Err(format!("calls no `{}`, which line {at} does", callee.name)),
            None => Ok(()),
        }
    }

    /// The other line of the function at which something of this name is called, if nobody saw it called there.
    fn elsewhere(&self, line: u32, sites: &[CallPoint], callee: &Callee) -> Option<u32> {
        // A call of `__init__` that is written out is another one: `super().__init__()`.
        let tells = callee.certain && !is_special(&callee.name);
        let scope =
            sites.first().filter(|_| tells && !self.outline.may_be_resumed(&callee.name, line))?.scope;
        let calls = self.outline.calls(scope, &callee.name).iter().copied();
        let mut unseen = calls.filter(|at| *at != line && !self.named.contains(&(*at, callee.name.as_str())));
        unseen.next()
    }
}

/// Whether Python calls a function of this name at lines that say nothing of it: a special method, such as `__del__`.
fn runs_anywhere(name: &str) -> bool {
    is_special(name) && of_special(name).is_none()
}

/// Whether Python calls a function of this name for something that is written otherwise: `Linear(3, 4)` calls `__init__`.
fn is_special(name: &str) -> bool {
    name.starts_with("__") && name.ends_with("__")
}

/// Whether something on a line can lead to a function of a name that does not stand there. `certain` is false where the
/// name is a decorator's.
fn may_run(site: &CallPoint, name: &str, certain: bool) -> bool {
    let anything = matches!(site.kind, Invocation::Import | Invocation::Call(Reach::Any));
    if let Some(kinds) = of_special(name) {
        return anything || kinds.contains(&site.kind);
    }
    match site.kind {
        Invocation::Call(Reach::Torch)
        | Invocation::Operator
        | Invocation::Subscript
        | Invocation::Loop
        | Invocation::With => true,
        Invocation::Call(Reach::Builtin) => ["write", "flush"].contains(&name),
        // Of a property the name is the attribute's, unless it is decorated further.
        Invocation::Attribute => !certain,
        Invocation::Call(Reach::Any | Reach::TorchCuda) | Invocation::Import | Invocation::Release => {
            anything
        }
    }
}

/// What calls a special method that needs something at its line, besides a call of something unknown.
fn of_special(name: &str) -> Option<&'static [Invocation]> {
    const CALLS: [Invocation; 2] = [Invocation::Call(Reach::Torch), Invocation::Call(Reach::TorchCuda)];
    const WITH: [Invocation; 3] = [CALLS[0], CALLS[1], Invocation::With];
    const LOOP: [Invocation; 4] =
        [CALLS[0], Invocation::Call(Reach::Builtin), Invocation::Loop, Invocation::Operator];
    match name {
        "__init__" | "__new__" | "__call__" => Some(&CALLS),
        "__enter__" | "__exit__" => Some(&WITH),
        "__iter__" | "__next__" => Some(&LOOP),
        _ => None,
    }
}

/// The function that the user wrote: `torch_dynamo_resume_in_forward_at_31` is the rest of `forward`.
fn as_written(function: &str) -> &str {
    let resumed = function.strip_prefix("torch_dynamo_resume_in_").and_then(|rest| rest.rsplit_once("_at_"));
    resumed.map_or(function, |(name, _)| name)
}
