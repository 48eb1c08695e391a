/* A block of a documentation page that a program writes: compared, or with --update written anew. */
#ifndef VISA_TEST_PAGE_BLOCK_H
#define VISA_TEST_PAGE_BLOCK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/output.h"
#include "support/strbuf.h"

typedef struct page_block {
    const char *program, *begin_mark;
    void (*put)(strbuf *s); /* what is between the marks */
} page_block;

static const char page_end_mark[] = "<!-- end of the generated block -->\n";

static int print_faults(const page_block *p, const diag_list *diags)
{
    for (size_t i = 0; i < diags->count; i++)
        fprintf(stderr, "%s: %s\n", p->program, diags->items[i]->message);
    return EXIT_FAILURE;
}

static const char *page_block_text(const page_block *p, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s\n", p->begin_mark);
    p->put(&s);
    strbuf_puts(&s, page_end_mark);
    return s.text;
}

static int page_block_run(const page_block *p, const char *path, int update, arena *a)
{
    diag_list diags;
    size_t size;
    diag_list_init(&diags, a);
    unsigned char *bytes = file_read_all(path, &size, &diags);
    if (!bytes)
        return print_faults(p, &diags);
    char *page = arena_strndup(a, (const char *)bytes, size);
    free(bytes);
    char *begin = strstr(page, p->begin_mark), *end = begin ? strstr(begin, page_end_mark) : NULL;
    if (!end) {
        fprintf(stderr, "%s: %s has no marked block\n", p->program, path);
        return EXIT_FAILURE;
    }
    end += strlen(page_end_mark);
    const char *wanted = page_block_text(p, a);
    if ((size_t)(end - begin) == strlen(wanted) && memcmp(begin, wanted, strlen(wanted)) == 0)
        return EXIT_SUCCESS;
    if (!update) {
        fprintf(stderr, "%s: the tables of %s are out of date; run it with --update\n", p->program, path);
        return EXIT_FAILURE;
    }
    const char *whole = arena_printf(a, "%.*s%s%s", (int)(begin - page), page, wanted, end);
    return output_write(path, whole, strlen(whole), &diags) ? EXIT_SUCCESS : print_faults(p, &diags);
}

static int page_block_main(const page_block *p, int argc, char **argv)
{
    int update = argc == 3 && strcmp(argv[1], "--update") == 0;
    if (argc != 2 + update) {
        fprintf(stderr, "usage: %s [--update] PAGE\n", p->program);
        return 2;
    }
    arena *a = arena_new();
    int status = a ? page_block_run(p, argv[1 + update], update, a) : EXIT_FAILURE;
    arena_free(a);
    return status;
}

/* A program of one block. */
#define PAGE_BLOCK_PROGRAM(name, mark, put_block) \
    int main(int argc, char **argv) \
    { \
        static const page_block page = {(name), (mark), (put_block)}; \
        return page_block_main(&page, argc, argv); \
    }

#endif
