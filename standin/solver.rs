//! cuSOLVER and cuSPARSE, as far as they ask for room: the rest is theirs to compute, and so is nothing.
//!
//! Their workspaces get none, and every question is noted, so that the recording says which sizes are missing.

use crate::place::Out;
use crate::table::Handle;
use crate::unmodelled::note_size;
use crate::{DONE, calls};

/// Exports questions for sizes: what stands before the places of the answers, what is written there, and the names.
macro_rules! sizes {
    ($($before:tt => $answers:tt: $($name:literal)*;)*) => { $($(sizes!(@one $before $answers $name);)*)* };
    (@one ($($before:ident)*) ($($place:ident: $kind:ty),*) $name:literal) => {
        calls! {
            $name($($before: usize,)* $($place: Out<$kind>),*) {
                note_size($name);
                $($place.set(0);)*
                DONE
            }
        }
    };
}

sizes! {
    (_a _b _c) => (work: i32):
        "cusolverDnSgesvd_bufferSize" "cusolverDnDgesvd_bufferSize" "cusolverDnCgesvd_bufferSize" "cusolverDnZgesvd_bufferSize";
    (_a _b _c _d _e) => (work: i32):
        "cusolverDnSpotrf_bufferSize" "cusolverDnDpotrf_bufferSize" "cusolverDnCpotrf_bufferSize" "cusolverDnZpotrf_bufferSize"
        "cusolverDnSgetrf_bufferSize" "cusolverDnDgetrf_bufferSize" "cusolverDnCgetrf_bufferSize" "cusolverDnZgetrf_bufferSize"
        "cusolverDnSgeqrf_bufferSize" "cusolverDnDgeqrf_bufferSize" "cusolverDnCgeqrf_bufferSize" "cusolverDnZgeqrf_bufferSize"
        "cusolverDnSsytrf_bufferSize" "cusolverDnDsytrf_bufferSize" "cusolverDnCsytrf_bufferSize" "cusolverDnZsytrf_bufferSize";
    (_a _b _c _d _e _f _g) => (work: i32):
        "cusolverDnSorgqr_bufferSize" "cusolverDnDorgqr_bufferSize" "cusolverDnCungqr_bufferSize" "cusolverDnZungqr_bufferSize"
        "cusolverDnSsyevd_bufferSize" "cusolverDnDsyevd_bufferSize" "cusolverDnCheevd_bufferSize" "cusolverDnZheevd_bufferSize"
        "cusolverDnSsyevj_bufferSize" "cusolverDnDsyevj_bufferSize" "cusolverDnCheevj_bufferSize" "cusolverDnZheevj_bufferSize"
        "cusolverDnSsyevjBatched_bufferSize" "cusolverDnDsyevjBatched_bufferSize"
        "cusolverDnCheevjBatched_bufferSize" "cusolverDnZheevjBatched_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j _k) => (work: i32):
        "cusolverDnSormqr_bufferSize" "cusolverDnDormqr_bufferSize" "cusolverDnCunmqr_bufferSize" "cusolverDnZunmqr_bufferSize"
        "cusolverDnSgesvdjBatched_bufferSize" "cusolverDnDgesvdjBatched_bufferSize"
        "cusolverDnCgesvdjBatched_bufferSize" "cusolverDnZgesvdjBatched_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j _k _l) => (work: i32):
        "cusolverDnSgesvdj_bufferSize" "cusolverDnDgesvdj_bufferSize" "cusolverDnCgesvdj_bufferSize" "cusolverDnZgesvdj_bufferSize";
    (_a _b _c _d _e _f _g _h) => (device: usize, host: usize): "cusolverDnXpotrf_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j) => (device: usize, host: usize): "cusolverDnXgeqrf_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j _k) => (device: usize, host: usize): "cusolverDnXsyevd_bufferSize" "cusolverDnXsyevBatched_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j _k _l _m _n _o _p _q) => (device: usize, host: usize): "cusolverDnXgeev_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j _k _l _m _n _o _p) => (work: i32):
        "cusolverDnSgesvdaStridedBatched_bufferSize" "cusolverDnDgesvdaStridedBatched_bufferSize"
        "cusolverDnCgesvdaStridedBatched_bufferSize" "cusolverDnZgesvdaStridedBatched_bufferSize";
    (_a _b _c _d _e _f _g _h _i) => (work: usize): "cusparseSpMV_bufferSize";
    (_a _b _c _d _e _f _g _h _i _j) => (work: usize): "cusparseSpMM_bufferSize" "cusparseSDDMM_bufferSize";
}

/// What stands for a handle or a description: nobody asks for it again.
const THING: Handle = 0xb0;

/// Exports what makes a handle or a description.
macro_rules! creations {
    ($($name:literal)*) => { calls! { $($name(place: Out<Handle>) { place.set(THING); DONE })* } };
}

creations! {
    "cusolverDnCreate" "cusolverDnCreateParams" "cusolverDnCreateGesvdjInfo" "cusolverDnCreateSyevjInfo" "cusparseCreate"
    "cusparseCreateMatDescr" "cusparseCreateCsr" "cusparseCreateCoo" "cusparseCreateDnMat" "cusparseCreateDnVec"
    "cusparseSpGEMM_createDescr" "cusparseSpSM_createDescr" "cusparseSpSV_createDescr"
}
