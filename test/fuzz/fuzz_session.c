/* libFuzzer: a whole session of an editor, in messages that are well formed, so that what is fuzzed lies
 * after the framing (fuzz_lsp has that). The first byte chooses UTF-8 or UTF-16; each line after it is a
 * message: a letter that says which, four characters that say where, and text.
 *
 * Every request has exactly one response with its id, and everything that the server writes is JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsp/server.h"
#include "test/fuzz/fuzz.h"

typedef struct session {
    server *server;
    json_int_t asked, answered;
} session;

/* Header and content come apart. */
static bool take(void *user, const char *bytes, size_t size)
{
    session *s = user;
    if (size > 0 && bytes[0] == 'C')
        return true;
    json_t *message = json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
    if (!message)
        abort();
    const json_t *id = json_object_get(message, "id");
    if (id) {
        s->answered++;
        if (json_integer_value(id) != s->asked || !json_object_get(message, "result") == !json_object_get(message, "error"))
            abort();
    }
    json_decref(message);
    return true;
}

static bool send(session *s, json_t *message)
{
    char *body = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!body)
        return true; /* no memory */
    char head[64];
    int bytes = snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", strlen(body));
    bool open = server_feed(s->server, head, (size_t)bytes) && server_feed(s->server, body, strlen(body));
    free(body);
    return open;
}

static bool tell(session *s, const char *method, json_t *params)
{
    return send(s, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

static bool ask(session *s, const char *method, json_t *params)
{
    bool open = send(s, json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", ++s->asked, "method", method, "params", params));
    if (s->answered != s->asked)
        abort();
    return open;
}

/* ---- parts of messages ---- */

/* The text after a message's letter and place; `|` stands for the end of a line. Bytes that are no UTF-8
 * become `?`. */
static json_t *text_of(const unsigned char *line, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (!text)
        return json_string("");
    for (size_t i = 0; i < bytes; i++)
        text[i] = line[i] == '|' ? '\n' : (char)line[i];
    json_t *string = json_stringn(text, bytes);
    for (size_t i = 0; !string && i < bytes; i++)
        text[i] = text[i] & 0x80 ? '?' : text[i];
    string = string ? string : json_stringn(text, bytes);
    free(text);
    return string;
}

static json_t *identifier(unsigned char which)
{
    static const char *const uris[] = {"untitled:a", "untitled:b", "file:///nowhere/%E2%82%AC.vm"};
    return json_pack("{s:s, s:i}", "uri", uris[which % 3], "version", which);
}

static json_t *position(const unsigned char *at)
{
    return json_pack("{s:i, s:i}", "line", at[0] - '0', "character", at[1] - '0');
}

static json_t *change(const unsigned char *at, json_t *text)
{
    return json_pack("{s:{s:o, s:o}, s:o}", "range", "start", position(at), "end", position(at + 2), "text", text);
}

static bool message(session *s, const unsigned char *line, size_t bytes)
{
    static const struct {
        unsigned char letter;
        const char *method;
    } questions[] = {{'h', "textDocument/hover"},      {'d', "textDocument/definition"},     {'c', "textDocument/completion"},
                     {'f', "textDocument/formatting"}, {'s', "textDocument/documentSymbol"}, {'u', "textDocument/unknown"},
                     {'n', "textDocument/references"}, {'m', "textDocument/prepareRename"},  {'g', "textDocument/foldingRange"}};
    enum { HEAD = 6 }; /* letter, document, four of a place */
    if (bytes < HEAD)
        return true;
    const unsigned char *at = line + 2;
    json_t *text = text_of(line + HEAD, bytes - HEAD), *of = identifier(line[1]);
    bool open = true;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (line[0] == questions[i].letter)
            open = ask(s, questions[i].method, json_pack("{s:O, s:o}", "textDocument", of, "position", position(at)));
    switch (line[0]) {
    case 'o':
        json_object_set(of, "text", text);
        open = tell(s, "textDocument/didOpen", json_pack("{s:O}", "textDocument", of));
        break;
    case 'e':
        open = tell(s, "textDocument/didChange",
                    json_pack("{s:O, s:[o]}", "textDocument", of, "contentChanges", change(at, json_incref(text))));
        break;
    case 'r':
        open = tell(s, "textDocument/didChange", json_pack("{s:O, s:[{s:O}]}", "textDocument", of, "contentChanges", "text", text));
        break;
    case 'x': open = tell(s, "textDocument/didClose", json_pack("{s:O}", "textDocument", of)); break;
    case 'w': open = tell(s, "textDocument/didSave", json_pack("{s:O}", "textDocument", of)); break;
    case 'a':
        open = ask(s, "textDocument/codeAction",
                   json_pack("{s:O, s:{s:o, s:o}, s:{s:[]}}", "textDocument", of, "range", "start", position(at), "end", position(at + 2),
                             "context", "diagnostics"));
        break;
    }
    json_decref(text);
    json_decref(of);
    return open;
}

int fuzz_session(const unsigned char *data, size_t size)
{
    session s = {0};
    s.server = server_new(&(server_ends){.send = take, .user = &s}, &(answer_limits){.max_steps = FUZZ_STEPS});
    if (size == 0 || !s.server) {
        if (s.server)
            server_free(s.server);
        return 0;
    }
    bool open = ask(&s, "initialize",
                    json_pack("{s:{s:{s:[s]}}}", "capabilities", "general", "positionEncodings", data[0] % 2 ? "utf-8" : "utf-16"));
    for (size_t at = 1; open && at < size;) {
        const unsigned char *end = memchr(data + at, '\n', size - at);
        size_t bytes = end ? (size_t)(end - data) - at : size - at;
        open = message(&s, data + at, bytes);
        at += bytes + 1;
    }
    if (open)
        ask(&s, "shutdown", json_null());
    server_free(s.server);
    return 0;
}
