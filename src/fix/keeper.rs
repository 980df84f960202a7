//! The statements that keep a value from turn to turn.
//!
//! In: a finding's line. Out: what keeps that which the line makes: in its function, where its callers get it, or in a helper that it is
//! handed to.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtFunctionDef};

use super::case::Case;
use super::caught::KEEPING;
use super::flow::Variable;
use super::script::Reason;
use super::tensor::{Kept, mentions};
use super::tree::{
    self, Names, Nesting, Statement, bound_names, call_of, callee, dotted, given, method, value_of,
};

/// Methods of containers that hand out one of their values.
const TAKING: [&str; 5] = ["get", "pop", "popleft", "popitem", "setdefault"];
/// Functions that do.
const DRAWING: [&str; 4] = ["choice", "choices", "sample", "next"];

/// Something that keeps a value.
pub(super) struct Keeper<'a> {
    /// Where the kept value stands.
    pub(super) place: Nesting<'a>,
    /// What is kept: in a statement of the place, or by a helper that is called there.
    pub(super) value: &'a Expr,
    /// Where: the name that everything else knows it by.
    pub(super) container: &'a Expr,
    /// Whether it is added to a sum.
    pub(super) sums: bool,
    /// Whether a method of the container takes it, and not a place under a key.
    appends: bool,
    /// The names of what the finding's line makes.
    pub(super) derived: BTreeSet<String>,
    /// What the helper keeps, and what it calls the value.
    pub(super) by_helper: Option<(&'a Expr, &'a str)>,
    /// Whether the file has several helpers of that name, of which this one alone keeps anything: callbacks.
    is_one_of_several: bool,
}

/// What a statement keeps, and where.
pub(super) struct Keeping<'a> {
    pub(super) value: &'a Expr,
    pub(super) container: &'a Expr,
    sums: bool,
    appends: bool,
}

impl<'a> Keeper<'a> {
    pub(super) fn of(place: &Nesting<'a>, keeping: &Keeping<'a>, derived: BTreeSet<String>) -> Keeper<'a> {
        let Keeping { value, container, sums, appends } = *keeping;
        Keeper {
            place: place.clone(),
            value,
            container,
            sums,
            appends,
            derived,
            by_helper: None,
            is_one_of_several: false,
        }
    }

    /// What stands on the line that keeps it: the call that hands it to a helper; among callbacks the helper's own statement.
    pub(super) fn statement(&self) -> &'a Expr {
        let own = self.by_helper.filter(|_| self.is_one_of_several);
        own.map_or(self.value, |(stored, _)| stored)
    }

    /// Makes sure that nothing differentiates what is kept.
    pub(super) fn is_for_good(&self, case: &Case<'_>) -> Result<(), Reason> {
        if self.is_one_of_several {
            return Err("which of several functions of one name is called is not known".to_owned());
        }
        if case.flow.reaches_backward([self.variable(case)?]) {
            let words = case.script.words(self.container);
            return Err(format!("what `{words}` holds may be differentiated later"));
        }
        Ok(())
    }

    /// What the flow of the file knows the container as.
    pub(super) fn variable(&self, case: &Case<'_>) -> Result<Variable, Reason> {
        match root(self.container) {
            Some(Expr::Name(of)) => Ok(case.key(&self.place, &of.id)),
            Some(Expr::Attribute(of)) => Ok(Variable::Attribute(of.attr.to_string())),
            _ => Err("what keeps the value has no plain name".to_owned()),
        }
    }

    /// Whether values stand in it under keys, as in a dictionary: `cache[key] = x`.
    pub(super) fn is_keyed(&self) -> bool {
        !self.appends && self.container.is_subscript_expr()
    }

    /// What holds it: `cache[key] = x` keeps in `cache`, `maps[name].append(x)` in each `maps[name]`.
    pub(super) fn holder(&self) -> &'a Expr {
        if self.appends { self.container } else { root(self.container).unwrap_or(self.container) }
    }

    /// Whether the program takes single values out again and so computes with them: out of a cache by key, out of a buffer by chance.
    pub(super) fn is_read_back(&self, case: &Case<'_>) -> bool {
        let mut back = ReadBack { case, holder: self.holder(), found: false };
        back.visit_body(case.script.body);
        back.found
    }

    /// What else stands in a tuple or a dictionary that is kept, and may be a tensor of the device: whatever works with both would
    /// find them apart.
    pub(super) fn beside(&self, case: &Case<'a>) -> Option<&'a str> {
        let (value, names) = match self.by_helper {
            Some((kept, name)) => (kept, &BTreeSet::from([name.to_owned()])),
            None => (self.value, &self.derived),
        };
        let parts: Vec<&Expr> = match value {
            Expr::Tuple(of) => of.elts.iter().collect(),
            Expr::List(of) => of.elts.iter().collect(),
            Expr::Dict(of) => of.items.iter().map(|one| &one.value).collect(),
            _ => return None,
        };
        let other = |part: &&&Expr| !part.is_literal_expr() && !mentions(part, names, Kept::Memory);
        parts.iter().find(other).map(|part| case.script.words(*part))
    }
}

/// The keepers in the line's function, or where its callers get it.
pub(super) fn followed<'a>(case: &Case<'a>, what: Kept) -> Vec<Keeper<'a>> {
    for (depth, place) in std::iter::once(&case.place).chain(&case.callers).enumerate() {
        let Some(own) = place.innermost() else { break };
        if depth == 0
            && let Some(keeping) = keeping(own.statement(), what)
        {
            let read = Names::in_expression(keeping.value).read.into_iter();
            let derived: BTreeSet<String> = read.map(str::to_owned).collect();
            let keeps = derived.is_empty() || mentions(keeping.value, &derived, what);
            return if keeps { vec![Keeper::of(place, &keeping, derived)] } else { Vec::new() };
        }
        let names = match own.statement() {
            // Handed on.
            Stmt::Return(_) => continue,
            statement => bound_names(statement),
        };
        let Some(names) = names else { break };
        let mut derived: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        let scope = tree::statements(place.scope());
        if what == Kept::Graph {
            derive(&scope, &mut derived);
        }
        let found = in_scope(case, place, &derived, what);
        if !found.is_empty() {
            return found;
        }
        let hands_on = |step: &Statement<'_>| match step.statement() {
            Stmt::Return(of) => of.value.as_ref().is_some_and(|value| mentions(value, &derived, what)),
            _ => false,
        };
        if !scope.iter().any(hands_on) {
            break;
        }
    }
    Vec::new()
}

/// The keepers of some names in the scope of a place: statements, or else helpers that are called there.
fn in_scope<'a>(
    case: &Case<'a>,
    place: &Nesting<'a>,
    derived: &BTreeSet<String>,
    what: Kept,
) -> Vec<Keeper<'a>> {
    let scope = tree::statements(place.scope());
    let keeps =
        |keeping: &Keeping<'_>| mentions(keeping.value, derived, what) && outlasts(place, keeping.container);
    let own: Vec<Keeper<'a>> = scope
        .iter()
        .filter_map(|step| keeping(step.statement(), what))
        .filter(keeps)
        .map(|keeping| Keeper::of(place, &keeping, derived.clone()))
        .collect();
    if !own.is_empty() {
        return own;
    }
    let calls = scope.iter().filter_map(|step| call_of(step.statement()));
    calls.flat_map(|call| in_helper(case, place, call, (derived, what))).collect()
}

/// Adds the names whose values come from others of them, graph and all.
fn derive(scope: &[Statement<'_>], names: &mut BTreeSet<String>) {
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

/// The arguments of a call that the called helper keeps in an object. Of several methods of the name (callbacks) it is the one that keeps any.
fn in_helper<'a>(
    case: &Case<'a>,
    place: &Nesting<'a>,
    call: &'a ExprCall,
    asked: (&BTreeSet<String>, Kept),
) -> Vec<Keeper<'a>> {
    let Some(name) = callee(call) else { return Vec::new() };
    let helpers = functions(case).into_iter().filter(|of| of.name == *name);
    let kept: Vec<Vec<Keeper<'a>>> = helpers.map(|helper| kept_by(helper, place, call, asked)).collect();
    let is_one_of_several = kept.len() > 1;
    let mut keeping = kept.into_iter().filter(|kept| !kept.is_empty());
    let found = keeping.next().filter(|_| keeping.next().is_none()).unwrap_or_default();
    if is_one_of_several && method(call).is_none() {
        return Vec::new();
    }
    found.into_iter().map(|keeper| Keeper { is_one_of_several, ..keeper }).collect()
}

/// The arguments of a call that a helper keeps in an object, and uses for nothing else.
fn kept_by<'a>(
    helper: &'a StmtFunctionDef,
    place: &Nesting<'a>,
    call: &'a ExprCall,
    (derived, what): (&BTreeSet<String>, Kept),
) -> Vec<Keeper<'a>> {
    let given = given(helper, call);
    let kept = given.into_iter().filter(|(_, value)| mentions(value, derived, what));
    let keeper = |(name, value): (&'a str, &'a Expr)| {
        let names = BTreeSet::from([name.to_owned()]);
        let steps = tree::statements(&helper.body).into_iter();
        let mut keeping = steps.filter_map(|step| Some((step.statement(), keeping(step.statement(), what)?)));
        let (statement, keeping) = keeping.find(|(_, keeping)| mentions(keeping.value, &names, what))?;
        let is_objects = matches!(root(keeping.container), Some(Expr::Attribute(_)));
        let is_all = tree::reads(&helper.body, name) == tree::reads(std::slice::from_ref(statement), name);
        let by_helper = Some((keeping.value, name));
        (is_objects && is_all).then(|| Keeper {
            value,
            by_helper,
            ..Keeper::of(place, &keeping, derived.clone())
        })
    };
    kept.filter_map(keeper).collect()
}

/// The one function of the file with a name.
pub(super) fn only_function<'a>(case: &Case<'a>, name: &str) -> Option<&'a StmtFunctionDef> {
    let mut named = functions(case).into_iter().filter(|of| of.name == *name);
    named.next().filter(|_| named.next().is_none())
}

/// All functions of the file.
pub(super) fn functions<'a>(case: &Case<'a>) -> Vec<&'a StmtFunctionDef> {
    let steps = tree::all_statements(case.script.body).into_iter();
    let function = |step: Statement<'a>| match step.statement() {
        Stmt::FunctionDef(of) => Some(of),
        _ => None,
    };
    steps.filter_map(function).collect()
}

/// What a statement keeps. A running average (`mean = 0.9 * mean + 0.1 * x`) takes the place of the one before, and has its graph.
pub(super) fn keeping(statement: &Stmt, what: Kept) -> Option<Keeping<'_>> {
    match statement {
        Stmt::Expr(_) => {
            let call = call_of(statement)?;
            let (container, name) = method(call)?;
            let value = call.arguments.args.last().filter(|_| call.arguments.keywords.is_empty())?;
            KEEPING.contains(&name).then_some(Keeping { value, container, sums: false, appends: true })
        }
        Stmt::AugAssign(of) if of.op == Operator::Add => {
            Some(Keeping { value: &of.value, container: &of.target, sums: true, appends: false })
        }
        Stmt::Assign(of) => match &of.targets[..] {
            [target @ Expr::Subscript(_)] => {
                Some(Keeping { value: &of.value, container: target, sums: false, appends: false })
            }
            [target @ (Expr::Name(_) | Expr::Attribute(_))]
                if what == Kept::Graph && goes_on(target, &of.value) =>
            {
                Some(Keeping { value: &of.value, container: target, sums: true, appends: false })
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value is computed from what it takes the place of.
fn goes_on(target: &Expr, value: &Expr) -> bool {
    match value {
        Expr::BinOp(of) => goes_on(target, &of.left) || goes_on(target, &of.right),
        other => dotted(target).is_some_and(|path| dotted(other) == Some(path)),
    }
}

/// The name of what holds something: of `log["loss"]` and `log` it is `log`, of `self.log` the attribute.
pub(super) fn root(container: &Expr) -> Option<&Expr> {
    match container {
        Expr::Subscript(of) => root(&of.value),
        Expr::Name(_) | Expr::Attribute(_) => Some(container),
        _ => None,
    }
}

/// Looks for code that takes single values out of what holds them.
struct ReadBack<'k, 'a> {
    case: &'k Case<'a>,
    holder: &'k Expr,
    found: bool,
}

impl ReadBack<'_, '_> {
    fn is_it(&self, expression: &Expr) -> bool {
        match (self.holder, expression) {
            (Expr::Name(own), Expr::Name(other)) => own.id == other.id,
            (Expr::Attribute(own), Expr::Attribute(other)) => own.attr.id == other.attr.id,
            (Expr::Subscript(_), Expr::Subscript(_)) => {
                self.case.script.words(self.holder) == self.case.script.words(expression)
            }
            _ => false,
        }
    }
}

impl<'a> Visitor<'a> for ReadBack<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        self.found |= match expression {
            Expr::Call(call) => {
                let of_it = method(call).is_some_and(|(on, name)| TAKING.contains(&name) && self.is_it(on));
                let drawn = callee(call).is_some_and(|name| DRAWING.contains(&name));
                of_it || drawn && call.arguments.args.iter().any(|one| self.is_it(one))
            }
            Expr::Subscript(of) if of.ctx.is_load() && self.is_it(&of.value) => {
                !of.slice.is_slice_expr() && !is_constant(&of.slice)
            }
            _ => false,
        };
        visitor::walk_expr(self, expression);
    }
}

/// `0`, `-1`, `"loss"`.
fn is_constant(index: &Expr) -> bool {
    match index {
        Expr::UnaryOp(of) => of.operand.is_literal_expr(),
        other => other.is_literal_expr(),
    }
}

/// Whether a container is older than the turn of the innermost loop, or belongs to an object.
pub(super) fn outlasts(place: &Nesting<'_>, container: &Expr) -> bool {
    match root(container) {
        Some(Expr::Name(of)) => {
            // A function's own names are new in each call.
            let in_call = || place.function().map(|_| place.scope());
            let body = place.loops().next().and_then(|step| step.loop_body()).or_else(in_call);
            let fresh = |step: Statement<'_>| {
                let binds =
                    bound_names(step.statement()).is_some_and(|names| names.contains(&of.id.as_str()));
                binds && !value_of(step.statement()).is_some_and(|value| goes_on(container, value))
            };
            !body.is_some_and(|body| tree::statements(body).into_iter().any(fresh))
        }
        Some(_) => true,
        None => false,
    }
}
