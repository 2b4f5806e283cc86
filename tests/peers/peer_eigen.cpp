/* Eigen's HouseholderQR: sizes known at run time, and 4, 8, 16 fixed at compile time. Compiled once
 * for each type, with -DSCALAR=<element type> -DFACTOR=factor_<letter>, and once without for the
 * rest: the templates take long, and so they compile side by side. */
#include "tests/peers/peer.h"

#ifdef SCALAR

#include <Eigen/QR>
#include <complex>

void FACTOR(int size, const peer_batch_t *b, long first, long count);

template <int N> static void factor_all(const peer_batch_t *b, long first, long count)
{
    typedef SCALAR S;
    typedef Eigen::Matrix<S, N, N> matrix_t;
    typedef Eigen::Matrix<S, N, 1> vector_t;
    size_t elements = (size_t)b->m * (size_t)b->n;
    Eigen::HouseholderQR<matrix_t> qr(b->m, b->n);
    for (long i = first; i < first + count; i++) {
        Eigen::Map<const matrix_t> a((const S *)peer_at(b, b->A, i, elements), b->m, b->n);
        Eigen::Map<matrix_t> f((S *)peer_at(b, b->F, i, elements), b->m, b->n);
        Eigen::Map<vector_t> tau((S *)peer_at(b, b->tau, i, (size_t)b->k), b->k);
        qr.compute(a);
        f = qr.matrixQR();
        tau = qr.hCoeffs();
    }
}

/* size: 4, 8, 16, or 0 for what the batch says. */
void FACTOR(int size, const peer_batch_t *b, long first, long count)
{
    if (size == 4)
        factor_all<4>(b, first, count);
    else if (size == 8)
        factor_all<8>(b, first, count);
    else if (size == 16)
        factor_all<16>(b, first, count);
    else
        factor_all<Eigen::Dynamic>(b, first, count);
}

#else

#include <Eigen/Core>

void factor_s(int size, const peer_batch_t *b, long first, long count);
void factor_d(int size, const peer_batch_t *b, long first, long count);
void factor_c(int size, const peer_batch_t *b, long first, long count);
void factor_z(int size, const peer_batch_t *b, long first, long count);

static void factor(int size, const peer_batch_t *b, long first, long count)
{
    if (b->dtype == 's')
        factor_s(size, b, first, count);
    else if (b->dtype == 'd')
        factor_d(size, b, first, count);
    else if (b->dtype == 'c')
        factor_c(size, b, first, count);
    else
        factor_z(size, b, first, count);
}

static const char *dynamic(const peer_batch_t *b, long first, long count)
{
    factor(0, b, first, count);
    return nullptr;
}

static const char *fixed(const peer_batch_t *b, long first, long count)
{
    if (b->m != b->n || (b->n != 4 && b->n != 8 && b->n != 16))
        return "fixed size but 4, 8, 16";
    factor(b->n, b, first, count);
    return nullptr;
}

#define TEXT_(x)                     #x
#define TEXT(x)                      TEXT_(x)
#define VERSION(world, major, minor) "Eigen " TEXT(world) "." TEXT(major) "." TEXT(minor)

int main()
{
    static const peer_algorithm_t algorithms[] = {{"dynamic", "sdcz", "T", dynamic},
                                                  {"fixed", "sdcz", "T", fixed}};
    peer_program_t program = {};
    program.name = "eigen";
    program.version = VERSION(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
    program.algorithms = algorithms;
    program.nalgorithms = 2;
    return peer_serve(&program);
}

#endif
