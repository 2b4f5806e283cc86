#include "app/bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/core/alloc.h"
#include "kernels/core/stopwatch.h"

enum { COMMAND_MAX = 128, REASON_MAX = 256 };

/* How a conversation with a peer went. */
typedef enum answer { ANSWER_LINE, ANSWER_END, ANSWER_LATE, ANSWER_LONG } answer_t;

/* Ends a peer; *code is its wait status, -1 when it had to be killed. */
static void put_away(bench_peer_t *peer, int *code)
{
    int status = 0;
    pid_t done = 0;
    close(peer->to);
    close(peer->from);
    for (int i = 0; i < 50 && done == 0; i++) { /* it has seen the end of its input */
        done = waitpid(peer->pid, &status, WNOHANG);
        if (done == 0)
            poll(NULL, 0, 10);
    }
    kill(-peer->pid, SIGKILL); /* what it started is in its group */
    if (done == 0)
        waitpid(peer->pid, &status, 0);
    *code = done > 0 ? status : -1;
    peer->alive = false;
}

/* Says why a peer is left out from here on, and ends it. */
static void leave_out(const bench_peers_t *peers, bench_peer_t *peer, const char *doing,
                      const char *format, ...)
{
    char why[REASON_MAX];
    va_list args;
    int code;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    put_away(peer, &code);
    app_log(peers->app, APP_WARN, "peer %s %s (%s); it is left out.", peer->name, why, doing);
}

/* The next line of a peer, without its end, within the time. The line stays valid until the next
 * call. */
static answer_t read_line(bench_peer_t *peer, double timeout, char *line, size_t size)
{
    double end = gb10_seconds() + timeout;
    for (;;) {
        char *stop = memchr(peer->line, '\n', peer->have);
        if (stop) {
            size_t length = (size_t)(stop - peer->line);
            snprintf(line, size, "%.*s", (int)length, peer->line);
            peer->have -= length + 1;
            memmove(peer->line, stop + 1, peer->have);
            return ANSWER_LINE;
        }
        if (peer->have == sizeof peer->line)
            return ANSWER_LONG;
        struct pollfd wait = {.fd = peer->from, .events = POLLIN};
        double left = end - gb10_seconds();
        int ready = left > 0 ? poll(&wait, 1, (int)ceil(left * 1000)) : 0;
        if (ready == 0)
            return ANSWER_LATE;
        if (ready < 0)
            continue; /* a signal; the clock goes on */
        ssize_t got = read(peer->from, peer->line + peer->have, sizeof peer->line - peer->have);
        if (got == 0 || (got < 0 && errno != EINTR))
            return ANSWER_END;
        peer->have += got > 0 ? (size_t)got : 0;
    }
}

/* Reads a line; a peer that gives none is left out. */
static bool hear(const bench_peers_t *peers, bench_peer_t *peer, const char *doing, char *line,
                 size_t size)
{
    int code;
    switch (read_line(peer, peers->timeout, line, size)) {
    case ANSWER_LINE:
        return true;
    case ANSWER_LATE:
        leave_out(peers, peer, doing, "gave no answer within %g s", peers->timeout);
        break;
    case ANSWER_LONG:
        leave_out(peers, peer, doing, "wrote a line of more than %zu bytes", sizeof peer->line);
        break;
    case ANSWER_END:
        put_away(peer, &code);
        if (code != -1 && WIFSIGNALED(code))
            app_log(peers->app, APP_WARN, "peer %s was ended by signal %d (%s); it is left out.",
                    peer->name, WTERMSIG(code), doing);
        else
            app_log(peers->app, APP_WARN, "peer %s ended with code %d (%s); it is left out.",
                    peer->name, code == -1 ? -1 : WEXITSTATUS(code), doing);
        break;
    }
    return false;
}

/* Sends one line. That a peer is gone shows when its answer is read. */
static void tell(const bench_peer_t *peer, const char *command)
{
    char line[COMMAND_MAX + 1];
    int length = snprintf(line, sizeof line, "%s\n", command);
    for (int at = 0; at < length;) {
        ssize_t put = write(peer->to, line + at, (size_t)(length - at));
        if (put < 0 && errno != EINTR)
            return;
        at += put > 0 ? (int)put : 0;
    }
}

/* ---- start ---- */

static gb10_status_t launch(bench_peer_t *peer, const char *path, gb10_error_t *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "no pipe: %s", strerror(errno));
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return GB10_FAIL(err, GB10_ERR_FILE, "no pipe: %s", strerror(errno));
    }
    fflush(stdout);
    fflush(stderr);
    peer->pid = fork();
    if (peer->pid == 0) {
        setpgid(0, 0);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    peer->to = in[1];
    peer->from = out[0];
    if (peer->pid < 0) {
        close(in[1]);
        close(out[0]);
        return GB10_FAIL(err, GB10_ERR_FILE, "no process: %s", strerror(errno));
    }
    setpgid(peer->pid, peer->pid);
    peer->alive = true;
    return GB10_OK;
}

/* "algorithm NAME TYPES LACKS..." */
static bool add_algorithm(bench_peer_t *peer, const char *line)
{
    bench_algorithm_t a = {.nratios = 0};
    if (peer->nalgorithms == BENCH_ALGORITHMS_MAX ||
        sscanf(line, "algorithm %23s %7s %95[^\n]", a.name, a.types, a.lacks) != 3)
        return false;
    peer->algorithms[peer->nalgorithms++] = a;
    return true;
}

/* What a peer says of itself, up to "ready". */
static void introduce(const bench_peers_t *peers, bench_peer_t *peer)
{
    char line[sizeof peer->line];
    while (hear(peers, peer, "start", line, sizeof line)) {
        if (strcmp(line, "ready") == 0)
            return;
        if (strncmp(line, "cannot ", 7) == 0) {
            leave_out(peers, peer, "start", "cannot run: %.200s", line + 7);
            return;
        }
        if (sscanf(line, "peer %31s %95[^\n]", peer->name, peer->version) >= 1)
            continue;
        if (!add_algorithm(peer, line)) {
            leave_out(peers, peer, "start", "said '%.100s'", line);
            return;
        }
    }
}

static int is_peer(const struct dirent *entry)
{
    return strncmp(entry->d_name, "peer_", 5) == 0;
}

/* BLAS libraries read these when they are loaded. */
static void ask_for_one_thread(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                        "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], "1", 1);
}

gb10_status_t bench_peers_open(bench_peers_t *peers, const char *folder, gb10_error_t *err)
{
    struct dirent **entries = NULL;
    gb10_status_t status = GB10_OK;
    int n = scandir(folder, &entries, is_peer, alphasort);
    if (n < 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "no peers: %s: %s", folder, strerror(errno));
    signal(SIGPIPE, SIG_IGN); /* a peer that is gone is noticed by its answer */
    ask_for_one_thread();
    GB10_TRY(gb10_alloc(&peers->list, BENCH_PEERS_MAX, sizeof *peers->list, "peers", err));
    for (int i = 0; i < n && peers->n < BENCH_PEERS_MAX; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (access(path, X_OK) != 0)
            continue;
        bench_peer_t *peer = &peers->list[peers->n];
        snprintf(peer->name, sizeof peer->name, "%.31s", entries[i]->d_name + 5);
        GB10_TRY(launch(peer, path, err));
        peers->n++;
        introduce(peers, peer);
    }
cleanup:
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return status;
}

void bench_peers_close(bench_peers_t *peers)
{
    int code;
    for (int i = 0; i < peers->n; i++) {
        if (peers->list[i].alive)
            put_away(&peers->list[i], &code);
        for (int a = 0; a < peers->list[i].nalgorithms; a++)
            gb10_free(peers->list[i].algorithms[a].ratios);
    }
    gb10_free(peers->list);
    peers->list = NULL;
    peers->n = 0;
}

/* ---- work ---- */

void bench_peers_prepare(bench_peers_t *peers, const bench_case_t *c)
{
    char command[COMMAND_MAX], line[sizeof peers->list->line];
    char letter = gb10_dtype_letter(c->dtype);
    snprintf(command, sizeof command, "prepare %c %lld %lld %lld %lld col", letter, (long long)c->m,
             (long long)c->n, (long long)c->nb, (long long)c->count);
    for (int i = 0; i < peers->n; i++)
        if (peers->list[i].alive)
            tell(&peers->list[i], command); /* all make their batch at the same time */
    for (int i = 0; i < peers->n; i++) {
        bench_peer_t *peer = &peers->list[i];
        for (int a = 0; a < peer->nalgorithms; a++)
            peer->algorithms[a].timing = (bench_timing_t){.n = 0, .per_matrix = NAN};
        if (!peer->alive || !hear(peers, peer, command, line, sizeof line))
            continue;
        bool can = strcmp(line, "ok") == 0;
        if (!can && strncmp(line, "no ", 3) != 0)
            leave_out(peers, peer, command, "said '%.100s'", line);
        for (int a = 0; a < peer->nalgorithms; a++)
            if (can && strchr(peer->algorithms[a].types, letter))
                peer->algorithms[a].timing.matrices = 1;
    }
}

double bench_peer_run(bench_peers_t *peers, bench_peer_t *peer, const bench_algorithm_t *algorithm,
                      int64_t matrices)
{
    char command[COMMAND_MAX], line[sizeof peer->line], *end;
    if (!peer->alive)
        return NAN;
    snprintf(command, sizeof command, "run %s %lld", algorithm->name, (long long)matrices);
    tell(peer, command);
    if (!hear(peers, peer, command, line, sizeof line))
        return NAN;
    if (strncmp(line, "seconds ", 8) == 0) {
        double seconds = strtod(line + 8, &end);
        if (end > line + 8 && !*end && seconds > 0 && isfinite(seconds))
            return seconds;
    }
    if (strncmp(line, "no ", 3) == 0)
        app_log(peers->app, APP_DEBUG, "peer %s: %s: %s", peer->name, command, line);
    else
        leave_out(peers, peer, command, "said '%.100s'", line);
    return NAN;
}

gb10_status_t bench_peers_compare(bench_peers_t *peers, double per_matrix, gb10_error_t *err)
{
    for (int i = 0; i < peers->n; i++)
        for (int j = 0; j < peers->list[i].nalgorithms; j++) {
            bench_algorithm_t *a = &peers->list[i].algorithms[j];
            if (!(a->timing.per_matrix > 0))
                continue;
            gb10_status_t status = gb10_grow(&a->ratios, &a->capacity, a->nratios + 1,
                                             sizeof *a->ratios, "ratios", err);
            if (status != GB10_OK)
                return status;
            a->ratios[a->nratios++] = a->timing.per_matrix / per_matrix;
        }
    return GB10_OK;
}

const bench_algorithm_t *bench_peers_best(const bench_peers_t *peers, const bench_peer_t **peer)
{
    const bench_algorithm_t *best = NULL;
    *peer = NULL;
    for (int i = 0; i < peers->n; i++)
        for (int j = 0; j < peers->list[i].nalgorithms; j++) {
            const bench_algorithm_t *a = &peers->list[i].algorithms[j];
            if (a->timing.per_matrix > 0 &&
                (!best || a->timing.per_matrix < best->timing.per_matrix)) {
                best = a;
                *peer = &peers->list[i];
            }
        }
    return best;
}
