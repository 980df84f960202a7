//! NCCL for one process of a job: who it is it was told; what others would send it has itself.
//!
//! So a collective is a copy of the own part: sizes are right, and values where all have the same. Buffers of NCCL's own lie outside of PyTorch's
//! allocator, here as on a GPU.

use std::sync::Mutex;

use crate::place::Out;
use crate::stream::{self, Work};
use crate::table::{Handle, Table, lock};
use crate::{DONE, Status, calls, device, nothing};

/// Bytes of `ncclDataType_t`, by number.
const WIDTHS: [usize; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];
/// The most bytes of a collective that are copied: sizes, flags and the like.
const MOST: usize = 1 << 20;

/// A process among others.
#[derive(Clone, Copy)]
struct Member {
    of: i32,
    rank: i32,
}

static COMMUNICATORS: Mutex<Table<Member>> = Mutex::new(Table::new());

/// `ncclUniqueId`, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct Identity([u8; 128]);

fn member(communicator: Handle) -> Member {
    lock(&COMMUNICATORS).get(communicator).copied().unwrap_or(Member { of: 1, rank: 0 })
}

fn join(place: &Out<Handle>, of: i32, rank: i32) -> Status {
    place.set(lock(&COMMUNICATORS).add(Member { of, rank }));
    DONE
}

fn width(kind: i32) -> usize {
    usize::try_from(kind).ok().and_then(|kind| WIDTHS.get(kind).copied()).unwrap_or(4)
}

/// Copies what this process has to where the others' would come, so many times.
fn spread(from: usize, to: usize, bytes: usize, times: usize) {
    if bytes.saturating_mul(times) > MOST {
        return;
    }
    for part in (0..times).map(|part| to + part * bytes).filter(|part| *part != from) {
        // SAFETY: NCCL's contract: `times` parts at `to`, one at `from`.
        unsafe { std::ptr::copy(from as *const u8, part as *mut u8, bytes) };
    }
}

/// A collective.
fn collect(from: usize, to: usize, bytes: usize, times: usize, on: Handle) {
    stream::launch(on, Work::Bytes((bytes * times) as u64));
    spread(from, to, bytes, times);
}

calls! {
    "ncclGetVersion"(version: Out<i32>) { version.set(i32::try_from(device::model().nccl).unwrap_or(0)); DONE }
    "ncclGetErrorString"(_status: Status) -> *const u8 { c"not supported without a GPU".as_ptr().cast() }
    "ncclGetLastError"(_communicator: Handle) -> *const u8 { c"".as_ptr().cast() }
    "ncclGetUniqueId"(place: Out<Identity>) { place.set(Identity([0; 128])); DONE }
    "ncclCommInitRank"(place: Out<Handle>, of: i32, _identity: Identity, rank: i32) { join(&place, of, rank) }
    "ncclCommInitRankConfig"(place: Out<Handle>, of: i32, _identity: Identity, rank: i32, _config: usize) { join(&place, of, rank) }
    "ncclCommInitRankScalable"(place: Out<Handle>, of: i32, rank: i32) { join(&place, of, rank) }
    "ncclCommSplit"(communicator: Handle, _color: i32, rank: i32, place: Out<Handle>) { join(&place, member(communicator).of, rank) }
    "ncclCommGetAsyncError"(_communicator: Handle, status: Out<Status>) { status.set(DONE); DONE }
    "ncclCommCount"(communicator: Handle, count: Out<i32>) { count.set(member(communicator).of); DONE }
    "ncclCommUserRank"(communicator: Handle, rank: Out<i32>) { rank.set(member(communicator).rank); DONE }
    "ncclCommCuDevice"(_communicator: Handle, place: Out<i32>) { place.set(i32::try_from(device::current()).unwrap_or(0)); DONE }
    "ncclAllReduce"(from: usize, to: usize, count: usize, kind: i32, _operation: i32, _communicator: Handle, on: Handle) {
        collect(from, to, count * width(kind), 1, on);
        DONE
    }
    "ncclReduce"(from: usize, to: usize, count: usize, kind: i32, _operation: i32, _root: i32, _communicator: Handle, on: Handle) {
        collect(from, to, count * width(kind), 1, on);
        DONE
    }
    "ncclBroadcast"(from: usize, to: usize, count: usize, kind: i32, _root: i32, _communicator: Handle, on: Handle) {
        collect(from, to, count * width(kind), 1, on);
        DONE
    }
    "ncclReduceScatter"(from: usize, to: usize, count: usize, kind: i32, _operation: i32, _communicator: Handle, on: Handle) {
        collect(from, to, count * width(kind), 1, on);
        DONE
    }
    "ncclAllGather"(from: usize, to: usize, count: usize, kind: i32, communicator: Handle, on: Handle) {
        collect(from, to, count * width(kind), usize::try_from(member(communicator).of).unwrap_or(1), on);
        DONE
    }
    "ncclCommRegister"(_communicator: Handle, _at: usize, _bytes: usize, place: Out<Handle>) { place.set(0); DONE }
}

nothing! { "ncclCommDestroy" "ncclCommAbort" "ncclCommFinalize" "ncclCommDeregister" "ncclGroupStart" "ncclGroupEnd" }
