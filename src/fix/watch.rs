//! Who may look at gradients between a step and the next backward pass.
//!
//! In: a clearing and the step that follows it. Out: whether code that the file does not show gets the model, its parameters or their
//! optimizer while gradients are there that would be gone. Always: what runs before the first step is left out; a call counts unless it
//! is known.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::case::Case;
use super::tree::{self, Names, Nesting, bound_names, callee, dotted, given, method, value_of};

/// Methods of a model or of what comes from it that hand it, or its parameters, on.
const HANDING: [&str; 14] = [
    "bfloat16",
    "children",
    "cpu",
    "cuda",
    "eval",
    "float",
    "half",
    "items",
    "modules",
    "named_modules",
    "named_parameters",
    "parameters",
    "to",
    "train",
];
/// Functions that hand on what they are given.
const WRAPPING: [&str; 12] = [
    "chain",
    "compile",
    "dict",
    "enumerate",
    "filter",
    "fully_shard",
    "iter",
    "list",
    "prepare",
    "set",
    "tuple",
    "zip",
];
/// What stands beside a model or an optimizer and has no gradients.
const PLAIN: [&str; 9] =
    ["config", "cfg", "data", "defaults", "device", "dtype", "name", "param_groups", "training"];
/// Functions of Python and its libraries that look at no gradients.
const BLIND: [&str; 28] = [
    "all",
    "any",
    "copy",
    "deepcopy",
    "dict",
    "enumerate",
    "filter",
    "getattr",
    "hasattr",
    "id",
    "isinstance",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "print",
    "repr",
    "set",
    "setattr",
    "str",
    "sum",
    "tuple",
    "type",
    "vars",
    "zip",
];
/// What options are kept in.
const OPTIONS: [&str; 6] = ["args", "cfg", "config", "hparams", "opt", "options"];
/// What parts of programs call the model.
const MODELS: [&str; 3] = ["model", "net", "network"];

/// Whether a call that the file does not show may look at the gradients of what is cleared.
pub(super) fn may_look(case: &Case<'_>, cleared: &str, clearing: &Stmt, step: &Stmt) -> bool {
    let watch = Watch { case, functions: functions(case), held: BTreeSet::new() }.holding(cleared);
    // From the clearing to the step gradients are those of one backward pass, as before.
    let place = |statement: &Stmt| Nesting::of(case.script.body, statement.start().to_usize());
    let function = |statement: &Stmt| Case::function(&place(statement)).map(Ranged::start);
    let is_one = function(clearing) == function(step);
    let between = |call: &ExprCall| is_one && clearing.start() <= call.start() && call.end() <= step.end();
    watch.behind(step).into_iter().any(|call| !between(call) && watch.is_unseen(call))
}

fn functions<'a>(case: &Case<'a>) -> Vec<&'a StmtFunctionDef> {
    let steps = tree::all_statements(case.script.body).into_iter();
    steps
        .filter_map(|step| match step.statement() {
            Stmt::FunctionDef(of) => Some(of),
            _ => None,
        })
        .collect()
}

struct Watch<'c, 'a> {
    case: &'c Case<'a>,
    functions: Vec<&'a StmtFunctionDef>,
    /// The names by which the model, its parameters and its optimizer go.
    held: BTreeSet<String>,
}

impl<'a> Watch<'_, 'a> {
    fn named(&self, name: &str) -> impl Iterator<Item = &'a StmtFunctionDef> {
        self.functions.iter().copied().filter(move |of| of.name == *name)
    }

    /// With all names for what is cleared, and what the optimizers are made of.
    fn holding(mut self, cleared: &str) -> Self {
        let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
        self.held.extend(MODELS.map(str::to_owned));
        self.held.insert(last(cleared));
        let calls = tree::calls(self.case.script.body);
        let steps = calls.iter().filter_map(|call| method(call)).filter(|(_, name)| *name == "step");
        let stepped: Vec<String> = steps.filter_map(|(on, _)| dotted(on)).collect();
        for path in stepped.iter().filter(|path| last(path).starts_with("opt")) {
            self.held.insert(last(path));
            let made = self.case.assigned(path).into_iter();
            let models = made.flat_map(parameters_of).map(|path| last(&path));
            self.held.extend(models);
        }
        loop {
            let before = self.held.len();
            let more: Vec<String> =
                self.aliases().chain(self.parameters(&calls)).map(str::to_owned).collect();
            self.held.extend(more);
            if self.held.len() == before {
                return self;
            }
        }
    }

    /// Names that are bound to what is held.
    fn aliases(&self) -> impl Iterator<Item = &'a str> {
        let steps = tree::all_statements(self.case.script.body).into_iter().map(|step| step.statement());
        let holds = steps.filter(move |one| value_of(one).is_some_and(|value| self.hands(value)));
        holds.filter_map(|one| bound_names(one).filter(|names| names.len() == 1)).flatten()
    }

    /// The parameters of the file's functions that get it.
    fn parameters(&self, calls: &[&'a ExprCall]) -> impl Iterator<Item = &'a str> {
        let own = calls.iter().copied().flat_map(move |call| {
            self.named(callee(call).unwrap_or_default()).flat_map(move |function| given(function, call))
        });
        own.filter(move |(_, value)| self.hands(value)).map(|(name, _)| name)
    }

    /// Whether an expression's value is what is held, or holds it.
    fn hands(&self, expression: &Expr) -> bool {
        let any = |all: &[Expr]| all.iter().any(|one| self.hands(one));
        match expression {
            Expr::Name(of) => self.held.contains(of.id.as_str()),
            Expr::Attribute(of) if PLAIN.contains(&of.attr.as_str()) || is_options(&of.value) => false,
            Expr::Attribute(of) => self.held.contains(of.attr.as_str()) || self.hands(&of.value),
            Expr::Subscript(of) => self.hands(&of.value),
            Expr::Starred(of) => self.hands(&of.value),
            Expr::Tuple(of) => any(&of.elts),
            Expr::List(of) => any(&of.elts),
            Expr::Set(of) => any(&of.elts),
            Expr::Dict(of) => of.items.iter().any(|one| self.hands(&one.value)),
            Expr::If(of) => self.hands(&of.body) || self.hands(&of.orelse),
            Expr::ListComp(of) => self.draws(&of.elt, &of.generators),
            Expr::SetComp(of) => self.draws(&of.elt, &of.generators),
            Expr::Generator(of) => self.draws(&of.elt, &of.generators),
            Expr::Lambda(of) => {
                Names::in_expression(&of.body).read.iter().any(|name| self.held.contains(*name))
            }
            Expr::Call(call) => {
                let on = method(call).is_some_and(|(on, name)| HANDING.contains(&name) && self.hands(on));
                let name = callee(call).unwrap_or_default();
                let wraps = WRAPPING.contains(&name) || name.starts_with(char::is_uppercase);
                on || wraps && any(&call.arguments.args)
            }
            _ => false,
        }
    }

    /// Whether a comprehension hands on what it draws: `p for p in model.parameters()`.
    fn draws(&self, each: &Expr, from: &[ruff_python_ast::Comprehension]) -> bool {
        let names = Names::in_expression(each).read;
        from.iter().any(|one| {
            let bound = Names::in_expression(&one.target).bound;
            self.hands(&one.iter)
                && matches!(each, Expr::Name(_) | Expr::Tuple(_))
                && !bound.is_disjoint(&names)
        })
    }

    /// Whether a call gets what is held, and nobody knows what it does with it.
    fn is_unseen(&self, call: &ExprCall) -> bool {
        let name = callee(call).unwrap_or_default();
        let path = dotted(&call.func).unwrap_or_default();
        let torch = self.case.torch().unwrap_or("torch");
        let of_torch = [torch, "torch", "nn", "F", "optim"]
            .iter()
            .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.')));
        let tells = name.contains("grad") || name.contains("norm");
        let averages = method(call)
            .and_then(|(on, _)| dotted(on))
            .is_some_and(|on| on.to_lowercase().contains("ema") || on.to_lowercase().contains("average"));
        let is_known = BLIND.contains(&name) || of_torch && !tells || averages;
        let is_own = self.named(name).next().is_some() || self.is_class(name);
        let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
        !is_known && !is_own && call.arguments.args.iter().chain(named).any(|one| self.hands(one))
    }

    fn is_class(&self, name: &str) -> bool {
        let steps = tree::all_statements(self.case.script.body);
        steps.iter().any(|step| matches!(step.statement(), Stmt::ClassDef(of) if of.name.as_str() == name))
    }

    /// The calls that may run between a step and the next clearing: in the loop around it and behind that, in whatever calls its
    /// function, and in the functions of the file that these call.
    fn behind(&self, step: &Stmt) -> Vec<&'a ExprCall> {
        let body = self.case.script.body;
        let all = tree::calls(body);
        let mut found: Vec<&'a ExprCall> = Vec::new();
        let mut known: BTreeSet<usize> = BTreeSet::new();
        let mut places = vec![Nesting::of(body, step.start().to_usize())];
        while let Some(place) = places.pop() {
            let function = Case::function(&place);
            let outermost = place.loops().last().or_else(|| place.inside().first().copied());
            let from = match (place.loops().next(), function) {
                (None, Some(function)) => function.start(),
                _ => outermost.map_or(step.start(), |step| step.statement().start()),
            };
            if !known.insert(from.to_usize()) {
                continue;
            }
            let within: Vec<&'a Stmt> = match function {
                Some(function) => function.body.iter().collect(),
                None => body.iter().filter(|one| !tree::is_definition(one)).collect(),
            };
            found.extend(tree::calls(within).into_iter().filter(|call| call.end() > from));
            if let Some(function) = function {
                let callers = all.iter().filter(|call| callee(call) == Some(function.name.as_str()));
                places.extend(callers.map(|call| Nesting::of(body, call.start().to_usize())));
            }
        }
        let mut at = 0;
        let mut called: BTreeSet<&str> = BTreeSet::new();
        while let Some(call) = found.get(at).copied() {
            at += 1;
            let Some(name) = callee(call) else { continue };
            // `model.train()` only switches.
            let switches = method(call).is_some() && call.arguments.is_empty();
            if !switches && called.insert(name) {
                found.extend(self.named(name).flat_map(|function| tree::calls(&function.body)));
            }
        }
        found
    }
}

/// Whether something holds options: `args.model` is a name.
fn is_options(expression: &Expr) -> bool {
    let path = dotted(expression).unwrap_or_default();
    OPTIONS.contains(&path.rsplit('.').next().unwrap_or_default())
}

/// The models whose parameters something is made of: `model` of `SGD(model.parameters())`.
fn parameters_of(made: &Expr) -> Vec<String> {
    let mut found = Vec::new();
    for call in calls_in(made) {
        if let Some((on, "parameters" | "named_parameters")) = method(call) {
            found.extend(dotted(on));
        }
    }
    found
}

fn calls_in(expression: &Expr) -> Vec<&ExprCall> {
    use ruff_python_ast::visitor::{Visitor, walk_expr};
    struct CallsAround<'a>(Vec<&'a ExprCall>);
    impl<'a> Visitor<'a> for CallsAround<'a> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            if let Expr::Call(call) = expression {
                self.0.push(call);
            }
            walk_expr(self, expression);
        }
    }
    let mut calls = CallsAround(Vec::new());
    calls.visit_expr(expression);
    calls.0
}
