/* Each diagnosis of the runtime, provoked once: the report says what it is and on which line, and
 * the next launch works again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_cases.h"
#include "tests/simt/simt_each.h"
#include "tests/support/test.h"

typedef struct fault {
    int which;
    const char *report; /* part of it; NULL: the launch succeeds and its result is NaN */
} fault_t;

static _Alignas(64) float x[512];
static _Alignas(64) float out[128];
static unsigned words[4];

static gb10_status_t launch(case_fn *fn, int which, int n)
{
    for (int i = 0; i < 512; i++)
        x[i] = (float)i;
    memset(out, 0, sizeof out);
    memset(words, 0, sizeof words);
    case_args_t a = {.x = x, .out = out, .words = words, .n = n, .which = which};
    return fn(&a, NULL);
}

static void provoke(const fault_t *fault, int count)
{
    EACH_RUN(run)
    {
        if (run > 1)
            continue; /* the random ones may finish a copy in time */
        for (int i = 0; i < count; i++) {
#ifdef __SANITIZE_THREAD__ /* what gives NaN is a race as well, and ends the process */
            if (!fault[i].report)
                continue;
#endif
            gb10_status_t status = launch(case_fault, fault[i].which, run);
            if (!fault[i].report) {
                cr_expect(status == GB10_OK && isnan(out[0]), "fault %d: %g\n%s", fault[i].which,
                          (double)out[0], simt_report());
                continue;
            }
            cr_expect(status == GB10_ERR_DEVICE, "fault %d went unnoticed", fault[i].which);
            cr_expect(strstr(simt_report(), fault[i].report), "fault %d, not \"%s\":\n%s",
                      fault[i].which, fault[i].report, simt_report());
            cr_expect(strstr(simt_report(), "simt_faults.cu:"), "fault %d, no line:\n%s",
                      fault[i].which, simt_report());
        }
    }
}

Test(faults, barriers)
{
    static const fault_t fault[] = {
        {0, "threads 0..31: named barrier at"},
        {1, "livelock"},
        {2, "wait without an arrival"},
        {3, "second arrival without a wait"},
        {4, "others said"},
        {5, "named barrier 16: there are 1 to 15"},
        {6, "not whole warps"},
        {7, "livelock"},
        {8, "deadlock"},
        {9, "deadlock"},
    };
    provoke(fault, sizeof fault / sizeof *fault);
}

Test(faults, warps)
{
    static const fault_t fault[] = {
        {10, "divergent warp operation"}, {11, "reads lane 20, which is outside the mask 0xffff"},
        {12, "is not in its own mask"},   {13, "names lane 3, which has exited"},
        {14, "divergent warp operation"}, {15, "misaligned"},
        {16, "divergent warp operation"}, {17, "is not shared memory of this block"},
    };
    provoke(fault, sizeof fault / sizeof *fault);
}

Test(faults, mbarriers)
{
    static const fault_t fault[] = {
        {20, "used before its init"},
#ifndef __SANITIZE_ADDRESS__ /* built with UBSan, which stops the process at that line */
        {21, "not on 8 bytes"},
#endif
        {22, "more arrivals than its count of 1"},
        {23, "used before its init"},
        {24, "not in shared memory"},
        {25, "threads 0..0: mbarrier at"},
        {26, "setmaxnreg 100"},
        {27, "livelock"},
    };
    provoke(fault, sizeof fault / sizeof *fault);
}

Test(faults, copies)
{
    static const fault_t fault[] = {
        {30, "is not on 16 bytes"},
        {31, "not a multiple of 16"},
        {32, "exits with this copy in flight"},
        {33, NULL},
        {34, NULL},
        {35, "was overwritten"},
        {36, "past the end of shared memory"},
        {37, "not on 16 bytes"},
        {38, NULL},
        {39, "no tensor map"},
    };
    provoke(fault, sizeof fault / sizeof *fault);
}

Test(faults, memory)
{
    static const fault_t fault[] = {
        {40, "misaligned"},
        {41, NULL},
        {42, "is not shared memory of this block"},
        {43, "block 2 of a cluster of 2"},
        {44, NULL},
#ifndef __SANITIZE_ADDRESS__ /* which stops the process at that line */
        {45, NULL},
#endif
        {46, "has exited"},
        {47, "in different blocks"},
    };
    provoke(fault, sizeof fault / sizeof *fault);
}

Test(faults, limits)
{
    static const struct {
        int arch;
        case_fn *fn;
        int n;
        const char *report;
    } limit[] = {
        {121, case_fault_shared, 99 * 1024, NULL},
        {121, case_fault_shared, 99 * 1024 + 1, "limit of sm_121 is 101376"},
        {90, case_fault_shared, 227 * 1024, NULL},
        {90, case_fault_shared, 227 * 1024 + 1, "limit of sm_90 is 232448"},
        {121, case_fault_shared, 512, "the launch gave 512"},
        {121, case_fault_cluster, 8, NULL},
        {121, case_fault_cluster, 16, "limit is 8"},
        {121, case_fault_cluster, 3, "do not divide"},
        {121, case_fault_threads, 1024, NULL},
        {121, case_fault_threads, 1056, "limit is 1024"},
        {75, case_fault_threads, 32, "unknown architecture"},
    };
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
        simt_options_t o = simt_options_default();
        o.arch = limit[i].arch;
        simt_set_options(&o);
        int fault = limit[i].fn == case_fault_shared ? 11 : 1;
        gb10_status_t status = launch(limit[i].fn, fault, limit[i].n);
        /* A launch that the limits let through fails later, by its own fault. */
        cr_expect(status == GB10_ERR_DEVICE);
        const char *expected = limit[i].report;
        if (!expected)
            expected = limit[i].fn == case_fault_shared ? "outside the mask" : "livelock";
        cr_expect(strstr(simt_report(), expected), "%zu: %s", i, simt_report());
    }
}

Test(faults, recovery)
{
    float sum[1], values[64];
    for (int i = 0; i < 64; i++)
        values[i] = 1;
    for (int schedule = 0; schedule < SIMT_SCHEDULES; schedule++) {
        simt_options_t o = simt_options_default();
        o.schedule = (simt_schedule_t)schedule;
        simt_set_options(&o);
        cr_expect(launch(case_fault, 10, 0) == GB10_ERR_DEVICE);
        case_args_t a = {.x = values, .out = sum, .n = 1};
        gb10_error_t err = {0};
        cr_expect(case_shuffle(&a, &err) == GB10_OK && sum[0] == 64 && !simt_report()[0]);
    }
    gb10_error_t err = {0};
    case_args_t a = {.x = x, .out = out, .words = words, .which = 1};
    cr_expect(case_fault(&a, &err) == GB10_ERR_DEVICE && strstr(err.message, "livelock"));
}
