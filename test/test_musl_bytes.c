/* tools/musl_bytes.c: what the C library says, of pieces of all lengths and places, up to the end of what may be read. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/suite.h"

/* A sanitizer forbids what is read behind the end, inside of a page. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#include <emmintrin.h>

void *own_memcpy(void *restrict to, const void *restrict from, size_t n);
void *own_memmove(void *to, const void *from, size_t n);
void *own_memset(void *to, int byte, size_t n);
int own_memcmp(const void *a, const void *b, size_t n);
void *own_memchr(const void *from, int byte, size_t n);
size_t own_strlen(const char *text);
int own_strcmp(const char *a, const char *b);

#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define memchr own_memchr
#define strlen own_strlen
#define strcmp own_strcmp
#include "tools/musl_bytes.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strcmp

enum { ROOM = 1024, LONGEST = 300 };

static unsigned state = 1;

static unsigned next_number(unsigned below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

/* Some bytes in front of a page that nobody may read, most of them alike. */
static unsigned char *at_the_end(size_t n)
{
    static unsigned char *end;
    if (!end) {
        unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(pages != MAP_FAILED && mprotect(pages + 2 * PAGE, PAGE, PROT_NONE) == 0);
        end = pages + 2 * PAGE;
    }
    unsigned char *p = end - n - (next_number(2) ? next_number(64) : 0);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(next_number(20) ? 1 : next_number(256));
    return p;
}

static size_t some_length(void)
{
    return next_number(next_number(4) ? 40 : LONGEST);
}

START_TEST(copies)
{
    unsigned char own[ROOM], theirs[ROOM];
    for (int round = 0; round < 100000; round++) {
        size_t n = some_length(), to = next_number(64), from = next_number(64);
        const unsigned char *p = at_the_end(n);
        for (size_t i = 0; i < ROOM; i++)
            own[i] = theirs[i] = (unsigned char)(i * 7 + (unsigned)round);
        switch (round % 3) {
        case 0:
            ck_assert_ptr_eq(own_memcpy(own + to, p, n), own + to);
            memcpy(theirs + to, p, n);
            break;
        case 1:
            ck_assert_ptr_eq(own_memmove(own + to, own + from, n), own + to);
            memmove(theirs + to, theirs + from, n);
            break;
        default:
            ck_assert_ptr_eq(own_memset(own + to, round, n), own + to);
            memset(theirs + to, round, n);
            break;
        }
        ck_assert_mem_eq(own, theirs, ROOM);
    }
}
END_TEST

START_TEST(comparisons)
{
    unsigned char room[ROOM];
    for (int round = 0; round < 100000; round++) {
        size_t n = some_length();
        unsigned char *p = at_the_end(n), *q = room + next_number(64);
        int byte = next_number(2) ? 1 : (int)next_number(256);
        ck_assert_ptr_eq(own_memchr(p, byte, n), memchr(p, byte, n));
        memcpy(q, p, n);
        if (n > 0 && next_number(3))
            q[next_number((unsigned)n)] ^= (unsigned char)next_number(4);
        ck_assert_int_eq(sign(own_memcmp(q, p, n)), sign(memcmp(q, p, n)));
        ck_assert_int_eq(sign(own_memcmp(p, q, n)), sign(memcmp(p, q, n)));
        if (n == 0)
            continue;
        p[n - 1] = q[n - 1] = 0;
        const char *text = (const char *)p, *other = (const char *)q;
        ck_assert_uint_eq(own_strlen(text), strlen(text));
        ck_assert_ptr_eq(own_memchr(p, 0, SIZE_MAX), p + strlen(text));
        ck_assert_int_eq(sign(own_strcmp(text, other)), sign(strcmp(text, other)));
        ck_assert_int_eq(sign(own_strcmp(other, text)), sign(strcmp(other, text)));
    }
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("musl_bytes");
    suite_tests(cases, copies, comparisons);
    return suite_status("musl_bytes", cases);
}
#else
int main(void)
{
    return EXIT_SUCCESS;
}
#endif
