/* mma of a warp: with e elements of a 32-bit register, lane l = 4 g + t, register r:
 * A (16 x 8e/2): row g + 8 (r & 1), columns e t + 4 e (r >> 1) ...; B: rows e t + 4 e r ..., column
 * g; C and D (16 x 8): row g + 8 (r >> 1), column 2 t + (r & 1). */
#include <math.h>

#include "tests/simt/simt_machine.h"

static float element(simt_warp_op_t op, uint32_t word, int i)
{
    switch (op) {
    case SIMT_OP_MMA_TF32:
        return from_bits(word & ~0x1fffu);
    case SIMT_OP_MMA_BF16:
        return from_bits(i ? word & 0xffff0000u : word << 16);
    case SIMT_OP_MMA_E4M3:
        return simt_e4m3_value((unsigned char)(word >> 8 * i));
    default:
        return (float)(int8_t)(word >> 8 * i);
    }
}

static const simt_operands_t *operands(const thread_t *t)
{
    return t->part.in;
}

static void gather(simt_warp_op_t op, const thread_t *lanes, int e, float a[16][32], float b[8][32])
{
    for (int l = 0; l < WARP; l++) {
        const uint32_t *ra = operands(&lanes[l])->a, *rb = operands(&lanes[l])->b;
        const int g = l / 4, t = l % 4;
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < e; i++)
                a[g + 8 * (r & 1)][e * t + 4 * e * (r >> 1) + i] = element(op, ra[r], i);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < e; i++)
                b[g][e * t + 4 * e * r + i] = element(op, rb[r], i);
    }
}

static int32_t dot_s8(int32_t c, const float *a, const float *b)
{
    int32_t sum = 0; /* of 32 products below 2^14 */
    for (int i = 0; i < 32; i++)
        sum += (int32_t)a[i] * (int32_t)b[i];
    return (int32_t)((uint32_t)c + (uint32_t)sum);
}

static void mma_f64(thread_t *lanes)
{
    double a[8][4], b[4][8], d[WARP][2];
    for (int l = 0; l < WARP; l++) {
        simt_move(&a[l / 4][l % 4], operands(&lanes[l])->a, sizeof(double));
        simt_move(&b[l % 4][l / 4], operands(&lanes[l])->b, sizeof(double));
        simt_move(d[l], operands(&lanes[l])->c, sizeof d[l]);
    }
    for (int l = 0; l < WARP; l++)
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 4; k++)
                d[l][i] = fma(a[l / 4][k], b[k][2 * (l % 4) + i], d[l][i]);
    for (int l = 0; l < WARP; l++)
        simt_move(lanes[l].part.out, d[l], sizeof d[l]);
}

void simt_warp_mma(simt_warp_op_t op, thread_t *lanes)
{
    float a[16][32], b[8][32];
    if (op == SIMT_OP_MMA_F64) {
        mma_f64(lanes);
        return;
    }
    const int e = op == SIMT_OP_MMA_TF32 ? 1 : op == SIMT_OP_MMA_BF16 ? 2 : 4;
    const simt_dot_model_t model = simt_dot_model(simt_m.options.arch, e == 1   ? SIMT_TF32
                                                                       : e == 2 ? SIMT_BF16
                                                                                : SIMT_E4M3);
    gather(op, lanes, e, a, b);
    for (int l = 0; l < WARP; l++) {
        uint32_t c[4], d[4];
        simt_move(c, operands(&lanes[l])->c, sizeof c);
        for (int r = 0; r < 4; r++) {
            const int row = l / 4 + 8 * (r >> 1), column = 2 * (l % 4) + (r & 1);
            if (op == SIMT_OP_MMA_S8)
                d[r] = (uint32_t)dot_s8((int32_t)c[r], a[row], b[column]);
            else
                d[r] = bits_of(simt_dot(model, from_bits(c[r]), a[row], b[column], 8 * e));
        }
        simt_move(lanes[l].part.out, d, sizeof d);
    }
}
