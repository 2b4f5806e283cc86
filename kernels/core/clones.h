/* GB10_CLONES in front of a function compiles it twice on x86-64, with AVX2 and fma as
 * instructions and for the baseline, and picks one at load time. Empty elsewhere: arm64 has fma in
 * its baseline. The sanitizers do not like functions that are resolved at load time. */
#ifndef GB10_CORE_CLONES_H
#define GB10_CORE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&                  \
    !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12 && !defined(__clang__)
#define GB10_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else /* fma brings AVX with it */
#define GB10_CLONES __attribute__((target_clones("fma", "default")))
#endif
#else
#define GB10_CLONES
#endif

/* For the small helpers of such a function, so that each clone gets its own copy. */
#define GB10_INLINE static inline __attribute__((always_inline))

#endif
