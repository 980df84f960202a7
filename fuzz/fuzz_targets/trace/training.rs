//! A usual training step, with faults: what takes the fuzzer long to put together from single statements.

use crate::script::{Phase, Place, Size, Step, Training};

/// Slots of the training step; those of single statements lie anywhere.
const PARAMETER: u8 = 200;
const GRADIENT: u8 = 210;
const STATE: u8 = 220;
const ACTIVATION: u8 = 230;
const INPUT: u8 = 240;
const LOSS: u8 = 241;
const TEMPORARY: u8 = 242;

impl Training {
    /// What happens in an iteration, counted from 1.
    pub(crate) fn steps(&self, turn: u32) -> Vec<Step> {
        let layers = self.layers % 6 + 1;
        let mut out = Vec::new();
        if turn == 1 {
            out.push(Step::Enter(Phase::Plain));
            out.extend((0..layers).map(|layer| self.alloc(PARAMETER + layer, self.weight)));
        }
        if self.has_input {
            out.extend([Step::Enter(Phase::Input), self.alloc(INPUT, self.activation / 4)]);
        }
        let passes = turn.is_multiple_of(u32::from(self.accumulates % 4) + 1);
        if self.clears_late && passes {
            self.clear(layers, &mut out);
        }
        self.forward(layers, &mut out);
        if self.evaluates && turn.is_multiple_of(3) {
            out.push(Step::Enter(Phase::Evaluation));
            out.extend([self.alloc(TEMPORARY, self.activation), self.free(TEMPORARY, 0)]);
        }
        self.backward(turn, layers, &mut out);
        if passes {
            self.optimize(turn, layers, &mut out);
            if !self.clears_late {
                self.clear(layers, &mut out);
            }
        }
        out.push(Step::Enter(Phase::Plain));
        if self.has_input {
            out.push(self.free(INPUT, 0));
        }
        out
    }

    fn forward(&self, layers: u8, out: &mut Vec<Step>) {
        out.push(Step::Enter(Phase::Forward));
        out.extend((0..layers).map(|layer| self.alloc(ACTIVATION + layer, self.activation)));
        out.extend([Step::Enter(Phase::Loss), self.alloc(LOSS, 0)]);
    }

    fn backward(&self, turn: u32, layers: u8, out: &mut Vec<Step>) {
        out.extend([
            Step::Enter(Phase::BackwardCall),
            self.alloc(TEMPORARY, 0),
            Step::Enter(Phase::Backward),
        ]);
        for layer in (0..layers).rev() {
            let has_gradient = turn > 1 && self.clears_never;
            if !has_gradient {
                out.push(self.alloc(GRADIENT + layer, self.weight));
            }
            if !self.keeps_graph {
                out.push(self.free(ACTIVATION + layer, 0));
            }
        }
        out.extend([Step::Enter(Phase::BackwardCall), self.free(TEMPORARY, 0)]);
        if !self.keeps_loss {
            out.push(self.free(LOSS, 0));
        }
    }

    fn optimize(&self, turn: u32, layers: u8, out: &mut Vec<Step>) {
        if turn <= u32::from(self.accumulates % 4) + 1 {
            out.push(Step::Enter(Phase::StateOfOptimizer));
            out.extend((0..layers).map(|layer| self.alloc(STATE + layer, self.weight)));
        }
        out.extend([
            Step::Enter(Phase::OptimizerStep),
            self.alloc(TEMPORARY, self.weight),
            self.free(TEMPORARY, 0),
        ]);
    }

    fn clear(&self, layers: u8, out: &mut Vec<Step>) {
        if !self.clears_never {
            out.push(Step::Enter(Phase::ZeroGrad));
            let back = u8::from(self.clears_late);
            out.extend((0..layers).map(|layer| self.free(GRADIENT + layer, back)));
        }
    }

    fn alloc(&self, slot: u8, kibibytes: u16) -> Step {
        let size = if kibibytes == 0 { Size::Tiny(4) } else { Size::Large(kibibytes) };
        Step::Alloc { slot, size, place: Place { line: slot, ..self.place } }
    }

    fn free(&self, slot: u8, back: u8) -> Step {
        Step::Free { slot, back, place: self.place }
    }
}
