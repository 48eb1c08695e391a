/* Random einsums, products and convolutions, in any order and in the machine's, against the judge (einsum_judge.h). */
#include "test/reference/einsum_judge.h"

/* ---- random einsums ---- */

static void random_tensor(program *p, dtype t, const char *letters)
{
    char axes[MAX_RANK + 1] = "";
    size_t rank = 0;
    for (const char *at = letters; *at; at++)
        if (random_below(4)) {
            size_t place = (size_t)random_below((int64_t)rank + 1);
            memmove(axes + place + 1, axes + place, ++rank - place);
            axes[place] = *at;
        }
    axes[rank] = '\0';
    tensor(p, t, axes);
}

static bool has_axis(const program *p, uint32_t number, char axis)
{
    for (uint32_t i = 0; i < p->tensors[number].rank; i++)
        if (p->tensors[number].axes[i] == (uint32_t)(axis - 'A'))
            return true;
    return false;
}

/* Splits every axis into digits (the outermost may overshoot) and keeps a random part of them. */
static void random_digits(program *p, uint32_t dst, const char *letters, bool copy)
{
    einsum_digit kept[MAX_DIGITS], summed[MAX_DIGITS];
    int kept_count = 0, summed_count = 0;
    for (; *letters; letters++) {
        int64_t size = p->axes[*letters - 'A'].size, weight = 1;
        while (weight < size) {
            int64_t most = (size + weight - 1) / weight, n = most < 3 || !random_below(3) ? most : 2 + random_below(2);
            einsum_digit d = {(uint32_t)(*letters - 'A'), has_axis(p, dst, *letters) && (copy || random_below(3)), weight, n, 0, 0, 0, 0};
            weight *= n;
            if (d.kept)
                kept[kept_count++] = d;
            else if (!copy)
                summed[summed_count++] = d;
        }
    }
    for (int i = 0; i < kept_count; i++) {
        int other = (int)random_below(kept_count);
        einsum_digit swap = kept[i];
        kept[i] = kept[other];
        kept[other] = swap;
    }
    for (int i = 0; i < kept_count; i++)
        digit(p, true, (char)('A' + kept[i].axis), kept[i].weight, kept[i].size);
    for (int i = summed_count; i-- > 0;)
        digit(p, false, (char)('A' + summed[i].axis), summed[i].weight, summed[i].size);
}

/* Some digits that index a source are declared to be broadcast over it. */
static void random_broadcasts(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    for (uint32_t i = 0; i < s->digit_count; i++)
        for (einsum_side side = EINSUM_A; side <= (s->op == MATH_COPY ? EINSUM_A : EINSUM_B); side++)
            if (digits[i].size > 1 && has_axis(p, einsum_operand(s, side), (char)('A' + digits[i].axis)) && !random_below(4))
                digits[i].broadcast |= (unsigned char)(1 << side);
}

/* Some of the innermost summed digits get a place in a packet, not all lanes of which are used. */
static void random_lanes(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    for (int64_t i = s->digit_count, lane = 1 << random_below(2); i-- > 0 && !digits[i].kept && random_below(4);) {
        if (digits[i].size * lane > 128)
            return;
        digits[i].lane = (unsigned char)lane;
        lane = digits[i].size * lane + random_below(3);
    }
}

/* Summed digits from `digits` back to outer ones: strides in their group, with padding between them or none. Digits that count on from each
 * other may end with their axis. Returns the group's positions. */
static int64_t random_strides(const program *p, einsum_digit *digits, int count, unsigned group)
{
    int64_t positions = 1, run_weight = 1, run_stride = 1;
    for (int i = 0; i < count; i++) {
        einsum_digit *d = &digits[-i], *inner = d + 1;
        bool goes_on = i > 0 && d->axis == inner->axis && d->weight == inner->weight * inner->size && random_below(3);
        int64_t begin = i > 0 ? inner->stride * inner->size : 0;
        *d = (einsum_digit){
            d->axis, false, d->weight, d->size, d->broadcast, 0, (unsigned char)group, goes_on ? begin : positions + random_below(3) / 2};
        run_weight = goes_on ? run_weight : d->weight;
        run_stride = goes_on ? run_stride : d->stride;
        int64_t values = d->weight * d->size / run_weight, exist = (p->axes[d->axis].size - 1) / run_weight + 1;
        positions = run_stride * (values < exist ? values : exist);
    }
    return positions;
}

/* Groups of summed digits, cut into pieces anywhere, which are met in any order, some of the last ones in a packet. */
static void random_pieces(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    einsum_piece *pieces = p->pieces[p->e.statement_count - 1];
    uint32_t first = 0;
    while (first < s->digit_count && digits[first].kept)
        first++;
    for (uint32_t end, group = 1; first < s->digit_count; first = end, group++) {
        end = first + 1 + (uint32_t)random_below(4);
        end = end < s->digit_count ? end : s->digit_count;
        int64_t positions = random_strides(p, &digits[end - 1], (int)(end - first), group), weight = 1;
        while (weight < positions) {
            int64_t rest = (positions + weight - 1) / weight,
                    size = rest < 2 || (random_below(3) && rest > 2) ? 2 + random_below(5) : rest + random_below(2);
            pieces[s->piece_count++] = (einsum_piece){(unsigned char)group, 0, weight, size};
            weight *= size;
        }
    }
    for (uint32_t i = s->piece_count; i > 1; i--) {
        uint32_t k = (uint32_t)random_below(i);
        einsum_piece swap = pieces[i - 1];
        pieces[i - 1] = pieces[k];
        pieces[k] = swap;
    }
    for (int64_t i = s->piece_count, lane = 1 << random_below(2); i-- > 0 && random_below(4) && pieces[i].size * lane <= 128;) {
        pieces[i].lane = (unsigned char)lane;
        lane = pieces[i].size * lane + random_below(3);
    }
}

/* A contraction, in the order that `order` gives it, and a copy of its result. */
static void random_program_of(program *p, void pick_order(program *))
{
    static const char letters[] = "ABCD";
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    program_init(p);
    for (const char *at = letters; *at; at++)
        size_of(p, *at, 1 + random_below(*at == 'A' ? 40 : 9));
    random_tensor(p, t.operand, letters);
    random_tensor(p, t.operand, letters);
    random_tensor(p, t.result, letters);
    random_tensor(p, t.result, letters);
    statement(p, MATH_CONTRACT, 2, 0, 1);
    random_digits(p, 2, letters, false);
    random_broadcasts(p);
    pick_order(p);
    statement(p, MATH_COPY, 3, 2, 0);
    random_digits(p, 3, letters, true);
    random_broadcasts(p);
}

static void random_program(program *p)
{
    random_program_of(p, random_lanes);
}

/* Judges programs that `draw` makes: in any order of summation, and each `machine_every`th in the machine's (0: none). Returns how many
 * values depend on the order. */
static int64_t check_drawn(int few, void (*draw)(program *), bool any_order, int machine_every)
{
    int64_t differing = 0;
    for (int round = 0; round < suite_rounds(few); round++) {
        program p;
        quick = round % 4 != 3;
        draw(&p);
        if (any_order)
            differing += check_program(&p, MODERATE);
        if (machine_every && round % machine_every == 0)
            check_machine_order(&p, MODERATE);
    }
    return differing;
}

START_TEST(random_einsums)
{
    ck_assert_int_gt(check_drawn(100, random_program, true, 0), suite_rounds(100) / 4);
}
END_TEST

static int64_t random_extent(int64_t most)
{
    switch (random_below(4)) {
    case 0: return 1 + random_below(5);
    case 1: return most < 16 ? most : 16 * (1 + random_below(most / 16));
    default: return 1 + random_below(most);
    }
}

static void shuffle(char *letters)
{
    for (size_t i = strlen(letters); i > 1; i--) {
        size_t j = (size_t)random_below((int64_t)i);
        char c = letters[i - 1];
        letters[i - 1] = letters[j];
        letters[j] = c;
    }
}

static int64_t stride_of(const program *p, uint32_t number, char axis)
{
    int64_t stride = 1;
    for (uint32_t i = p->tensors[number].rank; i-- > 0; stride *= p->axes[p->tensor_axes[number][i]].size)
        if (p->tensor_axes[number][i] == (uint32_t)(axis - 'A'))
            return stride;
    return 0;
}

enum { CANARY_BYTES = 128 };

static void product_of(product *x, typing t, const int64_t *sizes, const char *a, const char *b, const char *c)
{
    program *p = &x->p;
    product_program(p, t, "BMNK", sizes, a, b, c, "BMN", "K");
    for (uint32_t i = 0; i < 3; i++) {
        size_t bytes = (size_t)reference_tensor_bytes(&p->e, i);
        x->tensors[i] = malloc(bytes + CANARY_BYTES);
        memset(x->tensors[i], 0xa5, bytes + CANARY_BYTES);
        for (int64_t e = 0; i < 2 && e < einsum_tensor_elements(&p->e, i); e++)
            store_code(t.operand, x->tensors[i], e,
                       is_float(t.operand) ? encode_float(t.operand, (float)(random_below(5) - 2)) : (uint32_t)random_bits());
    }
}

static void product_init(product *x)
{
    enum { MOST_TERMS = 150000 };
    char a[] = "BMK", b[] = "BKN", c[] = "BMN";
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    int64_t batch = random_below(3) ? 1 : 2 + random_below(2), m = random_extent(100), n = random_extent(300), k = random_extent(600);
    while (batch * m * n * k > MOST_TERMS)
        *(m > 40 ? &m : k > 80 ? &k : n > 1 ? &n : &k) /= 2;
    shuffle(a), shuffle(b), shuffle(c);
    product_of(x, t, SIZES(batch, m, n, k), a, b, c);
}

static uint32_t product_element(const product *x, int64_t batch, int64_t row, int64_t column)
{
    const program *p = &x->p;
    dtype from = p->tensors[0].dtype, to = p->tensors[2].dtype;
    double real = 0;
    uint32_t integer = 0;
    int64_t a_at = batch * stride_of(p, 0, 'B') + row * stride_of(p, 0, 'M'),
            b_at = batch * stride_of(p, 1, 'B') + column * stride_of(p, 1, 'N');
    int64_t a_step = stride_of(p, 0, 'K'), b_step = stride_of(p, 1, 'K');
    for (int64_t k = 0; k < p->axes['K' - 'A'].size; k++) {
        double a = decode(from, load_code(from, x->tensors[0], a_at + k * a_step)),
               b = decode(from, load_code(from, x->tensors[1], b_at + k * b_step));
        real += a * b;
        integer += (uint32_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
    }
    return is_float(to) ? encode_float(to, (float)real) : integer;
}

static void judge_product(const product *x)
{
    const program *p = &x->p;
    dtype to = p->tensors[2].dtype;
    int64_t batches = p->axes['B' - 'A'].size, rows = p->axes['M' - 'A'].size, columns = p->axes['N' - 'A'].size;
    uint32_t mask = dtype_row_of(to)->bits == 32 ? UINT32_MAX : (1u << dtype_row_of(to)->bits) - 1;
    for (int64_t i = 0; i < batches * rows * columns; i++) {
        int64_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
        int64_t at = batch * stride_of(p, 2, 'B') + row * stride_of(p, 2, 'M') + column * stride_of(p, 2, 'N');
        uint32_t got = load_code(to, x->tensors[2], at), want = product_element(x, batch, row, column) & mask;
        MUST(got == want, "%s to %s, %lld of %lldx%lldx%lld: element %lld, %lld, %lld is %x, expected %x",
             dtype_row_of(p->tensors[0].dtype)->name, dtype_row_of(to)->name, (long long)batches, (long long)rows, (long long)columns,
             (long long)p->axes['K' - 'A'].size, (long long)batch, (long long)row, (long long)column, got, want);
    }
}

/* Runs it, judges it and frees it. */
static void judge_run(product *x, unsigned forms)
{
    choose_cpu();
    reference_kernel *k = reference_compile(api, &x->p.e, "test kernel", forms, &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "no diagnostic");
    ck_assert(reference_run(api, k, x->tensors, NULL, THREADS, &diags));
    api->release(k);
    judge_product(x);
    for (uint32_t i = 0; i < 3; i++) {
        const unsigned char *end = x->tensors[i] + reference_tensor_bytes(&x->p.e, i);
        for (int c = 0; c < CANARY_BYTES; c++)
            MUST(end[c] == 0xa5, "tensor %u is written past its end", i);
        free(x->tensors[i]);
    }
}

START_TEST(random_products)
{
    for (int round = 0; round < suite_rounds(220); round++) {
        product x;
        product_init(&x);
        judge_run(&x, REFERENCE_VALUES | (round / CPUS % 4 != 3 ? REFERENCE_QUICK : 0));
    }
}
END_TEST

/* Columns that are read where they lie: by one row tile and by several, with and without a last one that is not whole, in one block of
 * depth and in more. The last shape's rows, which few column tiles read, meet in a few sets of a cache. */
START_TEST(products_of_few_rows)
{
    static const typing few[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F32}, {DTYPE_F32, DTYPE_F32},
                                 {DTYPE_I8, DTYPE_I32},    {DTYPE_I8, DTYPE_I8},    {DTYPE_I16, DTYPE_I32}};
    static const int64_t shapes[][3] = {{1, 65, 66},   {2, 100, 18},  {7, 37, 130}, {13, 70, 200},
                                        {40, 48, 129}, {64, 33, 256}, {13, 40, 512}};
    for (size_t t = 0; t < sizeof few / sizeof *few; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int i = 0; i < (suite_is_long() ? CPUS : 1); i++) {
                product x;
                product_of(&x, few[t], SIZES(1, shapes[s][0], shapes[s][1], shapes[s][2]), "BMK", "BKN", "BMN");
                judge_run(&x, REFERENCE_VALUES | REFERENCE_QUICK);
            }
}
END_TEST

/* Sums that are rounded where they end, in lines that are written in place, with rows and columns that are no whole tile; in code that runs
 * more than once. */
START_TEST(products_of_little_depth)
{
    static const typing narrow[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_F32, DTYPE_BF16}, {DTYPE_I8, DTYPE_I8}};
    static const int64_t shapes[][3] = {{1, 65, 1},  {5, 9, 1},   {7, 16, 2},   {13, 70, 1},
                                        {12, 32, 1}, {43, 47, 3}, {40, 48, 16}, {150, 300, 1}};
    for (size_t t = 0; t < sizeof narrow / sizeof *narrow; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            product x;
            product_of(&x, narrow[t], SIZES(1, shapes[s][0], shapes[s][1], shapes[s][2]), "BMK", "BKN", "BMN");
            for (int64_t side = 0; side < 2 && shapes[s][2] == 1; side++) /* of one product, any rounding is known */
                for (int64_t i = 0; i < shapes[s][side]; i++)
                    store_code(narrow[t].operand, x.tensors[side], i, random_code(narrow[t].operand, side ? MODERATE : ANY_BITS));
            judge_run(&x, REFERENCE_VALUES);
        }
}
END_TEST

/* Where the other factors are large, a subnormal one that is not taken for zero shows. */
START_TEST(subnormal_columns_are_zeros)
{
    enum { COLUMNS = 40, DEPTH = 80 };
    for (int64_t rows = 1; rows <= 16; rows *= 4)
        for (int cpu = 0; cpu < CPUS; cpu++) {
            product x;
            product_of(&x, (typing){DTYPE_BF16, DTYPE_F32}, SIZES(1, rows, COLUMNS, DEPTH), "BMK", "BKN", "BMN");
            for (int64_t i = 0; i < rows * DEPTH; i++)
                store_code(DTYPE_BF16, x.tensors[0], i, encode_float(DTYPE_BF16, 0x1p100f * (float)(1 + random_below(3))));
            for (int64_t i = 0; i < COLUMNS * DEPTH; i++)
                if (i % COLUMNS % 3 == 0)
                    store_code(DTYPE_BF16, x.tensors[1], i, (uint32_t)(0x8000 * random_below(2) + 1 + random_below(0x7f)));
            judge_run(&x, REFERENCE_VALUES | REFERENCE_QUICK);
        }
}
END_TEST

START_TEST(random_einsums_in_machine_order)
{
    check_drawn(30, random_program, false, 1);
}
END_TEST

static void random_groups(program *p)
{
    random_program_of(p, random_pieces);
    p->e.statement_count = 1;
}

START_TEST(random_groups_in_machine_order)
{
    check_drawn(45, random_groups, false, 1);
}
END_TEST

/* Half of the windows hold a part of their places only. */
static void random_border(program *p)
{
    int64_t size = p->axes[p->windows[p->e.window_count - 1].axis].size;
    if (size < 3 || random_below(2))
        return;
    int64_t first = random_below(size - 1), most = size - first - (first == 0);
    border(p, first, 2 + random_below(most - 1));
}

/* Y[O, P, N] = sum over F, G, C of X[$(O, F), $(P, G), C] * W[N, F, G, C], all strides and all digits at
 * random. */
static void random_convolution(program *p)
{
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    program_init(p);
    for (const char *at = "OPFGCN"; *at; at++)
        size_of(p, *at, 1 + random_below(*at == 'O' ? 12 : 6));
    window(p, 'X', term('O', 1, p->axes['O' - 'A'].size, 1 + random_below(3)), term('F', 1, p->axes['F' - 'A'].size, 1 + random_below(3)));
    random_border(p);
    window(p, 'Y', term('P', 1, p->axes['P' - 'A'].size, 1 + random_below(3)), term('G', 1, p->axes['G' - 'A'].size, 1 + random_below(3)));
    random_border(p);
    uint32_t image = tensor(p, t.operand, random_below(2) ? "XYC" : "CYX");
    uint32_t weights = tensor(p, t.operand, random_below(2) ? "NFGC" : "GFN");
    tensor(p, t.result, "NPO");
    tensor(p, t.operand, "XC");
    bool turned = random_below(2);
    statement(p, MATH_CONTRACT, 2, turned ? weights : image, turned ? image : weights);
    random_digits(p, 2, "OPFGCN", false);
    random_lanes(p);
    statement(p, MATH_COPY, 3, image, 0); /* the window as it is */
    random_digits(p, 3, "XC", true);
}

START_TEST(random_convolutions)
{
    check_drawn(60, random_convolution, true, 4);
}
END_TEST

int main(void)
{
    TCase *einsums = random_case("random einsums");
    suite_tests(einsums, random_einsums);
    TCase *orders = random_case("random products and orders");
    suite_tests(orders, random_products, random_einsums_in_machine_order, random_groups_in_machine_order, random_convolutions);
    TCase *rows = random_case("few rows");
    suite_tests(rows, products_of_few_rows, products_of_little_depth, subnormal_columns_are_zeros);
    return suite_status("reference random", einsums, orders, rows);
}
