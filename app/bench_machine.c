#include "app/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"
#include "kernels/core/stopwatch.h"

enum { PEAK_N = 1024, PEAK_REPEATS = 7, SCALE_REPEATS = 7, QUICK_REPEATS = 3 };
#define DEFAULT_CACHE ((int64_t)32 << 20)

/* First line of /proc/cpuinfo that begins with `key`: its value. */
static bool cpu_line(const char *key, char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (!value || strncmp(line, key, strlen(key)) != 0)
            continue;
        value += strspn(value, ": \t");
        snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static void name_cpu(char *text, size_t size)
{
    char maker[32], part[32];
    if (cpu_line("model name", text, size))
        return;
    if (cpu_line("CPU implementer", maker, sizeof maker) && cpu_line("CPU part", part, sizeof part))
        snprintf(text, size, "arm64 implementer %s part %s", maker, part);
    else
        snprintf(text, size, "unknown CPU");
}

/* The largest cache that Linux tells of. */
static int64_t last_cache(void)
{
    int64_t largest = 0;
    for (int i = 0; i < 8; i++) {
        char path[96], text[32] = "", *end = text;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(path, "r");
        if (!file)
            break;
        long long size = fgets(text, sizeof text, file) ? strtoll(text, &end, 10) : 0;
        fclose(file);
        size *= *end == 'K' ? 1024 : *end == 'M' ? 1 << 20 : 1;
        largest = size > largest ? size : largest;
    }
    if (largest <= 0)
        largest = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return largest > 0 ? largest : DEFAULT_CACHE;
}

/* The command line as it was typed, blanks between the words. */
static void read_command(char *text, size_t size)
{
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    while (length > 0 && !text[length - 1])
        length--;
    for (size_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = ' ';
    text[length] = 0;
}

/* CBLAS as OpenBLAS has it: order and transpositions are ints. */
typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                      int lda, const double *b, int ldb, double beta, double *c, int ldc);

static double gemm_seconds(void *library, int is_double, void *work)
{
    enum { COLUMNS = 102, PLAIN = 111, N = PEAK_N, SIZE = PEAK_N * PEAK_N };
    double start = gb10_seconds();
    if (is_double) {
        double *a = work;
        dgemm_fn *gemm = (dgemm_fn *)dlsym(library, "cblas_dgemm");
        gemm(COLUMNS, PLAIN, PLAIN, N, N, N, 1, a, N, a + SIZE, N, 0, a + 2 * SIZE, N);
    } else {
        float *a = work;
        sgemm_fn *gemm = (sgemm_fn *)dlsym(library, "cblas_sgemm");
        gemm(COLUMNS, PLAIN, PLAIN, N, N, N, 1, a, N, a + SIZE, N, 0, a + 2 * SIZE, N);
    }
    return gb10_seconds() - start;
}

/* P: the best of a few products, of a library that may not be there. */
static gb10_status_t measure_peak(bench_machine_t *machine, int repeats, gb10_error_t *err)
{
    typedef void set_threads_fn(int n);
    typedef const char *config_fn(void);
    void *work = NULL, *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    set_threads_fn *set =
        library ? (set_threads_fn *)dlsym(library, "openblas_set_num_threads") : NULL;
    config_fn *config = library ? (config_fn *)dlsym(library, "openblas_get_config") : NULL;
    gb10_status_t status = GB10_OK;
    machine->peak[0] = machine->peak[1] = NAN;
    if (!set || !dlsym(library, "cblas_sgemm") || !dlsym(library, "cblas_dgemm")) {
        snprintf(machine->peak_source, sizeof machine->peak_source,
                 "libopenblas.so.0 is not there; shares of P are left out");
        goto cleanup;
    }
    const char *name = config ? config() : "OpenBLAS";
    size_t words = strcspn(name, " ");
    words += name[words] ? 1 + strcspn(name + words + 1, " ") : 0;
    snprintf(machine->peak_source, sizeof machine->peak_source, "%.*s", (int)words, name);
    GB10_TRY(gb10_alloc(&work, (size_t)3 * PEAK_N * PEAK_N, sizeof(double), "products", err));
    for (int is_double = 0; is_double < 2; is_double++) {
        for (size_t i = 0; i < (size_t)3 * PEAK_N * PEAK_N; i++)
            if (is_double)
                ((double *)work)[i] = gb10_uniform(1, 0, i) - 0.5;
            else
                ((float *)work)[i] = (float)gb10_uniform(1, 0, i) - 0.5F;
        double best = INFINITY;
        set(machine->threads);
        for (int r = 0; r < repeats; r++)
            best = fmin(best, gemm_seconds(library, is_double, work));
        machine->peak[is_double] = 2.0 * PEAK_N * PEAK_N * PEAK_N / best * 1e-9;
    }
cleanup:
    gb10_free(work);
    if (library)
        dlclose(library);
    return status;
}

/* In vectors, so that memory and not the loop is the limit at every optimisation level. */
typedef double four_doubles_t __attribute__((vector_size(32)));
static void scale(four_doubles_t *restrict to, const four_doubles_t *restrict from, double factor,
                  int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = factor * from[i];
}

/* W: bytes read and written of the best of a few passes. */
static gb10_status_t measure_bandwidth(bench_machine_t *machine, int repeats, gb10_error_t *err)
{
    four_doubles_t *from = NULL, *to = NULL;
    double best = INFINITY;
    int64_t n = 4 * machine->cache / (int64_t)sizeof *from;
    gb10_status_t status = GB10_OK;
    machine->scaled = n * (int64_t)sizeof *from;
    GB10_TRY(gb10_alloc(&from, (size_t)n, sizeof *from, "scale loop", err));
    GB10_TRY(gb10_alloc(&to, (size_t)n, sizeof *to, "scale loop", err));
    for (int64_t i = 0; i < n; i++)
        from[i] = to[i] = (four_doubles_t){1, 1, 1, 1};
    for (int r = 0; r < repeats; r++) {
        double start = gb10_seconds();
        scale(to, from, 1 + r, n);
        __asm__ volatile("" ::"r"(to) : "memory"); /* the passes are wanted, not their result */
        best = fmin(best, gb10_seconds() - start);
    }
    machine->bandwidth = 2.0 * (double)machine->scaled / best;
cleanup:
    gb10_free(from);
    gb10_free(to);
    return status;
}

gb10_status_t bench_machine_look(bench_machine_t *machine, int threads, bool quick,
                                 gb10_error_t *err)
{
    time_t now = time(NULL);
    struct tm local;
    gb10_status_t status;
    *machine = (bench_machine_t){.threads = threads, .cache = last_cache()};
    name_cpu(machine->cpu, sizeof machine->cpu);
    read_command(machine->command, sizeof machine->command);
    strftime(machine->date, sizeof machine->date, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &local));
    status = measure_peak(machine, quick ? QUICK_REPEATS : PEAK_REPEATS, err);
    if (status == GB10_OK)
        status = measure_bandwidth(machine, quick ? QUICK_REPEATS : SCALE_REPEATS, err);
    return status;
}
