/* Memory of one compilation or one loaded binary.
 *
 * The one idea: everything that a compilation makes lives exactly as long as the compilation, so it is
 * carved from one arena and freed at once; what is made over and over again is forgotten back to a mark.
 * An arena never returns NULL: when the system has no memory left
 * it unwinds to the jump buffer that the owner armed (arena_guard), so that no caller checks an
 * allocation, and no tool dies without a word. What a compilation may spend ends the same way (support/budget.h). */
#ifndef VISA_SUPPORT_ARENA_H
#define VISA_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct arena arena;

/* Returns NULL only when the first block cannot be had. */
arena *arena_new(void);
void arena_free(arena *a);

/* An arena for what is dead before the rest is: its blocks come from `outer` and go back there when it is freed, at the latest with
 * `outer`. Where it runs out of memory, `outer` has. NULL never. `outer` is not rewound after the call while it is in use. */
arena *arena_new_inside(arena *outer);

/* What is in `inner`, which ends here and is no arena inside, lives as long as `outer`: a thread's results are handed over without a copy.
 * The account of `outer` has what was spent. Nothing may be in use inside `inner`. */
void arena_join(arena *outer, arena *inner);

/* Arms the out-of-memory exit: `if (setjmp(*arena_guard(a))) { ...out of memory... }`. Without a guard
 * an exhausted arena aborts. */
jmp_buf *arena_guard(arena *a);

/* The account of the outermost arena: what was spent in it and in those inside. */
struct budget *arena_budget(arena *a);

/* A point to go back to. arena_rewind forgets everything that was allocated after it and keeps the memory for what
 * comes next, so that work that is repeated asks the system for memory once. Marks are used like brackets: one that was taken
 * after the point rewound to is void. */
typedef struct arena_mark {
    void *block;
    size_t used;
} arena_mark;
arena_mark arena_mark_here(const arena *a);
void arena_rewind(arena *a, arena_mark mark);
/* Bytes that were allocated after a mark. */
size_t arena_used_since(const arena *a, arena_mark mark);

/* What is handed out is aligned for pointers and 64-bit numbers, no further: most of it is small, and a tree node of 56 bytes would
 * take 64. */
enum { ARENA_ALIGNMENT = 8 };
#define ARENA_ALIGNED(type) \
    ((void)sizeof(struct { \
        _Static_assert(_Alignof(type) <= ARENA_ALIGNMENT, "the arena aligns less"); \
        int unused; \
    }))
/* Zeroed storage of `bytes` bytes. */
void *arena_alloc(arena *a, size_t bytes);
/* The same with any bytes in it: for what its owner writes before it is read. */
void *arena_alloc_unset(arena *a, size_t bytes);
/* Zeroed array; a size product that overflows counts as out of memory. */
void *arena_array(arena *a, size_t count, size_t bytes_each);
char *arena_strdup(arena *a, const char *text);
char *arena_strndup(arena *a, const char *text, size_t bytes);
char *arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* So many of what `one` is: "1 byte", "2 bytes", "3 entries". */
const char *arena_count(arena *a, int64_t count, const char *one);
char *arena_vprintf(arena *a, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* Storage for `new_count` elements, the first `old_count` of them copied from the array; the others hold anything. */
void *arena_grow(arena *a, void *array, size_t old_count, size_t new_count, size_t bytes_each);

#define ARENA_NEW(a, type) (ARENA_ALIGNED(type), (type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) (ARENA_ALIGNED(type), (type *)arena_array((a), (count), sizeof(type)))

/* Appends to a growing array that lives in an arena: `items`, `count` and `capacity` are lvalues. */
#define ARENA_PUSH(a, items, count, capacity, value) \
    do { \
        ARENA_ALIGNED(__typeof__(*(items))); \
        if ((count) == (capacity)) { \
            size_t arena_push_cap = (capacity) ? 2 * (size_t)(capacity) : sizeof *(items) > 256 ? 1 : 8; \
            (items) = arena_grow((a), (items), (count), arena_push_cap, sizeof *(items)); \
            (capacity) = arena_push_cap; \
        } \
        (items)[(count)++] = (value); \
    } while (0)

#endif
