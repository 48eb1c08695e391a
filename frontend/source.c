#include "frontend/source.h"

#include <string.h>

typedef struct source_file {
    const char *name, *text;
    uint32_t bytes;
    uint32_t *line_begins; /* NULL until somebody asks */
    uint32_t line_count;
    uint32_t lines_before, bytes_before; /* in the file that this is a part of */
} source_file;

struct source_map {
    arena *arena;
    source_file **files;
    size_t count, capacity;
};

source_map *source_map_new(arena *a)
{
    source_map *sources = ARENA_NEW(a, source_map);
    sources->arena = a;
    return sources;
}

int source_map_add(source_map *sources, const char *name, const char *text, size_t bytes)
{
    return source_map_add_part(sources, name, text, bytes, 1, 0);
}

int source_map_add_part(source_map *sources, const char *name, const char *text, size_t bytes, uint32_t first_line, uint32_t first_byte)
{
    if (bytes > SOURCE_BYTES_MAX || sources->count >= INT32_MAX)
        return -1;
    source_file *file = ARENA_NEW(sources->arena, source_file);
    char *copy = arena_alloc(sources->arena, bytes + 1);
    if (bytes > 0)
        memcpy(copy, text, bytes);
    file->name = arena_strdup(sources->arena, name);
    file->text = copy;
    file->bytes = (uint32_t)bytes;
    file->lines_before = first_line - 1;
    file->bytes_before = first_byte;
    ARENA_PUSH(sources->arena, sources->files, sources->count, sources->capacity, file);
    return (int)sources->count - 1;
}

int source_map_count(const source_map *sources)
{
    return (int)sources->count;
}

static source_file *file_of(const source_map *sources, int file)
{
    return file >= 0 && (size_t)file < sources->count ? sources->files[file] : NULL;
}

const char *source_name(const source_map *sources, int file)
{
    const source_file *f = file_of(sources, file);
    return f != NULL ? f->name : "<unknown>";
}

const char *source_text(const source_map *sources, int file)
{
    const source_file *f = file_of(sources, file);
    return f != NULL ? f->text : "";
}

size_t source_bytes(const source_map *sources, int file)
{
    const source_file *f = file_of(sources, file);
    return f != NULL ? f->bytes : 0;
}

static void build_line_table(const source_map *sources, source_file *f)
{
    uint32_t lines = 1;
    const char *end = f->text + f->bytes;
    for (const char *at = f->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    f->line_begins = ARENA_ARRAY(sources->arena, uint32_t, lines);
    uint32_t line = 1;
    for (const char *at = f->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        f->line_begins[line++] = (uint32_t)(at - f->text) + 1;
    f->line_count = lines;
}

static source_file *file_with_lines(const source_map *sources, int file)
{
    source_file *f = file_of(sources, file);
    if (f != NULL && f->line_begins == NULL)
        build_line_table(sources, f);
    return f;
}

const source_map *source_map_keep(source_map *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        file_with_lines(sources, (int)i); /* where a rewind does not forget them */
    source_map *kept = ARENA_NEW(sources->arena, source_map);
    *kept = *sources;
    return kept;
}

void source_map_restore(source_map *sources, const source_map *kept)
{
    *sources = *kept;
}

/* Index (from 0) of the last line that begins at or before the offset. */
static uint32_t line_index(const source_file *f, uint32_t offset)
{
    uint32_t low = 0, high = f->line_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (f->line_begins[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

source_place source_locate(const source_map *sources, int file, uint32_t offset)
{
    source_file *f = file_with_lines(sources, file);
    if (f == NULL)
        return (source_place){1, 1};
    if (offset > f->bytes)
        offset = f->bytes;
    uint32_t line = line_index(f, offset);
    uint32_t column = 1;
    /* Every byte but a UTF-8 continuation begins a character. */
    for (uint32_t i = f->line_begins[line]; i < offset; i++)
        column += ((unsigned char)f->text[i] & 0xc0) != 0x80;
    return (source_place){f->lines_before + line + 1, column};
}

uint32_t source_line_at(const source_map *sources, int file, uint32_t offset)
{
    const source_file *f = file_with_lines(sources, file);
    return f ? f->lines_before + line_index(f, offset < f->bytes ? offset : f->bytes) + 1 : 1;
}

source_line source_line_of(const source_map *sources, int file, uint32_t line)
{
    source_file *f = file_with_lines(sources, file);
    if (f == NULL || line <= f->lines_before || line - f->lines_before > f->line_count)
        return (source_line){"", 0, 0};
    line -= f->lines_before;
    uint32_t begin = f->line_begins[line - 1];
    uint32_t end = line < f->line_count ? f->line_begins[line] - 1 : f->bytes;
    if (end > begin && f->text[end - 1] == '\r')
        end--;
    return (source_line){f->text + begin, end - begin, begin};
}

uint32_t source_line_count(const source_map *sources, int file)
{
    source_file *f = file_with_lines(sources, file);
    return f != NULL ? f->lines_before + f->line_count : 0;
}

uint32_t source_offset(const source_map *sources, int file, uint32_t offset)
{
    const source_file *f = file_of(sources, file);
    return f != NULL ? f->bytes_before + offset : offset;
}
