//! Values that are kept from turn to turn: with their graph, or on the device.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::Ranged;

use super::case::Case;
use super::flow::Key;
use super::optimizer::backwards;
use super::overlap::also_drop;
use super::script::{Edit, Reason};
use super::tensor::{Kept, is_tensor, mentions};
use super::tree::{self, Names, Place, Step, bound_names, call_of, dotted, method, value_of};
use super::{Applicability, Draft};

/// Methods of containers that keep what they are given.
const KEEPING: [&str; 4] = ["append", "add", "appendleft", "insert"];

/// A statement that keeps something.
struct Keeping<'a> {
    /// What is kept.
    value: &'a Expr,
    /// Where: the name that everything else knows it by.
    container: &'a Expr,
    /// Whether it is added to a sum.
    sums: bool,
}

/// Keeps values without their graph.
pub(super) fn graphs(case: &Case<'_>) -> Result<Draft, Reason> {
    let kept = found(case, Kept::Graph)?;
    let mut edits = Vec::new();
    let mut suffixes = BTreeSet::new();
    for (place, keeping, derived) in &kept {
        if case.flow.reaches_backward([container_key(case, place, keeping.container)?]) {
            return Err(format!(
                "what `{}` holds may be differentiated later",
                case.script.words(keeping.container)
            ));
        }
        if keeping.sums {
            is_sum(case, keeping.container)?;
        } else {
            is_tensor(case, place, keeping.value, derived, Kept::Graph)?;
        }
        let suffix = if is_shown_only(place, keeping, derived) { ".item()" } else { ".detach()" };
        suffixes.insert(suffix);
        edits.extend(without(case, keeping.value, (derived, Kept::Graph), suffix));
    }
    Ok(Draft {
        title: format!(
            "keep values without their graph: `{}`",
            suffixes.into_iter().collect::<Vec<_>>().join("`, `")
        ),
        applicability: Applicability::Safe,
        why: "nothing in the file differentiates what is kept",
        edits,
    })
}

/// Keeps tensors in host memory.
pub(super) fn tensors(case: &Case<'_>) -> Result<Draft, Reason> {
    let kept = found(case, Kept::Memory)?;
    let mut edits = Vec::new();
    for (place, keeping, derived) in &kept {
        let words = case.script.words(keeping.container);
        if case.flow.reaches_backward([container_key(case, place, keeping.container)?]) {
            return Err(format!("what `{words}` holds may be differentiated later"));
        }
        if keeping.sums {
            return Err(format!("`{words}` is a sum, which does not grow"));
        }
        if let Some(other) = beside(case, keeping.value, derived) {
            return Err(format!("`{other}` is kept beside it, and would stay on the device"));
        }
        is_tensor(case, place, keeping.value, derived, Kept::Memory)?;
        edits.extend(without(case, keeping.value, (derived, Kept::Memory), ".detach().cpu()"));
    }
    if edits.is_empty() {
        return Err("what is kept is no plain value".to_owned());
    }
    // The name alone would hold the last one on the device through the next turn.
    for (place, keeping, _) in &kept {
        let value = match keeping.value {
            Expr::Call(call) => method(call).map_or(keeping.value, |(on, _)| on),
            value => value,
        };
        if let Expr::Name(of) = value {
            edits.extend(also_drop(case, place, &[&of.id]));
        }
    }
    Ok(Draft {
        title: "keep the values in host memory: `.detach().cpu()`".to_owned(),
        applicability: Applicability::Unsafe,
        why: "what is kept lies on the CPU then: whatever works with it has to expect that, and each copy waits for the device",
        edits,
    })
}

/// What else stands in a tuple or a dictionary that is kept, and may be a tensor of the device: whatever works with both would find
/// them apart.
fn beside<'a>(case: &Case<'a>, value: &Expr, derived: &BTreeSet<String>) -> Option<&'a str> {
    let parts: Vec<&Expr> = match value {
        Expr::Tuple(of) => of.elts.iter().collect(),
        Expr::List(of) => of.elts.iter().collect(),
        Expr::Dict(of) => of.items.iter().map(|one| &one.value).collect(),
        _ => return None,
    };
    let other = |part: &&&Expr| !part.is_literal_expr() && !mentions(part, derived, Kept::Memory);
    parts.iter().find(other).map(|part| case.script.words(*part))
}

type AllKept<'a> = Vec<(Place<'a>, Keeping<'a>, BTreeSet<String>)>;

/// The statements that keep what the finding's line makes: in its function, or where its callers get it.
fn found<'a>(case: &Case<'a>, what: Kept) -> Result<AllKept<'a>, Reason> {
    let nothing =
        || "no statement of a known form keeps what the line makes: `xs.append(x)`, `total += x`".to_owned();
    for (depth, place) in std::iter::once(&case.place).chain(&case.callers).enumerate() {
        let own = place.innermost().ok_or_else(nothing)?;
        if depth == 0
            && let Some(keeping) = keeping(own.statement())
        {
            let derived = Names::in_expression(keeping.value).read.into_iter().map(str::to_owned).collect();
            return Ok(vec![(place.clone(), keeping, derived)]);
        }
        let names = match own.statement() {
            // Handed on.
            Stmt::Return(_) => continue,
            statement => bound_names(statement).ok_or_else(nothing)?,
        };
        let mut derived: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        let scope = tree::statements(place.scope());
        if what == Kept::Graph {
            derive(&scope, &mut derived);
        }
        let kept: AllKept<'a> = scope
            .iter()
            .filter_map(|step| keeping(step.statement()))
            .filter(|keeping| mentions(keeping.value, &derived, what) && outlasts(place, keeping.container))
            .map(|keeping| (place.clone(), keeping, derived.clone()))
            .collect();
        if !kept.is_empty() {
            return Ok(kept);
        }
        let hands_on = |step: &Step<'_>| match step.statement() {
            Stmt::Return(of) => of.value.as_ref().is_some_and(|value| mentions(value, &derived, what)),
            _ => false,
        };
        if !scope.iter().any(hands_on) {
            return Err(nothing());
        }
    }
    Err(nothing())
}

/// Adds the names whose values come from others of them, graph and all.
fn derive(scope: &[Step<'_>], names: &mut BTreeSet<String>) {
    loop {
        let before = names.len();
        for step in scope {
            if let (Some(bound), Some(value)) = (bound_names(step.statement()), value_of(step.statement()))
                && mentions(value, names, Kept::Graph)
            {
                names.extend(bound.into_iter().map(str::to_owned));
            }
        }
        if names.len() == before {
            return;
        }
    }
}

/// What a statement keeps, and where.
fn keeping(statement: &Stmt) -> Option<Keeping<'_>> {
    match statement {
        Stmt::Expr(_) => {
            let call = call_of(statement)?;
            let (container, name) = method(call)?;
            let value = call.arguments.args.last().filter(|_| call.arguments.keywords.is_empty())?;
            KEEPING.contains(&name).then_some(Keeping { value, container, sums: false })
        }
        Stmt::AugAssign(of) if of.op == Operator::Add => {
            Some(Keeping { value: &of.value, container: &of.target, sums: true })
        }
        Stmt::Assign(of) => match &of.targets[..] {
            [target @ Expr::Subscript(_)] => {
                Some(Keeping { value: &of.value, container: target, sums: false })
            }
            _ => None,
        },
        _ => None,
    }
}

/// The name of what holds something: of `log["loss"]` and `log` it is `log`, of `self.log` the attribute.
fn root(container: &Expr) -> Option<&Expr> {
    match container {
        Expr::Subscript(of) => root(&of.value),
        Expr::Name(_) | Expr::Attribute(_) => Some(container),
        _ => None,
    }
}

fn container_key(case: &Case<'_>, place: &Place<'_>, container: &Expr) -> Result<Key, Reason> {
    match root(container) {
        Some(Expr::Name(of)) => {
            let function = place.function().map(|(_, function)| function);
            Ok(case.flow.key(function, &of.id))
        }
        Some(Expr::Attribute(of)) => Ok(Key::Attribute(of.attr.to_string())),
        _ => Err("what keeps the value has no plain name".to_owned()),
    }
}

/// Whether a container is older than the turn of the innermost loop, or belongs to an object.
fn outlasts(place: &Place<'_>, container: &Expr) -> bool {
    match root(container) {
        Some(Expr::Name(of)) => {
            let body = place.loops().next().and_then(|step| step.loop_body());
            let fresh = |step: Step<'_>| {
                bound_names(step.statement()).is_some_and(|names| names.contains(&of.id.as_str()))
            };
            !body.is_some_and(|body| tree::statements(body).into_iter().any(fresh))
        }
        Some(_) => true,
        None => false,
    }
}

/// What is kept, without its graph: each part of a tuple or a dictionary by itself.
fn without(case: &Case<'_>, value: &Expr, of_what: (&BTreeSet<String>, Kept), suffix: &str) -> Vec<Edit> {
    match value {
        Expr::Tuple(of) => of.elts.iter().flat_map(|one| without(case, one, of_what, suffix)).collect(),
        Expr::List(of) => of.elts.iter().flat_map(|one| without(case, one, of_what, suffix)).collect(),
        Expr::Dict(of) => {
            of.items.iter().flat_map(|one| without(case, &one.value, of_what, suffix)).collect()
        }
        _ if !mentions(value, of_what.0, of_what.1) => Vec::new(),
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_) => {
            let end = value.end().to_usize();
            vec![Edit::new(end..end, suffix_for(case, value, suffix))]
        }
        _ => {
            let (start, end) = (value.start().to_usize(), value.end().to_usize());
            // Brackets that are there already stand around the expression, not in it.
            vec![Edit::new(start..start, "("), Edit::new(end..end, format!("){suffix}"))]
        }
    }
}

/// What has to be added to a value that has part of it already.
fn suffix_for(case: &Case<'_>, value: &Expr, suffix: &str) -> String {
    let detached = case.script.words(value).ends_with(".detach()");
    suffix.strip_prefix(".detach()").filter(|rest| detached && !rest.is_empty()).unwrap_or(suffix).to_owned()
}

/// Makes sure that what is added to begins as a number or a tensor: `+=` makes a list longer.
fn is_sum(case: &Case<'_>, container: &Expr) -> Result<(), Reason> {
    let path = dotted(container).ok_or("what is added to has no plain name")?;
    let begins = case.assigned(&path);
    let counts = |value: &&Expr| match value {
        Expr::NumberLiteral(_) => true,
        Expr::Call(call) => {
            dotted(&call.func).is_some_and(|maker| maker == "torch.zeros" || maker == "torch.tensor")
        }
        _ => false,
    };
    let is_list = |value: &&Expr| matches!(value, Expr::List(_) | Expr::ListComp(_) | Expr::Tuple(_));
    if begins.iter().any(counts) && !begins.iter().any(is_list) {
        return Ok(());
    }
    Err(format!("`{path}` may be something else than a sum"))
}

/// Whether a sum of scalars is only ever shown, so that a number does as well as a tensor.
fn is_shown_only(place: &Place<'_>, keeping: &Keeping<'_>, derived: &BTreeSet<String>) -> bool {
    let (Expr::Name(sum), Expr::Name(value)) = (keeping.container, keeping.value) else { return false };
    let scope = place.scope();
    // PyTorch differentiates scalars only, where nothing else is said.
    let is_scalar = backwards(scope).into_iter().any(|call| {
        let on = method(call).map(|(on, _)| on);
        call.arguments.args.is_empty() && matches!(on, Some(Expr::Name(of)) if of.id == value.id)
    });
    let is_local = place.function().is_some();
    let mut reads = Reads { name: &sum.id, shown: 0, all: 0, showing: false };
    reads.visit_body(scope);
    keeping.sums && is_scalar && is_local && derived.contains(value.id.as_str()) && reads.shown == reads.all
}

/// Counts where a name is read, and how often only to be shown.
struct Reads<'n> {
    name: &'n str,
    shown: usize,
    all: usize,
    showing: bool,
}

impl<'a> Visitor<'a> for Reads<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let before = self.showing;
        match expression {
            Expr::FString(_) => self.showing = true,
            Expr::Call(call) => self.showing |= tree::callee(call) == Some("print"),
            Expr::Name(of) if of.ctx.is_load() && of.id == self.name => {
                self.all += 1;
                self.shown += usize::from(self.showing);
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
        self.showing = before;
    }
}
