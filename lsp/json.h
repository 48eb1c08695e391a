/* The protocol's values from the compiler's. */
#ifndef VISA_LSP_JSON_H
#define VISA_LSP_JSON_H

#include <jansson.h>

#include "lsp/document.h"

/* A string of any bytes: what is no UTF-8 becomes `?`. */
json_t *json_bytes(const char *text);

/* A range of a file of the document's compilation; an empty one at the beginning when there is no place. */
json_t *json_range(const documents *all, document *d, visa_place place);
/* {uri, range} */
json_t *json_location(const documents *all, document *d, const visa_compilation *c, visa_place place);
/* As in publishDiagnostics. */
json_t *json_diagnostic(const documents *all, document *d, const visa_compilation *c, const visa_diagnostic *from);
/* Counts what it will cost; false: the answer is given up. */
bool json_spend_diagnostic(documents *all, const visa_diagnostic *from);

/* An offset of the document from {line, character}; false: it is no position. */
bool json_to_offset(const documents *all, const document *d, const json_t *position, uint32_t *out);

#endif
