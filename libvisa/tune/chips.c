#include "libvisa/tune/chips.h"

#include <inttypes.h>
#include <string.h>

tune_share tune_share_of(const char *axis, int64_t size, int64_t chips, arena *a, const char **text)
{
    tune_share x = {axis, chips, size / chips};
    *text = arena_printf(a, "%s %% %" PRId64, axis, x.part);
    return x;
}

int64_t tune_chips_of(const tune_share *shares, size_t count)
{
    int64_t chips = 1;
    for (size_t i = 0; i < count; i++)
        chips *= shares[i].axis ? shares[i].chips : 1;
    return chips;
}

const char *tune_chip_mapping(const tune_share *shares, size_t count, unsigned has, arena *a)
{
    const char *text = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!shares[i].axis)
            continue;
        const char *one =
            has >> i & 1 ? arena_printf(a, "%s / %" PRId64, shares[i].axis, shares[i].part) : arena_printf(a, "%" PRId64, shares[i].chips);
        text = text ? arena_printf(a, "%s, %s", text, one) : one;
    }
    return text ? text : "1";
}

const char *tune_chip_type(const tune_share *shares, size_t count, unsigned has, arena *a)
{
    const char *text = tune_chip_mapping(shares, count, has, a);
    return strcmp(text, tune_chip_mapping(shares, count, ~0U, a)) == 0 ? "Chip" : arena_printf(a, "m![%s]", text);
}
