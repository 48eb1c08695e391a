/* What musl has for size, for speed: a program that is linked with musl (cmake/dependencies.cmake) copies, clears and compares with these.
 *
 * The one idea: most pieces are a name, a node or a row of a few dozen bytes. musl copies and clears by `rep movsq` and `rep stosq`, which
 * cost 20 cycles before they begin, and compares byte by byte; here short pieces are two words that may overlap, and longer ones 16 bytes
 * at a time. Strings are read past their end only inside of a page. Compiled so that no loop becomes the call that it stands for. */
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t two __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));

enum { LINE = 16, PAGE = 4096 }; /* bytes */

static inline __m128i get(const unsigned char *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

static inline void put(unsigned char *to, __m128i bytes)
{
    _mm_storeu_si128((__m128i *)to, bytes);
}

/* Up to 16: everything is read before anything is written. */
static inline void copy_short(unsigned char *to, const unsigned char *from, size_t n)
{
    if (n >= 8) {
        uint64_t first = *(const eight *)from, last = *(const eight *)(from + n - 8);
        *(eight *)to = first;
        *(eight *)(to + n - 8) = last;
    } else if (n >= 4) {
        uint32_t first = *(const four *)from, last = *(const four *)(from + n - 4);
        *(four *)to = first;
        *(four *)(to + n - 4) = last;
    } else if (n >= 2) {
        uint16_t first = *(const two *)from, last = *(const two *)(from + n - 2);
        *(two *)to = first;
        *(two *)(to + n - 2) = last;
    } else if (n) {
        *to = *from;
    }
}

/* From the front; what it writes may lie over what it reads if that is further on. */
static inline void copy_up(unsigned char *to, const unsigned char *from, size_t n)
{
    __m128i last = get(from + n - LINE);
    size_t i = 0;
    for (; i + 2 * LINE < n; i += 2 * LINE) {
        __m128i a = get(from + i), b = get(from + i + LINE);
        put(to + i, a);
        put(to + i + LINE, b);
    }
    if (i + LINE < n)
        put(to + i, get(from + i));
    put(to + n - LINE, last);
}

static inline void copy_down(unsigned char *to, const unsigned char *from, size_t n)
{
    __m128i first = get(from);
    for (size_t i = n; i > LINE; i -= LINE)
        put(to + i - LINE, get(from + i - LINE));
    put(to, first);
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    if (n <= LINE)
        copy_short(to, from, n);
    else
        copy_up(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    if (n <= LINE)
        copy_short(to, from, n);
    else if ((uintptr_t)to - (uintptr_t)from >= n)
        copy_up(to, from, n);
    else
        copy_down(to, from, n);
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    unsigned char *p = to;
    if (n < LINE) {
        uint64_t all = (unsigned char)byte * UINT64_C(0x0101010101010101);
        if (n >= 8) {
            *(eight *)p = all;
            *(eight *)(p + n - 8) = all;
        } else if (n >= 4) {
            *(four *)p = (uint32_t)all;
            *(four *)(p + n - 4) = (uint32_t)all;
        } else if (n >= 2) {
            *(two *)p = (uint16_t)all;
            *(two *)(p + n - 2) = (uint16_t)all;
        } else if (n) {
            *p = (unsigned char)byte;
        }
        return to;
    }
    __m128i all = _mm_set1_epi8((char)byte);
    size_t i = 0;
    for (; i + 4 * LINE <= n; i += 4 * LINE) {
        put(p + i, all);
        put(p + i + LINE, all);
        put(p + i + 2 * LINE, all);
        put(p + i + 3 * LINE, all);
    }
    for (; i + LINE < n; i += LINE)
        put(p + i, all);
    put(p + n - LINE, all);
    return to;
}

static inline int order_of(uint64_t a, uint64_t b)
{
    a = __builtin_bswap64(a), b = __builtin_bswap64(b);
    return (a > b) - (a < b);
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    if (n >= LINE) {
        for (size_t i = 0;; i = i + 2 * LINE < n ? i + LINE : n - LINE) {
            unsigned differ = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(get(p + i), get(q + i))) ^ 0xffff;
            if (differ) {
                size_t at = i + (unsigned)__builtin_ctz(differ);
                return p[at] - q[at];
            }
            if (i == n - LINE)
                return 0;
        }
    }
    if (n >= 8) {
        int order = order_of(*(const eight *)p, *(const eight *)q);
        return order ? order : order_of(*(const eight *)(p + n - 8), *(const eight *)(q + n - 8));
    }
    if (n >= 4) {
        uint64_t first = (uint64_t) * (const four *)p | (uint64_t) * (const four *)(p + n - 4) << 32;
        uint64_t second = (uint64_t) * (const four *)q | (uint64_t) * (const four *)(q + n - 4) << 32;
        return order_of(first, second);
    }
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return p[i] - q[i];
    return 0;
}

/* Bit i: the byte i of the 16 is this one. */
static inline unsigned found_in(const unsigned char *line, __m128i byte)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128((const __m128i *)line), byte));
}

void *memchr(const void *from, int byte, size_t n)
{
    const unsigned char *p = from;
    size_t skipped = (uintptr_t)p % LINE;
    __m128i wanted = _mm_set1_epi8((char)byte);
    if (!n)
        return NULL;
    unsigned found = found_in(p - skipped, wanted) >> skipped;
    for (size_t i = 0, next = LINE - skipped;; i = next, next += LINE, found = found_in(p + i, wanted)) {
        if (found) {
            size_t at = i + (unsigned)__builtin_ctz(found);
            return at < n ? (void *)(p + at) : NULL;
        }
        if (next >= n)
            return NULL;
    }
}

size_t strlen(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t skipped = (uintptr_t)p % LINE;
    __m128i zero = _mm_setzero_si128();
    unsigned found = found_in(p - skipped, zero) >> skipped;
    if (found)
        return (unsigned)__builtin_ctz(found);
    for (size_t i = LINE - skipped;; i += LINE) {
        found = found_in(p + i, zero);
        if (found)
            return i + (unsigned)__builtin_ctz(found);
    }
}

static inline int is_inside_page(const unsigned char *p)
{
    return (uintptr_t)p % PAGE <= PAGE - LINE;
}

int strcmp(const char *a, const char *b)
{
    const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;
    if (*p != *q || !*p)
        return *p - *q;
    for (;; p++, q++) {
        while (is_inside_page(p) && is_inside_page(q)) {
            __m128i x = get(p), same = _mm_cmpeq_epi8(x, get(q));
            /* The first byte that differs, or ends both. */
            unsigned ends = (unsigned)_mm_movemask_epi8(_mm_andnot_si128(_mm_cmpeq_epi8(x, _mm_setzero_si128()), same)) ^ 0xffff;
            if (ends) {
                unsigned at = (unsigned)__builtin_ctz(ends);
                return p[at] - q[at];
            }
            p += LINE, q += LINE;
        }
        if (*p != *q || !*p)
            return *p - *q;
    }
}
