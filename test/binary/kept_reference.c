/* A reference generator that keeps what the real one made: who judges thousands of changes of a binary's commands, which all have one
 * mathematics, compiles that once.
 *
 * The one idea: it is another library by the same C ABI, which VISA_REFERENCE names, so that the programs are the users' own.
 * KEPT_REFERENCE_OF names the real one. An einsum is known again by the words that a binary has of it, its axes and the forms that were
 * asked for; what differs in any of these is compiled anew. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/einsum.h"
#include "codegen/reference/reference.h"
#include "support/arena.h"

typedef struct kept {
    unsigned char *key;
    size_t key_bytes;
    reference_kernel *kernel;
    size_t users; /* that have not released it yet */
} kept;

enum { MOST_KEPT = 64 };

static const reference_api *real;
static kept all[MOST_KEPT];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(arena *a, unsigned char **key, size_t *bytes, const void *data, size_t size)
{
    unsigned char *grown = arena_alloc(a, *bytes + size + 1);
    if (*bytes)
        memcpy(grown, *key, *bytes);
    memcpy(grown + *bytes, data, size);
    *key = grown;
    *bytes += size;
}

/* NULL: it has no key, and is not kept. */
static unsigned char *key_of(const einsum *e, unsigned forms, arena *a, size_t *bytes)
{
    uint64_t *words;
    size_t word_count;
    unsigned char *key = NULL;
    if (!einsum_encode(e, a, &words, &word_count))
        return NULL;
    put(a, &key, bytes, &forms, sizeof forms);
    put(a, &key, bytes, words, word_count * sizeof *words);
    for (uint32_t i = 0; i < e->axis_count; i++) {
        put(a, &key, bytes, &e->axes[i].size, sizeof e->axes[i].size);
        put(a, &key, bytes, e->axes[i].name, strlen(e->axes[i].name) + 1);
    }
    return key;
}

static kept *find(const unsigned char *key, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].key_bytes == bytes && memcmp(all[i].key, key, bytes) == 0)
            return &all[i];
    return NULL;
}

/* A place for one more: a new one, or that of one without users, which `next` finds by turns; NULL: there is none. */
static kept *place_new(void)
{
    static size_t next;
    if (count < MOST_KEPT)
        return &all[count++];
    for (size_t i = 0; i < MOST_KEPT; i++) {
        kept *k = &all[next++ % MOST_KEPT];
        if (k->users > 0)
            continue;
        real->release(k->kernel);
        free(k->key);
        return k;
    }
    return NULL;
}

static void keep(const unsigned char *key, size_t bytes, reference_kernel *kernel)
{
    unsigned char *copy = malloc(bytes);
    kept *k = copy ? place_new() : NULL;
    if (!k) {
        free(copy);
        return;
    }
    memcpy(copy, key, bytes);
    *k = (kept){copy, bytes, kernel, 1};
}

static char *build_kept(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_kernel **out)
{
    arena *a = arena_new();
    if (!a || setjmp(*arena_guard(a))) {
        arena_free(a);
        return real->build(e, name, forms, cpu, out);
    }
    size_t bytes = 0;
    const unsigned char *key = key_of(e, forms, a, &bytes);
    char *fault = NULL;
    pthread_mutex_lock(&lock);
    kept *known = key ? find(key, bytes) : NULL;
    if (known) {
        known->users++;
        *out = known->kernel;
    } else if (!(fault = real->build(e, name, forms, cpu, out)) && key) {
        keep(key, bytes, *out);
    }
    pthread_mutex_unlock(&lock);
    arena_free(a);
    return fault;
}

static void release_kept(reference_kernel *k)
{
    bool is_kept = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !is_kept; i++) {
        is_kept = all[i].kernel == k;
        all[i].users -= is_kept;
    }
    pthread_mutex_unlock(&lock);
    if (!is_kept)
        real->release(k);
}

__attribute__((visibility("default"))) const reference_api *visa_reference_api(int version)
{
    static reference_api api;
    const char *path = getenv("KEPT_REFERENCE_OF");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    reference_api_function *entry = NULL;
    if (library)
        *(void **)&entry = dlsym(library, "visa_reference_api");
    real = entry ? entry(version) : NULL;
    if (!real)
        return NULL;
    api = *real;
    api.build = build_kept;
    api.release = release_kept;
    return &api;
}
