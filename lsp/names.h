/* Requests about names: where each stands, what it is, who calls whom. Each is a request_handler (lsp/server.h). */
#ifndef VISA_LSP_NAMES_H
#define VISA_LSP_NAMES_H

#include "lsp/server.h"

json_t *names_references(server *s, const json_t *params);
json_t *names_highlight(server *s, const json_t *params);
json_t *names_prepare_rename(server *s, const json_t *params);
json_t *names_rename(server *s, const json_t *params);

/* What the numbers of semantic tokens mean. */
json_t *names_legend(void);
json_t *names_tokens(server *s, const json_t *params);
json_t *names_tokens_range(server *s, const json_t *params);

json_t *names_prepare_calls(server *s, const json_t *params);
json_t *names_incoming_calls(server *s, const json_t *params);
json_t *names_outgoing_calls(server *s, const json_t *params);

#endif
