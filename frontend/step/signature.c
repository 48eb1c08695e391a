#include "frontend/step/signature.h"

#include <string.h>

#include "support/choice.h"
#include "target/step/formula.h"
#include "target/step/step.h"

typedef struct signature {
    const char *name, *text;
} signature;

/* Those of streams first; docs/step.md says what they do. */
static const signature signatures[] = {
    {"map", "`x.map(f)`, `x.map(f, y)`, `x.map(f, y, z)`: f of the values of x, y and z in lock step"},
    {"accum", "`x.accum(b, f)`, `x.accum(b, f, y)`: b dimensions are folded with f; with a function of your own `x.accum(b, f, begin, y)`"},
    {"scan", "`x.scan(b, f)`, `x.scan(b, f, y)`, `x.scan(b, f, begin, y)`: the fold after each value, anew after b dimensions"},
    {"flat_map", "`x.flat_map(b, f)`, `x.flat_map(b, f, y)`: each value becomes a stream of rank b"},
    {"zip", "`x.zip(&y)`: pairs"},
    {"bufferize", "`x.bufferize(b)`: b dimensions become one buffer"},
    {"streamify",
     "`x.streamify(&reference, c)`, `x.streamify(&reference, c, [sizes], [strides])`: c dimensions of the reference repeat one buffer"},
    {"partition", "`x.partition(b, &selectors)`: chunks of b dimensions to the outputs that selectors name"},
    {"parallelize", "`x.parallelize(b, n)`: chunks of b dimensions in turn to n outputs"},
    {"broadcast", "`x.broadcast()`"},
    {"flatten", "`x.flatten(min, max)`: dimensions min to max become one, counted from the innermost, 0"},
    {"reshape", "`x.reshape(b, chunk)`, `x.reshape(b, chunk, pad)`: dimension b in chunks; `.0` is the stream, `.1` marks padding"},
    {"promote", "`x.promote()`: one dimension more, outermost"},
    {"expand", "`x.expand(&reference, b)`: b dimensions of 1 become those of the reference"},
    {"repeat", "`x.repeat(n)`: n copies of each value"},
    {"assume", "`x.assume([sizes])`, `x.assume(&y)`: what the writer knows of its sizes"},
    {"compute", "`x.compute(n)`: FLOPs per cycle"},
    {"depth", "`x.depth(n)`: values in its queues, 0 for any number"},
    {"write_back", "`x.write_back()`: the result goes through memory on the chip"},
    {0},
};

static const signature others[] = {
    {"connect", "`s.connect(&source)`"},
    {"div_ceil", "`size.div_ceil(n)`"},
    {"linear_load", "`w.linear_load(&reference)`, `w.linear_load(&reference, [sizes], [strides])`, and after these the first tile"},
    {"random_load", "`w.random_load(addresses)`, `w.random_load(addresses, base)`"},
    {"linear_store", "`w.linear_store(x)`, `w.linear_store(x, base)`"},
    {"random_store", "`w.random_store(addresses, x)`, `w.random_store(addresses, x, base)`"},
    {"once", "`once()`: a single value"},
    {"feedback", "`feedback::<T>([sizes])`"},
    {"reassemble", "`reassemble(b, [streams], &selectors)`: chunks of b dimensions, in the order of the selectors"},
    {"eager_merge", "`eager_merge([streams])`: whole chunks in order of arrival; `.0` is the stream, `.1` says from which"},
    {"addresses", "`addresses(n)`, `addresses(n, first)`: n addresses from first + n x value on"},
    {"select", "`select::<Selector<4, 1>>(n)`: n addresses name one output"},
    {0},
};

const char *step_signature(const char *name)
{
    for (const signature *s = signatures; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s->text;
    for (const signature *s = others; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s->text;
    return NULL;
}

const char *step_nearest_operator(const char *name)
{
    const char *names[sizeof signatures / sizeof *signatures];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        names[i] = signatures[i].name;
    return choice_near(name, names);
}

const char *step_nearest_function(const char *name, arena *a)
{
    size_t count = 0, operations = 0;
    while (step_formula_row_of(operations))
        operations++;
    const char **names = ARENA_ARRAY(a, const char *, STEP_FN_KERNEL + operations + 1);
    for (uint64_t code = 1; code < STEP_FN_KERNEL; code++)
        if (step_fn_row_of(code))
            names[count++] = step_fn_row_of(code)->name;
    for (uint64_t code = 0; code < operations; code++)
        if (step_formula_row_of(code)->rule != STEP_LEAF)
            names[count++] = step_formula_row_of(code)->name;
    return choice_near(name, names);
}
