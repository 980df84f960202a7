//! Which values of a file may reach a backward pass.
//!
//! In: a file. Out: whether what a name holds may be differentiated later. Names stand for what they hold, wherever they are
//! bound in their function, and attributes for all of their name in the file; what a call gets may come back from it. Always: too
//! much reaches a backward pass rather than too little, so that nothing is cut off that training needs.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{AnyParameterRef, Comprehension, Expr, ExprCall, Stmt, StmtFunctionDef};

use super::tree::{Names, callee, dotted, method};

/// A name in the function that binds it (by number; 0 is the file), or an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Local(usize, String),
    Attribute(String),
    /// What functions of this name return.
    Returned(String),
}

/// Methods whose result no backward pass reaches through.
const CUTS: [&str; 9] =
    ["item", "detach", "tolist", "numpy", "argmax", "argmin", "size", "numel", "requires_grad_"];
/// Functions of Python whose result is no tensor.
const NUMBERS: [&str; 6] = ["float", "int", "len", "bool", "str", "print"];
/// Methods whose result somebody else differentiates.
const HANDED_ON: [&str; 5] = ["forward", "__call__", "training_step", "compute_loss", "loss"];

/// How values move in a file.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// From what stands on the right to what stands on the left.
    links: Vec<(BTreeSet<Key>, BTreeSet<Key>)>,
    /// What is differentiated.
    sinks: BTreeSet<Key>,
    functions: BTreeMap<usize, usize>,
    scopes: Vec<BTreeSet<String>>,
}

impl Flow {
    pub(super) fn of(body: &[Stmt]) -> Flow {
        let flow = Flow { scopes: vec![bound_in(body, None)], ..Flow::default() };
        let mut parameters = Parameters::default();
        parameters.visit_body(body);
        let mut walk = Walk { flow, inside: vec![0], parameters: parameters.found, function: None };
        walk.visit_body(body);
        walk.flow
    }

    /// The name as a function (by where it begins) knows it, or the file.
    pub(super) fn key(&self, function: Option<&StmtFunctionDef>, name: &str) -> Key {
        let scope = function.and_then(|of| self.functions.get(&of.range.start().to_usize())).copied();
        let scope = self.scope(&[0, scope.unwrap_or(0)], name).unwrap_or(0);
        Key::Local(scope, name.to_owned())
    }

    /// The innermost of some functions that binds a name; none does for modules and what Python has.
    fn scope(&self, inside: &[usize], name: &str) -> Option<usize> {
        let binds = |scope: &&usize| self.scopes.get(**scope).is_some_and(|names| names.contains(name));
        inside.iter().rev().find(binds).copied()
    }

    /// Whether any of these may be differentiated.
    pub(super) fn reaches_backward(&self, from: impl IntoIterator<Item = Key>) -> bool {
        let reached = self.reached(from);
        reached.iter().any(|key| self.sinks.contains(key))
    }

    fn reached(&self, from: impl IntoIterator<Item = Key>) -> BTreeSet<Key> {
        let mut reached: BTreeSet<Key> = from.into_iter().collect();
        loop {
            let before = reached.len();
            for (from, to) in &self.links {
                if from.iter().any(|key| reached.contains(key)) {
                    reached.extend(to.iter().cloned());
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }
}

/// The names that a body binds, with those of its parameters.
fn bound_in(body: &[Stmt], function: Option<&StmtFunctionDef>) -> BTreeSet<String> {
    let mut bound = Bound::default();
    bound.visit_body(body);
    let parameters = function.into_iter().flat_map(|of| of.parameters.iter());
    bound.names.extend(parameters.map(|one| one.name().to_string()));
    bound.names.retain(|name| !bound.elsewhere.contains(name));
    bound.names
}

/// Names bound outside of definitions.
#[derive(Default)]
struct Bound {
    names: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
}

impl<'a> Visitor<'a> for Bound {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                self.names.insert(of.name.to_string());
            }
            Stmt::ClassDef(of) => {
                self.names.insert(of.name.to_string());
            }
            Stmt::Global(of) => self.elsewhere.extend(of.names.iter().map(ToString::to_string)),
            Stmt::Nonlocal(of) => self.elsewhere.extend(of.names.iter().map(ToString::to_string)),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(of) = expression
            && !of.ctx.is_load()
        {
            self.names.insert(of.id.to_string());
        }
        visitor::walk_expr(self, expression);
    }
}

/// The parameters of a file's functions, by the functions' names.
#[derive(Default)]
struct Parameters<'a> {
    found: BTreeMap<&'a str, Vec<(usize, Vec<&'a str>)>>,
}

impl<'a> Visitor<'a> for Parameters<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::FunctionDef(of) = statement {
            let names = of.parameters.iter().map(|one: AnyParameterRef<'a>| one.name().as_str()).collect();
            self.found.entry(&of.name).or_default().push((of.range.start().to_usize(), names));
        }
        visitor::walk_stmt(self, statement);
    }
}

struct Walk<'a> {
    flow: Flow,
    /// The functions around, outermost first.
    inside: Vec<usize>,
    parameters: BTreeMap<&'a str, Vec<(usize, Vec<&'a str>)>>,
    /// The function around.
    function: Option<&'a str>,
}

impl<'a> Walk<'a> {
    /// What a name stands for here.
    fn name(&self, name: &str) -> Option<Key> {
        Some(Key::Local(self.flow.scope(&self.inside, name)?, name.to_owned()))
    }

    /// What an expression's value may come from.
    fn mentions(&self, expression: &Expr) -> BTreeSet<Key> {
        let mut mentions = Mentions { walk: self, keys: BTreeSet::new() };
        mentions.visit_expr(expression);
        mentions.keys
    }

    /// What an assignment to an expression changes.
    fn targets(&self, expression: &Expr) -> BTreeSet<Key> {
        match expression {
            Expr::Name(of) => self.name(&of.id).into_iter().collect(),
            Expr::Attribute(of) => BTreeSet::from([Key::Attribute(of.attr.to_string())]),
            Expr::Subscript(of) => self.targets(&of.value),
            Expr::Starred(of) => self.targets(&of.value),
            Expr::Call(of) => method(of).map(|(on, _)| self.targets(on)).unwrap_or_default(),
            Expr::Tuple(of) => of.elts.iter().flat_map(|one| self.targets(one)).collect(),
            Expr::List(of) => of.elts.iter().flat_map(|one| self.targets(one)).collect(),
            _ => BTreeSet::new(),
        }
    }

    fn link(&mut self, from: BTreeSet<Key>, to: BTreeSet<Key>) {
        if !from.is_empty() && !to.is_empty() {
            self.flow.links.push((from, to));
        }
    }

    fn call(&mut self, call: &'a ExprCall) {
        let arguments =
            call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
        let given: BTreeSet<Key> = arguments.clone().flat_map(|one| self.mentions(one)).collect();
        let name = callee(call).unwrap_or_default();
        let path = dotted(&call.func).unwrap_or_default();
        // A loss that is given to something together with an optimizer is differentiated there.
        let with_optimizer = arguments.clone().count() > 1
            && arguments.clone().any(|one| {
                let names = Names::in_expression(one);
                names.read.iter().chain(&names.attributes).any(|name| name.contains("optim"))
            });
        let differentiates = name.contains("backward") || name == "grad" || path.contains("autograd");
        if differentiates || with_optimizer {
            self.flow.sinks.extend(given.iter().cloned());
            if name == "backward"
                && let Some((on, _)) = method(call)
            {
                let on = self.mentions(on);
                self.flow.sinks.extend(on);
            }
        }
        if let Some((on, _)) = method(call) {
            let on = self.targets(on);
            self.link(given.clone(), on);
        }
        let own: Vec<(usize, Vec<&str>)> = self.parameters.get(name).cloned().unwrap_or_default();
        for (function, names) in own {
            // Numbered when their definition is met, which may be later: by place until then.
            let keys = names.into_iter().map(|name| Key::Attribute(format!("{function}:{name}"))).collect();
            self.link(given.clone(), keys);
        }
    }

    fn define(&mut self, of: &'a StmtFunctionDef) {
        let scope = self.flow.scopes.len();
        self.flow.scopes.push(bound_in(&of.body, Some(of)));
        let start = of.range.start().to_usize();
        self.flow.functions.insert(start, scope);
        for one in &*of.parameters {
            let name = one.name().to_string();
            let given = BTreeSet::from([Key::Attribute(format!("{start}:{name}"))]);
            self.link(given, BTreeSet::from([Key::Local(scope, name)]));
        }
        self.inside.push(scope);
        let outer = self.function.replace(&of.name);
        self.visit_body(&of.body);
        self.function = outer;
        self.inside.pop();
    }

    fn hand_out(&mut self, value: &'a Expr) {
        let given = self.mentions(value);
        let Some(name) = self.function else { return };
        if HANDED_ON.contains(&name) || name.contains("closure") {
            self.flow.sinks.extend(given.iter().cloned());
        }
        self.link(given, BTreeSet::from([Key::Returned(name.to_owned())]));
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                of.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                return self.define(of);
            }
            Stmt::Assign(of) => {
                let to = of.targets.iter().flat_map(|one| self.targets(one)).collect();
                self.link(self.mentions(&of.value), to);
            }
            Stmt::AugAssign(of) => self.link(self.mentions(&of.value), self.targets(&of.target)),
            Stmt::AnnAssign(of) => {
                let from = of.value.as_ref().map(|value| self.mentions(value)).unwrap_or_default();
                self.link(from, self.targets(&of.target));
            }
            Stmt::For(of) => self.link(self.mentions(&of.iter), self.targets(&of.target)),
            Stmt::With(of) => {
                for item in &of.items {
                    let to = item.optional_vars.as_ref().map(|to| self.targets(to)).unwrap_or_default();
                    self.link(self.mentions(&item.context_expr), to);
                }
            }
            Stmt::Return(of) => {
                if let Some(value) = &of.value {
                    self.hand_out(value);
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => self.call(call),
            Expr::Named(of) => self.link(self.mentions(&of.value), self.targets(&of.target)),
            Expr::Yield(of) => {
                if let Some(value) = &of.value {
                    self.hand_out(value);
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, of: &'a Comprehension) {
        self.link(self.mentions(&of.iter), self.targets(&of.target));
        visitor::walk_comprehension(self, of);
    }
}

struct Mentions<'w, 'a> {
    walk: &'w Walk<'a>,
    keys: BTreeSet<Key>,
}

impl<'e> Visitor<'e> for Mentions<'_, '_> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        match expression {
            Expr::Compare(_) => return,
            Expr::Call(call) => {
                if is_cut(call) {
                    return;
                }
                self.keys.extend(callee(call).map(|name| Key::Returned(name.to_owned())));
            }
            Expr::Attribute(of) if ["data", "shape", "dtype", "device"].contains(&of.attr.as_str()) => return,
            Expr::Attribute(of) => {
                self.keys.insert(Key::Attribute(of.attr.to_string()));
            }
            Expr::Name(of) if of.id != "self" => {
                self.keys.extend(self.walk.name(&of.id));
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// Whether no backward pass reaches through a call.
pub(super) fn is_cut(call: &ExprCall) -> bool {
    match method(call) {
        Some((_, name)) => CUTS.contains(&name),
        None => callee(call).is_some_and(|name| NUMBERS.contains(&name)),
    }
}
