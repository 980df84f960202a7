//! Compiles the stand-in for CUDA (`standin/`), which goes into memlint as bytes: a shared library that `memlint record --no-gpu` loads into a
//! program of others. It has no dependencies, so the compiler that builds memlint is all it takes.
//!
//! Where there is no such library (everywhere but on Linux x86-64 with glibc, which is where PyTorch's CUDA wheels run) there are no bytes, and
//! `--no-gpu` says so.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=standin");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = PathBuf::from(env::var("OUT_DIR")?).join("libmemlint-standin.so");
    let is_supported = ["OS", "ARCH", "ENV"].map(|name| variable(&format!("CARGO_CFG_TARGET_{name}")))
        == ["linux", "x86_64", "gnu"];
    if !is_supported {
        return Ok(fs::write(library, [])?);
    }
    let status = Command::new(env::var("RUSTC")?)
        .args(["--crate-name", "memlint_standin", "--crate-type", "cdylib", "--edition", "2024"])
        .args(["--target", &variable("TARGET")])
        .args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols"])
        // The name by which the libraries that memlint writes ask for it.
        .args(["-C", "link-arg=-Wl,-soname,libmemlint-standin.so"])
        .args(variable("RUSTC_LINKER").split_whitespace().map(|linker| format!("-Clinker={linker}")))
        .arg("-o")
        .arg(&library)
        .arg("standin/lib.rs")
        .status()?;
    if !status.success() {
        return Err("the stand-in for CUDA (standin/lib.rs) does not compile".into());
    }
    Ok(())
}
