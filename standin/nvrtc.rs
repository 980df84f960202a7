//! Kernels that are compiled while the program runs: NVRTC makes nothing of their source, the driver loads it, and a launch does nothing.
//!
//! PyTorch compiles some of its own operators this way (`torch.special`, `gcd`, those on complex numbers). It would keep what was compiled in the user's
//! cache; the recorder's hook turns that off, for a real GPU must not find this there.

use std::ffi::c_char;

use crate::place::{In, Out};
use crate::table::Handle;
use crate::{DONE, calls, device, nothing};

/// What stands for a program, a module or a function: nobody looks into one.
const THING: Handle = 0xc0;
/// What is compiled has one byte, which is zero: also the end of a text.
const SIZE: usize = 1;

calls! {
    "nvrtcVersion"(major: Out<i32>, minor: Out<i32>) {
        let version = i32::try_from(device::model().cuda).unwrap_or(0);
        major.set(version / 1000);
        minor.set(version % 1000 / 10);
        DONE
    }
    "nvrtcCreateProgram"(place: Out<Handle>) { place.set(THING); DONE }
    "nvrtcGetPTXSize"(_program: Handle, bytes: Out<usize>) { bytes.set(SIZE); DONE }
    "nvrtcGetPTX"(_program: Handle, place: Out<u8>) { place.clear(SIZE); DONE }
    "nvrtcGetCUBINSize"(_program: Handle, bytes: Out<usize>) { bytes.set(SIZE); DONE }
    "nvrtcGetCUBIN"(_program: Handle, place: Out<u8>) { place.clear(SIZE); DONE }
    "nvrtcGetProgramLogSize"(_program: Handle, bytes: Out<usize>) { bytes.set(SIZE); DONE }
    "nvrtcGetProgramLog"(_program: Handle, place: Out<u8>) { place.clear(SIZE); DONE }
    "nvrtcGetLoweredName"(_program: Handle, _name: In<c_char>, place: Out<*const c_char>) { place.set(c"kernel".as_ptr()); DONE }
    "nvrtcGetErrorString"() -> *const c_char { c"not supported without a GPU".as_ptr() }
    "cuModuleLoadData"(place: Out<Handle>) { place.set(THING); DONE }
    "cuModuleLoadDataEx"(place: Out<Handle>) { place.set(THING); DONE }
    "cuModuleGetFunction"(place: Out<Handle>) { place.set(THING); DONE }
}

nothing! { "nvrtcAddNameExpression" "nvrtcCompileProgram" "nvrtcDestroyProgram" "cuModuleUnload" "cuFuncSetAttribute" }
