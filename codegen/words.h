/* The 64-bit little-endian words that every section of the binary is made of.
 *
 * The one idea: a section is read through a cursor that knows its name and never passes its end, so that
 * every fault is reported once, with section and byte offset, and no reader checks bounds by hand. Strings
 * stand in one area at the section's end; a string is named by its byte offset in that area. */
#ifndef VISA_CODEGEN_WORDS_H
#define VISA_CODEGEN_WORDS_H

#include "support/arena.h"
#include "support/diag.h"

typedef struct word_reader {
    const uint64_t *words;
    size_t count, at;    /* words */
    const char *section; /* for diagnostics */
    diag_list *diags;
    bool failed; /* sticky: after a fault every read gives 0 */
    const char *strings;
    size_t string_bytes;
} word_reader;

void word_reader_init(word_reader *r, const uint64_t *words, size_t count, const char *section, diag_list *diags);
/* Reports a fault at word `at` (the first fault only) and fails the reader. Always returns false. */
bool word_reader_fault(word_reader *r, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t word_reader_next(word_reader *r);
/* Bits low_bit .. low_bit+width-1 of a word (width 1..64). */
static inline uint64_t word_bits(uint64_t word, unsigned low_bit, unsigned width)
{
    return word >> low_bit & (width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1);
}
/* Takes the string area, `bytes` bytes long, off the section's end. The words are copied into the arena. */
bool word_reader_take_strings(word_reader *r, uint64_t bytes, arena *a);
/* The name at byte `offset` of the string area: 1 to WORD_NAME_MAX_BYTES printable ASCII characters (many
 * records may share one string, so its length bounds the work). NULL after a fault. */
const char *word_reader_name(word_reader *r, uint64_t offset);
/* The same without a limit of the length, for what is read once in a section. */
const char *word_reader_text(word_reader *r, uint64_t offset);
/* False, with a fault, when fewer than `items` items of `words_each` words are left. */
bool word_reader_has(word_reader *r, uint64_t items, size_t words_each, const char *what);
/* Faults when a word is left over. */
bool word_reader_end(word_reader *r);

typedef struct word_writer {
    arena *arena;
    uint64_t *words;
    size_t count, capacity;
    char *strings;
    size_t string_bytes, string_capacity;
    bool failed; /* sticky: a text that no reader accepts */
} word_writer;

void word_writer_init(word_writer *w, arena *a);
void word_writer_put(word_writer *w, uint64_t word);
/* Adds a text to the string area and returns its offset. */
uint64_t word_writer_string(word_writer *w, const char *text);
/* Appends the string area, padded with zero bytes to a whole word. */
void word_writer_finish(word_writer *w);

enum { WORD_NAME_MAX_BYTES = 1024 };

/* Not empty, nothing but printable ASCII, at most `most` bytes. */
bool word_text_is_plain(const char *text, size_t most);

/* Words from and to the little-endian bytes of a file. */
uint64_t *words_from_bytes(const unsigned char *bytes, size_t word_count, arena *a);
void words_to_bytes(const uint64_t *words, size_t word_count, unsigned char *bytes);

#endif
