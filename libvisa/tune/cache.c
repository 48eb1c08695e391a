#include "libvisa/tune/cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/file.h"
#include "support/order.h"
#include "support/output.h"
#include "support/sha256.h"

enum { DIGEST = 64, PLACE_DIGITS = 3, MOST_BYTES = 1 << 20, FOLDER_MODE = 0700 };

static int compare_sizes(const void *a, const void *b)
{
    return strcmp((*(const visa_parameter *const *)a)->name, (*(const visa_parameter *const *)b)->name);
}

/* What an answer depends on, in lines; of sizes the order does not count. */
static const char *key_of(const visa_tune_options *o, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s,
                  "visac %s, %s\nwork %" PRIu64 ", timing %s\ntypes %s, %s\nchips %" PRId64 ", clusters %" PRId64 ", slices %" PRId64
                  "\nfree %s\n",
                  VISA_VERSION, o->cache_build ? o->cache_build : "", o->work, o->timing ? o->timing : "", o->dtype ? o->dtype : "",
                  o->out_dtype ? o->out_dtype : "", o->chips, o->clusters, o->slices, o->free_tensors ? o->free_tensors : "");
    const visa_parameter **sizes = ARENA_ARRAY(a, const visa_parameter *, o->size_count + 1);
    for (size_t i = 0; i < o->size_count; i++)
        sizes[i] = &o->sizes[i];
    order_sort(sizes, o->size_count, sizeof *sizes, compare_sizes);
    for (size_t i = 0; i < o->size_count; i++)
        strbuf_printf(&s, "size %s %" PRId64 "\n", sizes[i]->name, sizes[i]->values[0]);
    strbuf_printf(&s, "question of %zu bytes\n%s\n", strlen(o->question), o->question);
    return s.text;
}

/* A file of the folder: "FOLDER/tune-1b4". */
static const char *path_of(const visa_tune_options *o, const char *key, arena *a)
{
    const char *digest = sha256_text((const unsigned char *)key, strlen(key), a);
    return arena_printf(a, "%s/tune-%.*s", o->cache, PLACE_DIGITS, digest);
}

static const char *digest_of(const char *key, const char *answer, size_t bytes, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, key);
    strbuf_append(&s, answer, bytes);
    return sha256_text((const unsigned char *)s.text, s.bytes, a);
}

bool tune_cache_find(const visa_tune_options *o, strbuf *out)
{
    if (!o->cache)
        return false;
    arena *a = arena_new_inside(out->arena);
    const char *key = key_of(o, a), *path = path_of(o, key, a);
    size_t size = 0, length = strlen(key);
    struct stat of;
    diag_list unsaid;
    diag_list_init(&unsaid, a);
    bool readable = stat(path, &of) == 0 && S_ISREG(of.st_mode) && of.st_size <= MOST_BYTES;
    unsigned char *bytes = readable ? file_read_all(path, &size, &unsaid) : NULL;
    const char *text = (const char *)bytes;
    bool found = bytes && size > DIGEST + length && memcmp(text + DIGEST, key, length) == 0;
    if (found) {
        const char *answer = text + DIGEST + length;
        size_t count = size - DIGEST - length;
        found = memcmp(text, digest_of(key, answer, count, a), DIGEST) == 0 && !memchr(answer, '\0', count);
        if (found)
            strbuf_append(out, answer, count);
    }
    free(bytes);
    arena_free(a);
    return found;
}

/* The folder, and the one that it is in. */
static void make_folders(const char *folder, arena *a)
{
    const char *slash = strrchr(folder, '/');
    if (mkdir(folder, FOLDER_MODE) == 0 || !slash || slash == folder)
        return;
    if (mkdir(arena_printf(a, "%.*s", (int)(slash - folder), folder), FOLDER_MODE) == 0)
        mkdir(folder, FOLDER_MODE);
}

void tune_cache_keep(const visa_tune_options *o, const strbuf *answer)
{
    if (!o->cache)
        return;
    arena *a = arena_new_inside(answer->arena);
    const char *key = key_of(o, a);
    diag_list unsaid;
    diag_list_init(&unsaid, a);
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s%s", digest_of(key, answer->text, answer->bytes, a), key);
    strbuf_append(&s, answer->text, answer->bytes);
    const char *path = path_of(o, key, a);
    struct stat of;
    make_folders(o->cache, a);
    if (s.bytes <= MOST_BYTES && (stat(path, &of) != 0 || S_ISREG(of.st_mode)))
        output_write(path, s.text, s.bytes, &unsaid);
    arena_free(a);
}
