/* Every question of an editor about a document that costs too much is answered, or given up with a message.
 *
 * The one idea: what is asserted is work, which is the same everywhere: with so many steps and no clock, no answer takes more of them. The
 * clock is looked at after every so many steps, so what bounds steps bounds time; what the time is on a machine is for bench/ to say
 * (`./visa bench editor`, the same documents). */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lsp/server.h"
#include "support/budget.h"
#include "test/suite.h"

enum { GAVE_UP = -32803 };
static const char URI[] = "file:///nowhere/answers.vm";

/* ---- documents ---- */

/* documents of answers.json: `item` so many times, each %d the number of its turn. */
typedef struct document_made {
    const char *name, *before, *item, *after;
    int count;
} document_made;

static json_t *methods_asked, *documents_made;

/* Long documents are so many times shorter here, and given so many times fewer steps: what takes more steps than it may does so either way.
 * With sanitizers even more, for whose sake they are asked there are accesses and not sums of steps. */
static int times_shorter(void)
{
    return suite_is_long() ? 1 : SLOWER > 1 ? 20 : 4;
}

/* False: there is no such row. The texts are those of `documents_made`. */
static bool document_row(size_t row, int shorter, document_made *d)
{
    enum { MANY = 2000 };
    if (json_unpack(json_array_get(documents_made, row), "{s:s, s:s, s:s, s:i, s:s}", "name", &d->name, "before", &d->before, "item",
                    &d->item, "count", &d->count, "after", &d->after) != 0)
        return false;
    if (d->count >= MANY)
        d->count /= shorter;
    return true;
}

/* %d: the turn, from 1; %e: the one before. malloc. */
static char *document_text(const document_made *d)
{
    char *text = malloc(strlen(d->before) + strlen(d->after) + (size_t)d->count * (strlen(d->item) + 32) + 1);
    char *end = stpcpy(text, d->before);
    for (int i = 1; i <= d->count; i++)
        for (const char *p = d->item; *p; p++)
            if (p[0] == '%')
                end += sprintf(end, "%d", *++p == 'd' ? i : i - 1);
            else
                *end++ = *p;
    stpcpy(end, d->after);
    return text;
}

/* ---- a server, and what its last answer was ---- */

typedef struct client {
    server *server;
    uint64_t steps; /* of the answer */
    json_t *answer; /* the last one with an id */
} client;

static bool receive(void *user, const char *bytes, size_t size)
{
    client *c = user;
    if (strncmp(bytes, "Content-Length", 14) == 0)
        return true;
    json_t *message = json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(message);
    if (json_object_get(message, "id")) {
        json_decref(c->answer);
        c->answer = json_incref(message);
        c->steps = server_steps(c->server);
    }
    json_decref(message);
    return true;
}

static bool is_asked(void *user)
{
    (void)user;
    return false;
}

static void put_message(char **out, json_t *message)
{
    char *body = json_dumps(message, JSON_COMPACT);
    size_t had = *out ? strlen(*out) : 0, bytes = strlen(body);
    json_decref(message);
    *out = realloc(*out, had + bytes + 64);
    sprintf(*out + had, "Content-Length: %zu\r\n\r\n%s", bytes, body);
    free(body);
}

static void put_notification(char **out, const char *method, json_t *params)
{
    put_message(out, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

static void put_request(char **out, const char *method, json_t *params)
{
    put_message(out, json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method", method, "params", params));
}

/* Messages that came together; they are freed. The answer is in c->answer. */
static void feed(client *c, char *messages)
{
    json_decref(c->answer);
    c->answer = NULL;
    ck_assert(server_feed(c->server, messages, strlen(messages)));
    free(messages);
}

static void start(client *c, const answer_limits *limits, const char *encoding)
{
    char *messages = NULL;
    *c = (client){0};
    c->server = server_new(&(server_ends){receive, is_asked, c}, limits);
    ck_assert_ptr_nonnull(c->server);
    put_request(&messages, "initialize", json_pack("{s:{s:{s:[s]}}}", "capabilities", "general", "positionEncodings", encoding));
    feed(c, messages);
}

static void end(client *c)
{
    json_decref(c->answer);
    server_free(c->server);
}

/* ---- questions ---- */

enum { PLACES = 3 };

typedef struct place {
    unsigned line, column;
} place;

/* The beginning, the end, and the middle of the longest line. */
static void places_in(const char *text, place out[PLACES])
{
    unsigned lines = 0, longest = 0, length = 0;
    for (const char *at = text; *at; lines++) {
        unsigned bytes = (unsigned)strcspn(at, "\n");
        if (bytes > length) {
            length = bytes;
            longest = lines;
        }
        at += bytes + (at[bytes] == '\n');
    }
    out[0] = (place){0, 3};
    out[1] = (place){lines > 2 ? lines - 2 : 0, 5};
    out[2] = (place){longest, length / 2};
}

static json_t *position(place p)
{
    return json_pack("{s:i, s:i}", "line", (int)p.line, "character", (int)p.column);
}

static json_t *parameters(place p, place last)
{
    return json_pack("{s:{s:s}, s:o, s:s, s:{s:o, s:o}, s:{}, s:{s:[]}}", "textDocument", "uri", URI, "position", position(p), "newName",
                     "renamed", "range", "start", position((place){0, 0}), "end", position(last), "options", "context", "diagnostics");
}

static void open_document(client *c, const char *text)
{
    char *messages = NULL;
    put_notification(&messages, "textDocument/didOpen",
                     json_pack("{s:{s:s, s:s, s:i, s:s}}", "textDocument", "uri", URI, "languageId", "vm", "version", 1, "text", text));
    feed(c, messages);
}

static bool gave_up(const json_t *response)
{
    return json_integer_value(json_object_get(json_object_get(response, "error"), "code")) == GAVE_UP;
}

typedef struct asked {
    uint64_t most_steps; /* of any of them */
    unsigned given_up;
} asked;

/* Every question at every place about a text that is known, and at the first one about a text that has just been changed: what is read
 * anew is the same wherever is asked. */
static asked ask_all(client *c, const char *text)
{
    place places[PLACES];
    asked all = {0};
    places_in(text, places);
    size_t m;
    json_t *row;
    json_array_foreach(methods_asked, m, row)
    {
        char method[64];
        snprintf(method, sizeof method, "textDocument/%s", json_string_value(json_object_get(row, "method")));
        for (size_t p = 0; p < (json_is_true(json_object_get(row, "at")) ? PLACES : 1); p++)
            for (int fresh = 0; fresh < (p == 0 ? 2 : 1); fresh++) {
                char *messages = NULL;
                if (fresh)
                    put_notification(&messages, "textDocument/didSave", json_pack("{s:{s:s}}", "textDocument", "uri", URI));
                put_request(&messages, method, parameters(places[p], places[1]));
                feed(c, messages);
                ck_assert_msg(c->answer && (json_object_get(c->answer, "result") || gave_up(c->answer)), "%s", method);
                all.most_steps = c->steps > all.most_steps ? c->steps : all.most_steps;
                all.given_up += gave_up(c->answer);
            }
    }
    return all;
}

static asked ask_about(const document_made *d, const answer_limits *limits, const char *encoding, size_t *bytes)
{
    client c;
    char *text = document_text(d);
    *bytes = strlen(text);
    start(&c, limits, encoding);
    open_document(&c, text);
    asked all = ask_all(&c, text);
    end(&c);
    free(text);
    return all;
}

/* ---- what is asserted ---- */

/* What is over is the piece during which it was noticed: at most the text, written once. */
START_TEST(work_is_bounded)
{
    const uint64_t steps = 200000 / (uint64_t)times_shorter();
    document_made d;
    size_t bytes;
    ck_assert(document_row((size_t)_i, times_shorter(), &d));
    asked all = ask_about(&d, &(answer_limits){.max_steps = steps}, _i % 2 ? "utf-8" : "utf-16", &bytes);
    ck_assert_msg(all.most_steps <= steps + bytes, "%s: %llu steps", d.name, (unsigned long long)all.most_steps);
}
END_TEST

/* The clock ends what steps do not: no processor reads a million brackets in a millisecond. */
START_TEST(time_is_looked_at)
{
    document_made d;
    size_t bytes, row = 0;
    if (SLOWER > 1 && !suite_is_long()) /* time, in the build that users have */
        return;
    while (document_row(row, 1, &d) && strcmp(d.name, "brackets") != 0)
        row++;
    ck_assert(document_row(row, 1, &d));
    ck_assert_uint_gt(ask_about(&d, &(answer_limits){.max_milliseconds = 1}, "utf-16", &bytes).given_up, 0);
    ck_assert_uint_eq(ask_about(&d, &(answer_limits){0}, "utf-16", &bytes).given_up, 0);
}
END_TEST

int main(void)
{
    const char *source = getenv("VISA_SOURCE");
    char path[4096];
    snprintf(path, sizeof path, "%s/test/frontend/answers.json", source ? source : ".");
    json_t *questions = json_load_file(path, 0, NULL);
    methods_asked = json_object_get(questions, "methods");
    documents_made = json_object_get(questions, "documents");
    if (!methods_asked || !documents_made) {
        fprintf(stderr, "%s cannot be read\n", path);
        return EXIT_FAILURE;
    }
    TCase *t = suite_case("answers");
    tcase_add_loop_test(t, work_is_bounded, 0, (int)json_array_size(documents_made));
    suite_tests(t, time_is_looked_at);
    int status = suite_status("answers", t);
    json_decref(questions);
    return status;
}
