//! Dicts, lists and tuples: made empty, filled, and folded by the caller as soon as they are.

use super::Fold;
use super::cursor::{Cursor, ReadResult};
use super::heap::{ContainerState, Node, Value};
use super::machine::Machine;
use super::memo::get;

impl<F: Fold> Machine<'_, F> {
    #[inline]
    pub(super) fn push_new(&mut self, content: ContainerState) -> ReadResult<()> {
        Self::check(self.heap.contents.len() as u64, self.limits.nodes, "containers", "--max-nodes")?;
        let node = Node(u32::try_from(self.heap.contents.len()).unwrap_or(u32::MAX));
        self.heap.contents.push(content);
        self.push(Value::Container(node))
    }

    pub(super) fn push_tuple_of(&mut self, count: usize) -> ReadResult<()> {
        let base = self.below(count)?;
        self.push_tuple(base)
    }

    pub(super) fn push_tuple(&mut self, base: usize) -> ReadResult<()> {
        let items = self.stack.get(base..).unwrap_or_default();
        let slot = match self.heap.same_tuple(items) {
            Some(slot) => slot,
            None => self.keep(items.to_vec())?,
        };
        self.heap.last_tuple = Some(slot);
        self.stack.truncate(base);
        self.push_new(ContainerState::Tuple(slot))
    }

    /// LIST and DICT: a container from everything above the mark.
    pub(super) fn gather(&mut self, kind: ContainerState) -> ReadResult<()> {
        let base = self.pop_mark()?;
        let items = self.stack.split_off(base);
        self.push_new(kind)?;
        let base = self.stack.len();
        self.stack.extend(items);
        if matches!(kind, ContainerState::NewDict) { self.set_items(base) } else { self.append_items(base) }
    }

    /// Sets the items above `base` (keys and values in turn) in the dict that stands just below it.
    #[inline]
    pub(super) fn set_items(&mut self, base: usize) -> ReadResult<()> {
        let Some(node) = self.container_below(base) else {
            return Err(Self::damaged("items for something that is no dict"));
        };
        let items = self.stack.get(base..).unwrap_or_default();
        if items.len() % 2 != 0 {
            return Err(Self::damaged("a key without a value"));
        }
        let content = self.heap.contents.get(node.0 as usize).copied();
        let next = match content {
            Some(ContainerState::NewDict) if items.is_empty() => ContainerState::NewDict,
            Some(ContainerState::NewDict) => match self.fold.dict(items, &self.heap) {
                Ok(Some(row)) => {
                    self.remember_keys(base);
                    ContainerState::Folded(row)
                }
                Ok(None) => ContainerState::Dict(self.keep(items.to_vec())?),
                Err(what) => return Err(Self::damaged(what)),
            },
            Some(ContainerState::Dict(slot)) => {
                if let Some(kept) = self.heap.kept.get_mut(slot as usize) {
                    kept.extend_from_slice(items);
                }
                ContainerState::Dict(slot)
            }
            _ => return Err(Self::damaged("items for something that is no dict, or is complete")),
        };
        self.settle(node, next, base);
        Ok(())
    }

    /// Appends the values above `base` to the list that stands just below it.
    #[inline]
    pub(super) fn append_items(&mut self, base: usize) -> ReadResult<()> {
        let Some(node) = self.container_below(base) else {
            return Err(Self::damaged("items for something that is no list"));
        };
        let items = self.stack.get(base..).unwrap_or_default();
        let content = self.heap.contents.get(node.0 as usize).copied();
        let next = match content {
            Some(ContainerState::NewList) if items.is_empty() => ContainerState::NewList,
            Some(ContainerState::NewList) => match self.fold.extend(None, items, &self.heap) {
                Ok(Some(row)) => ContainerState::Folded(row),
                Ok(None) => ContainerState::List(self.keep(items.to_vec())?),
                Err(what) => return Err(Self::damaged(what)),
            },
            Some(ContainerState::Folded(row)) => match self.fold.extend(Some(row), items, &self.heap) {
                Ok(Some(row)) => ContainerState::Folded(row),
                Ok(None) => {
                    let mut all = self.fold.unfold(row).map_err(|what| Self::damaged(what))?;
                    all.extend_from_slice(items);
                    ContainerState::List(self.keep(all)?)
                }
                Err(what) => return Err(Self::damaged(what)),
            },
            Some(ContainerState::List(slot)) => {
                if let Some(kept) = self.heap.kept.get_mut(slot as usize) {
                    kept.extend_from_slice(items);
                }
                ContainerState::List(slot)
            }
            _ => return Err(Self::damaged("items for something that is no list")),
        };
        self.settle(node, next, base);
        Ok(())
    }

    /// MARK. Where it begins the list on top of the stack and the list is written with GETs alone, the whole list, in
    /// one step; and without a look at its items where one was written with the same bytes before.
    #[inline]
    pub(super) fn mark_or_list(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        let Some(node) = self.empty_list() else { return self.mark() };
        if let Some((row, rest)) = self.lists.take(cursor.rest()) {
            cursor.go_to(rest);
            self.settle(node, ContainerState::Folded(row), self.stack.len());
            return Ok(());
        }
        match cursor.written_list() {
            Some(written @ [_, ..]) => self.write_list(node, written, cursor),
            _ => self.mark(),
        }
    }

    /// The list on top of the stack, if it is new.
    #[inline]
    fn empty_list(&self) -> Option<Node> {
        let &Value::Container(node) = self.stack.last()? else { return None };
        matches!(self.heap.contents.get(node.0 as usize)?, ContainerState::NewList).then_some(node)
    }

    /// Fills a new list with what the GETs bring back. Where one of them cannot, all is left to the single steps.
    #[cold]
    fn write_list(&mut self, node: Node, written: &[u8], cursor: &mut Cursor<'_>) -> ReadResult<()> {
        let base = self.stack.len();
        let mut gets = written;
        while let Some((position, rest)) = get(gets) {
            let pushed = self.recalled(position).is_some_and(|value| self.push(value).is_ok());
            if !pushed {
                self.stack.truncate(base);
                return self.mark();
            }
            gets = rest;
        }
        cursor.pass(written.len() as u64 + 1);
        self.append_items(base)?;
        if let Some(&ContainerState::Folded(row)) = self.heap.contents.get(node.0 as usize)
            && self.fold.is_shared(row)
        {
            self.lists.remember(written, row);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn container_below(&self, base: usize) -> Option<Node> {
        match self.stack.get(base.checked_sub(1)?)? {
            Value::Container(node) => Some(*node),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn settle(&mut self, node: Node, content: ContainerState, base: usize) {
        if let Some(place) = self.heap.contents.get_mut(node.0 as usize) {
            *place = content;
        }
        self.stack.truncate(base);
    }

    pub(super) fn keep(&mut self, items: Vec<Value>) -> ReadResult<u32> {
        Self::check(self.heap.kept.len() as u64, self.limits.nodes, "containers", "--max-nodes")?;
        let slot = u32::try_from(self.heap.kept.len()).unwrap_or(u32::MAX);
        self.heap.kept.push(items);
        Ok(slot)
    }
}
