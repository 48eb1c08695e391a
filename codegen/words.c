#include "codegen/words.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

void word_reader_init(word_reader *r, const uint64_t *words, size_t count, const char *section, diag_list *diags)
{
    *r = (word_reader){.words = words, .count = count, .section = section, .diags = diags};
}

bool word_reader_fault(word_reader *r, size_t at, const char *format, ...)
{
    if (r->failed)
        return false;
    r->failed = true;
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(r->diags->arena, format, args);
    va_end(args);
    diag_add(r->diags, E_BIN_FORMAT, SRC_NOWHERE, "section %s offset 0x%zx: %s", r->section, at * 8, text);
    return false;
}

uint64_t word_reader_next(word_reader *r)
{
    if (r->at >= r->count)
        word_reader_fault(r, r->at, "the section ends before its content does");
    return r->failed ? 0 : r->words[r->at++];
}

bool word_reader_take_strings(word_reader *r, uint64_t bytes, arena *a)
{
    if (r->failed)
        return false;
    uint64_t words = bytes / 8 + (bytes % 8 != 0);
    if (words > r->count - r->at)
        return word_reader_fault(r, r->at, "the string area of %" PRIu64 " bytes is longer than the section", bytes);
    r->count -= (size_t)words;
    unsigned char *area = arena_alloc(a, (size_t)words * 8 + 1);
    words_to_bytes(r->words + r->count, (size_t)words, area);
    for (uint64_t i = bytes; i < words * 8; i++)
        if (area[i])
            return word_reader_fault(r, r->count + i / 8, "a padding byte of the string area is not zero");
    if (bytes > 0 && (area[bytes - 1] || bytes == 1 || !area[bytes - 2]))
        return word_reader_fault(r, r->count + (size_t)words - 1, "the string area does not end with one zero byte");
    r->strings = (const char *)area;
    r->string_bytes = (size_t)bytes;
    return true;
}

bool word_text_is_plain(const char *text, size_t most)
{
    size_t bytes = 0;
    while (bytes <= most && text[bytes] >= 0x20 && text[bytes] <= 0x7e)
        bytes++;
    return bytes > 0 && bytes <= most && text[bytes] == '\0';
}

static const char *string_at(word_reader *r, uint64_t offset, size_t most)
{
    size_t at = r->at > 0 ? r->at - 1 : 0;
    if (r->failed)
        return NULL;
    if (offset >= r->string_bytes) {
        word_reader_fault(r, at, "string offset %" PRIu64 " is outside the string area of %zu bytes", offset, r->string_bytes);
        return NULL;
    }
    if (word_text_is_plain(r->strings + offset, most))
        return r->strings + offset;
    word_reader_fault(r, at, "the text at string offset %" PRIu64 " is empty, too long or not printable ASCII", offset);
    return NULL;
}

const char *word_reader_name(word_reader *r, uint64_t offset)
{
    return string_at(r, offset, WORD_NAME_MAX_BYTES);
}

const char *word_reader_text(word_reader *r, uint64_t offset)
{
    return string_at(r, offset, r->string_bytes);
}

bool word_reader_has(word_reader *r, uint64_t items, size_t words_each, const char *what)
{
    if (r->failed)
        return false;
    if (items > (r->count - r->at) / words_each)
        return word_reader_fault(r, r->at, "%" PRIu64 " %s do not fit into the %zu words that are left", items, what, r->count - r->at);
    return true;
}

bool word_reader_end(word_reader *r)
{
    if (!r->failed && r->at != r->count)
        word_reader_fault(r, r->at, "%zu words are left over", r->count - r->at);
    return !r->failed;
}

void word_writer_init(word_writer *w, arena *a)
{
    *w = (word_writer){.arena = a};
}

void word_writer_put(word_writer *w, uint64_t word)
{
    ARENA_PUSH(w->arena, w->words, w->count, w->capacity, word);
}

uint64_t word_writer_string(word_writer *w, const char *text)
{
    if (!text || !word_text_is_plain(text, UINT32_MAX)) {
        w->failed = true;
        return 0;
    }
    uint64_t offset = w->string_bytes;
    do
        ARENA_PUSH(w->arena, w->strings, w->string_bytes, w->string_capacity, *text);
    while (*text++);
    if (w->string_bytes > UINT32_MAX)
        w->failed = true;
    return offset;
}

void word_writer_finish(word_writer *w)
{
    size_t words = (w->string_bytes + 7) / 8;
    unsigned char *padded = arena_alloc(w->arena, words * 8 + 1);
    if (w->string_bytes)
        memcpy(padded, w->strings, w->string_bytes);
    const uint64_t *tail = words_from_bytes(padded, words, w->arena);
    for (size_t i = 0; i < words; i++)
        word_writer_put(w, tail[i]);
}

uint64_t *words_from_bytes(const unsigned char *bytes, size_t word_count, arena *a)
{
    uint64_t *words = ARENA_ARRAY(a, uint64_t, word_count);
    for (size_t i = 0; i < word_count; i++) {
        memcpy(&words[i], bytes + i * sizeof words[i], sizeof words[i]);
        words[i] = le64toh(words[i]);
    }
    return words;
}

void words_to_bytes(const uint64_t *words, size_t word_count, unsigned char *bytes)
{
    for (size_t i = 0; i < word_count; i++) {
        uint64_t word = htole64(words[i]);
        memcpy(bytes + i * sizeof word, &word, sizeof word);
    }
}
