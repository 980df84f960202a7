//! What leaves the file: values that code of other files gets, and those that are asked for their graph.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use super::{Flow, Variable};
use crate::fix::tree;

/// What leaves a file.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// What functions of other files get: the function.
    pub(super) gotten: BTreeMap<Variable, String>,
    /// What is asked for its graph: by what.
    pub(super) asked: BTreeMap<Variable, String>,
    /// What a function (by where it begins) asks anything for its graph by.
    pub(super) asking: BTreeMap<usize, String>,
    /// What holds that which a function (by where it begins) computes.
    pub(super) made: BTreeMap<usize, BTreeSet<Variable>>,
    /// The names of everything that is called.
    pub(super) called: BTreeSet<String>,
    /// Attributes that are looked at.
    pub(super) seen: BTreeSet<String>,
    /// Names that functions say are the file's.
    pub(super) global: BTreeSet<String>,
    /// What imported names come from: the first part of the module's name.
    pub(super) imported: BTreeMap<String, String>,
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
