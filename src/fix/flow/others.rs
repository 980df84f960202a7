//! What leaves the file: values that code of other files gets, and those that are asked for their graph.
//!
//! Always: a function of another file may differentiate what it gets, unless it is a library's that does not, or says by its name that
//! it computes or shows something.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::walk::Walk;
use super::words::{
    ASKING, BUILTINS, CONTAINERS, HANDED_IN, LIBRARIES, MODULES, NO_MAKERS, OF_TENSORS, SHOWING,
};
use super::{Flow, Variable, is_cut};
use crate::fix::tensor::{TENSORS, makes_tensors};
use crate::fix::tree::{self, callee, dotted, method};

/// What leaves a file.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// What functions of other files get: the function.
    gotten: BTreeMap<Variable, String>,
    /// What is asked for its graph: by what.
    asked: BTreeMap<Variable, String>,
    /// What a function (by where it begins) asks anything for its graph by.
    asking: BTreeMap<usize, String>,
    /// What holds that which a function (by where it begins) computes.
    made: BTreeMap<usize, BTreeSet<Variable>>,
    /// The names of everything that is called.
    called: BTreeSet<String>,
    /// Attributes that are looked at.
    seen: BTreeSet<String>,
    /// Names that functions say are the file's.
    global: BTreeSet<String>,
    /// What imported names come from: the first part of the module's name.
    imported: BTreeMap<String, String>,
}

impl Leaving {
    pub(super) fn of(body: &[Stmt]) -> Leaving {
        let mut leaving = Leaving::default();
        let first = |module: &str| module.split('.').next().unwrap_or_default().to_owned();
        for step in tree::all_statements(body) {
            match step.statement() {
                Stmt::Import(of) => leaving.imported.extend(of.names.iter().map(|one| {
                    let name = one.asname.as_ref().unwrap_or(&one.name);
                    (first(name), first(&one.name))
                })),
                Stmt::ImportFrom(of) => {
                    let from = of.module.as_ref().filter(|_| of.level == 0).map(|from| first(from));
                    leaving.imported.extend(of.names.iter().map(|one| {
                        (
                            one.asname.as_ref().unwrap_or(&one.name).to_string(),
                            from.clone().unwrap_or_default(),
                        )
                    }));
                }
                Stmt::Global(of) => leaving.global.extend(of.names.iter().map(ToString::to_string)),
                _ => {}
            }
        }
        leaving
    }
}

impl Flow {
    /// What holds that which some functions (by where they begin) compute: their names, and what they return.
    pub(in crate::fix) fn made_in(&self, functions: impl IntoIterator<Item = usize>) -> Vec<Variable> {
        let made = functions.into_iter().filter_map(|start| self.leaving.made.get(&start));
        made.flatten().cloned().collect()
    }

    /// What asks some of these for their graph, or asks so in some functions (by where they begin).
    pub(in crate::fix) fn asked(
        &self,
        from: impl IntoIterator<Item = Variable>,
        within: impl IntoIterator<Item = usize>,
    ) -> Option<&str> {
        let inside = within.into_iter().find_map(|start| self.leaving.asking.get(&start));
        let reached = self.reached(from);
        inside.or_else(|| reached.iter().find_map(|key| self.leaving.asked.get(key))).map(String::as_str)
    }

    /// How one of these gets to where another file may differentiate it: a sentence. What is in an attribute or a global `already` is
    /// there for whoever wants it, and no way on.
    pub(in crate::fix) fn leaves_file(&self, from: &[Variable], already: bool) -> Option<String> {
        let leaving = &self.leaving;
        let is_new = |key: &Variable| !already || !from.contains(key);
        self.reached(from.iter().cloned()).iter().find_map(|key| match key {
            _ if leaving.gotten.contains_key(key) => {
                Some(format!("`{}` gets it, of which this file shows nothing", leaving.gotten.get(key)?))
            }
            Variable::Returned(name) if !leaving.called.contains(name) => {
                Some(format!("`{name}` returns it, and nothing in this file calls that"))
            }
            Variable::Local(0, name) if leaving.global.contains(name) && is_new(key) => {
                Some(format!("it is in the global `{name}`"))
            }
            Variable::Attribute(name) if !leaving.seen.contains(name) && is_new(key) => {
                Some(format!("it is in the attribute `{name}`, which nothing in this file reads"))
            }
            Variable::PutInto(start, name) => {
                let function = self.names_of_functions.get(start)?;
                (!leaving.called.contains(function)).then(|| format!("`{function}` puts it into `{name}`"))
            }
            _ => None,
        })
    }
}

impl<'a> Walk<'a> {
    /// Where the function around begins; 0 is the file.
    fn here(&self) -> usize {
        self.inside.last().and_then(|number| self.flow.scopes.get(*number)).map_or(0, |scope| scope.start)
    }

    /// Notes what holds something that the function around computes.
    pub(super) fn note_made(&mut self, value: &Expr, to: &BTreeSet<Variable>) {
        let mut makes = Makes(false);
        makes.visit_expr(value);
        if makes.0 {
            let here = self.here();
            self.flow.leaving.made.entry(here).or_default().extend(to.iter().cloned());
        }
    }

    /// Notes who gets the arguments of a call, and whom it asks for a graph.
    pub(super) fn note_call(&mut self, call: &'a ExprCall, given: &BTreeSet<Variable>) {
        let name = callee(call).unwrap_or_default();
        self.flow.leaving.called.insert(name.to_owned());
        if name == "is_grad_enabled" {
            let here = self.here();
            self.flow.leaving.asking.insert(here, name.to_owned());
        }
        if self.is_anothers(call) {
            let words = dotted(&call.func).unwrap_or_else(|| name.to_owned());
            let gotten = given.iter().map(|key| (key.clone(), words.clone()));
            self.flow.leaving.gotten.extend(gotten);
        }
        if let (Some((on, _)), true) = (method(call), CONTAINERS.contains(&name))
            && let Expr::Attribute(of) = on
        {
            // To be added to is not to be looked at.
            return self.visit_expr(&of.value);
        }
        match &*call.func {
            Expr::Name(_) => {}
            Expr::Attribute(of) => {
                self.note_asked(of.attr.as_str(), &of.value);
                self.visit_expr(&of.value);
            }
            other => self.visit_expr(other),
        }
    }

    /// Notes that an attribute is looked at.
    pub(super) fn note_seen(&mut self, expression: &'a Expr) {
        if let Expr::Attribute(of) = expression
            && of.ctx.is_load()
        {
            self.flow.leaving.seen.insert(of.attr.to_string());
            self.note_asked(of.attr.as_str(), &of.value);
        }
    }

    fn note_asked(&mut self, by: &str, of: &'a Expr) {
        if ASKING.contains(&by) {
            let here = self.here();
            self.flow.leaving.asking.insert(here, by.to_owned());
            let asked: Vec<Variable> = self.mentions(of).into_iter().collect();
            self.flow.leaving.asked.extend(asked.into_iter().map(|key| (key, by.to_owned())));
        }
    }

    /// Whether a call is of code that may differentiate what it gets, and that the file does not show.
    fn is_anothers(&self, call: &ExprCall) -> bool {
        let name = callee(call).unwrap_or_default();
        let is_word =
            |words: &[&str], text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
        let is_torchs = dotted(&call.func).is_some_and(|path| makes_tensors(&path));
        if is_torchs || self.functions.named(name).next().is_some() || is_word(&SHOWING, name) {
            return false;
        }
        let library =
            |root: &str| self.flow.leaving.imported.get(root).map(|from| LIBRARIES.contains(&&**from));
        match &*call.func {
            // A class: what it makes holds what it gets.
            Expr::Name(_) if name.starts_with(char::is_uppercase) => false,
            Expr::Name(of) => match library(&of.id) {
                Some(known) => !known,
                None if self.name(&of.id).is_some() => is_word(&HANDED_IN, name) && !is_word(&MODULES, name),
                None => !BUILTINS.contains(&name),
            },
            Expr::Attribute(of) => {
                let path = dotted(&of.value).unwrap_or_default();
                let root = path.split('.').next().unwrap_or_default();
                if let Some(known) = library(root) {
                    return !known;
                }
                let is_known = TENSORS.contains(&name)
                    || OF_TENSORS.contains(&name)
                    || name.ends_with('_')
                    || CONTAINERS.contains(&name)
                    || is_cut(call);
                let is_modules =
                    is_word(&MODULES, name) || is_word(&MODULES, path.rsplit('.').next().unwrap_or_default());
                let is_object = self.attributes.contains(name) && !is_word(&HANDED_IN, name);
                !is_known && !is_modules && !is_object && !of.value.is_string_literal_expr()
            }
            Expr::Call(made) => self.is_anothers(made),
            Expr::Lambda(_) => false,
            _ => true,
        }
    }
}

/// The attributes that a file binds: what is called by such a name is an object that somebody put there.
pub(super) fn bound_attributes(body: &[Stmt]) -> BTreeSet<&str> {
    let mut bound = BoundAttributes(BTreeSet::new());
    bound.visit_body(body);
    bound.0
}

struct BoundAttributes<'a>(BTreeSet<&'a str>);

impl<'a> Visitor<'a> for BoundAttributes<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Attribute(of) = expression
            && of.ctx.is_store()
        {
            self.0.insert(&of.attr);
        }
        visitor::walk_expr(self, expression);
    }
}

/// Looks for a call whose result may have a graph.
struct Makes(bool);

impl<'a> Visitor<'a> for Makes {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Compare(_) | Expr::Lambda(_) => return,
            Expr::Call(call) => {
                let name = callee(call).unwrap_or_default();
                if is_cut(call) {
                    return;
                }
                let moves = ["to", "cuda", "cpu", "float", "half", "append"].contains(&name);
                let plain = name.starts_with(char::is_uppercase) || BUILTINS.contains(&name) || moves;
                self.0 |= !plain && !NO_MAKERS.iter().any(|word| name.contains(word));
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
