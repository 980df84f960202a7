//! The driver: contexts, entry points by name, and virtual memory, which `expandable_segments` is made of.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::memory::{self, GRANULE};
use crate::place::{In, Out};
use crate::stream::{self, Work};
use crate::table::Handle;
use crate::unmodelled::meet;
use crate::{DONE, OUT_OF_MEMORY, Status, calls, device, nothing};

/// `CUDA_ERROR_NOT_SUPPORTED`.
const UNSUPPORTED: Status = 801;
/// What stands for the one context of a device.
const CONTEXT: Handle = 0x80;
/// Where the device's number stands in `CUmemAllocationProp`: behind the kind of memory, of handles and of location.
const DEVICE: usize = 12;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// What PyTorch asks for by name and nobody has.
extern "C" fn unsupported() -> Status {
    UNSUPPORTED
}

/// The function of a name: ours, a stub, or one that fails.
fn entry_point(name: &str) -> usize {
    // Some names have got a second version, which is meant.
    let found = [name.to_owned(), format!("{name}_v2")].into_iter().find_map(|name| {
        let name = CString::new(name).ok()?;
        // SAFETY: null means everything that is loaded for all.
        let address = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) } as usize;
        (address != 0).then_some(address)
    });
    found.unwrap_or(unsupported as *const () as usize)
}

/// A text that says what a status means.
fn text_of(status: Status) -> &'static CStr {
    match status {
        DONE => c"no error",
        OUT_OF_MEMORY => c"out of memory",
        _ => c"operation not supported without a GPU",
    }
}

calls! {
    "cudaGetDriverEntryPoint"(name: In<c_char>, place: Out<usize>, _flags: u64, found: Out<i32>) {
        place.set(entry_point(&name.text()));
        found.set(0);
        DONE
    }
    "cudaGetDriverEntryPointByVersion"(name: In<c_char>, place: Out<usize>, _version: u32, _flags: u64, found: Out<i32>) {
        place.set(entry_point(&name.text()));
        found.set(0);
        DONE
    }
    "cuGetProcAddress"(name: In<c_char>, place: Out<usize>) { place.set(entry_point(&name.text())); DONE }
    "cuGetProcAddress_v2"(name: In<c_char>, place: Out<usize>, _version: i32, _flags: u64, found: Out<i32>) {
        place.set(entry_point(&name.text()));
        found.set(0);
        DONE
    }
    "cuDriverGetVersion"(version: Out<i32>) { version.set(i32::try_from(device::model().cuda).unwrap_or(0)); DONE }
    "cuGetErrorString"(status: Status, text: Out<*const c_char>) { text.set(text_of(status).as_ptr()); DONE }
    "cuGetErrorName"(status: Status, text: Out<*const c_char>) { text.set(text_of(status).as_ptr()); DONE }
    "cuDeviceGetCount"(count: Out<i32>) { count.set(i32::try_from(device::model().devices).unwrap_or(0)); DONE }
    "cuDeviceGet"(place: Out<i32>, device: i32) { place.set(device); DONE }
    "cuDeviceGetAttribute"(value: Out<i32>, number: i32, _device: i32) { value.set(device::attribute(number)); DONE }
    "cuCtxGetCurrent"(place: Out<Handle>) { place.set(CONTEXT); DONE }
    "cuDevicePrimaryCtxRetain"(place: Out<Handle>, _device: i32) { place.set(CONTEXT); DONE }
    // Active on every device: PyTorch leaves devices alone whose context is not.
    "cuDevicePrimaryCtxGetState"(_device: i32, flags: Out<u32>, is_active: Out<i32>) { flags.set(0); is_active.set(1); DONE }
    "cuLaunchKernel"(_kernel: usize, x: u32, y: u32, z: u32, bx: u32, by: u32, bz: u32, _shared: u32, on: Handle) {
        stream::launch(on, Work::Threads([x, y, z, bx, by, bz].into_iter().map(u64::from).product()));
        DONE
    }

    "cuMemGetAllocationGranularity"(bytes: Out<usize>, _properties: usize, _which: i32) { bytes.set(GRANULE); DONE }
    "cuMemAddressReserve"(place: Out<usize>, bytes: usize, align: usize, _wish: usize, _flags: u64) {
        let address = memory::reserve(bytes, align);
        place.set(address.unwrap_or(0));
        if address.is_some() { DONE } else { OUT_OF_MEMORY }
    }
    "cuMemAddressFree"(address: usize, _bytes: usize) { memory::release_addresses(address) }
    "cuMemCreate"(place: Out<u64>, bytes: usize, properties: In<u8>, _flags: u64) {
        let device = properties.field::<i32>(DEVICE).and_then(|device| u32::try_from(device).ok());
        let handle = memory::create(bytes, device.unwrap_or(device::current()));
        place.set(handle.map_or(0, |handle| handle as u64));
        if handle.is_some() { DONE } else { OUT_OF_MEMORY }
    }
    "cuMemRelease"(handle: u64) { memory::release(usize::try_from(handle).unwrap_or(0)) }
    "cuMemMap"(address: usize, bytes: usize, _offset: usize, handle: u64, _flags: u64) {
        memory::attach(address, bytes, usize::try_from(handle).unwrap_or(0))
    }
    "cuMemUnmap"(address: usize, bytes: usize) { stream::catch_up_all(); memory::detach(address, bytes) }
}

nothing! { "cuInit" "cuCtxSetCurrent" "cuCtxPushCurrent" "cuCtxPopCurrent" "cuMemSetAccess" "cuMemsetD32Async" "cuStreamWriteValue32" }

/// Exports calls that a GPU alone can do. PyTorch looks for them by name, whether it calls them or not, and fails where it finds none.
macro_rules! refused {
    ($($name:literal)*) => { calls! { $($name() { meet($name) })* } };
}

refused! {
    "cuMemExportToShareableHandle" "cuMemImportFromShareableHandle" "cuMemRetainAllocationHandle" "cuMemGetAllocationPropertiesFromHandle"
    "cuMulticastAddDevice" "cuMulticastBindAddr" "cuMulticastBindMem" "cuMulticastCreate" "cuMulticastGetGranularity" "cuMulticastUnbind"
    "cuGreenCtxCreate" "cuGreenCtxDestroy" "cuGreenCtxStreamCreate" "cuCtxFromGreenCtx" "cuDeviceGetDevResource" "cuDevResourceGenerateDesc"
    "cuDevSmResourceSplitByCount" "cuStreamGetGreenCtx"
}
