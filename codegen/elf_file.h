/* An ELF file as a list of named byte strings.
 *
 * The one idea: all that is ELF about a binary is here, and bytes from outside are believed only after every
 * header field, bound and overlap has been checked by hand; libelf sees nothing but files that passed. What
 * the sections mean is codegen/container.c. */
#ifndef VISA_CODEGEN_ELF_FILE_H
#define VISA_CODEGEN_ELF_FILE_H

#include "support/arena.h"
#include "support/diag.h"

typedef struct elf_section {
    const char *name;
    uint32_t type; /* SHT_* */
    uint32_t link, info;
    uint64_t entry_bytes, align; /* sh_entsize; sh_addralign in bytes */
    const unsigned char *bytes;
    size_t size; /* bytes */
} elf_section;

/* ET_REL of EM_NONE, class 64, little-endian: sections in the given order without gaps, each a multiple of 8
 * bytes long, then .shstrtab, then the section headers. sections[i] becomes section i + 1; `link` counts
 * likewise. */
bool elf_file_write(const elf_section *sections, size_t count, arena *a, diag_list *diags, const unsigned char **bytes, size_t *size);

/* Reads such a file: *out has an element per section header, the null section 0 included. The contents point
 * into `bytes`, which must be aligned to 8 bytes. Any bytes at all may be given. */
bool elf_file_read(const unsigned char *bytes, size_t size, arena *a, diag_list *diags, elf_section **out, size_t *count);

#endif
