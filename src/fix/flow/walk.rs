//! What moves where, read off a file's statements.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprCall, Stmt, StmtFunctionDef};

use super::leaving::{Leaving, bound_attributes};
use super::scopes::{Functions, Scope};
use super::{Flow, Variable};
use crate::fix::calls::is_cut;
use crate::fix::tree::{Names, call_of, callee, dotted, given, method};

/// Methods whose result somebody else differentiates.
const HANDED_ON: [&str; 5] = ["forward", "__call__", "training_step", "compute_loss", "loss"];
/// Methods of containers and meters that keep what they are given.
const KEEPING: [&str; 8] = ["append", "add", "appendleft", "insert", "extend", "update", "push", "put"];
/// Methods that give the same value at another place.
const MOVES: [&str; 3] = ["to", "cuda", "pin_memory"];
/// Methods of tensors that objects of programs have values of the same name beside: `meter.sum`.
const REDUCING: [&str; 4] = ["sum", "mean", "max", "min"];
/// What has a `step` that differentiates nothing, by parts of its name: schedulers, loss scalers, environments, averages, profilers.
const NO_OPTIMIZERS: [&str; 8] = ["sched", "scaler", "env", "ema", "plateau", "prof", "meter", "bar"];
/// What options are kept in: what they hold is no method, whatever its name.
const OPTIONS: [&str; 7] = ["args", "cfg", "config", "flags", "hparams", "opt", "options"];
/// Functions that call a function they are given at once, and differentiate nothing.
const CALLING: [&str; 7] = ["sorted", "sort", "min", "max", "map", "filter", "reduce"];

pub(super) struct Walk<'a> {
    pub(super) flow: Flow,
    /// The scopes around, outermost first.
    pub(super) inside: Vec<usize>,
    pub(super) functions: Functions<'a>,
    /// The attributes that the file binds.
    pub(super) attributes: BTreeSet<&'a str>,
    /// The function around.
    function: Option<&'a str>,
}

impl<'a> Walk<'a> {
    pub(super) fn over(body: &'a [Stmt]) -> Flow {
        let (functions, attributes) = (Functions::of(body), bound_attributes(body));
        let names_of_functions =
            functions.all.iter().map(|of| (of.range.start().to_usize(), of.name.to_string())).collect();
        let flow = Flow {
            scopes: vec![Scope::of_file(body)],
            leaving: Leaving::of(body),
            names_of_functions,
            ..Flow::default()
        };
        let mut walk = Walk { flow, inside: vec![0], functions, attributes, function: None };
        walk.visit_body(body);
        walk.flow
    }

    /// What a name stands for here.
    pub(super) fn name(&self, name: &str) -> Option<Variable> {
        Some(Variable::Local(self.flow.scope(&self.inside, name)?, name.to_owned()))
    }

    /// Whether a name stands for a function of the file here.
    fn is_function(&self, name: &str) -> bool {
        let scope = self.flow.scope(&self.inside, name).and_then(|scope| self.flow.scopes.get(scope));
        scope.is_some_and(|scope| scope.functions.contains(name))
    }

    /// What an expression's value may come from.
    pub(super) fn mentions(&self, expression: &Expr) -> BTreeSet<Variable> {
        let mut mentions = Mentions { walk: self, keys: BTreeSet::new() };
        mentions.visit_expr(expression);
        mentions.keys
    }

    /// What an assignment to an expression changes.
    fn targets(&self, expression: &Expr) -> BTreeSet<Variable> {
        match expression {
            Expr::Name(of) => self.name(&of.id).into_iter().collect(),
            Expr::Attribute(of) => BTreeSet::from([Variable::Attribute(of.attr.to_string())]),
            Expr::Subscript(of) => self.targets(&of.value),
            Expr::Starred(of) => self.targets(&of.value),
            Expr::Call(of) => method(of).map(|(on, _)| self.targets(on)).unwrap_or_default(),
            Expr::Tuple(of) => of.elts.iter().flat_map(|one| self.targets(one)).collect(),
            Expr::List(of) => of.elts.iter().flat_map(|one| self.targets(one)).collect(),
            _ => BTreeSet::new(),
        }
    }

    fn link(&mut self, from: BTreeSet<Variable>, to: BTreeSet<Variable>) {
        if !from.is_empty() && !to.is_empty() {
            self.flow.links.push((from, to));
        }
    }

    /// A value gets to what an expression names.
    fn bind(&mut self, value: &'a Expr, target: &'a Expr) {
        let to = self.targets(target);
        self.note_made(value, &to);
        self.link(self.mentions(value), to);
    }

    fn assign(&mut self, value: &'a Expr, target: &'a Expr) {
        self.bind(value, target);
        self.keep(value, target, false);
    }

    /// Notes what is put where it outlives the call of the function around: an attribute, a name of a scope outside, what a parameter
    /// holds. `into`: not the name is bound, but what it holds is changed.
    fn keep(&mut self, value: &'a Expr, target: &'a Expr, into: bool) {
        match target {
            Expr::Tuple(of) => return of.elts.iter().for_each(|one| self.keep(value, one, into)),
            Expr::List(of) => return of.elts.iter().for_each(|one| self.keep(value, one, into)),
            Expr::Starred(of) => return self.keep(value, &of.value, into),
            Expr::Subscript(of) => return self.keep(value, &of.value, true),
            // `by_name.setdefault(name, []).append(x)`.
            Expr::Call(of) => return method(of).into_iter().for_each(|(on, _)| self.keep(value, on, true)),
            _ => {}
        }
        let from = self.mentions(value);
        let moves =
            matches!(value, Expr::Call(call) if method(call).is_some_and(|(_, name)| MOVES.contains(&name)));
        if from.is_empty() || moves {
            return;
        }
        let key = match target {
            Expr::Attribute(of) => Variable::Attribute(of.attr.to_string()),
            Expr::Name(of) => {
                let Some(number) = self.flow.scope(&self.inside, &of.id) else { return };
                let key = Variable::Local(number, of.id.to_string());
                match self.flow.scopes.get(number) {
                    Some(scope) if into && scope.parameters.contains(of.id.as_str()) => {
                        let put = Variable::PutInto(scope.start, of.id.to_string());
                        self.link(from, BTreeSet::from([put.clone()]));
                        self.link(BTreeSet::from([key]), BTreeSet::from([put.clone()]));
                        put
                    }
                    _ => key,
                }
            }
            _ => return,
        };
        self.note_made(value, &BTreeSet::from([key.clone()]));
        // A name of a function is gone with its call.
        for (depth, number) in self.inside.iter().enumerate().skip(1) {
            let own = self.inside.get(depth..).unwrap_or_default();
            let is_own = matches!(&key, Variable::Local(scope, _) if own.contains(scope));
            if let Some(scope) = self.flow.scopes.get(*number).filter(|_| !is_own) {
                self.flow.kept.entry(scope.start).or_default().insert(key.clone());
            }
        }
    }

    fn call(&mut self, call: &'a ExprCall) {
        let arguments =
            call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
        let given: BTreeSet<Variable> = arguments.clone().flat_map(|one| self.mentions(one)).collect();
        let name = callee(call).unwrap_or_default();
        let path = dotted(&call.func).unwrap_or_default();
        // A loss that is given to something together with an optimizer is differentiated there.
        let with_optimizer = arguments.clone().count() > 1
            && arguments.clone().any(|one| {
                let names = Names::in_expression(one);
                names.read.iter().chain(&names.attributes).any(|name| name.contains("optim"))
            });
        let differentiates = name.contains("backward")
            || ["grad", "minimize"].contains(&name)
            || path.contains("autograd")
            || self.is_step(call);
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
        let own: Vec<&StmtFunctionDef> = self.functions.named(name).collect();
        if own.is_empty() && !CALLING.contains(&name) && !name.contains("hook") {
            // Whoever gets a function may call it, and differentiate what comes back.
            let lambdas = arguments.clone().filter(|one| one.is_lambda_expr());
            let called: BTreeSet<Variable> = lambdas.flat_map(|one| self.mentions(one)).collect();
            self.flow.sinks.extend(called);
        }
        for of in own {
            self.hand_over(of, call, &given);
        }
        // What is called is no function that is handed on.
        self.note_call(call, &given);
    }

    /// What a function of the file is given, and what it puts into it.
    fn hand_over(&mut self, function: &'a StmtFunctionDef, call: &'a ExprCall, all: &BTreeSet<Variable>) {
        let start = function.range.start().to_usize();
        let names = function.parameters.iter().map(|one| one.name().to_string());
        let to = names.map(|name| Variable::Given(start, name)).collect();
        self.link(all.clone(), to);
        for (name, value) in given(function, call) {
            let put = BTreeSet::from([Variable::PutInto(start, name.to_owned())]);
            self.link(put, self.targets(value));
        }
    }

    /// Whether a call is the step of an optimizer that is given something to compute, or a loss.
    fn is_step(&self, call: &ExprCall) -> bool {
        let Some((on, "step")) = method(call) else { return false };
        let last = match on {
            Expr::Name(of) => of.id.to_lowercase(),
            Expr::Attribute(of) => of.attr.to_lowercase(),
            _ => String::new(),
        };
        let is_own = self.functions.named("step").next().is_some() && !last.starts_with("opt");
        !is_own && !NO_OPTIMIZERS.iter().any(|other| last.contains(other))
    }

    fn define(&mut self, of: &'a StmtFunctionDef) {
        let number = self.flow.scopes.len();
        self.flow.scopes.push(Scope::of_function(of));
        let start = of.range.start().to_usize();
        for one in &*of.parameters {
            let name = one.name().to_string();
            let given = BTreeSet::from([Variable::Given(start, name.clone())]);
            self.link(given, BTreeSet::from([Variable::Local(number, name)]));
        }
        for one in of.parameters.iter_non_variadic_params() {
            if let Some(default) = &one.default {
                self.visit_expr(default);
            }
        }
        self.inside.push(number);
        self.flow.functions.insert(start, self.inside.clone());
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
        let returned = BTreeSet::from([Variable::Returned(name.to_owned())]);
        self.note_made(value, &returned);
        self.link(given, returned);
    }

    /// A function that is named without being called: whoever gets it may differentiate what it returns.
    fn refer(&mut self, expression: &'a Expr) {
        let name = match expression {
            Expr::Name(of) if of.ctx.is_load() && self.is_function(&of.id) => of.id.as_str(),
            Expr::Attribute(of) if of.ctx.is_load() && self.functions.methods.contains(of.attr.as_str()) => {
                let holder = dotted(&of.value).unwrap_or_default().to_lowercase();
                if OPTIONS.contains(&holder.rsplit('.').next().unwrap_or_default()) {
                    return;
                }
                of.attr.as_str()
            }
            _ => return,
        };
        self.flow.sinks.insert(Variable::Returned(name.to_owned()));
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                of.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                return self.define(of);
            }
            Stmt::Assign(of) => of.targets.iter().for_each(|target| self.assign(&of.value, target)),
            Stmt::AugAssign(of) => self.assign(&of.value, &of.target),
            Stmt::AnnAssign(of) => {
                if let Some(value) = &of.value {
                    self.assign(value, &of.target);
                }
            }
            Stmt::For(of) => self.bind(&of.iter, &of.target),
            Stmt::With(of) => {
                for item in &of.items {
                    item.optional_vars.iter().for_each(|to| self.bind(&item.context_expr, to));
                }
            }
            Stmt::Return(of) => {
                if let Some(value) = &of.value {
                    self.hand_out(value);
                }
            }
            _ => {}
        }
        if let Some(call) = call_of(statement)
            && let Some((on, _)) = method(call).filter(|(_, name)| KEEPING.contains(name))
        {
            call.arguments.args.iter().for_each(|value| self.keep(value, on, true));
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => {
                self.call(call);
                return self.visit_arguments(&call.arguments);
            }
            Expr::Named(of) => self.bind(&of.value, &of.target),
            Expr::Yield(of) => {
                if let Some(value) = &of.value {
                    self.hand_out(value);
                }
            }
            Expr::YieldFrom(of) => self.hand_out(&of.value),
            other => {
                self.note_seen(other);
                self.refer(other);
            }
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
    keys: BTreeSet<Variable>,
}

impl<'e> Visitor<'e> for Mentions<'_, '_> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        match expression {
            Expr::Compare(_) => return,
            Expr::Call(call) => {
                if is_cut(call) {
                    return;
                }
                self.keys.extend(callee(call).map(|name| Variable::Returned(name.to_owned())));
                if let ("getattr", [_, Expr::StringLiteral(name), ..]) =
                    (callee(call).unwrap_or_default(), &*call.arguments.args)
                {
                    let name = name.value.to_str();
                    self.keys
                        .extend([Variable::Returned(name.to_owned()), Variable::Attribute(name.to_owned())]);
                }
                if let Some((on, name)) = method(call)
                    && REDUCING.contains(&name)
                {
                    self.visit_expr(on);
                    return self.visit_arguments(&call.arguments);
                }
            }
            Expr::Attribute(of) if ["data", "shape", "dtype", "device"].contains(&of.attr.as_str()) => return,
            // A property returns something, too.
            Expr::Attribute(of) => {
                self.keys.insert(Variable::Attribute(of.attr.to_string()));
                if self.walk.functions.named(&of.attr).next().is_some() {
                    self.keys.insert(Variable::Returned(of.attr.to_string()));
                }
            }
            Expr::Name(of) if of.id != "self" => {
                self.keys.extend(self.walk.name(&of.id));
                // Whoever has a function has what it returns.
                if self.walk.is_function(&of.id) {
                    self.keys.insert(Variable::Returned(of.id.to_string()));
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
