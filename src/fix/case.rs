//! A finding beside its program: what every kind of edit asks of both.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use super::flow::{Flow, Variable};
use super::script::{EditedFile, Reason};
use super::tree::{self, Nesting};
use crate::finding::{Finding, Location, Quantity};
use crate::source::{SourceMap, Spot};
use crate::unit::{Bytes, shown_name};

/// A finding and the statement that it points at.
pub(super) struct Case<'a> {
    pub(super) finding: &'a Finding,
    /// The peak of the device.
    pub(super) whole: Option<Bytes>,
    pub(super) script: EditedFile<'a>,
    pub(super) place: Nesting<'a>,
    pub(super) flow: Flow,
    /// Where the callers of the finding's function stand in the same file, innermost first.
    pub(super) callers: Vec<Nesting<'a>>,
}

/// Where a finding stands, if that is certain.
pub(super) fn spot(finding: &Finding, sources: &SourceMap) -> Result<Spot, Reason> {
    let spot = seen(finding, sources)?;
    if !spot.sure {
        let name = finding.location.as_ref().map(|at| shown_name(&at.file)).unwrap_or_default();
        return Err(format!(
            "{} may be another file than the recorded {name}: name its folder with --source-root",
            shown_name(spot.file.name())
        ));
    }
    Ok(spot)
}

/// Where a finding seems to stand, as excerpts show it: in a file of the recorded one's name.
pub(super) fn seen(finding: &Finding, sources: &SourceMap) -> Result<Spot, Reason> {
    let location = finding.location.as_ref().ok_or("the recording names no line")?;
    let cell = location.file.contains("ipykernel") || location.file.starts_with('<');
    if cell {
        let where_ = shown_name(&location.file);
        return Err(format!(
            "{where_} is a cell of a notebook or typed in: edit line {} there",
            location.line
        ));
    }
    if let Some(changed) = sources.changed(&location.file) {
        return Err(changed.words(&location.file));
    }
    let name = shown_name(&location.file);
    let not_here = || format!("{name} is not here: name its folder with --source-root");
    sources.find(location).ok_or_else(|| sources.unopened(&location.file).unwrap_or_else(not_here))
}

impl<'a> Case<'a> {
    pub(super) fn of(
        finding: &'a Finding,
        whole: Option<Bytes>,
        spot: &'a Spot,
        sources: &SourceMap,
    ) -> Result<Case<'a>, Reason> {
        let script = EditedFile::of(&spot.file)?;
        let place = script.place(spot.line)?;
        let own = finding.location.as_ref().map(|location| location.file.as_str());
        let frames = finding.stack.iter().filter(|frame| frame.user).map(|frame| &frame.location);
        let mut frames = frames.filter(|location| Some(location.file.as_str()) == own);
        let is_own = |location: &Location| finding.location.as_ref() == Some(location);
        let found = frames.any(is_own);
        let line = |location: &Location| sources.find(location).map(|spot| spot.line);
        let callers = if found { frames.filter_map(line).collect() } else { Vec::new() };
        let callers = callers.into_iter().map_while(|line: u32| script.place(line).ok()).collect();
        Ok(Case { finding, whole, script, place, flow: Flow::of(script.body), callers })
    }

    /// The statement that the finding points at.
    pub(super) fn statement(&self) -> Result<&'a Stmt, Reason> {
        Ok(self.place.innermost().ok_or("no statement stands at the line")?.statement())
    }

    /// The function around a place.
    pub(super) fn function(place: &Nesting<'a>) -> Option<&'a StmtFunctionDef> {
        place.function().map(|(_, function)| function)
    }

    /// What a name stands for at a place.
    pub(super) fn key(&self, place: &Nesting<'a>, name: &str) -> Variable {
        self.flow.key(Case::function(place), name)
    }

    /// How the file calls PyTorch.
    pub(super) fn torch(&self) -> Result<&'a str, Reason> {
        let imports = self.script.body.iter().filter_map(|statement| match statement {
            Stmt::Import(of) => Some(&of.names),
            _ => None,
        });
        let alias = imports.flatten().find(|alias| {
            alias.name.as_str() == "torch"
                || alias.asname.is_none() && alias.name.as_str().starts_with("torch.")
        });
        let alias = alias.ok_or("the file does not import torch under a name of its own")?;
        Ok(alias.asname.as_ref().map_or("torch", |name| name.as_str()))
    }

    /// The share of the peak that mending the finding saves.
    pub(super) fn share(&self) -> Option<f64> {
        let (saved, whole) = (self.finding.impact.peak?, self.whole?);
        (whole.get() > 0).then(|| saved.get() as f64 / whole.get() as f64)
    }

    /// A count among the finding's evidence.
    pub(super) fn counted(&self, name: &str) -> Option<u64> {
        self.finding.evidence.iter().find(|one| one.name == name).and_then(|one| match one.value {
            Quantity::Count(number) => Some(number),
            _ => None,
        })
    }

    /// Every value that some code assigns to what an expression names, in the whole file: `optimizer`, `self.optimizer`.
    pub(super) fn assigned(&self, path: &str) -> Vec<&'a Expr> {
        let last = path.rsplit('.').next().unwrap_or(path);
        let named =
            |target: &Expr| tree::dotted(target).is_some_and(|name| name.rsplit('.').next() == Some(last));
        let values =
            tree::all_statements(self.script.body).into_iter().filter_map(|step| match step.statement() {
                Stmt::Assign(of) if of.targets.iter().any(named) => Some(&*of.value),
                _ => None,
            });
        values.collect()
    }
}

/// Whether some code takes `.grad` of anything, or `getattr(p, "grad")`.
pub(super) fn looks_at_gradients<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> bool {
    let mut gradients = GradientUses::default();
    statements.into_iter().for_each(|one| gradients.visit_stmt(one));
    gradients.looked_at
}

/// Whether some code puts something into `.grad` of anything.
pub(super) fn sets_gradients(statements: &[Stmt]) -> bool {
    let mut gradients = GradientUses::default();
    gradients.visit_body(statements);
    gradients.set
}

#[derive(Default)]
struct GradientUses {
    looked_at: bool,
    set: bool,
}

impl<'a> Visitor<'a> for GradientUses {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Attribute(of) if of.attr == *"grad" => {
                self.looked_at = true;
                self.set |= !of.ctx.is_load();
            }
            Expr::StringLiteral(of) => self.looked_at |= of.value.to_str() == "grad",
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
