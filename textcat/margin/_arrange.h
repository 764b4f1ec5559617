/* Rows → rows arranged for the cache, in memory of the caller's, that all blocks share.
 *
 * Included once per number type by _lanes.h, with REAL and B(name) defined.
 */

/* Count in how many rows each feature is, and sum the squares of rows from `start` to `stop`.
 *
 * Returns -1, or the first row that is not one of ascending columns from 0 to n_features - 1.
 */
static ptrdiff_t B(measure)(ptrdiff_t start, ptrdiff_t stop, ptrdiff_t n_features, const int64_t *indptr,
                            const int32_t *indices, const REAL *data, int32_t *df, double *norm2)
{
    for (ptrdiff_t i = start; i < stop; i++) {
        int64_t before = -1;
        double sum = 0;
        for (int64_t p = indptr[i]; p < indptr[i + 1]; p++) {
            const int32_t j = indices[p];
            if (j <= before || j >= n_features) return i;
            before = j;
            df[j]++;
            sum += (double)data[p] * (double)data[p];
        }
        norm2[i] = sum;
    }
    return -1;
}

/* Arrange rows from `start` to `stop`, the ones before them being done; `column` gives a feature's column, -1 if it is lone,
 * or -2 - k if it is the k-th of the dense features, whose entries are zero before. Columns from `first_cold` on are listed
 * twice. data and indices may be own->data and own->wide themselves, as nothing is written behind what has been read. */
static void B(arrange)(rows *own, ptrdiff_t start, ptrdiff_t stop, const int64_t *indptr, const int32_t *indices,
                       const REAL *data, const int32_t *column, int32_t first_cold)
{
    const int moves = own->data != data || own->lone_ptr || own->n_dense;
    REAL *const new_data = own->data, *const lone_data = own->lone_data, *const lone2 = own->lone2;
    REAL *const dense = own->dense;
    for (ptrdiff_t i = start; i < stop; i++) {
        int64_t common = own->indptr[i];
        int64_t lone = own->lone_ptr ? own->lone_ptr[i] : 0, cold = own->cold_ptr ? own->cold_ptr[i] : 0;
        if (lone2) lone2[i] = 0;
        for (int64_t p = indptr[i]; p < indptr[i + 1]; p++) {
            const int32_t c = column[indices[p]];
            if (c < -1) {
                dense[i * own->n_dense - 2 - c] = data[p];
                continue;
            }
            if (c < 0) {
                own->lone_feature[lone] = indices[p];
                lone_data[lone++] = data[p];
                lone2[i] += data[p] * data[p];
                continue;
            }
            if (moves) new_data[common] = data[p];
            if (own->narrow)
                own->narrow[common++] = (uint16_t)c;
            else
                own->wide[common++] = c;
            if (own->cold_ptr && c >= first_cold) own->cold[cold++] = c;
        }
        own->indptr[i + 1] = common;
        if (own->lone_ptr) own->lone_ptr[i + 1] = lone;
        if (own->cold_ptr) own->cold_ptr[i + 1] = cold;
    }
}
