//! A shared library of nothing but names: each function calls one and the same with its own name.
//!
//! Written by hand of the ELF format (through `object`), because a program's PyTorch is known only when the program runs, and there may be no
//! linker where it does. Addresses are offsets in the file; what is executed and what the loader writes stand in segments of their own.

use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, Sym, Writer};
use object::{Endianness, elf};

/// A library to be written.
pub(super) struct Library<'a> {
    /// What others ask for.
    pub(super) soname: &'a str,
    /// Libraries that it asks for itself, by the same kind of name.
    pub(super) needed: &'a [&'a str],
    /// The functions it has.
    pub(super) functions: &'a [&'a str],
}

/// What every function calls, with its name as the only argument (`standin/unmodelled.rs`).
const CALLED: &str = "memlint_unmodelled";

const PAGE: usize = 4096;
/// Bytes of a function: `lea rdi, [name]; jmp [slot]`, and three that are never reached.
const FUNCTION: usize = 16;
const LOAD_NAME: [u8; 3] = [0x48, 0x8d, 0x3d];
const LOAD_NAME_ENDS: usize = 7;
const JUMP: [u8; 2] = [0xff, 0x25];
const JUMP_ENDS: usize = 13;
const NEVER: [u8; 3] = [0xcc; 3];
/// Bytes of the place that the loader writes the address of [`CALLED`] to.
const SLOT: usize = 8;

/// Where the parts of the file stand.
struct FileParts {
    hash: usize,
    symbols: usize,
    strings: usize,
    relocations: usize,
    code: usize,
    /// The functions' names once more: where the loader's own stand is the writer's business.
    texts: usize,
    dynamic: usize,
    slot: usize,
    end: usize,
}

/// Texts of the file, by what they are.
struct StringTable {
    soname: StringId,
    needed: Vec<StringId>,
    called: StringId,
    functions: Vec<StringId>,
}

impl Library<'_> {
    /// The bytes of the library.
    ///
    /// # Errors
    /// Where a number does not fit into the format: with more than two gigabytes of names.
    pub(super) fn write(&self) -> object::write::Result<Vec<u8>> {
        let mut file = Vec::new();
        let mut writer = Writer::new(Endianness::Little, true, &mut file);
        let names = StringTable {
            soname: writer.add_dynamic_string(self.soname.as_bytes()),
            needed: self.needed.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect(),
            called: writer.add_dynamic_string(CALLED.as_bytes()),
            functions: self.functions.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect(),
        };
        let places = self.reserve(&mut writer);
        Self::write_headers(&mut writer, &places)?;
        self.write_symbols(&mut writer, &places, &names);
        self.write_code(&mut writer, &places);
        Self::write_dynamic(&mut writer, &places, &names)?;
        Ok(file)
    }

    /// The null symbol, the one that is called, and the functions.
    fn symbols(&self) -> u32 {
        u32::try_from(2 + self.functions.len()).unwrap_or(u32::MAX)
    }

    fn buckets(&self) -> u32 {
        self.symbols().div_ceil(2)
    }

    fn reserve(&self, writer: &mut Writer<'_>) -> FileParts {
        (1..self.symbols()).for_each(|_| {
            writer.reserve_dynamic_symbol_index();
        });
        writer.reserve_file_header();
        writer.reserve_program_headers(4);
        let hash = writer.reserve_hash(self.buckets(), self.symbols());
        let symbols = writer.reserve_dynsym();
        let strings = writer.reserve_dynstr();
        let relocations = writer.reserve_relocations(1, true);
        let code = writer.reserve(FUNCTION * self.functions.len(), FUNCTION);
        let texts = writer.reserve(self.functions.iter().map(|name| name.len() + 1).sum(), 1);
        // A page of its own, for it is written to.
        writer.reserve_until(writer.reserved_len().next_multiple_of(PAGE));
        // Ten entries, and one for each library that is needed.
        let dynamic = writer.reserve_dynamic(10 + self.needed.len());
        let slot = writer.reserve(SLOT, SLOT);
        FileParts {
            hash,
            symbols,
            strings,
            relocations,
            code,
            texts,
            dynamic,
            slot,
            end: writer.reserved_len(),
        }
    }

    fn write_headers(writer: &mut Writer<'_>, places: &FileParts) -> object::write::Result<()> {
        writer.write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: elf::EM_X86_64,
            e_entry: 0,
            e_flags: 0,
        })?;
        writer.write_align_program_headers();
        let (read, write, run) = (elf::PF_R, elf::PF_W, elf::PF_X);
        for (kind, flags, start, end, align) in [
            (elf::PT_LOAD, read | run, 0, places.dynamic, PAGE),
            (elf::PT_LOAD, read | write, places.dynamic, places.end, PAGE),
            (elf::PT_DYNAMIC, read | write, places.dynamic, places.slot, SLOT),
            // Without it the loader believes that the stack is to be executed.
            (elf::PT_GNU_STACK, read | write, 0, 0, SLOT),
        ] {
            writer.write_program_header(&ProgramHeader {
                p_type: kind,
                p_flags: flags,
                p_offset: start as u64,
                p_vaddr: start as u64,
                p_paddr: start as u64,
                p_filesz: (end - start) as u64,
                p_memsz: (end - start) as u64,
                p_align: align as u64,
            });
        }
        Ok(())
    }

    fn write_symbols(&self, writer: &mut Writer<'_>, places: &FileParts, names: &StringTable) {
        writer.write_hash(self.buckets(), self.symbols(), |index| {
            let index = usize::try_from(index).ok()?.checked_sub(2)?;
            self.functions.get(index).map(|name| elf::hash(name.as_bytes()))
        });
        writer.write_null_dynamic_symbol();
        let mut symbol = |name, section, value: usize, size: usize| {
            writer.write_dynamic_symbol(&Sym {
                name: Some(name),
                section: None,
                st_info: (elf::STB_GLOBAL << 4) | elf::STT_FUNC,
                st_other: elf::STV_DEFAULT,
                st_shndx: section,
                st_value: value as u64,
                st_size: size as u64,
            });
        };
        symbol(names.called, elf::SHN_UNDEF, 0, 0);
        for (index, name) in names.functions.iter().enumerate() {
            // There are no sections; what counts is that this is none of the numbers with a meaning.
            symbol(*name, 1, places.code + index * FUNCTION, FUNCTION);
        }
        writer.write_dynstr();
        writer.write_align_relocation();
        writer.write_relocation(
            true,
            &Rel { r_offset: places.slot as u64, r_sym: 1, r_type: elf::R_X86_64_64, r_addend: 0 },
        );
    }

    fn write_code(&self, writer: &mut Writer<'_>, places: &FileParts) {
        writer.pad_until(places.code);
        let mut text = places.texts;
        for (index, name) in self.functions.iter().enumerate() {
            let start = places.code + index * FUNCTION;
            writer.write(&LOAD_NAME);
            writer.write(&distance(start + LOAD_NAME_ENDS, text));
            writer.write(&JUMP);
            writer.write(&distance(start + JUMP_ENDS, places.slot));
            writer.write(&NEVER);
            text += name.len() + 1;
        }
        for name in self.functions {
            writer.write(name.as_bytes());
            writer.write(&[0]);
        }
    }

    fn write_dynamic(
        writer: &mut Writer<'_>,
        places: &FileParts,
        names: &StringTable,
    ) -> object::write::Result<()> {
        writer.pad_until(places.dynamic);
        writer.write_dynamic_string(elf::DT_SONAME, names.soname)?;
        for needed in &names.needed {
            writer.write_dynamic_string(elf::DT_NEEDED, *needed)?;
        }
        let relocation = size_of::<elf::Rela64<Endianness>>();
        for (tag, value) in [
            (elf::DT_HASH, places.hash),
            (elf::DT_SYMTAB, places.symbols),
            (elf::DT_SYMENT, size_of::<elf::Sym64<Endianness>>()),
            (elf::DT_STRTAB, places.strings),
            (elf::DT_STRSZ, writer.dynstr_len()),
            (elf::DT_RELA, places.relocations),
            (elf::DT_RELASZ, relocation),
            (elf::DT_RELAENT, relocation),
            (elf::DT_NULL, 0),
        ] {
            writer.write_dynamic(tag, value as u64)?;
        }
        writer.write(&[0; SLOT]);
        Ok(())
    }
}

/// How far it is to a place, as code says it: files are far smaller than what fits.
fn distance(from: usize, to: usize) -> [u8; 4] {
    i32::try_from(to.wrapping_sub(from).cast_signed()).unwrap_or(0).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn number(file: &[u8], at: usize, bytes: usize) -> usize {
        file[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    }

    fn text(file: &[u8], at: usize) -> String {
        let end = file[at..].iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8(file[at..at + end].to_vec()).unwrap()
    }

    /// Read as a loader does, which knows nothing but the segment of dynamic entries.
    #[test]
    fn a_library_has_its_names_and_asks_for_one() {
        let functions = ["cudaIpcGetMemHandle", "cuSomething", "cuSomethingElse"];
        let library = Library { soname: "libcudart.so.13", needed: &["libcore.so"], functions: &functions };
        let file = library.write().unwrap();
        // The third program header; each has 56 bytes, behind the file's own 64.
        let header = 64 + 2 * 56;
        assert_eq!(number(&file, header, 4), usize::try_from(elf::PT_DYNAMIC).unwrap());
        let dynamic = number(&file, header + 8, 8);
        assert_eq!(dynamic % PAGE, 0, "the loader writes to it");
        let entries: BTreeMap<usize, usize> = (0..10 + library.needed.len())
            .map(|index| dynamic + 16 * index)
            .map(|at| (number(&file, at, 8), number(&file, at + 8, 8)))
            .collect();
        let entry = |tag: i64| entries[&usize::try_from(tag).unwrap()];
        let strings = entry(elf::DT_STRTAB);
        assert_eq!(text(&file, strings + entry(elf::DT_SONAME)), "libcudart.so.13");
        assert_eq!(text(&file, strings + entry(elf::DT_NEEDED)), "libcore.so");
        let symbol = |index: usize| entry(elf::DT_SYMTAB) + 24 * index;
        assert_eq!(text(&file, strings + number(&file, symbol(1), 4)), CALLED);
        for (index, name) in functions.iter().enumerate() {
            assert_eq!(text(&file, strings + number(&file, symbol(index + 2), 4)), *name);
            // What is loaded before the jump is the function's own name.
            let start = number(&file, symbol(index + 2) + 8, 8);
            assert_eq!(text(&file, start + LOAD_NAME_ENDS + number(&file, start + 3, 4)), *name);
        }
        assert_eq!(number(&file, entry(elf::DT_HASH) + 4, 4), functions.len() + 2);
    }
}
