#include "app/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"

enum { PEAK_N = 1024, COLUMNS = 102, PLAIN = 111 }; /* the two: CBLAS */
#define DEFAULT_LEVEL2 ((int64_t)256 << 10)
#define DEFAULT_LAST   ((int64_t)32 << 20)

double bench_clock(int threads)
{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *bench_clock_name(int threads)
{
    return threads > 1 ? "wall time" : "processor time";
}

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

/* A number with K or M behind it that Linux tells of cache i of the first core; 0 when it does not.
 */
static int64_t cache_number(int i, const char *what)
{
    char path[96], text[32] = "", *end = text;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, what);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    long long number = fgets(text, sizeof text, file) ? strtoll(text, &end, 10) : 0;
    fclose(file);
    return number * (*end == 'K' ? 1024 : *end == 'M' ? 1 << 20 : 1);
}

/* The level-2 cache, and the largest one. */
static void find_caches(bench_machine_t *machine)
{
    int64_t level2 = 0, last = 0;
    for (int i = 0; i < 8; i++) {
        int64_t size = cache_number(i, "size");
        if (cache_number(i, "level") == 2)
            level2 = size;
        last = size > last ? size : last;
    }
    if (last <= 0)
        last = sysconf(_SC_LEVEL3_CACHE_SIZE);
    machine->level2 = level2 > 0 ? level2 : DEFAULT_LEVEL2;
    machine->last = last > 0 ? last : DEFAULT_LAST;
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

/* One product, by a thread of the crew: the factors are shared, the result is its own. */
static void multiply_doubles(void *ctx, int64_t part, int worker)
{
    enum { N = PEAK_N, SIZE = PEAK_N * PEAK_N };
    const bench_machine_t *machine = ctx;
    double *a = machine->work;
    dgemm_fn *gemm = (dgemm_fn *)dlsym(machine->library, "cblas_dgemm");
    (void)worker;
    gemm(COLUMNS, PLAIN, PLAIN, N, N, N, 1, a, N, a + SIZE, N, 0, a + (2 + part) * SIZE, N);
}

static void multiply_floats(void *ctx, int64_t part, int worker)
{
    enum { N = PEAK_N, SIZE = PEAK_N * PEAK_N };
    const bench_machine_t *machine = ctx;
    const size_t behind = (size_t)(2 + machine->threads) * SIZE * sizeof(double);
    float *a = (float *)(void *)((char *)machine->work + behind);
    sgemm_fn *gemm = (sgemm_fn *)dlsym(machine->library, "cblas_sgemm");
    (void)worker;
    gemm(COLUMNS, PLAIN, PLAIN, N, N, N, 1, a, N, a + SIZE, N, 0, a + (2 + part) * SIZE, N);
}

/* GF/s of a product by each thread. */
static double gemm_rate(bench_machine_t *machine, int is_double)
{
    int threads = machine->threads;
    if (!machine->library)
        return NAN;
    double start = bench_clock(threads);
    gb10_crew_run(machine->crew, 0, is_double ? multiply_doubles : multiply_floats, machine,
                  threads);
    double seconds = bench_clock(threads) - start;
    return 2.0 * PEAK_N * PEAK_N * PEAK_N * threads / seconds * 1e-9;
}

/* Opens OpenBLAS, which may not be there, and makes what it multiplies: two matrices of doubles and
 * a result for each thread, then the same of floats. */
static gb10_status_t open_library(bench_machine_t *machine, gb10_error_t *err)
{
    typedef void set_threads_fn(int n);
    typedef const char *config_fn(void);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    set_threads_fn *set = NULL;
    if (library && dlsym(library, "cblas_sgemm") && dlsym(library, "cblas_dgemm"))
        set = (set_threads_fn *)dlsym(library, "openblas_set_num_threads");
    if (!set) {
        snprintf(machine->peak_source, sizeof machine->peak_source,
                 "libopenblas.so.0 is not there; shares of P are left out");
        if (library)
            dlclose(library);
        return GB10_OK;
    }
    config_fn *config = (config_fn *)dlsym(library, "openblas_get_config");
    const char *name = config ? config() : "OpenBLAS";
    size_t words = strcspn(name, " ");
    words += name[words] ? 1 + strcspn(name + words + 1, " ") : 0;
    snprintf(machine->peak_source, sizeof machine->peak_source, "%.*s", (int)words, name);
    set(1); /* the crew's threads call it */
    machine->library = library;
    const size_t numbers = (size_t)(2 + machine->threads) * PEAK_N * PEAK_N;
    gb10_status_t status =
        gb10_alloc(&machine->work, numbers, sizeof(double) + sizeof(float), "products", err);
    for (size_t i = 0; i < numbers && status == GB10_OK; i++) {
        ((double *)machine->work)[i] = gb10_uniform(1, 0, i) - 0.5;
        ((float *)machine->work)[2 * numbers + i] = (float)gb10_uniform(1, 0, i) - 0.5F;
    }
    return status;
}

/* In vectors, so that memory and not the loop is the limit at every optimisation level. */
typedef double four_doubles_t __attribute__((vector_size(32)));

/* One part of the array, of as many as there are threads. */
static void scale(void *ctx, int64_t part, int worker)
{
    const bench_machine_t *machine = ctx;
    const four_doubles_t *from = machine->from;
    four_doubles_t *to = machine->to;
    int64_t n = machine->scaled / (int64_t)sizeof *to, end = n * (part + 1) / machine->threads;
    (void)worker;
    for (int64_t i = n * part / machine->threads; i < end; i++)
        to[i] = 3 * from[i];
    __asm__ volatile("" ::"r"(to) : "memory"); /* the pass is wanted, not its result */
}

static double scale_rate(bench_machine_t *machine)
{
    double start = bench_clock(machine->threads);
    gb10_crew_run(machine->crew, 0, scale, machine, machine->threads);
    return 2.0 * (double)machine->scaled / (bench_clock(machine->threads) - start);
}

static gb10_status_t make_arrays(bench_machine_t *machine, gb10_error_t *err)
{
    machine->scaled = 4 * machine->last / GB10_ALIGN * GB10_ALIGN;
    gb10_status_t status =
        gb10_alloc(&machine->from, (size_t)machine->scaled, 1, "scale loop", err);
    if (status == GB10_OK)
        status = gb10_alloc(&machine->to, (size_t)machine->scaled, 1, "scale loop", err);
    return status;
}

void bench_machine_begin(bench_machine_t *machine)
{
    machine->rounds = 0;
}

void bench_machine_measure(bench_machine_t *machine, const bench_case_t *c)
{
    int r = machine->rounds, is_double = c && gb10_dtype_is_double(c->dtype);
    if (r == BENCH_LIMIT_ROUNDS)
        return;
    for (int i = 0; i < 2; i++)
        machine->peaks[i][r] = !c || i == is_double ? gemm_rate(machine, i) : NAN;
    machine->bandwidths[r] = !c || c->place == BENCH_STREAM ? scale_rate(machine) : NAN;
    machine->rounds++;
}

void bench_machine_end(bench_machine_t *machine)
{
    for (int i = 0; i < 2; i++)
        machine->now.peak[i] = bench_median(machine->peaks[i], machine->rounds);
    machine->now.bandwidth = bench_median(machine->bandwidths, machine->rounds);
}

gb10_status_t bench_machine_open(bench_machine_t *machine, int threads, gb10_error_t *err)
{
    time_t now = time(NULL);
    struct tm local;
    gb10_status_t status = GB10_OK;
    *machine = (bench_machine_t){.threads = threads};
    find_caches(machine);
    name_cpu(machine->cpu, sizeof machine->cpu);
    read_command(machine->command, sizeof machine->command);
    strftime(machine->date, sizeof machine->date, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &local));
    GB10_TRY(gb10_crew_create(&machine->crew, threads, err));
    GB10_TRY(open_library(machine, err));
    GB10_TRY(make_arrays(machine, err));
    bench_machine_measure(machine, NULL); /* caches, pages and clock get warm */
    bench_machine_begin(machine);
    for (int r = 0; r < BENCH_LIMIT_ROUNDS; r++)
        bench_machine_measure(machine, NULL);
    bench_machine_end(machine);
    machine->start = machine->now;
cleanup:
    return status;
}

void bench_machine_close(bench_machine_t *machine)
{
    gb10_crew_destroy(machine->crew);
    gb10_free(machine->work);
    gb10_free(machine->from);
    gb10_free(machine->to);
    if (machine->library)
        dlclose(machine->library);
}
