/* Counter-based random numbers: value = f(seed, stream, counter), the same on every machine. */
#ifndef GB10_CORE_RNG_H
#define GB10_CORE_RNG_H

#include <stdint.h>

/* Mixes one 64-bit word (the finaliser of splitmix64: Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t gb10_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The counter-th word of a stream. */
static inline uint64_t gb10_random(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t key = gb10_mix64(seed + 0x9e3779b97f4a7c15u * (stream + 1));
    return gb10_mix64(key + 0x9e3779b97f4a7c15u * (counter + 1));
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double gb10_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return (double)(gb10_random(seed, stream, counter) >> 11) * 0x1p-53;
}

#endif
