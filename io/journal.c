#include "io/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/crc.h"
#include "io/fault.h"
#include "io/part.h"
#include "io/rawfile.h"
#include "kernels/core/alloc.h"

enum { VERSION = 1, RECENT = 4, HALF = 20 };
enum { DONE = 1, UNDONE = 2, CRASHED = 3 };
static const char magic[8] = "FUGUJRNL";

typedef struct header {
    char magic[8];
    int32_t version, run, writer;
    uint32_t identity_size;
    int64_t units;
    uint32_t identity_crc, crc; /* crc: of the bytes before it */
} header_t;

/* seq counts a journal's records from 0: a record at the wrong place is none. */
typedef struct record {
    int64_t unit, seq;
    uint32_t type, data_crc;
    uint32_t spare, crc;
} record_t;

struct io_journal {
    char *name, *part;
    int fd, run;
    int64_t at, seq, units;
    pthread_mutex_t lock;
};

static uint32_t header_crc(const header_t *h)
{
    return io_crc32c(0, h, offsetof(header_t, crc));
}

static record_t make_record(uint32_t type, int64_t unit, int64_t seq, uint32_t data_crc)
{
    record_t r = {.unit = unit, .seq = seq, .type = type, .data_crc = data_crc};
    r.crc = io_crc32c(0, &r, offsetof(record_t, crc));
    return r;
}

/* ---- the folder ---- */

typedef gb10_status_t visit_fn(void *ctx, const char *path, int run, gb10_error_t *err);

/* Calls visit for every journal of `part`. */
static gb10_status_t for_journals(const char *part, visit_fn *visit, void *ctx, gb10_error_t *err)
{
    gb10_status_t status;
    char *folder = NULL, *base = NULL, path[PATH_MAX + 64];
    DIR *dir = NULL;
    GB10_TRY(gb10_strdup(&folder, part, err));
    GB10_TRY(gb10_strdup(&base, part, err));
    const char *in = dirname(folder), *of = basename(base);
    size_t length = strlen(of);
    dir = opendir(in);
    if (!dir) {
        status = GB10_FAIL(err, GB10_ERR_FILE, "the folder of %s cannot be read: %s.", part,
                           strerror(errno));
        goto cleanup;
    }
    for (const struct dirent *entry; status == GB10_OK && (entry = readdir(dir));) {
        int run = 0, writer = 0, end = 0;
        const char *name = entry->d_name;
        if (strncmp(name, of, length) != 0 ||
            sscanf(name + length, ".journal.%d.%d%n", &run, &writer, &end) != 2 ||
            name[length + (size_t)end])
            continue;
        snprintf(path, sizeof path, "%s/%s", in, name);
        status = visit(ctx, path, run, err);
    }
cleanup:
    if (dir)
        closedir(dir);
    gb10_free(folder);
    gb10_free(base);
    return status;
}

/* ---- reading ---- */

typedef struct reading {
    const char *part, *identity;
    int64_t units;
    io_unit_state_t *state;
    int last_run;
} reading_t;

/* The whole file; what is read stands for what there is. */
static gb10_status_t load(const char *path, char **bytes, size_t *size, gb10_error_t *err)
{
    struct stat info;
    gb10_status_t status = GB10_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be read: %s.", path, strerror(errno));
        goto cleanup;
    }
    *size = (size_t)info.st_size;
    GB10_TRY(gb10_alloc(bytes, *size + 1, 1, "a journal", err));
    GB10_TRY(io_raw_read(fd, *bytes, *size, 0, path, "the journal", err));
cleanup:
    if (fd >= 0)
        close(fd);
    return status;
}

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

/* Names the first line in which the identities differ. */
static gb10_status_t differs(const reading_t *r, const char *theirs, gb10_error_t *err)
{
    const char *ours = r->identity;
    for (;;) {
        size_t a = line_length(ours), b = line_length(theirs);
        if (a != b || memcmp(ours, theirs, a) != 0)
            return GB10_FAIL(err, GB10_ERR_EXISTS,
                             "%s was begun with \"%.*s\", and now it is \"%.*s\". Use what it was "
                             "begun with, or --overwrite to start again.",
                             r->part, (int)b, theirs, (int)a, ours);
        if (!ours[a] || !theirs[b])
            return GB10_FAIL(err, GB10_ERR_EXISTS,
                             "%s was begun by another version of fugu. Use --overwrite to start "
                             "again.",
                             r->part);
        ours += a + 1;
        theirs += b + 1;
    }
}

static void take_records(const reading_t *r, int32_t run, const char *from, size_t size)
{
    int64_t last[RECENT], n = 0;
    for (; size >= sizeof(record_t); from += sizeof(record_t), size -= sizeof(record_t)) {
        record_t x;
        memcpy(&x, from, sizeof x);
        if (x.crc != io_crc32c(0, &x, offsetof(record_t, crc)) || x.seq != n || x.unit < 0 ||
            x.unit >= r->units)
            break;
        io_unit_state_t *s = &r->state[x.unit];
        if (x.type == CRASHED)
            s->crashes += s->crashes < UINT8_MAX;
        if (x.type == UNDONE && run > s->undone_run)
            s->undone_run = run;
        if (x.type == DONE && run > s->done_run) {
            s->done_run = run;
            s->crc = x.data_crc;
        }
        s->done = s->done_run > s->undone_run;
        last[n++ % RECENT] = x.unit;
    }
    for (int64_t i = 0; i < n && i < RECENT; i++)
        r->state[last[i]].recent = 1;
}

static gb10_status_t read_one(void *ctx, const char *path, int run, gb10_error_t *err)
{
    reading_t *r = ctx;
    char *bytes = NULL;
    size_t size = 0;
    header_t h;
    gb10_status_t status;
    GB10_TRY(load(path, &bytes, &size, err));
    r->last_run = run > r->last_run ? run : r->last_run;
    if (size < sizeof h)
        goto cleanup; /* killed before its header was there */
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.crc != header_crc(&h) ||
        size - sizeof h < h.identity_size ||
        h.identity_crc != io_crc32c(0, bytes + sizeof h, h.identity_size))
        goto cleanup;
    char *text = bytes + sizeof h, *records = text + h.identity_size, first = *records;
    *records = 0; /* load left room for one more byte */
    if (h.version != VERSION || strcmp(text, r->identity) != 0 || h.units != r->units)
        status = differs(r, text, err);
    *records = first;
    if (status == GB10_OK)
        take_records(r, h.run, records, size - sizeof h - h.identity_size);
cleanup:
    gb10_free(bytes);
    return status;
}

gb10_status_t io_journal_read(const char *part, const char *identity, int64_t units,
                              io_unit_state_t *state, int *last_run, gb10_error_t *err)
{
    reading_t r = {.part = part, .identity = identity, .units = units, .state = state};
    memset(state, 0, (size_t)units * sizeof *state);
    gb10_status_t status = for_journals(part, read_one, &r, err);
    *last_run = r.last_run;
    return status;
}

/* ---- writing ---- */

static gb10_status_t sync_journal(const io_journal_t *j, gb10_error_t *err)
{
    int pretend = io_fault(IO_FAULT_COMMIT);
    if (!pretend && fdatasync(j->fd) == 0)
        return GB10_OK;
    int reason = pretend ? pretend : errno;
    return GB10_FAIL(err, reason == ENOSPC || reason == EDQUOT ? GB10_ERR_SPACE : GB10_ERR_FILE,
                     "%s: sync failed: %s.", j->name, strerror(reason));
}

gb10_status_t io_journal_create(io_journal_t **journal, const char *part, int run, int writer,
                                const char *identity, int64_t units, gb10_error_t *err)
{
    gb10_status_t status;
    io_journal_t *j = NULL;
    size_t size = strlen(part) + 48, length = strlen(identity);
    header_t h = {.version = VERSION, .run = run, .writer = writer, .units = units};
    *journal = NULL;
    GB10_TRY(gb10_alloc(&j, 1, sizeof *j, "a journal", err));
    j->fd = -1;
    pthread_mutex_init(&j->lock, NULL);
    j->run = run;
    j->units = units;
    GB10_TRY(gb10_strdup(&j->part, part, err));
    GB10_TRY(gb10_alloc(&j->name, size, 1, "a path", err));
    snprintf(j->name, size, "%s.journal.%d.%d", part, run, writer);
    j->fd = open(j->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (j->fd < 0) {
        status = GB10_FAIL(err, errno == ENOSPC || errno == EDQUOT ? GB10_ERR_SPACE : GB10_ERR_FILE,
                           "%s cannot be created: %s.", j->name, strerror(errno));
        goto cleanup;
    }
    memcpy(h.magic, magic, sizeof magic);
    h.identity_size = (uint32_t)length;
    h.identity_crc = io_crc32c(0, identity, length);
    h.crc = header_crc(&h);
    GB10_TRY(io_raw_write(j->fd, &h, sizeof h, 0, j->name, "the header", err));
    GB10_TRY(io_raw_write(j->fd, identity, length, sizeof h, j->name, "the header", err));
    j->at = (int64_t)(sizeof h + length);
    GB10_TRY(sync_journal(j, err));
    GB10_TRY(io_sync_folder(part, err));
    *journal = j;
    j = NULL;
cleanup:
    io_journal_close(j);
    return status;
}

/* Half of a record and then the rest, so that a test can stop in between. */
static gb10_status_t put(io_journal_t *j, const record_t *r, gb10_error_t *err)
{
    const char *bytes = (const char *)r;
    gb10_status_t status = io_raw_write(j->fd, bytes, HALF, j->at, j->name, "a record", err);
    int pretend = io_fault(IO_FAULT_APPEND);
    if (status == GB10_OK && pretend)
        status = GB10_FAIL(err, pretend == EIO ? GB10_ERR_FILE : GB10_ERR_SPACE,
                           "%s: a record could not be written: %s. Free some space and use "
                           "--resume.",
                           j->name, strerror(pretend));
    if (status == GB10_OK)
        status = io_raw_write(j->fd, bytes + HALF, sizeof *r - HALF, j->at + HALF, j->name,
                              "a record", err);
    if (status == GB10_OK) {
        j->at += (int64_t)sizeof *r;
        j->seq++;
    }
    return status;
}

/* Records of one type, made to last by one sync. */
static gb10_status_t append(io_journal_t *j, uint32_t type, const io_journal_entry_t *entries,
                            int64_t count, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    pthread_mutex_lock(&j->lock);
    for (int64_t i = 0; i < count && status == GB10_OK; i++) {
        record_t r = make_record(type, entries[i].unit, j->seq, entries[i].crc);
        status = put(j, &r, err);
    }
    if (status == GB10_OK)
        status = sync_journal(j, err);
    pthread_mutex_unlock(&j->lock);
    return status;
}

gb10_status_t io_journal_done(io_journal_t *journal, const io_journal_entry_t *entries,
                              int64_t count, gb10_error_t *err)
{
    int pretend = io_fault(IO_FAULT_BETWEEN);
    if (pretend)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: a record could not be written: %s.",
                         journal->name, strerror(pretend));
    return append(journal, DONE, entries, count, err);
}

gb10_status_t io_journal_undone(io_journal_t *journal, int64_t unit, gb10_error_t *err)
{
    return append(journal, UNDONE, &(io_journal_entry_t){unit, 0}, 1, err);
}

gb10_status_t io_journal_compact(io_journal_t *journal, const io_unit_state_t *state,
                                 gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    for (int64_t i = 0; i < journal->units; i++) {
        for (int c = 0; c < state[i].crashes; c++) {
            record_t r = make_record(CRASHED, i, journal->seq, 0);
            GB10_TRY(put(journal, &r, err));
        }
        record_t r = make_record(DONE, i, journal->seq, state[i].crc);
        if (state[i].done)
            GB10_TRY(put(journal, &r, err));
    }
    GB10_TRY(sync_journal(journal, err));
    GB10_TRY(io_journal_remove(journal->part, journal->run - 1, err));
cleanup:
    return status;
}

/* No lock: the program is ending. A record that another thread was writing is torn, at worst. */
void io_journal_crashed(io_journal_t *journal, int64_t unit)
{
    record_t r = make_record(CRASHED, unit, journal->seq, 0);
    ssize_t ignored = pwrite(journal->fd, &r, sizeof r, journal->at);
    (void)ignored;
}

void io_journal_close(io_journal_t *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    pthread_mutex_destroy(&journal->lock);
    gb10_free(journal->name);
    gb10_free(journal->part);
    gb10_free(journal);
}

/* ---- the end ---- */

static gb10_status_t count_one(void *ctx, const char *path, int run, gb10_error_t *err)
{
    (void)path;
    (void)run;
    (void)err;
    ++*(int *)ctx;
    return GB10_OK;
}

gb10_status_t io_journal_bury(const char *part, gb10_error_t *err)
{
    int fd, journals = 0;
    gb10_error_t ignored = {0};
    if (io_part_reopen(part, &fd, &ignored) != GB10_OK)
        return GB10_OK;
    /* under its lock: a maker that lives holds it until it has a journal */
    gb10_status_t status = for_journals(part, count_one, &journals, err);
    if (status == GB10_OK && journals == 0)
        io_part_remove(fd, part);
    close(fd);
    return status;
}

static gb10_status_t remove_one(void *ctx, const char *path, int run, gb10_error_t *err)
{
    const int *last_run = ctx;
    if (run <= *last_run && unlink(path) != 0 && errno != ENOENT)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be removed: %s.", path, strerror(errno));
    return GB10_OK;
}

gb10_status_t io_journal_remove(const char *part, int last_run, gb10_error_t *err)
{
    return for_journals(part, remove_one, &last_run, err);
}
