/* Columns of integer words: dot(sum, data, weights) of the including file adds the products of a vector's words;
 * integer sums need no tree. BLOCK_FILL is the data of a lane that does not count. */
INLINE vector_w dot(vector_w sum, vector_w data, vector_w weights);

INLINE void column_int(const block_run *r, int64_t number, int group, int wide, vector_w *sum)
{
    int64_t first = number * r->column_words;
    for (int64_t i = 0; i < r->step_count; i++) {
        const block_step *s = &r->steps[i];
        const block_word *data = r->data + s->data + first * group;
        const block_word *weights = r->weights + s->weights + first * BLOCK_VECTOR;
        int64_t all = s->keep ? 0 : r->column_words, apart = 0;
        if (wide == 1 && all % 4 == 0) { /* one sum alone would wait for itself */
            vector_w part[4] = {sum[0]};
            for (; apart < all; apart += 4)
                for (int j = 0; j < 4; j++)
                    part[j] = dot(part[j], spread(data + (apart + j) * group, group), load(weights + (apart + j) * BLOCK_VECTOR));
            sum[0] = (part[0] + part[1]) + (part[2] + part[3]);
        }
#pragma GCC unroll 8
        for (int64_t w = apart; w < all; w++)
            for (int u = 0; u < wide; u++)
                sum[u] = dot(sum[u], spread(data + u * r->data_stride + w * group, group), load(weights + w * BLOCK_VECTOR));
        for (int64_t w = all; w < r->column_words; w++) {
            block_word keep = s->keep[first + w];
            for (int u = 0; u < wide; u++) {
                vector_w masked = (spread(data + u * r->data_stride + w * group, group) & keep) | (BLOCK_FILL & ~keep);
                sum[u] = dot(sum[u], masked, load(weights + w * BLOCK_VECTOR));
            }
        }
    }
}
