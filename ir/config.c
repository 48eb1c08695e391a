#include "ir/config.h"

static const config_row rows[] = {
#define CONFIG_NUMBER(config, field, unit, least, most, summary) \
    {#config, #field, FIELD_NUMBER, offsetof(config##_config, field), unit, summary, least, most, NULL, 0, NULL},
#define CONFIG_CHOICE(config, field, unit, summary, ...) \
    {#config, \
     #field, \
     FIELD_CHOICE, \
     offsetof(config##_config, field), \
     unit, \
     summary, \
     0, \
     0, \
     (const int64_t[]){__VA_ARGS__}, \
     sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
     NULL},
#define CONFIG_FLAG(config, field, summary) \
    {#config, #field, FIELD_FLAG, offsetof(config##_config, field), NULL, summary, 0, 0, NULL, 0, NULL},
#define CONFIG_TERM(config, field, summary) \
    {#config, #field, FIELD_TERM, offsetof(config##_config, field), NULL, summary, 0, 0, NULL, 0, NULL},
#define CONFIG_DTYPE(config, field, summary) \
    {#config, #field, FIELD_DTYPE, offsetof(config##_config, field), NULL, summary, 0, 0, NULL, 0, NULL},
#define CONFIG_WORD(config, field, words, summary) \
    {#config, #field, FIELD_WORD, offsetof(config##_config, field), NULL, summary, 0, 0, NULL, 0, words},
#define CONFIG_SHOWN(config, field) {#config, #field, FIELD_SHOWN, 0, NULL, NULL, 0, 0, NULL, 0, NULL},
#include "target/engines.def"
};

const config_row *config_row_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

/* The number of the first row of each configuration: the second constant of a CONFIG steps back, so that the marks count rows only. */
enum {
#define CONFIG(name, ...) FIRST_##name, FIRST_##name##_BACK = FIRST_##name - 1,
#define CONFIG_PART CONFIG
#define CONFIG_NUMBER(config, field, ...) MARK_##config##_##field,
#define CONFIG_CHOICE CONFIG_NUMBER
#define CONFIG_FLAG CONFIG_NUMBER
#define CONFIG_TERM CONFIG_NUMBER
#define CONFIG_DTYPE CONFIG_NUMBER
#define CONFIG_WORD CONFIG_NUMBER
#define CONFIG_SHOWN(config, field) MARK_##config##_##field,
#include "target/engines.def"
};

size_t config_first_row(config_id id)
{
    static const size_t first[] = {
#define CONFIG(name, ...) FIRST_##name,
#define CONFIG_PART CONFIG
#include "target/engines.def"
        sizeof rows / sizeof *rows,
    };
    return first[id];
}
