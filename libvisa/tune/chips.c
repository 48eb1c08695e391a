#include "libvisa/tune/chips.h"

#include <inttypes.h>
#include <string.h>

#include "support/integer.h"

int64_t tune_padded_part(int64_t size, int64_t chips)
{
    enum { MOST_UNIT = 64, MOST_WASTE = 8 }; /* an eighth of a part, at most */
    int64_t part = ceil_div(size, chips), unit = 1;
    while (unit < MOST_UNIT && unit * 2 * MOST_WASTE <= part)
        unit *= 2;
    int64_t padded = round_up(part, unit);
    return padded * chips == size || padded * (chips - 1) >= size ? 0 : padded;
}

/* "N # 1024" */
static const char *padded_axis(const tune_share *x, arena *a)
{
    return x->part * x->chips == x->size ? x->axis : arena_printf(a, "%s # %" PRId64, x->axis, x->part * x->chips);
}

tune_share tune_share_of(const char *axis, int64_t size, int64_t chips, int64_t part, arena *a, const char **text)
{
    tune_share x = {axis, size, chips, part};
    *text = arena_printf(a, "%s %% %" PRId64, padded_axis(&x, a), part);
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
        const char *one = has >> i & 1 ? arena_printf(a, "%s / %" PRId64, padded_axis(&shares[i], a), shares[i].part)
                                       : arena_printf(a, "%" PRId64, shares[i].chips);
        text = text ? arena_printf(a, "%s, %s", text, one) : one;
    }
    return text ? text : "1";
}

const char *tune_chip_type(const tune_share *shares, size_t count, unsigned has, arena *a)
{
    const char *text = tune_chip_mapping(shares, count, has, a);
    return strcmp(text, tune_chip_mapping(shares, count, ~0U, a)) == 0 ? "Chip" : arena_printf(a, "m![%s]", text);
}
