/* p?nrm2 in place of ScaLAPACK's: every reflector of p?geqrf asks it for the norm of its column,
 * and ScaLAPACK adds all squares of a process in one run, which loses 25 u in a column of 10^5
 * rows. Here they are added in double-double, scaled by the largest entry. The program's definition
 * goes before the library's when it is loaded. */
#include <math.h>

#include "kernels/core/dd.h"
#include "mpi/grid.h"

#if WITH_SCALAPACK

extern void Cblacs_gridinfo(int context, int *nprow, int *npcol, int *myrow, int *mycol);
extern void Cdgamx2d(int context, const char *scope, const char *top, int m, int n, double *a,
                     int lda, int *rows, int *columns, int ldia, int rdest, int cdest);
extern void Cdgsum2d(int context, const char *scope, const char *top, int m, int n, double *a,
                     int lda, int rdest, int cdest);

/* Entries of an array descriptor. */
enum { CONTEXT = 1, BLOCK_ROWS = 4, BLOCK_COLUMNS = 5, LEADING = 8 };

/* The norm of rows [i, i + n) of column j of a matrix that begins at process (0, 0), on the process
 * column that has it; 0 on the others. */
static double column_norm(gb10_dtype_t dtype, int n, const void *x, int i, int j, const int *desc)
{
    int nprow, npcol, myrow, mycol, mb = desc[BLOCK_ROWS], nb = desc[BLOCK_COLUMNS];
    int64_t parts = gb10_dtype_is_complex(dtype) ? 2 : 1;
    gb10_dd_t sum = {0, 0};
    double top = 0;
    Cblacs_gridinfo(desc[CONTEXT], &nprow, &npcol, &myrow, &mycol);
    if (n <= 0 || j / nb % npcol != mycol)
        return 0;
    int64_t column = (int64_t)(j / nb / npcol) * nb + j % nb;
    int64_t first = (column * desc[LEADING] + grid_owned(i, mb, myrow, nprow)) * parts;
    int64_t last = (column * desc[LEADING] + grid_owned((int64_t)i + n, mb, myrow, nprow)) * parts;
    for (int64_t e = first; e < last; e++)
        top = fmax(top, fabs(gb10_number_at(dtype, x, e)));
    Cdgamx2d(desc[CONTEXT], "Column", " ", 1, 1, &top, 1, NULL, NULL, -1, -1, mycol);
    int exponent = top > 0 ? ilogb(top) : 0;
    double half = ldexp(1, -exponent / 2), rest = ldexp(1, -exponent - -exponent / 2);
    for (int64_t e = first; e < last; e++) {
        double value = gb10_number_at(dtype, x, e) * half * rest;
        sum = gb10_dd_mac(sum, value, value);
    }
    double halves[2] = {sum.hi, sum.lo};
    Cdgsum2d(desc[CONTEXT], "Column", " ", 2, 1, halves, 2, -1, mycol);
    sum = gb10_dd_normal((gb10_dd_t){halves[0], halves[1]});
    return ldexp(gb10_dd_sqrt(sum), exponent);
}

/* incx is 1: geqrf has no other vectors. */
void psnrm2_(const int *n, float *norm, const void *x, const int *ix, const int *jx,
             const int *desc, const int *incx);
void pdnrm2_(const int *n, double *norm, const void *x, const int *ix, const int *jx,
             const int *desc, const int *incx);
void pscnrm2_(const int *n, float *norm, const void *x, const int *ix, const int *jx,
              const int *desc, const int *incx);
void pdznrm2_(const int *n, double *norm, const void *x, const int *ix, const int *jx,
              const int *desc, const int *incx);

void psnrm2_(const int *n, float *norm, const void *x, const int *ix, const int *jx,
             const int *desc, const int *incx)
{
    (void)incx;
    *norm = (float)column_norm(GB10_S, *n, x, *ix - 1, *jx - 1, desc);
}

void pdnrm2_(const int *n, double *norm, const void *x, const int *ix, const int *jx,
             const int *desc, const int *incx)
{
    (void)incx;
    *norm = column_norm(GB10_D, *n, x, *ix - 1, *jx - 1, desc);
}

void pscnrm2_(const int *n, float *norm, const void *x, const int *ix, const int *jx,
              const int *desc, const int *incx)
{
    (void)incx;
    *norm = (float)column_norm(GB10_C, *n, x, *ix - 1, *jx - 1, desc);
}

void pdznrm2_(const int *n, double *norm, const void *x, const int *ix, const int *jx,
              const int *desc, const int *incx)
{
    (void)incx;
    *norm = column_norm(GB10_Z, *n, x, *ix - 1, *jx - 1, desc);
}

#endif
