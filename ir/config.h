/* The fields of the configurations as data, for those who show them.
 *
 * The one idea: a field is a row of its engine (target/engines.def); the struct's member, the key in JSON and the property of the schema
 * are the same row. */
#ifndef VISA_IR_CONFIG_H
#define VISA_IR_CONFIG_H

#include "ir/kernel.h"

typedef enum config_kind { FIELD_NUMBER, FIELD_CHOICE, FIELD_FLAG, FIELD_TERM, FIELD_DTYPE, FIELD_WORD, FIELD_SHOWN } config_kind;

typedef struct config_row {
    const char *config, *field;
    config_kind kind;
    size_t offset;              /* bytes of the member in its struct; FIELD_SHOWN: none */
    const char *unit, *summary; /* NULL: none */
    int64_t least, most;        /* FIELD_NUMBER; INT64_MAX: no bound */
    const int64_t *choices;     /* FIELD_CHOICE */
    size_t choice_count;
    const char *(*names)(int64_t code); /* FIELD_WORD */
} config_row;

/* All rows in order; NULL past the end. */
const config_row *config_row_at(size_t index);
/* The first row of each configuration and the row after its last: config_first[CONFIG_align], config_first[CONFIG_align + 1]. */
typedef enum config_id {
#define CONFIG(name, ...) CONFIG_##name,
#define CONFIG_PART(name, ...) CONFIG_##name,
#include "target/engines.def"
    CONFIG_COUNT
} config_id;
size_t config_first_row(config_id id);

#endif
