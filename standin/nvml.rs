//! NVIDIA's management library, which PyTorch asks what other processes use when memory runs out: here are none.

use crate::place::Out;
use crate::table::Handle;
use crate::unmodelled::note_refused;
use crate::{DONE, Status, calls, device, nothing};

/// `NVML_ERROR_NOT_SUPPORTED`.
const UNSUPPORTED: Status = 3;
/// What stands for a device.
const DEVICE: Handle = 0xa0;

calls! {
    "nvmlDeviceGetHandleByPciBusId_v2"(_id: usize, place: Out<Handle>) { place.set(DEVICE); DONE }
    "nvmlDeviceGetHandleByIndex_v2"(_index: u32, place: Out<Handle>) { place.set(DEVICE); DONE }
    "nvmlDeviceGetCount_v2"(count: Out<u32>) { count.set(device::model().devices); DONE }
    "nvmlDeviceGetComputeRunningProcesses"(_device: Handle, count: Out<u32>) { count.set(0); DONE }
    "nvmlDeviceGetComputeRunningProcesses_v3"(_device: Handle, count: Out<u32>) { count.set(0); DONE }
    "nvmlSystemGetCudaDriverVersion_v2"(version: Out<i32>) { version.set(i32::try_from(device::model().cuda).unwrap_or(0)); DONE }
    "nvmlDeviceGetNvLinkRemoteDeviceType"() { UNSUPPORTED }
    "nvmlDeviceGetNvLinkRemotePciInfo_v2"() { UNSUPPORTED }
    // Asked for memory that several processes share, which goes no further without it.
    "nvmlDeviceGetGpuFabricInfoV"() { note_refused("nvmlDeviceGetGpuFabricInfoV"); UNSUPPORTED }
    "nvmlErrorString"() -> *const u8 { c"not supported without a GPU".as_ptr().cast() }
}

nothing! { "nvmlInit_v2" "nvmlShutdown" }
