#include "app/commit.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/core/alloc.h"

struct commit {
    io_output_t *output;
    io_journal_t *journal;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    io_journal_entry_t *waiting;
    size_t count, capacity;
    bool ending, failed;
    gb10_error_t error;
};

static gb10_status_t record(commit_t *c, const io_journal_entry_t *entries, size_t count,
                            gb10_error_t *err)
{
    gb10_status_t status = io_output_sync(c->output, err);
    return status == GB10_OK ? io_journal_done(c->journal, entries, (int64_t)count, err) : status;
}

static void *commit_main(void *argument)
{
    commit_t *c = argument;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->count == 0 && !c->ending)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->count == 0)
            break;
        io_journal_entry_t *entries = c->waiting;
        size_t count = c->count;
        bool skip = c->failed;
        gb10_error_t err = {0};
        c->waiting = NULL;
        c->count = c->capacity = 0;
        pthread_mutex_unlock(&c->lock);
        if (!skip)
            record(c, entries, count, &err);
        gb10_free(entries);
        pthread_mutex_lock(&c->lock);
        if (err.status != GB10_OK) {
            c->failed = true;
            c->error = err;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

gb10_status_t commit_create(commit_t **commit, io_output_t *output, io_journal_t *journal,
                            gb10_error_t *err)
{
    commit_t *c = NULL;
    gb10_status_t status = gb10_alloc(&c, 1, sizeof *c, "the commit thread", err);
    *commit = NULL;
    if (status != GB10_OK)
        return status;
    c->output = output;
    c->journal = journal;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (pthread_create(&c->thread, NULL, commit_main, c) != 0) {
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->lock);
        gb10_free(c);
        return GB10_FAIL(err, GB10_ERR_MEMORY, "cannot start a thread");
    }
    *commit = c;
    return GB10_OK;
}

static gb10_status_t failure(const commit_t *c, gb10_error_t *err)
{
    if (c->failed && err && err->status == GB10_OK)
        *err = c->error;
    return c->failed ? c->error.status : GB10_OK;
}

gb10_status_t commit_unit(commit_t *commit, int64_t unit, uint32_t crc, gb10_error_t *err)
{
    pthread_mutex_lock(&commit->lock);
    gb10_status_t status = failure(commit, err);
    if (status == GB10_OK)
        status = gb10_grow(&commit->waiting, &commit->capacity, commit->count + 1,
                           sizeof *commit->waiting, "units to record", err);
    if (status == GB10_OK)
        commit->waiting[commit->count++] = (io_journal_entry_t){unit, crc};
    pthread_cond_signal(&commit->changed);
    pthread_mutex_unlock(&commit->lock);
    return status;
}

gb10_status_t commit_finish(commit_t *commit, gb10_error_t *err)
{
    if (!commit)
        return GB10_OK;
    pthread_mutex_lock(&commit->lock);
    commit->ending = true;
    pthread_cond_signal(&commit->changed);
    pthread_mutex_unlock(&commit->lock);
    pthread_join(commit->thread, NULL);
    gb10_status_t status = failure(commit, err);
    pthread_cond_destroy(&commit->changed);
    pthread_mutex_destroy(&commit->lock);
    gb10_free(commit->waiting);
    gb10_free(commit);
    return status;
}
