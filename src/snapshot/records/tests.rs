//! Dicts that are taken in one step against the same by single steps: the same rows, containers and errors, byte for byte.

mod pickles;

use std::fs::File;
use std::path::Path;

use pickles::{Written, events, trace};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{prop_assert, prop_oneof, proptest};

use super::{Event, Keys, Records, TableRow, overfull, row, table};
use crate::pickle::{Fold, Heap, Loaded, PickleError, PickleLimits, Value, load, load_in_pieces};
use crate::snapshot::words;

/// Records that count the dicts that are taken in one step, and say of keys and lists only what is wanted: where they say nothing, the machine
/// takes everything in single steps.
struct Watched {
    records: Records,
    keys: bool,
    lists: bool,
    taken: usize,
}

impl Watched {
    fn whole() -> Watched {
        Watched { records: Records::default(), keys: true, lists: true, taken: 0 }
    }

    fn stepwise(lists: bool) -> Watched {
        Watched { keys: false, lists, ..Watched::whole() }
    }
}

impl Fold for Watched {
    type Keys = Keys;

    fn dict(&mut self, items: &[Value], heap: &Heap) -> Result<Option<TableRow>, &'static str> {
        self.records.dict(items, heap)
    }

    fn keys(&self, items: &[Value]) -> Option<Keys> {
        if self.keys { self.records.keys(items) } else { None }
    }

    fn dict_alike(&mut self, keys: &Keys, values: &[Value], heap: &Heap) -> Result<TableRow, &'static str> {
        if !self.keys {
            return Err("a dict in one step");
        }
        self.taken += 1;
        self.records.dict_alike(keys, values, heap)
    }

    fn extend(
        &mut self,
        list: Option<TableRow>,
        items: &[Value],
        heap: &Heap,
    ) -> Result<Option<TableRow>, &'static str> {
        self.records.extend(list, items, heap)
    }

    fn is_shared(&self, list: TableRow) -> bool {
        self.lists && self.records.is_shared(list)
    }

    fn unfold(&self, list: TableRow) -> Result<Vec<Value>, &'static str> {
        self.records.unfold(list)
    }
}

/// All that was read, or what is wrong: what is large as it is, and the rest in words.
fn told(
    loaded: Result<Loaded, PickleError>,
    mut records: Records,
) -> Result<(Vec<Event>, Heap, String), PickleError> {
    let Loaded { top, heap, strings } = loaded?;
    let events = std::mem::take(&mut records.events);
    // What the last list of frames left there.
    records.scratch.clear();
    Ok((events, heap, format!("{top:?} {strings:?} {records:?}")))
}

/// Whether single steps, larger ones and larger ones of a pickle in pieces all make the same of it; how many dicts were taken in
/// one step. A list in one step lies on no stack, so `lists` are in one step everywhere where the stack is limited.
fn both(pickle: &[u8], pieces: &[usize], limits: &PickleLimits, lists: bool) -> (bool, usize) {
    let mut stepwise = Watched::stepwise(lists);
    let by_steps = load(pickle, words::interner(), &mut stepwise, limits);
    let by_steps = told(by_steps, stepwise.records);
    let (mut whole, mut cut) = (Watched::whole(), Watched::whole());
    let at_once = load(pickle, words::interner(), &mut whole, limits);
    let in_pieces = load_in_pieces(pickle, pieces, words::interner(), &mut cut, limits);
    let taken = whole.taken + cut.taken;
    (by_steps == told(at_once, whole.records) && by_steps == told(in_pieces, cut.records), taken)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_dict_in_one_step_is_what_single_steps_make_of_it(
        events in events(),
        pieces in vec(1..200_usize, 0..40),
        damages in vec((any::<usize>(), any::<u8>()), 0..3),
        end in prop_oneof![3 => Just(None), 1 => any::<usize>().prop_map(Some)],
    ) {
        let mut pickle = trace(&events);
        for (place, byte) in damages {
            let place = place % pickle.len();
            pickle[place] = byte;
        }
        pickle.truncate(end.map_or(pickle.len(), |end| end % (pickle.len() + 1)));
        prop_assert!(both(&pickle, &pieces, &PickleLimits::default(), false).0);
    }

    #[test]
    fn limits_are_reached_at_the_same_byte(
        events in events(), nodes in 0..160_u64, stack in 0..60_u64, text in 0..80_u64, which in 0..3,
    ) {
        let pickle = trace(&events);
        let mut limits = PickleLimits::default();
        match which {
            0 => limits.nodes = nodes,
            1 => limits.stack = stack,
            _ => limits.text = text,
        }
        prop_assert!(both(&pickle, &[], &limits, true).0);
    }
}

#[test]
fn events_are_taken_in_one_step() {
    let event: Vec<_> = [
        Written::Text(0),
        Written::Long(vec![1, 2, 3, 4, 5, 6]),
        Written::Bytes(b"M\x00\x02"),
        Written::Bytes(b"K\x00"),
        Written::Long(vec![1, 2, 3, 4, 5, 6, 7]),
        Written::Text(3),
        Written::Get(14),
        Written::Frames(vec![0, 1, 2]),
        Written::Bytes(b"K\x00K\x00\x86\x94"),
    ]
    .into_iter()
    .enumerate()
    .collect();
    let pickle = trace(&vec![event; 9]);
    assert_eq!(
        both(&pickle, &[], &PickleLimits::default(), false),
        (true, 2 * 8),
        "all but the first, each of the two times"
    );
}

/// Most of a recording's events are taken in one step, and the snapshot is the same.
#[test]
fn recordings_are_read_as_by_single_steps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let (mut events, mut taken, mut recordings) = (0, 0, 0);
    for folder in std::fs::read_dir(root).unwrap() {
        let Ok(file) = File::open(folder.unwrap().path().join("snapshot.pickle.zst")) else { continue };
        let pickle = zstd::decode_all(file).unwrap();
        let limits = PickleLimits::default();
        let mut stepwise = Watched::stepwise(false);
        let by_steps = load(&pickle[..], words::interner(), &mut stepwise, &limits);
        let mut counted = Watched::whole();
        let at_once = load(&pickle[..], words::interner(), &mut counted, &limits);
        events += counted.records.events.len();
        taken += counted.taken;
        recordings += 1;
        assert!(
            told(by_steps, stepwise.records) == told(at_once, counted.records),
            "recording {recordings} is read in two ways"
        );
    }
    assert!(
        recordings > 100 && taken * 20 > events * 19,
        "{taken} of {events} events of {recordings} recordings"
    );
}

#[test]
fn the_table_that_is_full_is_named() {
    let most = usize::try_from(TableRow::MOST).unwrap();
    assert!(row(table::EVENT, most - 1).is_ok() && row(table::EVENT, most).is_err());
    assert_eq!(overfull(&[("events", most), ("blocks", most + 1)]), Some("blocks"));
    assert_eq!(overfull(&[("events", most)]), None);
    assert_eq!(Records::default().overfull(), None);
}

/// A key's GET is known by its bytes, until another text takes the place that it names.
#[test]
fn a_key_that_is_replaced_is_another() {
    let usual = |key: usize| match key {
        0 | 5 | 6 => Written::Text(3),
        7 => Written::Frames(vec![0, 1]),
        _ => Written::Bytes(b"M\x00\x02"),
    };
    let mut events: Vec<Vec<_>> = (0..6).map(|_| (0..8).map(|key| (key, usual(key))).collect()).collect();
    // The keys are entries 2 to 11: from the fourth event on, `frames` is `N/A`.
    events[3][5].1 = Written::Replacing(3, 2 + 7);
    assert_eq!(
        both(&trace(&events), &[], &PickleLimits::default(), false),
        (true, 2 * 4),
        "all but the first of each kind"
    );
}
