//! The layouts of the format that the corpus does not have: older versions, bare lists, unknown parts.

use memlint::snapshot::{Action, BlockState, Gap};
use memlint::unit::{Bytes, Micros};

use crate::opcodes::{Field, Pickle, one_event, one_trace, read};

pub(crate) fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [b"](".as_slice(), &items.concat(), b"e"].concat()
}

pub(crate) fn dict(items: &[(&str, Field)]) -> Vec<u8> {
    Pickle::default().dict(items).0
}

#[test]
fn a_bare_list_of_segments_is_a_snapshot_without_traces() {
    let blocks = list(&[
        dict(&[("size", Field::Number(1024)), ("state", Field::Text("active_allocated"))]),
        dict(&[("size", Field::Number(512)), ("state", Field::Text("inactive"))]),
    ]);
    let segment = dict(&[
        ("device", Field::Number(0)),
        ("address", Field::Number(4096)),
        ("total_size", Field::Number(1536)),
        ("blocks", Field::Raw(&blocks)),
    ]);
    let snapshot = read(&Pickle::new(2).raw(&list(&[segment])).stop()).unwrap();
    assert_eq!(snapshot.gaps, [Gap::NoTraces]);
    let blocks: Vec<(u64, Bytes, BlockState)> =
        snapshot.segments[0].blocks.iter().map(|block| (block.address, block.size, block.state)).collect();
    assert_eq!(
        blocks,
        [(4096, Bytes(1024), BlockState::Allocated), (5120, Bytes(512), BlockState::Inactive)],
        "addresses follow from the sizes where a version did not write them"
    );
}

#[test]
fn a_state_that_is_not_known_is_a_gap_and_no_guess_in_silence() {
    let block = |state| dict(&[("size", Field::Number(512)), ("state", Field::Text(state))]);
    let blocks = list(&[block("active_parked"), block("inactive"), block("active_allocated")]);
    let segment = dict(&[
        ("device", Field::Number(0)),
        ("address", Field::Number(4096)),
        ("total_size", Field::Number(1536)),
        ("blocks", Field::Raw(&blocks)),
    ]);
    let snapshot = read(&Pickle::new(2).raw(&list(&[segment])).stop()).unwrap();
    let unknown = Gap::UnknownStates(vec![("active_parked".to_owned(), 1)]);
    assert_eq!(snapshot.gaps, [Gap::NoTraces, unknown]);
}

#[test]
fn pytorch_2_0_keeps_the_request_in_the_history() {
    let frame =
        dict(&[("name", Field::Text("f")), ("filename", Field::Text("a.py")), ("line", Field::Number(3))]);
    let frames = list(&[frame]);
    let history = list(&[
        dict(&[
            ("addr", Field::Number(4096)),
            ("real_size", Field::Number(1000)),
            ("frames", Field::Raw(&frames)),
        ]),
        dict(&[("addr", Field::Number(4096)), ("real_size", Field::Number(7))]),
    ]);
    let block = dict(&[
        ("size", Field::Number(1024)),
        ("state", Field::Text("active_allocated")),
        ("history", Field::Raw(&history)),
    ]);
    let segment = dict(&[
        ("device", Field::Number(0)),
        ("address", Field::Number(4096)),
        ("total_size", Field::Number(1024)),
        ("blocks", Field::Raw(&list(&[block]))),
    ]);
    let snapshot = read(&Pickle::new(4).raw(&list(&[segment])).stop()).unwrap();
    let block = snapshot.segments[0].blocks[0];
    assert_eq!(block.requested, Bytes(1000), "the newest occupant stands first");
    let frame = snapshot.stacks.frame(snapshot.stacks.get(block.stack.unwrap())[0]).unwrap();
    assert_eq!((snapshot.text(frame.name), snapshot.text(frame.file), frame.line), ("f", "a.py", 3));
}

#[test]
fn pytorch_2_4_wrote_annotations_as_events() {
    let mark = |stage| {
        let frame = dict(&[
            ("name", Field::Text(stage)),
            ("filename", Field::Text("step")),
            ("line", Field::Number(0)),
        ]);
        dict(&[
            ("action", Field::Text("user_defined")),
            ("addr", Field::Number(0)),
            ("size", Field::Number(0)),
            ("time_us", Field::Number(5)),
            ("frames", Field::Raw(&list(&[frame]))),
        ])
    };
    let snapshot = read(&one_trace(&[mark("START"), mark("END")].concat())).unwrap();
    let marks: Vec<(&str, bool, Micros)> =
        snapshot.annotations.iter().map(|one| (snapshot.text(one.name), one.start, one.time)).collect();
    assert_eq!(marks, [("step", true, Micros(5)), ("step", false, Micros(5))]);
}

#[test]
fn what_is_unknown_is_kept_and_listed() {
    let bytes = one_event(&[
        ("action", Field::Text("teleport")),
        ("addr", Field::Number(1)),
        ("size", Field::Number(2)),
        ("colour", Field::Text("blue")),
    ]);
    let snapshot = read(&bytes).unwrap();
    assert_eq!(snapshot.devices[0].events[0].action, Action::Other);
    assert_eq!(
        snapshot.gaps,
        [
            Gap::UnknownKeys(vec![("colour".to_owned(), 1)]),
            Gap::UnknownActions(vec![("teleport".to_owned(), 1)])
        ]
    );
}

#[test]
fn stacks_of_more_than_a_thousand_frames_come_in_several_batches() {
    let mut frames = vec![b']'];
    for batch in 0..3 {
        frames.push(b'(');
        for line in 0..1000_u64 {
            let line = batch * 1000 + line;
            frames.extend(dict(&[
                ("name", Field::Text("f")),
                ("filename", Field::Text("deep.py")),
                ("line", Field::Number(line)),
            ]));
        }
        frames.push(b'e');
    }
    let bytes = one_event(&[
        ("action", Field::Text("alloc")),
        ("addr", Field::Number(512)),
        ("size", Field::Number(512)),
        ("frames", Field::Raw(&frames)),
    ]);
    let snapshot = read(&bytes).unwrap();
    let stack = snapshot.stacks.get(snapshot.devices[0].events[0].stack.unwrap());
    let lines: Vec<u32> = stack.iter().map(|&id| snapshot.stacks.frame(id).unwrap().line).collect();
    assert_eq!(lines, (0..3000).collect::<Vec<u32>>());
}

#[test]
fn a_stack_in_batches_is_shared_and_may_not_grow_once_used() {
    let frame = |line| {
        dict(&[("name", Field::Text("f")), ("filename", Field::Text("t.py")), ("line", Field::Number(line))])
    };
    let event = |frames: &[u8]| {
        dict(&[
            ("action", Field::Text("alloc")),
            ("addr", Field::Number(512)),
            ("size", Field::Number(512)),
            ("frames", Field::Raw(frames)),
        ])
    };
    let in_batches = [b"]\x94", frame(1).as_slice(), b"a", frame(2).as_slice(), b"a"].concat();
    let shared = [event(&in_batches), event(b"h\0")].concat();
    let snapshot = read(&one_trace(&shared)).unwrap();
    let stacks: Vec<_> = snapshot.devices[0].events.iter().map(|event| event.stack.unwrap()).collect();
    assert_eq!(stacks[0], stacks[1]);
    assert_eq!(snapshot.stacks.get(stacks[0]).len(), 2);

    let longer = [b"h\0", frame(3).as_slice(), b"a"].concat();
    let grown = read(&one_trace(&[shared, event(&longer)].concat())).unwrap_err().to_string();
    assert!(grown.contains("grew after they were used"), "{grown}");
}

#[test]
fn absent_and_empty_stacks_are_told_apart() {
    let event = |frames: bool| {
        let mut fields = vec![
            ("action", Field::Text("alloc")),
            ("addr", Field::Number(512)),
            ("size", Field::Number(512)),
        ];
        if frames {
            fields.push(("frames", Field::Raw(b"]")));
        }
        read(&one_event(&fields)).unwrap()
    };
    assert_eq!(event(false).devices[0].events[0].stack, None);
    let snapshot = event(true);
    assert_eq!(snapshot.devices[0].events[0].stack.map(|stack| snapshot.stacks.get(stack).len()), Some(0));
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut bytes = one_trace(b"");
    assert!(read(&bytes).is_ok());
    bytes.push(0);
    let error = read(&bytes).unwrap_err();
    assert!(error.to_string().contains("goes on behind it"), "{error}");
}
