//! A stand-in for CUDA's runtime, driver and libraries, so that PyTorch's ordinary CUDA build runs where there is no GPU.
//!
//! `memlint record --no-gpu` loads it into the program before PyTorch asks for CUDA. What PyTorch calls then ends here: device memory is host
//! memory that nobody has touched yet, a kernel that is launched does nothing, and copies are made. Everything else is PyTorch's own:
//! allocator, dispatcher, autograd engine, graphs' pools, stacks and snapshot. What decides over memory is therefore PyTorch itself, and this
//! library only has to say how much there is, which sizes libraries ask for ([`workspace`]), and when a stream has caught up ([`stream`]).
//!
//! | module | responsibility |
//! |---|---|
//! | [`place`] | what a caller hands over: the only memory of others that is written or read |
//! | [`table`] | handles, which nobody but us looks into |
//! | [`memory`] | what is reserved, on which device, and where the limit is |
//! | [`copy`] | memory to memory |
//! | [`device`] | the device that is modelled |
//! | [`stream`] | streams, events and capture, and how far the device lags behind |
//! | [`launch`] | kernels, which do nothing |
//! | [`driver`] | the driver: virtual memory, entry points by name |
//! | [`blas`], [`dnn`], [`rnn`], [`fourier`], [`solver`], [`nccl`], [`nvml`], [`nvrtc`] | libraries |
//! | [`network`] | a recurrent network, and where its weights lie |
//! | [`workspace`] | the sizes that libraries ask for |
//! | [`convolution`], [`engines`] | the same for convolutions: formulas, and which of them holds |
//! | [`unmodelled`] | every other symbol that a wheel asks for, and the lists of those without an answer |
//!
//! `build.rs` compiles this folder with the compiler alone, for it goes into memlint as bytes; as a target of the package it is linted and
//! tested with everything else. Unsafe code is confined to it: symbols have to be exported under their names, and what PyTorch hands over are
//! pointers. The contract of each is CUDA's own; [`place`] and [`memory`] hold every dereference.
#![expect(unsafe_code, reason = "a library that C++ calls; memlint itself forbids it")]

mod blas;
mod convolution;
mod copy;
mod device;
mod dnn;
mod driver;
mod engines;
mod fourier;
mod launch;
mod memory;
mod nccl;
mod network;
mod nvml;
mod nvrtc;
mod place;
mod rnn;
mod solver;
mod stream;
mod table;
mod unmodelled;
mod workspace;

/// What a call returns: 0 is success in all of these libraries.
type Status = i32;

/// Success.
const DONE: Status = 0;

/// `cudaErrorMemoryAllocation`, and the driver's own.
const OUT_OF_MEMORY: Status = 2;

/// Exports functions under the names that PyTorch asks for. They have no other name: nothing in here calls them.
macro_rules! calls {
    ($($(#[$attribute:meta])* $name:literal ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        const _: () = {
            // SAFETY: no other item of the process has this name, or this library stands before it on purpose.
            $(#[$attribute])*
            #[unsafe(export_name = $name)]
            #[allow(clippy::too_many_arguments, clippy::allow_attributes, reason = "the signature is CUDA's")]
            extern "C" fn call($($argument: $type),*) -> calls!(@result $($result)?) $body
        };
    )*};
    (@result) => { $crate::Status };
    (@result $result:ty) => { $result };
}
use calls;

/// Exports calls that succeed and do nothing.
macro_rules! nothing {
    ($($name:literal)*) => { $crate::calls! { $($name() { $crate::DONE })* } };
}
use nothing;

calls! {
    // What the recorder's hook says before PyTorch is loaded: devices, bytes of each, and the versions the wheel was built for
    // (CUDA as 12040, cuDNN as 90100, NCCL as 22105).
    "memlint_configure"(devices: u32, bytes: u64, cuda: u32, cudnn: u32, nccl: u32) {
        device::configure(device::Model { devices, bytes, cuda, cudnn, nccl });
        DONE
    }
}
