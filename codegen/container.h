/* matmul.bin: an ELF file (docs/format.md).
 *
 * The one idea: each thing that a reader may want is a section of its own, named after the kernel, so that
 * readelf and objdump -s already work:
 *
 *     .note.visa             format version and target name
 *     .visa.main.KERNEL      command words of the main context   (also .visa.sub., .visa.dma.; absent when
 * empty) .visa.ports.KERNEL     axis table and tensor ports .visa.einsum.KERNEL    what the kernel computes
 *     .visa.lines.KERNEL     command offset -> source line (absent when no command has a line)
 *     .symtab                one symbol per kernel (its main section) and per port
 */
#ifndef VISA_CODEGEN_CONTAINER_H
#define VISA_CODEGEN_CONTAINER_H

#include "codegen/command.h"
#include "codegen/einsum.h"
#include "codegen/layout.h"
#include "codegen/step/program.h"

typedef enum port_space { PORT_HBM = 0, PORT_DM = 1, PORT_TRF = 2, PORT_STREAM = 3, PORT_VRF = 4, PORT_SPACES } port_space;
typedef enum port_direction { PORT_IN = 0, PORT_OUT = 1 } port_direction;

/* The physical layout of a port is the pair, in this order, of the components that its space has:
 * HBM: chip, element. DM: chip, cluster, slice, element. TRF: chip, cluster, slice, row, element. VRF: as DM.
 * Stream: chip, cluster, slice, row, time, packet (row is `1` but for aligned pairs and contraction tensors).
 */
typedef enum port_component {
    COMPONENT_CHIP,
    COMPONENT_CLUSTER,
    COMPONENT_SLICE,
    COMPONENT_ROW,
    COMPONENT_TIME,
    COMPONENT_ELEMENT,
    COMPONENT_PACKET,
    COMPONENT_COUNT
} port_component;
const char *port_component_name(port_component c); /* "chip", ... */

/* Has this space such a component? */
bool port_space_has(port_space space, port_component c);

typedef struct port {
    const char *name;
    port_direction direction;
    port_space space;
    dtype dtype;
    trf_address trf_address;         /* TRF only */
    int64_t address;                 /* bytes: HBM per chip, DM and VRF per slice; 0 for the others */
    layout mapping[COMPONENT_COUNT]; /* count 0: the space has no such component */
} port;

typedef struct binary_kernel {
    const char *name;
    const layout_axis *axes;
    uint32_t axis_count;
    const port *ports;
    uint32_t port_count;
    struct {
        const command *commands; /* as they run */
        size_t count;
        const command *stored; /* as the section that was read holds them, with its loops; NULL: not read */
        size_t stored_count;
    } streams[3];  /* by context */
    einsum einsum; /* tensor_count 0: the kernel has none, and no section */
} binary_kernel;

/* A row of .symtab, as read; a writer makes its own from kernels and ports. */
typedef struct binary_symbol {
    const char *name, *section;
    uint64_t offset, size; /* bytes within the section */
} binary_symbol;

typedef struct binary {
    const target *target;
    const binary_kernel *kernels;
    size_t kernel_count;
    const step_program *programs; /* stream programs: a section .visa.step.NAME each */
    size_t program_count;
    const binary_symbol *symbols;
    size_t symbol_count;
} binary;

enum { BINARY_FORMAT_VERSION = 12 };

/* Writes a file kernel by kernel, in the order in which they are added, and what it keeps of a kernel are the bytes of its sections: the
 * rest may be forgotten, `scratch` too. The file is in `a`; the same input gives the same bytes. Each of these gives false with diagnostics
 * when a value does not fit its field, or when binary_read would refuse the file, and is the last call then. */
typedef struct binary_writer binary_writer;
binary_writer *binary_writer_new(const target *t, arena *a, diag_list *diags);
bool binary_writer_kernel(binary_writer *w, const binary_kernel *k, arena *scratch);
/* After the kernels. */
bool binary_writer_program(binary_writer *w, const step_program *p, arena *scratch);
/* A kernel that another writer was given, by its number there: its bytes are not copied, and stay where they are until the end. */
void binary_writer_take(binary_writer *w, const binary_writer *from, size_t number);
/* Commands that its loops expand to, of COMMAND_LOOP_MAX_COMMANDS that a file may have. */
size_t binary_writer_loops_used(const binary_writer *w);
bool binary_writer_finish(binary_writer *w, const unsigned char **bytes, size_t *size);

/* Reads and checks a whole file; *out lives in the arena and keeps nothing of `bytes`. Unknown sections are
 * skipped, an unknown command, a version above BINARY_FORMAT_VERSION, a field outside its limits, a damaged
 * or truncated section are errors that name the section and the offset. Never crashes, whatever the bytes. */
bool binary_read(const unsigned char *bytes, size_t size, arena *a, diag_list *diags, binary *out);

/* The words of one command stream as they stand in the section that was read; of a kernel that was not, without loops. */
bool binary_stream_words(const binary_kernel *k, context c, arena *a, uint64_t **words, size_t *count);

/* Every kernel and stream program, NULL-ended. */
const char *const *binary_names(const binary *b, arena *a);
/* The kernel with that name, the only one without a name (NULL); else NULL, diagnosed. */
const binary_kernel *binary_choose_kernel(const binary *b, const char *name, diag_list *diags);
/* The kernel with that name, or NULL. */
const binary_kernel *binary_kernel_by_name(const binary *b, const char *name);
/* The stream program with that name; without a name the only one of a binary that has no kernel. NULL: there is none. */
const step_program *binary_program_by_name(const binary *b, const char *name);

#endif
