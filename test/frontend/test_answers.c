/* Every question of an editor about a document that costs too much is answered in time, or given up with a message.
 *
 * The one idea: what is asserted is work, which is the same everywhere: with so many steps and no clock, no answer takes more of them.
 * Then, with the clock of a user's server, the processor's time for an answer and for what the server does before it can begin with one:
 * together 200 ms. VISA_SHOW=1 prints them. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lsp/server.h"
#include "support/budget.h"
#include "test/suite.h"

enum { GAVE_UP = -32803, ANSWER_NANOSECONDS = 200000000 };
static const char URI[] = "file:///nowhere/answers.vm";

/* ---- documents ---- */

#define HEAD "axes![A = 32, B = 2];\n"
#define KERNEL "#[device(chip = 1)]\nfn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![A]>) -> HbmTensor<bf16, m![1], m![A]> {\n"
#define END "\n    a.to_hbm(&mut ctx.tdma, 1 << 20)\n}\n"
#define TILES "Stream<Tile<bf16, 16, 64>, {[4]}>"

/* `item` so many times, each %d the number of its turn. */
static const struct {
    const char *name, *before, *item;
    unsigned count;
    const char *after;
} documents_made[] = {
    {"variables", HEAD KERNEL, "let x%d = %d;\n", 20000, END},
    {"axes in a list", "axes![", "A%d = 2, ", 20000, "A = 32];\n" KERNEL END},
    {"axes", HEAD, "axes![A%d = 2];\n", 20000, KERNEL END},
    {"constants", HEAD, "const C%d: usize = %d;\n", 20000, KERNEL END},
    {"aliases", HEAD, "type T%d = m![A, B];\n", 20000, KERNEL END},
    {"functions", HEAD, "fn f%d() -> usize { %d }\n", 20000, KERNEL END},
    {"modules", HEAD, "mod m%d { const C: usize = %d; }\n", 20000, KERNEL END},
    {"a line that is not ASCII", HEAD KERNEL "/* \xc3\xa4 */ ", "let x%d = %d; ", 20000, END},
    {"errors in a line that is not ASCII", HEAD KERNEL "/* \xc3\xa4 */ ", "let x%d = a%d; ", 20000, END},
    {"names with a typo", HEAD KERNEL, "let x%d = 1; let y%d = xx%d;\n", 5000, END},
    {"typos in a line", HEAD KERNEL "let abcd = 1;", "abce; ", 20000, END},
    {"tensors that are not used", HEAD KERNEL, "a.view();\n", 20000, END},
    {"brackets", HEAD, "(", 1000000, "\n"},
    {"quotes", HEAD, "\"", 1000000, "\n"},
    {"a comment", HEAD KERNEL "/*", "\xc3\xa4", 500000, "*/" END},
    {"numbers in a mapping", HEAD "type T = m![", "1, ", 100000, "A];\n" KERNEL END},
    {"padding of padding", HEAD "type T = m![A", " # 64", 200, "];\n" KERNEL END},
    {"methods", HEAD KERNEL "let x = a", ".view()", 200, ";" END},
    {"a name of a megabyte", HEAD KERNEL "let ", "x", 1000000, " = 1;" END},
    {"lines", HEAD, "\n", 1000000, KERNEL END},
    {"statements in a line", HEAD KERNEL, "let x = f(1,2,3,g(4,5));", 50000, END},
    {"a list", HEAD KERNEL "let x = [", "1,", 500000, "];" END},
    {"a loop in a loop", HEAD KERNEL "for i in 0..100000 { for j in 0..100000 { ", "let x%d = i + j; ", 1, "} }" END},
    {"views in a loop", HEAD KERNEL "for i in 0..100000 { for j in 0..100000 { ", "let x%d = a.view(); ", 1, "} }" END},
    {"lists of lists", HEAD KERNEL "let mut v = [1];\nfor i in 0..100000 { ", "v = [v, v]; ", 1, "}" END},
    {"calls", HEAD "fn f0() -> usize { 1 }\n", "fn f%d() -> usize { f%e() + f%e() }\n", 40, KERNEL "let x = f40();" END},
    {"stream calls", "#[stream]\nfn f0(x: " TILES ") -> " TILES " { x }\n",
     "#[stream]\nfn f%d(x: " TILES ") -> " TILES " { f%e(x); f%e(x) }\n", 40,
     "#[stream]\nfn p(x: " TILES ") -> " TILES " {\n    f40(x)\n}\n"},
    {"stream loops", "#[stream]\nfn p(x: " TILES ") -> " TILES " {\n    for i in 0..100000 { for j in 0..100000 { ", "let z%d = i + j; ", 1,
     "} }\n    x.map(silu)\n}\n"},
    {"imports of imports", HEAD "mod a { pub mod b { type T = m![A]; } }\n", "use a::b::T as T%d;\n", 2000, KERNEL END},
};
enum { DOCUMENTS = sizeof documents_made / sizeof *documents_made };

/* %d: the turn, from 1; %e: the one before. malloc. */
static char *document_made(size_t row)
{
    size_t item = strlen(documents_made[row].item), count = documents_made[row].count;
    char *text = malloc(strlen(documents_made[row].before) + strlen(documents_made[row].after) + count * (item + 32) + 1);
    char *end = stpcpy(text, documents_made[row].before);
    for (unsigned i = 1; i <= count; i++)
        for (const char *p = documents_made[row].item; *p; p++)
            if (p[0] == '%')
                end += sprintf(end, "%u", *++p == 'd' ? i : i - 1);
            else
                *end++ = *p;
    stpcpy(end, documents_made[row].after);
    return text;
}

/* ---- a server, and what each of its answers took ---- */

typedef struct client {
    server *server;
    uint64_t began, longest; /* nanoseconds: of the piece of work under way, and the longest that was */
    uint64_t answered;       /* when; nanoseconds */
    uint64_t steps;          /* of the answer */
    json_t *answer;          /* the last one with an id */
    bool asks;               /* another question is waiting, from here on */
} client;

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void piece_ends(client *c)
{
    uint64_t now = nanoseconds_now();
    if (now - c->began > c->longest)
        c->longest = now - c->began;
    c->began = now;
}

static bool receive(void *user, const char *bytes, size_t size)
{
    client *c = user;
    if (strncmp(bytes, "Content-Length", 14) == 0)
        return true;
    uint64_t now = nanoseconds_now();
    json_t *message = json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(message);
    if (json_object_get(message, "id")) {
        json_decref(c->answer);
        c->answer = json_incref(message);
        c->answered = now;
        c->steps = server_steps(c->server);
    }
    json_decref(message);
    c->began += nanoseconds_now() - now; /* the client's time is not the server's */
    return true;
}

static bool is_asked(void *user)
{
    client *c = user;
    piece_ends(c);
    return c->asks;
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

/* Messages that came together; they are freed. The nanoseconds up to the answer, which is in c->answer. */
static uint64_t feed(client *c, char *messages)
{
    uint64_t from = nanoseconds_now();
    json_decref(c->answer);
    c->answer = NULL;
    c->answered = c->began = from;
    ck_assert(server_feed(c->server, messages, strlen(messages)));
    piece_ends(c);
    free(messages);
    return c->answered - from;
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

static const char *const methods[] = {
    "textDocument/hover",          "textDocument/definition",          "textDocument/completion", "textDocument/formatting",
    "textDocument/documentSymbol", "textDocument/codeAction",          "textDocument/references", "textDocument/prepareRename",
    "textDocument/foldingRange",   "textDocument/semanticTokens/full", "textDocument/inlayHint",  "textDocument/signatureHelp"};
enum { METHODS = sizeof methods / sizeof *methods, PLACES = 3 };
static const bool takes_place[METHODS] = {true, true, true, false, false, true, true, true, false, false, false, false};

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
    return json_pack("{s:{s:s}, s:o, s:{s:o, s:o}, s:{}, s:{s:[]}}", "textDocument", "uri", URI, "position", position(p), "range", "start",
                     position((place){0, 0}), "end", position(last), "options", "context", "diagnostics");
}

static void open_document(client *c, const char *text)
{
    char *messages = NULL;
    put_notification(&messages, "textDocument/didOpen",
                     json_pack("{s:{s:s, s:s, s:i, s:s}}", "textDocument", "uri", URI, "languageId", "vm", "version", 1, "text", text));
    feed(c, messages);
}

static bool is_right(const json_t *response)
{
    json_t *error = json_object_get(response, "error");
    return json_object_get(response, "result") || json_integer_value(json_object_get(error, "code")) == GAVE_UP;
}

typedef struct asked {
    uint64_t nanoseconds;
    const char *method;
    uint64_t most_steps; /* of any of them */
} asked;

/* Every question at every place, about a text that is known and about one that has just been changed. The dearest. */
static asked ask_all(client *c, const char *text)
{
    place places[PLACES];
    asked dearest = {0};
    places_in(text, places);
    for (size_t m = 0; m < METHODS; m++)
        for (size_t p = 0; p < (takes_place[m] ? PLACES : 1); p++)
            for (int fresh = 0; fresh < 2; fresh++) {
                char *messages = NULL;
                if (fresh)
                    put_notification(&messages, "textDocument/didSave", json_pack("{s:{s:s}}", "textDocument", "uri", URI));
                put_request(&messages, methods[m], parameters(places[p], places[1]));
                uint64_t took = feed(c, messages);
                ck_assert_msg(c->answer && is_right(c->answer), "%s", methods[m]);
                if (c->steps > dearest.most_steps)
                    dearest.most_steps = c->steps;
                if (took > dearest.nanoseconds) {
                    dearest.nanoseconds = took;
                    dearest.method = methods[m];
                }
            }
    return dearest;
}

/* ---- what is asserted ---- */

/* What is over is the piece during which it was noticed: at most the text, written once. */
START_TEST(work_is_bounded)
{
    enum { STEPS = 1000000 };
    client c;
    char *text = document_made((size_t)_i);
    start(&c, &(answer_limits){.max_steps = STEPS}, _i % 2 ? "utf-8" : "utf-16");
    open_document(&c, text);
    asked dearest = ask_all(&c, text);
    ck_assert_msg(dearest.most_steps <= STEPS + strlen(text), "%s: %llu steps", documents_made[_i].name,
                  (unsigned long long)dearest.most_steps);
    end(&c);
    free(text);
}
END_TEST

/* A server may be in the midst of judging a change when it is asked: that is over first. A processor that is shared is slower now and then:
 * of several tries the best counts. */
START_TEST(time_is_bounded)
{
    enum { TRIES = 4 };
    char *text = document_made((size_t)_i);
    uint64_t best = UINT64_MAX, before = 0;
    asked dearest = {0};
    for (int i = 0; i < TRIES && best > ANSWER_NANOSECONDS * (uint64_t)SLOWER; i++) {
        client c;
        start(&c, &(answer_limits){.max_milliseconds = EDITOR_MILLISECONDS}, "utf-16");
        open_document(&c, text);
        before = c.longest;
        dearest = ask_all(&c, text);
        best = before + dearest.nanoseconds < best ? before + dearest.nanoseconds : best;
        end(&c);
    }
    if (getenv("VISA_SHOW"))
        printf("%-36s %6.1f ms + %6.1f ms %s\n", documents_made[_i].name, (double)before / 1e6, (double)dearest.nanoseconds / 1e6,
               dearest.method);
    ck_assert_msg(best <= ANSWER_NANOSECONDS * (uint64_t)SLOWER, "%s: %llu ms, %s", documents_made[_i].name,
                  (unsigned long long)best / 1000000, dearest.method);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("answers");
    TCase *t = suite_case("answers");
    tcase_add_loop_test(t, work_is_bounded, 0, DOCUMENTS);
    tcase_add_loop_test(t, time_is_bounded, 0, DOCUMENTS);
    suite_add_tcase(s, t);
    return suite_status(s);
}
