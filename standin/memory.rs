//! Device memory: host memory that is mapped and not reserved, so that only what somebody writes takes any.
//!
//! Always: what devices have given out stays within what the model has; a pointer inside a region is known as device or host memory.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use crate::device;
use crate::place::Out;
use crate::stream;
use crate::table::{Handle, Table, lock};
use crate::{DONE, OUT_OF_MEMORY, Status, calls};

/// `cudaErrorInvalidValue`.
const INVALID: Status = 1;

/// What the driver gives out and maps at once: 2 MiB on every GPU since Pascal (`cuMemGetAllocationGranularity`).
pub(crate) const GRANULE: usize = 2 << 20;

/// Linux x86-64: pages that can be read and written, private, of no file, reserved nowhere; and "drop what was written".
const READ_WRITE: i32 = 3;
const UNRESERVED: i32 = 0x4022;
const DROP: i32 = 4;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: i32,
        flags: i32,
        file: i32,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> i32;
    fn madvise(at: *mut c_void, bytes: usize, advice: i32) -> i32;
}

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Device(u32),
    /// Pinned host memory.
    Host,
}

/// Memory that was asked for.
struct Region {
    bytes: usize,
    owner: Owner,
    /// Where the mapping begins, and how much it is: regions are aligned within it.
    mapping: (usize, usize),
}

/// Physical memory of the driver's calls, which is mapped later.
struct Physical {
    bytes: usize,
    device: u32,
}

struct Memory {
    regions: BTreeMap<usize, Region>,
    /// Address spaces that the driver was asked to keep, with their mappings.
    spaces: BTreeMap<usize, (usize, usize)>,
    physical: Table<Physical>,
    /// Bytes given out, by device.
    used: BTreeMap<u32, u64>,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    regions: BTreeMap::new(),
    spaces: BTreeMap::new(),
    physical: Table::new(),
    used: BTreeMap::new(),
});

impl Memory {
    /// Takes memory of a device, if there is any left.
    fn take(&mut self, device: u32, bytes: usize) -> bool {
        let used = self.used.entry(device).or_default();
        let fits = used.saturating_add(bytes as u64) <= device::model().bytes;
        if fits {
            *used += bytes as u64;
        }
        fits
    }

    fn give_back(&mut self, device: u32, bytes: usize) {
        let used = self.used.entry(device).or_default();
        *used = used.saturating_sub(bytes as u64);
    }

    fn region_of(&self, address: usize) -> Option<(usize, &Region)> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        (address - start < region.bytes).then_some((*start, region))
    }
}

/// Maps memory whose address is a multiple of `align`: its address, and the whole mapping.
fn map(bytes: usize, align: usize) -> Option<(usize, (usize, usize))> {
    let whole = bytes.checked_add(align)?;
    // SAFETY: a new mapping at no given address touches nothing that is there.
    let mapped = unsafe { mmap(ptr::null_mut(), whole, READ_WRITE, UNRESERVED, -1, 0) } as usize;
    (mapped != usize::MAX).then(|| (mapped.next_multiple_of(align), (mapped, whole)))
}

fn unmap((start, bytes): (usize, usize)) {
    // SAFETY: a mapping that `map` made, and that left the table of those in use.
    unsafe { munmap(start as *mut c_void, bytes) };
}

/// Gives out memory.
fn allocate(owner: Owner, asked: usize) -> Option<usize> {
    let bytes = asked.max(1).checked_next_multiple_of(GRANULE)?;
    let mut memory = lock(&MEMORY);
    if let Owner::Device(device) = owner
        && !memory.take(device, bytes)
    {
        return None;
    }
    let (address, mapping) = map(bytes, GRANULE)?;
    memory.regions.insert(address, Region { bytes, owner, mapping });
    Some(address)
}

fn free(address: usize) -> Status {
    let mut memory = lock(&MEMORY);
    let Some(region) = memory.regions.remove(&address) else {
        return if address == 0 { DONE } else { INVALID };
    };
    if let Owner::Device(device) = region.owner {
        memory.give_back(device, region.bytes);
    }
    unmap(region.mapping);
    DONE
}

/// Whose memory an address is; nothing where it is ordinary host memory.
pub(crate) fn owner(address: usize) -> Option<Owner> {
    lock(&MEMORY).region_of(address).map(|(_, region)| region.owner)
}

fn allocate_here(place: &Out<usize>, bytes: usize) -> Status {
    let address = allocate(Owner::Device(device::current()), bytes);
    place.set(address.unwrap_or(0));
    if address.is_some() { DONE } else { OUT_OF_MEMORY }
}

fn allocate_pinned(place: &Out<usize>, bytes: usize) -> Status {
    let address = allocate(Owner::Host, bytes);
    place.set(address.unwrap_or(0));
    if address.is_some() { DONE } else { OUT_OF_MEMORY }
}

calls! {
    "cudaMalloc"(place: Out<usize>, bytes: usize) { allocate_here(&place, bytes) }
    "cudaMallocManaged"(place: Out<usize>, bytes: usize, _flags: u32) { allocate_here(&place, bytes) }
    "cudaMallocAsync"(place: Out<usize>, bytes: usize, _stream: Handle) { allocate_here(&place, bytes) }
    // It waits for all that was launched, as the driver does.
    "cudaFree"(address: usize) { stream::catch_up_all(); free(address) }
    "cudaFreeAsync"(address: usize, _stream: Handle) { free(address) }
    "cudaHostAlloc"(place: Out<usize>, bytes: usize, _flags: u32) { allocate_pinned(&place, bytes) }
    "cudaMallocHost"(place: Out<usize>, bytes: usize) { allocate_pinned(&place, bytes) }
    "cudaFreeHost"(address: usize) { free(address) }
    "cudaMemGetInfo"(left: Out<usize>, total: Out<usize>) {
        let most = device::model().bytes;
        let used = lock(&MEMORY).used.get(&device::current()).copied().unwrap_or(0);
        left.set(usize::try_from(most - used).unwrap_or(usize::MAX));
        total.set(usize::try_from(most).unwrap_or(usize::MAX));
        DONE
    }
    // `cudaPointerAttributes`: type, device, device pointer, host pointer; the fields behind them came with CUDA 13 and stay untouched.
    "cudaPointerGetAttributes"(attributes: Out<u8>, address: usize) {
        let (kind, device, on_device, on_host) = match owner(address) {
            None => (0_i32, -2_i32, 0, 0),
            Some(Owner::Host) => (1, 0, address, address),
            Some(Owner::Device(device)) => (2, i32::try_from(device).unwrap_or(0), address, 0),
        };
        attributes.set_field(0, kind);
        attributes.set_field(4, device);
        attributes.set_field(8, on_device);
        attributes.set_field(16, on_host);
        DONE
    }
}

/// Keeps addresses, without memory behind them.
pub(crate) fn reserve(bytes: usize, align: usize) -> Option<usize> {
    let (address, mapping) = map(bytes, align.max(GRANULE))?;
    lock(&MEMORY).spaces.insert(address, mapping);
    Some(address)
}

/// Gives addresses back.
pub(crate) fn release_addresses(address: usize) -> Status {
    lock(&MEMORY).spaces.remove(&address).map_or(INVALID, |mapping| {
        unmap(mapping);
        DONE
    })
}

/// Memory without addresses.
pub(crate) fn create(bytes: usize, device: u32) -> Option<Handle> {
    let mut memory = lock(&MEMORY);
    memory.take(device, bytes).then(|| memory.physical.add(Physical { bytes, device }))
}

/// Gives memory back; its addresses stay.
pub(crate) fn release(handle: Handle) -> Status {
    let mut memory = lock(&MEMORY);
    memory.physical.remove(handle).map_or(INVALID, |physical| {
        memory.give_back(physical.device, physical.bytes);
        DONE
    })
}

/// Brings memory and addresses together.
pub(crate) fn attach(address: usize, bytes: usize, handle: Handle) -> Status {
    let mut memory = lock(&MEMORY);
    let Some(device) = memory.physical.get(handle).map(|physical| physical.device) else { return INVALID };
    memory.regions.insert(address, Region { bytes, owner: Owner::Device(device), mapping: (address, bytes) });
    DONE
}

/// Takes them apart again: what was written is gone.
pub(crate) fn detach(address: usize, bytes: usize) -> Status {
    let mut memory = lock(&MEMORY);
    memory.regions.retain(|start, _| !(address..address + bytes).contains(start));
    // SAFETY: addresses inside a space that `reserve` keeps, which stay mapped.
    unsafe { madvise(address as *mut c_void, bytes, DROP) };
    DONE
}
