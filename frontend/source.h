/* The texts of one compilation.
 *
 * The one idea: everything after the lexer carries byte offsets (src_range) and nothing else; only whoever
 * prints asks this map for names, lines and columns. A file's line table is built at the first question. */
#ifndef VISA_FRONTEND_SOURCE_H
#define VISA_FRONTEND_SOURCE_H

#include "support/arena.h"
#include "support/diag.h"

/* The largest text that is accepted, in bytes: offsets must fit into a src_range with room to spare. */
#define SOURCE_BYTES_MAX ((size_t)256 << 20)

typedef struct source_map source_map;

/* A place as people count it: both from 1, the column in UTF-8 characters. */
typedef struct source_place {
    uint32_t line, column;
} source_place;

/* One line of a file without its line end. */
typedef struct source_line {
    const char *text; /* not NUL-terminated */
    uint32_t bytes;
    uint32_t begin; /* offset of its first byte in the file */
} source_line;

source_map *source_map_new(arena *a);

/* Copies a text into the map and returns its file index, or -1 when it is larger than SOURCE_BYTES_MAX. */
int source_map_add(source_map *sources, const char *name, const char *text, size_t bytes);
/* The same for a part of a larger file: where it begins there, the line from 1, the offset in bytes. */
int source_map_add_part(source_map *sources, const char *name, const char *text, size_t bytes, uint32_t first_line, uint32_t first_byte);
int source_map_count(const source_map *sources);
/* The map as it is now, for source_map_restore after its arena was rewound to here or later: texts that were added since are not in it. */
const source_map *source_map_keep(source_map *sources);
void source_map_restore(source_map *sources, const source_map *kept);

/* File indexes outside the map give "<unknown>", an empty text and place 1:1. */
const char *source_name(const source_map *sources, int file);
const char *source_text(const source_map *sources, int file); /* NUL-terminated; may hold NULs of its own */
size_t source_bytes(const source_map *sources, int file);

/* The offset in the file that the text is a part of. */
uint32_t source_offset(const source_map *sources, int file, uint32_t offset);
/* Lines are those of that file. Offsets past the end count as the end. */
source_place source_locate(const source_map *sources, int file, uint32_t offset);
/* Its line alone: columns are counted from the line's beginning, which may be far. */
uint32_t source_line_at(const source_map *sources, int file, uint32_t offset);
source_line source_line_of(const source_map *sources, int file, uint32_t line);
/* The last line's number. */
uint32_t source_line_count(const source_map *sources, int file);

#endif
