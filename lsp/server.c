#include "lsp/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lsp/json.h"
#include "lsp/message.h"
#include "lsp/names.h"
#include "support/json_nesting.h"

/* Codes of JSON-RPC and the protocol. */
enum {
    PARSE_ERROR = -32700,
    INVALID_REQUEST = -32600,
    METHOD_NOT_FOUND = -32601,
    INVALID_PARAMS = -32602,
    NOT_INITIALIZED = -32002,
    REQUEST_FAILED = -32803
};

struct server {
    documents documents;
    message_reader reader;
    server_ends ends;
    bool initialized, shut_down, ended;
    int exit_status;
};

documents *server_documents(server *s)
{
    return &s->documents;
}

bool server_is_asked(const server *s)
{
    return s->ends.is_asked && s->ends.is_asked(s->ends.user);
}

int server_exit_status(const server *s)
{
    return s->exit_status;
}

/* ---- writing ---- */

static void end(server *s, int status)
{
    s->ended = true;
    s->exit_status = status;
}

static void send_message(server *s, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text)
        return;
    size_t bytes = strlen(text);
    char header[64];
    int header_bytes = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", bytes);
    if (!s->ends.send(s->ends.user, header, (size_t)header_bytes) || !s->ends.send(s->ends.user, text, bytes))
        end(s, 1);
    free(text);
}

void server_notify(server *s, const char *method, json_t *params)
{
    send_message(s, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

static void send_result(server *s, const json_t *id, json_t *result)
{
    send_message(s, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

/* `id` may be NULL: it could not be read. */
static void send_error(server *s, const json_t *id, int code, const char *message)
{
    json_t *null = json_null();
    send_message(s, json_pack("{s:s, s:O, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", id ? id : null, "error", "code", code, "message",
                              json_bytes(message)));
}

/* ---- lifecycle ---- */

static bool offers(const json_t *list, const char *word)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (json_is_string(item) && strcmp(json_string_value(item), word) == 0) return true;
    return false;
}

static json_t *initialize(server *s, const json_t *params)
{
    enum { INCREMENTAL = 2 }; /* TextDocumentSyncKind */
    const json_t *encodings = json_object_get(json_object_get(json_object_get(params, "capabilities"), "general"), "positionEncodings");
    s->documents.encoding = offers(encodings, "utf-8") ? TEXT_UTF8 : TEXT_UTF16;
    s->initialized = true;
    json_t *capabilities = json_pack("{s:s, s:{s:b, s:i, s:b}, s:b, s:b, s:{s:[s,s,s,s]}, s:b, s:b, s:{s:[s,s]}}", "positionEncoding",
                                     s->documents.encoding == TEXT_UTF8 ? "utf-8" : "utf-16", "textDocumentSync", "openClose", 1, "change",
                                     INCREMENTAL, "save", 1, "hoverProvider", 1, "definitionProvider", 1, "completionProvider",
                                     "triggerCharacters", ".", ":", "[", "{", "documentFormattingProvider", 1, "documentSymbolProvider", 1,
                                     "codeActionProvider", "codeActionKinds", "quickfix", "source.fixAll");
    static const char *const more[] = {"referencesProvider", "documentHighlightProvider", "foldingRangeProvider", "inlayHintProvider",
                                       "callHierarchyProvider"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        json_object_set_new(capabilities, more[i], json_true());
    json_object_set_new(capabilities, "renameProvider", json_pack("{s:b}", "prepareProvider", 1));
    json_object_set_new(capabilities, "semanticTokensProvider",
                        json_pack("{s:o, s:b, s:b}", "legend", names_legend(), "full", 1, "range", 1));
    json_object_set_new(capabilities, "signatureHelpProvider", json_pack("{s:[s, s, s]}", "triggerCharacters", "(", "<", ","));
    return json_pack("{s:o, s:{s:s, s:s}}", "capabilities", capabilities, "serverInfo", "name", "visa-lsp", "version", visa_version());
}

/* ---- notifications ---- */

static document *document_of(server *s, const json_t *params)
{
    const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
    return json_is_string(uri) ? documents_find(&s->documents, json_string_value(uri)) : NULL;
}

static void did_open(server *s, const json_t *params)
{
    const json_t *d = json_object_get(params, "textDocument"), *uri = json_object_get(d, "uri"), *text = json_object_get(d, "text");
    if (json_is_string(uri) && json_is_string(text))
        documents_open(&s->documents, json_string_value(uri), json_string_value(text), json_string_length(text),
                       json_integer_value(json_object_get(d, "version")));
}

static void apply_change(server *s, document *d, const json_t *change)
{
    const json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
    uint32_t from = 0, to = (uint32_t)d->bytes;
    if (!json_is_string(text))
        return;
    if (json_is_object(range) && (!json_to_offset(&s->documents, d, json_object_get(range, "start"), &from) ||
                                  !json_to_offset(&s->documents, d, json_object_get(range, "end"), &to)))
        return;
    document_replace(d, from, to, json_string_value(text), json_string_length(text));
}

static void did_change(server *s, const json_t *params)
{
    document *d = document_of(s, params);
    size_t i;
    const json_t *change;
    if (!d)
        return;
    json_array_foreach(json_object_get(params, "contentChanges"), i, change) apply_change(s, d, change);
    d->version = json_integer_value(json_object_get(json_object_get(params, "textDocument"), "version"));
    documents_forget(&s->documents);
}

static void did_close(server *s, const json_t *params)
{
    document *d = document_of(s, params);
    if (!d)
        return;
    publish_nothing(s, d);
    documents_close(&s->documents, d);
}

/* Files of modules may have changed on the disk. */
static void did_save(server *s, const json_t *params)
{
    (void)params;
    documents_forget(&s->documents);
}

static void notification(server *s, const char *method, const json_t *params)
{
    static const struct {
        const char *method;
        void (*handler)(server *s, const json_t *params);
    } rows[] = {
        {"textDocument/didOpen", did_open}, {"textDocument/didChange", did_change},        {"textDocument/didClose", did_close},
        {"textDocument/didSave", did_save}, {"workspace/didChangeWatchedFiles", did_save},
    };
    if (strcmp(method, "exit") == 0)
        end(s, s->shut_down ? 0 : 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].method, method) == 0 && s->initialized && !s->shut_down)
            rows[i].handler(s, params);
}

/* ---- requests ---- */

static void request(server *s, const json_t *id, const char *method, const json_t *params)
{
    request_handler handler = request_find(method);
    if (s->shut_down) {
        send_error(s, id, INVALID_REQUEST, "the server is shut down");
    } else if (strcmp(method, "initialize") == 0) {
        if (s->initialized)
            send_error(s, id, INVALID_REQUEST, "the server is initialized already");
        else
            send_result(s, id, initialize(s, params));
    } else if (!s->initialized) {
        send_error(s, id, NOT_INITIALIZED, "the first request is initialize");
    } else if (strcmp(method, "shutdown") == 0) {
        s->shut_down = true;
        send_result(s, id, json_null());
    } else if (!handler) {
        send_error(s, id, METHOD_NOT_FOUND, "visa-lsp has no such method");
    } else {
        answer_begin(&s->documents.answer, &s->documents.limits);
        json_t *result = handler(s, params);
        bool gave_up = documents_answered(&s->documents);
        bool nothing = json_is_null(result) || (json_is_array(result) && json_array_size(result) == 0);
        if (s->documents.answer.gave_up || (nothing && gave_up)) {
            json_decref(result);
            send_error(s, id, REQUEST_FAILED, "given up: the answer takes more time, work or memory than visa-lsp may spend");
        } else if (result) {
            send_result(s, id, result);
        } else {
            send_error(s, id, INVALID_PARAMS, "the parameters name no open document, or no place in one");
        }
    }
}

static void handle(server *s, const char *body, size_t size)
{
    json_error_t fault = {.text = "arrays and objects are nested too deeply"};
    json_t *message = json_nests_too_deeply(body, size) ? NULL : json_loadb(body, size, JSON_ALLOW_NUL, &fault);
    const json_t *id = json_object_get(message, "id"), *method = json_object_get(message, "method");
    bool is_answer = json_object_get(message, "result") || json_object_get(message, "error");
    bool id_fits = !id || json_is_string(id) || json_is_integer(id);
    if (!message)
        send_error(s, NULL, PARSE_ERROR, fault.text);
    else if (!json_is_object(message) || !id_fits || (!json_is_string(method) && !is_answer))
        send_error(s, id_fits ? id : NULL, INVALID_REQUEST, "this is no request");
    else if (json_is_string(method) && id)
        request(s, id, json_string_value(method), json_object_get(message, "params"));
    else if (json_is_string(method))
        notification(s, json_string_value(method), json_object_get(message, "params"));
    json_decref(message);
}

uint64_t server_steps(const server *s)
{
    return s->documents.answer.steps;
}

/* ---- running ---- */

server *server_new(const server_ends *ends, const answer_limits *limits)
{
    server *s = calloc(1, sizeof *s);
    if (s)
        *s = (server){.ends = *ends, .documents.limits = *limits, .exit_status = 1};
    return s;
}

void server_free(server *s)
{
    documents_free(&s->documents);
    message_reader_free(&s->reader);
    free(s);
}

/* Diagnostics follow when no message is waiting: of many changes in a row only the last text is judged. */
bool server_feed(server *s, const char *bytes, size_t size)
{
    if (!message_feed(&s->reader, bytes, size))
        return false;
    const char *body;
    message_status status;
    while (!s->ended && (status = message_next(&s->reader, &body, &size)) != MESSAGE_MORE) {
        if (status == MESSAGE_WHOLE)
            handle(s, body, size);
        else
            send_error(s, NULL, PARSE_ERROR, "a message begins with Content-Length: BYTES and an empty line");
    }
    if (!s->ended && !s->shut_down)
        publish_changed(s);
    return !s->ended;
}

static bool is_asked(void *user)
{
    struct pollfd in = {.fd = *(const int *)user, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

int server_run(int in, bool (*send)(void *user, const char *bytes, size_t size), const answer_limits *limits)
{
    enum { PIECE = 1 << 16 }; /* bytes */
    server *s = server_new(&(server_ends){send, is_asked, &in}, limits);
    char *piece = malloc(PIECE);
    bool running = s && piece;
    while (running) {
        ssize_t size = read(in, piece, PIECE);
        if (size < 0 && errno == EINTR)
            continue;
        running = size > 0 && server_feed(s, piece, (size_t)size);
    }
    int status = s ? server_exit_status(s) : 1;
    free(piece);
    if (s)
        server_free(s);
    return status;
}
