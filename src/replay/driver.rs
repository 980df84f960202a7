//! Who answers the allocator's calls for memory.

/// The CUDA driver, as the allocator sees it. `held` is what the allocator holds already.
pub(super) trait Driver {
    /// Whether the process may reserve so much more (the memory fraction).
    fn allows(&mut self, size: u64, held: u64) -> bool;

    /// `cudaMalloc`: the address of a new segment, or nothing where memory has run out.
    fn obtain(&mut self, size: u64, held: u64) -> Option<u64>;

    /// `cudaFree`.
    fn release(&mut self, address: u64, size: u64);

    /// A range of addresses for an expandable segment; far from all others.
    fn reserve(&mut self) -> u64;

    /// Puts memory behind addresses; not where it has run out.
    fn map(&mut self, address: u64, size: u64, held: u64) -> bool;

    /// Takes it away again.
    fn unmap(&mut self, address: u64, size: u64);

    /// By how much the allocator holds more than a share of what the process may reserve; 0 where there is no limit.
    fn excess(&mut self, held: u64, threshold: f64) -> u64;
}
