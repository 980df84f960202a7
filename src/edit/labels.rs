//! Texts that are no places: the allocator's settings, and the names of annotations.
//!
//! In: a text. Out: what PyTorch wrote of it as it is, and other names for the rest. Numbers stay, because they count iterations.

use super::anonymize::Pseudonyms;
use super::public;

impl Pseudonyms {
    /// The allocator's settings: PyTorch's own words and their values, whatever else somebody passed.
    pub(super) fn conf(&mut self, conf: &str) -> String {
        let mut renamed = String::with_capacity(conf.len());
        for part in conf.split_inclusive(|one: char| ",:[]>= ".contains(one)) {
            let word = part.trim_end_matches(|one: char| ",:[]>= ".contains(one));
            let known = word.is_empty() || public::is_setting(word);
            renamed.push_str(&if known { word.to_owned() } else { self.replacement("setting", word) });
            renamed.push_str(part.get(word.len()..).unwrap_or_default());
        }
        renamed
    }

    /// An annotation's name: PyTorch's own stay but for the user's classes and modules in them.
    pub(super) fn annotation(&mut self, name: &str) -> String {
        let split = name.split_once('#').and_then(|(what, rest)| Some((what, rest.split_once('.')?)));
        if let Some((
            what @ ("Optimizer.step" | "Optimizer.zero_grad" | "enumerate(DataLoader)"),
            (class, method),
        )) = split
            && ["step", "zero_grad", "__next__"].contains(&method)
        {
            let class =
                if public::is_class(class) { class.to_owned() } else { self.replacement("Class", class) };
            return format!("{what}#{class}.{method}");
        }
        let (head, rest) = name.split_once(' ').map_or((name, None), |(head, rest)| (head, Some(rest)));
        let counted = head.strip_prefix("ProfilerStep#");
        let counted = counted.is_some_and(|number| number.parse::<u64>().is_ok());
        match (counted || public::is_range(head), rest) {
            (true, None) => name.to_owned(),
            (true, Some(rest)) => format!("{head} ({})", self.lettered(rest)),
            (false, _) => self.lettered(name),
        }
    }

    /// A name of the user's. The numbers in it stay, and it is told from others by letters: `step 7` and `step 8` are the
    /// same range in two iterations.
    fn lettered(&mut self, name: &str) -> String {
        let bare: String = name.chars().filter(|one| !one.is_ascii_digit()).collect();
        let mut renamed = format!("annotation-{}", letters(self.number("annotation", &bare)));
        for number in name.split(|one: char| !one.is_ascii_digit()).filter(|number| !number.is_empty()) {
            renamed.push(' ');
            renamed.push_str(number);
        }
        renamed
    }
}

/// 1, 2, ... as a, b, ..., z, aa, ab, ...
fn letters(mut number: usize) -> String {
    let mut letters = Vec::new();
    while let Some(rest) = number.checked_sub(1) {
        letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
        number = rest / 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_keep_what_pytorch_wrote_and_count_on() {
        let mut names = Pseudonyms::default();
        let mut name = |name: &str| names.annotation(name);
        assert_eq!(name("Optimizer.step#AdamW.step"), "Optimizer.step#AdamW.step");
        assert_eq!(name("Optimizer.step#AcmeOpt.step"), "Optimizer.step#Class1.step");
        assert_eq!(name("ProfilerStep#12"), "ProfilerStep#12");
        assert_eq!(name("acme step 7"), "annotation-a 7");
        assert_eq!(name("acme eval"), "annotation-b");
        assert_eq!(name("acme step 8"), "annotation-a 8");
        assert_eq!(name("FSDP::all_gather (acme.layer)"), "FSDP::all_gather (annotation-c)");
        assert_eq!(name("FSDP::backward_prefetch for acme.layer"), "FSDP::backward_prefetch (annotation-d)");
        assert_eq!(name("FSDP::acme_secret"), "annotation-e");
        let own = "FullyShardedDataParallel._pre_forward";
        assert_eq!(name(own), own);
        assert_eq!(name("FullyShardedDataParallel.acme_secret"), "annotation-f");
        assert_eq!(name("DistributedDataParallel.forward#acme"), "annotation-g");
    }

    #[test]
    fn settings_keep_what_the_allocator_knows() {
        let mut names = Pseudonyms::default();
        let mut conf = |conf: &str| names.conf(conf);
        for known in [
            "",
            "expandable_segments:True,max_split_size_mb:128",
            "roundup_power2_divisions:[256:1,512:2,>:8], garbage_collection_threshold:0.8",
            "backend:cudaMallocAsync",
        ] {
            assert_eq!(conf(known), known);
        }
        assert_eq!(conf("acme_pool:True,backend:/home/ann/alloc.so"), "setting1:True,backend:setting2");
        assert_eq!(conf("expandable_segments:True;acme"), "expandable_segments:setting3");
    }

    #[test]
    fn letters_go_on_behind_z() {
        assert_eq!([1, 26, 27, 702, 703].map(letters), ["a", "z", "aa", "zz", "aaa"]);
    }
}
