/* The language server: messages in, messages out.
 *
 * The one idea: a request is a row of a table (method, function from parameters to a result). The server knows nothing about the
 * language; every answer is a question to include/visa_editor.h, turned into the protocol's words. It never ends before it is told to:
 * a message that cannot be read is answered with an error. */
#ifndef VISA_LSP_SERVER_H
#define VISA_LSP_SERVER_H

#include <jansson.h>

#include "lsp/document.h"

typedef struct server server;

/* How it speaks with the outside. */
typedef struct server_ends {
    bool (*send)(void *user, const char *bytes, size_t size); /* a whole message with its header; false ends the server */
    bool (*is_asked)(void *user);                             /* is a message waiting? Then diagnostics wait. NULL: nobody knows */
    void *user;
} server_ends;

/* NULL: no memory. Limits of 0 are those of visa_options. */
server *server_new(const server_ends *ends, const answer_limits *limits);
void server_free(server *s);

/* Bytes as they come; false: the server has ended. */
bool server_feed(server *s, const char *bytes, size_t size);
/* 0: it was shut down in order. */
int server_exit_status(const server *s);

/* Steps of work of the last answer. */
uint64_t server_steps(const server *s);

/* Serves until `exit`, the end of the input or false from `send`; returns the process's exit status. `user` of `send` is of no use to it.
 */
int server_run(int in, bool (*send)(void *user, const char *bytes, size_t size), const answer_limits *limits);

/* ---- Between the files of lsp/ ---- */

documents *server_documents(server *s);
bool server_is_asked(const server *s);
void server_notify(server *s, const char *method, json_t *params);

/* From parameters to a result; NULL: the parameters are not what the method takes. */
typedef json_t *(*request_handler)(server *s, const json_t *params);
/* NULL: no such request. */
request_handler request_find(const char *method);

/* Sends the diagnostics of what was changed. */
void publish_changed(server *s);
/* Takes back those of a document that is closed. */
void publish_nothing(server *s, document *d);

#endif
