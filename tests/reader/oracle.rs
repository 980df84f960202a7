//! Tree-shaped values, written by another library, read back equal.

use std::collections::BTreeMap;

use memlint::pickle::{Fold, Heap, PickleLimits, TableRow, Value, load};
use memlint::unit::StringInterner;
use proptest::prelude::*;
use serde_pickle::{HashableValue, SerOptions, Value as Tree};

/// Recognises nothing.
struct KeepAll;

impl Fold for KeepAll {
    type Keys = ();

    fn keys(&self, _: &[Value]) -> Option<()> {
        None
    }

    fn dict_alike(&mut self, (): &(), _: &[Value], _: &Heap) -> Result<TableRow, &'static str> {
        Err("nothing was folded")
    }

    fn dict(&mut self, _: &[Value], _: &Heap) -> Result<Option<TableRow>, &'static str> {
        Ok(None)
    }

    fn extend(
        &mut self,
        _: Option<TableRow>,
        _: &[Value],
        _: &Heap,
    ) -> Result<Option<TableRow>, &'static str> {
        Ok(None)
    }

    fn is_shared(&self, _: TableRow) -> bool {
        false
    }

    fn unfold(&self, _: TableRow) -> Result<Vec<Value>, &'static str> {
        Err("nothing was folded")
    }
}

/// The value as the other library represents it.
fn tree(value: Value, heap: &Heap, strings: &StringInterner) -> Tree {
    let all = |items: &[Value]| items.iter().map(|&item| tree(item, heap, strings)).collect();
    match value {
        Value::None => Tree::None,
        Value::Bool(truth) => Tree::Bool(truth),
        Value::Int(number) => Tree::I64(number),
        Value::Float(number) => Tree::F64(number),
        Value::Text(id) => Tree::String(strings.get(id).to_owned()),
        other => {
            if let Some(items) = heap.list(other) {
                Tree::List(all(items))
            } else if let Some(items) = heap.tuple(other) {
                Tree::Tuple(all(items))
            } else {
                let items = heap.dict(other).unwrap();
                let pair = |pair: &[Value; 2]| match tree(pair[0], heap, strings) {
                    Tree::String(key) => (HashableValue::String(key), tree(pair[1], heap, strings)),
                    key => panic!("a key of another kind: {key:?}"),
                };
                Tree::Dict(items.as_chunks::<2>().0.iter().map(pair).collect())
            }
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::None),
        any::<bool>().prop_map(Tree::Bool),
        any::<i64>().prop_map(Tree::I64),
        (-1e300..1e300_f64).prop_map(Tree::F64),
        ".{0,300}".prop_map(Tree::String),
    ];
    leaf.prop_recursive(5, 200, 12, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..12);
        let dict = prop::collection::btree_map(".{0,8}", inner, 0..12).prop_map(|items| {
            let keyed: BTreeMap<HashableValue, Tree> =
                items.into_iter().map(|(key, value)| (HashableValue::String(key), value)).collect();
            Tree::Dict(keyed)
        });
        prop_oneof![items.clone().prop_map(Tree::List), items.prop_map(Tree::Tuple), dict]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_serde_pickle_writes_is_read_back(value in trees(), second in any::<bool>()) {
        let options = if second { SerOptions::new().proto_v2() } else { SerOptions::new() };
        let bytes = serde_pickle::value_to_vec(&value, options).unwrap();
        let loaded = load(bytes.as_slice(), StringInterner::default(), &mut KeepAll, &PickleLimits::default()).unwrap();
        prop_assert_eq!(tree(loaded.top, &loaded.heap, &loaded.strings), value);
    }

    #[test]
    fn any_bytes_give_a_result_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..400), protocol in 2..6_u8) {
        bytes.splice(0..0, [0x80, protocol]);
        let limits = PickleLimits { nodes: 1000, stack: 1000, text: 1 << 16 };
        if let Ok(loaded) = load(bytes.as_slice(), StringInterner::default(), &mut KeepAll, &limits) {
            prop_assert!(bytes.contains(&b'.'), "{:?} without an end", loaded.top);
        }
    }
}
