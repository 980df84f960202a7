//! What a library itself offers against a finding: its own switch or call, by the functions under which the memory is made.
//!
//! In: a rule and a stack. Out: the remedy to write, if the table has one. Rows are tried in their order. A row says only what the
//! library's documentation says, and stands for memory that the library keeps or makes: what the user's code does with it is
//! the rule's own advice.

use super::table::fits;

/// A row of the table.
pub(super) struct Knob {
    /// The rules that it helps with.
    rules: &'static [&'static str],
    /// Modules, as in the table of functions.
    modules: &'static str,
    /// Functions.
    names: &'static [&'static str],
    /// The remedy, with the code to write.
    help: &'static str,
    /// Where the library says so, and a recording that shows it, where one is in `snapshots/`.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test that looks the recordings up")
    )]
    source: (&'static str, Option<&'static str>),
}

/// What piles up.
const LEAK: &[&str] = &["growing-residency", "retained-graph", "growing-reallocation"];

#[rustfmt::skip]
const KNOBS: &[Knob] = &[
    Knob {
        rules: &["growing-residency", "growing-reallocation", "transient-spike"],
        modules: "transformers/trainer_pt_utils",
        names: &["add", "nested_concat", "torch_pad_and_concatenate"],
        help: "move what evaluation collects to the host: TrainingArguments(eval_accumulation_steps=16), or keep only what the metric \
               needs: Trainer(preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1))",
        source: ("transformers 5.17, training_args.py and trainer.py", Some("ho-hftrainer-preds")),
    },
    Knob {
        rules: &["allocator-thrash"],
        modules: "transformers/trainer",
        names: &["training_step"],
        help: "leave out TrainingArguments(torch_empty_cache_steps=...): PyTorch keeps what it frees for the next step",
        source: ("transformers 5.17, training_args.py", None),
    },
    Knob {
        rules: &["transient-spike", "unchunked-loss"],
        modules: "transformers/loss/loss_utils",
        names: &["*"],
        help: "compute the logits and their loss in pieces: TrainingArguments(use_liger_kernel=True), or in a loop of your own \
               liger_kernel.transformers.AutoLigerKernelForCausalLM",
        source: ("transformers 5.17, training_args.py; liger-kernel, README", Some("ho-hfloop")),
    },
    Knob {
        rules: &["varying-shapes"],
        modules: "transformers/models/*",
        names: &["*"],
        help: "pad to few lengths: tokenizer(..., padding=True, pad_to_multiple_of=64), or DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64)",
        source: ("transformers 5.17, data/data_collator.py", Some("varying-padding-bug")),
    },
    Knob {
        rules: LEAK,
        modules: "transformers/cache_utils",
        names: &["*"],
        help: "let go of past_key_values, and of what generate() returned with it, when a sequence ends; or use one StaticCache for all: StaticCache(config, max_cache_len=n), cache.reset()",
        source: ("transformers 5.17, cache_utils.py", Some("grow-session-cache-bug")),
    },
    Knob {
        rules: LEAK,
        modules: "transformers/generation/utils",
        names: &["generate"],
        help: "keep only the token ids: out = model.generate(...).sequences.cpu(); with return_dict_in_generate=True the output holds \
               scores, hidden states and past_key_values as well",
        source: ("transformers 5.17, generation/utils.py", None),
    },
    Knob {
        rules: LEAK,
        modules: "peft/*",
        names: &["add_adapter", "load_adapter"],
        help: "delete adapters that are no longer served: model.delete_adapter(name)",
        source: ("peft 0.21, tuners_utils.py", None),
    },
    Knob {
        rules: LEAK,
        modules: "torchmetrics/*",
        names: &["wrapped_func", "update"],
        help: "call metric.reset() after every epoch; states that are lists have a bound with thresholds=200, or stay on the host with \
               compute_on_cpu=True",
        source: ("torchmetrics 1.9, metric.py", Some("lib-tm-bootstrap-bug")),
    },
    Knob {
        rules: LEAK,
        modules: "lightning/pytorch/*",
        names: &["validation_step", "test_step"],
        help: "empty what the step keeps when its epoch ends, with .clear() in on_validation_epoch_end(); what is only shown is logged: self.log(...)",
        source: ("lightning 2.6, core/hooks.py", Some("ho-lightning-valouts")),
    },
    Knob {
        rules: LEAK,
        modules: "lightning/pytorch/loops/prediction_loop",
        names: &["*"],
        help: "write predictions as they come: a BasePredictionWriter callback and Trainer.predict(..., return_predictions=False)",
        source: ("lightning 2.6, trainer/trainer.py", None),
    },
    Knob {
        rules: &["missing-zero-grad"],
        modules: "lightning/pytorch/*",
        names: &["manual_backward"],
        help: "with automatic_optimization = False clear them yourself: opt.zero_grad() before self.manual_backward(loss)",
        source: ("lightning 2.6, core/module.py", None),
    },
    Knob {
        rules: &["duplicate-weights", "growing-residency", "optimizer-state-regrowth"],
        modules: "accelerate/accelerator",
        names: &["prepare*", "_prepare*"],
        help: "an Accelerator keeps every model and optimizer that it prepares: call accelerator.free_memory(model, optimizer) between two \
               trainings",
        source: ("accelerate 1.15, accelerator.py", None),
    },
    Knob {
        rules: &["transient-spike"],
        modules: "sentence_transformers/util/similarity",
        names: &["*"],
        help: "compare in pieces: util.semantic_search(queries, corpus, corpus_chunk_size=100_000, top_k=10)",
        source: ("sentence-transformers 6.0, util/retrieval.py", None),
    },
    Knob {
        rules: LEAK,
        modules: "torch_geometric/data/*",
        names: &["to", "cuda"],
        help: "Data.to() moves a graph in place, and with it every list that holds it: move a copy, copy.copy(data).to(device)",
        source: ("torch_geometric 2.8, data/data.py", None),
    },
    Knob {
        rules: &["uncheckpointed-activations"],
        modules: "transformers/models/*",
        names: &["*"],
        help: "recompute instead of keeping: model.gradient_checkpointing_enable(), or TrainingArguments(gradient_checkpointing=True)",
        source: ("transformers 5.17, modeling_utils.py", None),
    },
    Knob {
        rules: &["uncheckpointed-activations"],
        modules: "timm/models/*",
        names: &["*"],
        help: "recompute instead of keeping: model.set_grad_checkpointing()",
        source: ("timm 1.0, models/vision_transformer.py", None),
    },
    Knob {
        rules: &["full-precision-activations"],
        modules: "transformers/trainer",
        names: &["*"],
        help: "train in bfloat16: TrainingArguments(bf16=True)",
        source: ("transformers 5.17, training_args.py", None),
    },
    Knob {
        rules: &["full-precision-activations"],
        modules: "lightning/pytorch/*",
        names: &["*"],
        help: "train in bfloat16: Trainer(precision=\"bf16-mixed\")",
        source: ("lightning 2.6, trainer/trainer.py", None),
    },
];

/// The rows that help with a rule.
pub(super) fn of_rule(rule: &str) -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().filter(move |knob| knob.rules.contains(&rule))
}

impl Knob {
    /// Whether a function is one of the row's.
    pub(super) fn is_at(&self, module: &str, name: &str) -> bool {
        fits(self.modules, module) && self.names.iter().any(|pattern| fits(pattern, name))
    }

    /// The remedy.
    pub(super) fn help(&self) -> &'static str {
        self.help
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_helps_with_rules_that_there_are() {
        for knob in KNOBS {
            assert!(!knob.rules.is_empty() && !knob.source.0.is_empty(), "{}", knob.modules);
            for rule in knob.rules {
                let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("rules/{rule}.md"));
                assert!(page.is_file(), "{}: {rule}", knob.modules);
            }
        }
    }

    #[test]
    fn the_recordings_that_rows_name_are_there() {
        for name in KNOBS.iter().filter_map(|knob| knob.source.1) {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(name);
            assert!(folder.is_dir(), "{name}");
        }
    }

    #[test]
    fn a_row_is_found_by_module_and_function() {
        let found = |rule: &str, module: &str, name: &str| of_rule(rule).any(|knob| knob.is_at(module, name));
        assert!(found("growing-residency", "torchmetrics/metric", "wrapped_func"));
        assert!(!found("growing-residency", "torchmetrics/metric", "compute"));
        assert!(!found("late-zero-grad", "torchmetrics/metric", "wrapped_func"));
    }
}
