//! A recurrent network of cuDNN's, and where each of its weights lies in the one tensor that holds them all.

/// A network.
#[derive(Clone, Copy, Default)]
pub(crate) struct Network {
    pub(crate) gates: i64,
    /// Biases of a gate: none, one, or one for the input and one for the state.
    pub(crate) biases: i64,
    pub(crate) directions: i64,
    pub(crate) kind: i32,
    pub(crate) input: i64,
    pub(crate) hidden: i64,
    pub(crate) projected: i64,
    pub(crate) layers: i64,
    /// Whether it leaves values out between its layers.
    pub(crate) drops: bool,
}

/// A batch of sequences.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sequences {
    pub(crate) longest: i64,
    pub(crate) batch: i64,
    /// Steps of all sequences together: with those that only pad, unless they are packed.
    pub(crate) steps: i64,
    pub(crate) is_packed: bool,
}

impl Network {
    /// What a layer's state is to those behind it.
    fn state(&self) -> i64 {
        if self.projected > 0 { self.projected } else { self.hidden }
    }

    /// Columns of the weights of a layer's gate: those for the input, and those for the state.
    fn columns(&self, layer: i64, is_recurrent: bool) -> i64 {
        match (is_recurrent, layer) {
            (true, _) => self.state(),
            (false, 0) => self.input,
            (false, _) => self.state() * self.directions,
        }
    }

    /// Elements of the matrices of one layer and direction.
    fn matrices(&self, layer: i64) -> i64 {
        let both = self.columns(layer, false) + self.columns(layer, true);
        let projection = if self.projected > 0 { self.projected * self.hidden } else { 0 };
        self.gates * self.hidden * both + projection
    }

    /// Elements of all matrices before a layer in one direction, counted as cuDNN does.
    fn matrices_before(&self, pseudo: i64) -> i64 {
        (0..pseudo).map(|before| self.matrices(before / self.directions)).sum()
    }

    /// Elements of all matrices.
    pub(crate) fn matrices_of_all(&self) -> i64 {
        self.matrices_before(self.layers * self.directions)
    }

    /// Elements of all weights.
    pub(crate) fn elements(&self) -> i64 {
        let pseudo = self.layers * self.directions;
        self.matrices_of_all() + pseudo * self.gates * self.biases * self.hidden
    }

    /// Where the matrix and the bias of a gate begin, and the matrix's rows and columns.
    pub(crate) fn weights(&self, pseudo: i64, gate: i64) -> Option<(i64, [i64; 2], Option<i64>)> {
        let layer = pseudo / self.directions;
        let start = self.matrices_before(pseudo);
        let inputs = self.gates * self.hidden * self.columns(layer, false);
        let recurrent = self.gates * self.hidden * self.columns(layer, true);
        if gate == 2 * self.gates {
            // The projection stands behind the gates and has no bias.
            return (self.projected > 0).then_some((
                start + inputs + recurrent,
                [self.projected, self.hidden],
                None,
            ));
        }
        let is_recurrent = gate >= self.gates;
        let columns = self.columns(layer, is_recurrent);
        let before = if is_recurrent { inputs } else { 0 } + gate % self.gates * self.hidden * columns;
        let all = self.matrices_of_all();
        let bias = (self.biases > 0).then(|| {
            all + (pseudo * self.gates * self.biases + gate % (self.gates * self.biases)) * self.hidden
        });
        Some((start + before, [self.hidden, columns], bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_each_other_without_a_gap() {
        let network = Network {
            gates: 4,
            biases: 2,
            directions: 2,
            kind: 0,
            input: 5,
            hidden: 7,
            projected: 0,
            layers: 2,
            drops: false,
        };
        let mut matrices = Vec::new();
        let mut biases = Vec::new();
        for pseudo in 0..4 {
            for gate in 0..8 {
                let (start, [rows, columns], bias) = network.weights(pseudo, gate).unwrap();
                matrices.push((start, rows * columns));
                biases.push((bias.unwrap(), 7));
            }
        }
        matrices.extend(biases);
        let mut next = 0;
        for (start, elements) in matrices {
            assert_eq!(start, next);
            next += elements;
        }
        assert_eq!(next, network.elements());
    }
}
