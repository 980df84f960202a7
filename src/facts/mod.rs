//! What rules may ask of one device, computed once, and where dear, only when a rule asks.
//!
//! In: the snapshot with its timeline, replay, program and roles. Out: answers. Facts judge nothing: thresholds belong
//! to the rules.

mod blame;
mod bursts;
mod calls;
mod collection;
mod evidence;
mod failure;
mod growing;
mod kept_graphs;
mod kind;
mod makers;
mod module_calls;
mod occupants;
mod older_gradients;
mod peer;
mod pending;
mod pinned;
mod pools;
mod reallocation;
mod regrowth;
mod released;
mod releases;
mod savers;
mod scratch;
mod settings;
mod shapes;
mod siblings;
mod stacks;
mod steady;
mod stranded;
mod successors;
mod unscalings;
mod unused_graphs;
mod updates;

use std::sync::OnceLock;

use rustc_hash::FxHashSet;

pub use blame::{Blame, GuiltyStack};
pub use bursts::Burst;
pub use calls::Calls;
pub use collection::{Collected, CollectedAt, Collection};
pub use evidence::Evidence;
pub use failure::Failure;
pub use growing::Growing;
pub use kept_graphs::KeptGraph;
pub use kind::{Lost, RecordingKind};
pub use makers::Maker;
pub use module_calls::ModuleCall;
pub use older_gradients::OlderGradients;
pub use peer::Peer;
pub use pending::Pending;
pub use pinned::PinnedSegment;
pub use pools::{PoolPeaks, PrivatePool};
pub use reallocation::Reallocation;
pub use regrowth::{StateMaking, StateSizes};
pub use releases::{Release, ReleaseCause};
pub use settings::{Trial, Trials};
pub use shapes::{Shapes, VaryingSite};
pub use steady::Steady;
pub use stranded::Stranded;
pub use unscalings::Unscaling;
pub use unused_graphs::{Trained, UnusedGraph};

use savers::Savers;
use successors::Successors;

use crate::familiar::{Familiar, Familiars};
use crate::frames::Frames;
use crate::lives::{Change, Changes, Turns};
use crate::program::{Phase, Program, Step};
use crate::replay::Replay;
use crate::role::{Role, Roles};
use crate::snapshot::{DeviceTrace, Snapshot};
use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes, DeviceIndex, EventIndex, FrameId, Index, IterationIndex};

/// One device, as far as it was worked out before the rules run.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The file.
    pub snapshot: &'a Snapshot,
    /// What its frames say.
    pub frames: &'a Frames,
    /// The device's lifetimes and curves.
    pub timeline: &'a Timeline,
    /// The device's allocator.
    pub replay: &'a Replay,
    /// Loops, iterations and phases.
    pub program: &'a Program,
    /// What each allocation holds.
    pub roles: &'a Roles,
    /// What the recording can show.
    pub evidence: &'a Evidence,
}

/// What rules may ask of one device.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The file.
    pub snapshot: &'a Snapshot,
    /// The device.
    pub device: DeviceIndex,
    /// The device's events.
    pub trace: &'a DeviceTrace,
    /// Lifetimes and curves.
    pub timeline: &'a Timeline,
    /// The allocator.
    pub replay: &'a Replay,
    /// Loops, iterations and phases.
    pub program: &'a Program,
    /// What frames say.
    pub frames: &'a Frames,
    /// What the recording can show.
    pub evidence: &'a Evidence,
    /// Entries to the backward pass.
    pub calls: Calls,
    roles: &'a Roles,
    turns: Turns,
    default_pool: OnceLock<PoolPeaks>,
    private_pools: OnceLock<Vec<PrivatePool>>,
    growing: OnceLock<Vec<Growing>>,
    collections: OnceLock<Vec<Collection>>,
    kept_graphs: OnceLock<Vec<KeptGraph>>,
    reallocations: OnceLock<Vec<Reallocation>>,
    savers: OnceLock<Savers>,
    makings: OnceLock<Vec<StateMaking>>,
    bursts: OnceLock<Vec<Burst>>,
    stranded: OnceLock<Vec<Stranded>>,
    steady: OnceLock<Steady>,
    module_calls: OnceLock<Vec<ModuleCall>>,
    unused_graphs: OnceLock<Vec<UnusedGraph>>,
    trials: OnceLock<Option<Trials>>,
    updates: OnceLock<Vec<Step>>,
    older_gradients: OnceLock<OlderGradients>,
    successors: OnceLock<Successors>,
    familiars: OnceLock<Familiars>,
}

impl<'a> Facts<'a> {
    /// Gathers what is cheap; `None` where the snapshot has no such device.
    pub fn of(inputs: Inputs<'a>) -> Option<Facts<'a>> {
        let Inputs { snapshot, frames, timeline, replay, program, roles, evidence } = inputs;
        let trace = snapshot.devices.get(timeline.device.position())?;
        let calls = Calls::of(snapshot, trace, frames);
        Some(Facts {
            snapshot,
            device: timeline.device,
            trace,
            timeline,
            replay,
            program,
            frames,
            evidence,
            calls,
            roles,
            turns: Turns::of_iterations(&program.iterations),
            default_pool: OnceLock::new(),
            private_pools: OnceLock::new(),
            growing: OnceLock::new(),
            collections: OnceLock::new(),
            kept_graphs: OnceLock::new(),
            reallocations: OnceLock::new(),
            savers: OnceLock::new(),
            makings: OnceLock::new(),
            bursts: OnceLock::new(),
            stranded: OnceLock::new(),
            steady: OnceLock::new(),
            module_calls: OnceLock::new(),
            unused_graphs: OnceLock::new(),
            trials: OnceLock::new(),
            updates: OnceLock::new(),
            older_gradients: OnceLock::new(),
            successors: OnceLock::new(),
            familiars: OnceLock::new(),
        })
    }

    /// The role of an allocation.
    pub fn role(&self, id: AllocationId) -> Role {
        self.roles.get(id)
    }

    /// What people know an allocation by, where one is sure of it.
    pub fn familiar(&self, id: AllocationId) -> Option<Familiar> {
        let found = || Familiars::of((self.snapshot, self.frames), self.timeline, self.program, self.roles);
        self.familiars.get_or_init(found).get(id)
    }

    /// The phase of an event.
    pub fn phase(&self, event: EventIndex) -> Phase {
        self.program.phase(event)
    }

    /// When parameters are updated: the optimizer's steps, and where one leaves no mark, the stretches in which it must have run.
    pub fn updates(&self) -> &[Step] {
        self.updates.get_or_init(|| updates::updates(self))
    }

    /// What backward passes do to gradients of before the recording.
    pub fn older_gradients(&self) -> &OlderGradients {
        self.older_gradients.get_or_init(|| OlderGradients::of(self.timeline, self.program, self.roles))
    }

    /// The allocations of a role, oldest first.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = (AllocationId, &'a Allocation)> {
        self.timeline.iter().filter(move |(id, _)| self.role(*id) == role)
    }

    /// The sizes of the parameters.
    pub fn parameter_sizes(&self) -> FxHashSet<Bytes> {
        self.with_role(Role::Parameter).map(|(_, one)| one.bytes).collect()
    }

    /// The iterations as turns of the main loop.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The ends of the iterations: for each the position of the first event after it.
    pub fn iteration_ends(&self) -> &[usize] {
        self.turns.ends()
    }

    /// The position of the event with which the first iteration begins; 0 where there is none.
    pub fn loop_start(&self) -> usize {
        self.program.iterations.first().map_or(0, |first| first.start.position())
    }

    /// The iteration that holds an event: [`Program::iteration_of`] without a search.
    pub fn iteration_of(&self, event: EventIndex) -> Option<IterationIndex> {
        self.turns.holding(event).and_then(IterationIndex::at)
    }

    /// The iteration in which an allocation was made.
    pub fn born_in(&self, allocation: &Allocation) -> Option<IterationIndex> {
        self.iteration_of(allocation.alloc?)
    }

    /// Whether the program was at work when an event happened: inside an iteration, or in the one pass that was recorded.
    pub fn works_at(&self, event: EventIndex) -> bool {
        if self.program.iterations.is_empty() {
            return self.phase(event) != Phase::Setup;
        }
        self.iteration_of(event).is_some()
    }

    /// At how many ends of iterations an allocation is alive.
    pub fn ends_outlived(&self, allocation: &Allocation) -> usize {
        self.turns.occupied(allocation).len()
    }

    /// At how many ends of iterations the program holds an allocation: as [`Facts::ends_outlived`], but until the
    /// program gives it back, not until a stream is done with it.
    pub fn ends_held(&self, allocation: &Allocation) -> usize {
        self.turns.held(allocation).len()
    }

    /// Lets some allocations die with the iterations in which they were made, in the changes.
    pub fn free_with_their_iteration<'i>(
        &self,
        changes: &mut Changes,
        allocations: impl IntoIterator<Item = &'i AllocationId>,
    ) {
        for id in allocations {
            let born = self.timeline.allocation(*id).and_then(|one| self.turns.making(one));
            if let Some(end) = born.and_then(|turn| self.turns.last_event(turn)) {
                changes.set(*id, Change::EndAt(end));
            }
        }
    }

    /// The highest requested bytes.
    pub fn peak(&self) -> Bytes {
        self.timeline.peak_requested.bytes
    }

    /// The lines that leave more behind with every iteration, fastest first.
    pub fn growing(&self) -> &[Growing] {
        self.growing.get_or_init(|| growing::growing(self))
    }

    /// What loops beside the main one collect, by loop.
    pub fn collections(&self) -> &[Collection] {
        self.collections.get_or_init(|| collection::collections(self))
    }

    /// Forward passes whose activations nothing lets go of, by the line that runs the model.
    pub fn kept_graphs(&self) -> &[KeptGraph] {
        self.kept_graphs.get_or_init(|| kept_graphs::kept_graphs(self))
    }

    /// The nodes of the autograd graph that hold most of some kept tensors (`ReluBackward0`), as the release of their
    /// like shows; none where frees have no C++ frames.
    pub fn savers(&self, kept: &[AllocationId]) -> Vec<String> {
        self.savers.get_or_init(|| Savers::of(self)).names(self, kept)
    }

    /// The user's line at which most tensors go that the stacks of some kept ones made, too.
    pub fn siblings_go(&self, kept: &[AllocationId]) -> Option<FrameId> {
        siblings::siblings_go(self, kept)
    }

    /// The line at which most of what is kept goes in the end, where the recording shows it.
    pub fn go_at(&self, kept: &[AllocationId]) -> Option<FrameId> {
        siblings::go_at(self, kept)
    }

    /// Whether what is kept goes into one tensor in the end.
    pub fn are_gathered(&self, kept: &[AllocationId]) -> bool {
        siblings::are_gathered(self, kept)
    }

    /// Buffers that are replaced by ever larger ones, by the function that replaces them.
    pub fn reallocations(&self) -> &[Reallocation] {
        self.reallocations.get_or_init(|| reallocation::reallocations(self))
    }

    /// The first making of optimizer state and all that are like it, in order.
    pub fn state_makings(&self) -> &[StateMaking] {
        self.makings.get_or_init(|| regrowth::makings(self))
    }

    /// Moments at which the tensors of several past iterations go at once, by line, then by time.
    pub fn bursts(&self) -> &[Burst] {
        self.bursts.get_or_init(|| bursts::bursts(self))
    }

    /// Growing lines whose tensors wait for the garbage collector, which has taken others like them; fastest first.
    pub fn stranded(&self) -> &[Stranded] {
        self.stranded.get_or_init(|| stranded::stranded(self))
    }

    /// The loop without its first iteration, and the peak in it.
    pub fn steady(&self) -> &Steady {
        self.steady.get_or_init(|| Steady::of(self))
    }

    /// What of a role is alive at the peak of the steady part, oldest first.
    pub fn at_steady_peak(&self, role: Role) -> Vec<AllocationId> {
        let Some(at) = self.steady().peak_event else { return Vec::new() };
        self.with_role(role).filter(|(_, one)| one.alive_after(at)).map(|(id, _)| id).collect()
    }

    /// The outermost calls of modules, in order.
    pub fn module_calls(&self) -> &[ModuleCall] {
        self.module_calls.get_or_init(|| module_calls::module_calls(self))
    }

    /// The lines whose forward passes keep what no backward pass ever used, heaviest first.
    pub fn unused_graphs(&self) -> &[UnusedGraph] {
        self.unused_graphs.get_or_init(|| unused_graphs::unused_graphs(self))
    }

    /// What other settings would have made of the program with the memory that it had; nothing where the replay is not exact.
    pub fn trials(&self) -> Option<&Trials> {
        let had = self.replay.failure.map(|failure| failure.capacity);
        self.trials.get_or_init(|| settings::trials(self, had)).as_ref()
    }

    /// The same with so much memory.
    pub fn trials_within(&self, capacity: Bytes) -> Option<Trials> {
        settings::trials(self, Some(capacity))
    }

    /// How many bytes fewer would be held at the end, were some pools one with another; nothing where the replay is not exact.
    pub fn saved_by_sharing(&self, pools: &[(u64, u64)], with: (u64, u64)) -> Option<Bytes> {
        settings::saved_by_sharing(self, pools, with)
    }

    /// Whether whole iterations follow an event: a program that goes on after a failure has caught the exception.
    pub fn goes_on_after(&self, event: EventIndex) -> bool {
        self.program.iterations.iter().any(|one| one.complete && one.start > event)
    }

    /// The request that the program did not survive; nothing where none failed.
    pub fn failure(&self) -> Option<Failure> {
        failure::failure(self)
    }

    /// The memory that went back to the driver, in order.
    pub fn releases(&self) -> Vec<Release> {
        releases::releases(self)
    }

    /// Which stacks allocate another size in each iteration.
    pub fn shapes(&self) -> Shapes {
        shapes::shapes(self)
    }

    /// The iterations whose gradients were for a step, and whether it came, in order.
    pub fn passes_for_steps(&self) -> Vec<Unscaling> {
        unscalings::passes(self)
    }

    /// The moments at which a `GradScaler` looked at the gradients, in order.
    pub fn unscalings(&self) -> Vec<Unscaling> {
        unscalings::unscalings(self)
    }

    /// Who made what was allocated, by stack.
    pub fn makers(&self) -> Vec<Option<Maker>> {
        self.snapshot.stacks.ids().map(|stack| makers::maker(self, stack)).collect()
    }

    /// The bytes of some allocations.
    pub fn bytes(&self, allocations: &[AllocationId]) -> Bytes {
        allocations.iter().filter_map(|id| self.timeline.allocation(*id)).map(|one| one.bytes).sum()
    }

    /// The event at a position of this device's trace.
    pub fn event(&self, position: usize) -> Option<EventIndex> {
        EventIndex::at(position).filter(|_| position < self.trace.events.len())
    }

    /// The moment at which most bytes waited for other streams; `None` where none ever did.
    pub fn pending(&self) -> Option<Pending> {
        pending::pending(self)
    }

    /// Segments that are kept from being released although nearly nothing of them is in use; largest waste first.
    pub fn pinned_segments(&self, least: Bytes) -> Vec<PinnedSegment> {
        pinned::pinned_segments(self, least)
    }

    /// The bytes that an allocation occupies, rounding included.
    pub fn block_size(&self, id: AllocationId) -> Bytes {
        self.replay.block_sizes.get(id.position()).copied().unwrap_or_default()
    }
}
