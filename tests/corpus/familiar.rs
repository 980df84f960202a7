//! What people look for at the peak is named in recordings of it, to the byte; what is not sure has no name; and a page says the same
//! as `stats`.

use std::collections::BTreeMap;

use memlint::engine::{Closer, Plan, examine};
use memlint::familiar::Familiar;
use memlint::picture::{Picture, Room};
use memlint::rules;
use memlint::unit::Bytes;

use crate::case::{self, Case};

fn named(case: &str) -> &'static Case {
    case::all().iter().find(|one| one.name == case).unwrap_or_else(|| panic!("no {case}"))
}

/// What has a name at the peak of a recording's only device.
fn at_peak(case: &str) -> BTreeMap<Familiar, Bytes> {
    let [closer] = Closer::all(&named(case).input).try_into().unwrap();
    closer.familiar_at_peak.into_iter().collect()
}

#[test]
fn what_people_look_for_is_named_to_the_byte() {
    // Batch, positions, vocabulary, bytes of a number: as the programs in `examples/` have them.
    let gpt2 = 8 * 512 * 50257 * 4;
    let (float, shifted) = (8 * 512 * 128_256 * 4, 8 * 511 * 128_256 * 4);
    let checkpointed = 8 * 1024 * 50304 * 2;
    for (case, name, bytes) in [
        ("overlap-lm-logits-fixed", Familiar::Logits, gpt2),
        ("overlap-lm-logits-bug", Familiar::Logits, 2 * gpt2),
        ("overlap-lm-logits-bug", Familiar::CrossEntropyBackward, 2 * gpt2),
        ("spike-logits-float-bug", Familiar::Logits, float + shifted),
        ("seed-gpt-checkpoint", Familiar::CrossEntropyBackward, 2 * checkpointed),
        ("pass-overlap-attn-bug", Familiar::Softmax, 384 << 20),
        ("pass-overlap-attn-bug", Familiar::SoftmaxBackward, 128 << 20),
        ("h2-peftlora-ring", Familiar::Recomputed, 148_389_904),
        ("optpeak-foreach-bug", Familiar::Foreach, 911_544_320),
        ("wild-powersgd-clean", Familiar::Buckets, 25_184_256),
    ] {
        assert_eq!(at_peak(case).get(&name), Some(&Bytes(bytes)), "{case}: {}", name.words());
    }
    // What of a loss is no tensor of all logits is a number or two.
    for (case, name, most) in [
        ("overlap-lm-logits-fixed", Familiar::CrossEntropy, gpt2),
        ("spike-logits-float-bug", Familiar::CrossEntropy, shifted),
        ("seed-gpt-checkpoint", Familiar::CrossEntropy, 3 * checkpointed),
    ] {
        let found = at_peak(case)[&name].get();
        assert!((most..most + 64).contains(&found), "{case}: {found}");
    }
}

#[test]
fn what_is_known_by_no_name_has_none() {
    for case in ["seed-linear", "nostacks-bug", "latezero-mlp-bug", "ho-vae"] {
        let named: Bytes = at_peak(case).into_values().sum();
        assert!(named < Bytes::MIB, "{case}: {named}");
    }
}

/// What has a name at the peak of a picture.
fn drawn_at_peak(picture: &Picture) -> BTreeMap<Familiar, Bytes> {
    let bin = picture.bins.shown.iter().position(|shown| *shown >= picture.peak).unwrap();
    let each = picture.lives.each.iter();
    let alive = each.filter(|life| life.start <= bin && life.end.is_none_or(|end| end > bin));
    let mut held: BTreeMap<Familiar, Bytes> = BTreeMap::new();
    for (familiar, bytes) in alive.filter_map(|life| Some((life.familiar?, life.bytes))) {
        *held.entry(familiar).or_default() += bytes;
    }
    for (familiar, cloud) in picture.lives.clouds.iter().filter_map(|cloud| Some((cloud.familiar?, cloud))) {
        let level: i64 = cloud.steps.iter().take_while(|step| step.bin <= bin).map(|step| step.by).sum();
        *held.entry(familiar).or_default() += Bytes(u64::try_from(level).unwrap());
    }
    held.retain(|_, bytes| *bytes > Bytes::ZERO);
    held
}

#[test]
fn a_picture_has_the_same_names_however_much_is_merged() {
    for case in ["overlap-lm-logits-bug", "optpeak-foreach-bug", "h2-peftlora-ring"] {
        for lives in [Room::PAGE.lives, 40] {
            let plan = Plan::of_rules(rules::RULES).drawing(Room { lives, ..Room::PAGE });
            let examined = examine(&named(case).input, &plan);
            let (_, picture) = &examined.recording.pictures[0];
            assert_eq!(drawn_at_peak(picture), at_peak(case), "{case}, {lives} one by one");
        }
    }
}
