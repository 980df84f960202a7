//! What is noted on the way through a file about what leaves it: who gets a value, who asks it for its graph, what holds what is
//! computed.
//!
//! Always: a function of another file may differentiate what it gets, unless it is a library's that does not, or says by its name that
//! it computes or shows something.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall};

use super::Variable;
use super::walk::Walk;
use super::words::{
    ASKING, BUILTINS, CONTAINERS, HANDED_IN, LIBRARIES, MODULES, NO_MAKERS, OF_TENSORS, SHOWING,
};
use crate::fix::calls::{TENSORS, is_cut, makes_tensors};
use crate::fix::tree::{callee, dotted, method};

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
