#include "io/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

static uint32_t table[256];
static bool machine_has_it;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
        table[i] = c;
    }
#if defined(__x86_64__)
    machine_has_it = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    machine_has_it = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

static uint32_t by_table(uint32_t c, const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        c = c >> 8 ^ table[(c ^ p[i]) & 255];
    return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_machine(uint32_t c, const unsigned char *p,
                                                             size_t size)
{
    uint64_t c8 = c, x;
    for (; size >= 8; size -= 8, p += 8) {
        memcpy(&x, p, 8);
        c8 = _mm_crc32_u64(c8, x);
    }
    return by_table((uint32_t)c8, p, size);
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) static uint32_t by_machine(uint32_t c, const unsigned char *p,
                                                           size_t size)
{
    uint64_t x;
    for (; size >= 8; size -= 8, p += 8) {
        memcpy(&x, p, 8);
        c = __builtin_aarch64_crc32cx(c, x);
    }
    return by_table(c, p, size);
}
#else
#define by_machine by_table
#endif

uint32_t io_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&once, prepare);
    return ~(machine_has_it ? by_machine(~crc, bytes, size) : by_table(~crc, bytes, size));
}
