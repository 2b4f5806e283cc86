/* Checksums and journals: what is read is what was appended, up to the first damage. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/crc.h"
#include "io/journal.h"
#include "tests/support/io_files.h"

enum { UNITS = 40 };
static const char identity[] = "input = a\noptions = b\n";

Test(journal, crc_of_known_texts)
{
    /* The check value of the polynomial, and 32 zeros and 32 ones of RFC 3720, B.4. */
    unsigned char zeros[32] = {0}, ones[32];
    memset(ones, 0xFF, sizeof ones);
    cr_expect_eq(io_crc32c(0, "123456789", 9), 0xE3069283u);
    cr_expect_eq(io_crc32c(0, zeros, 32), 0x8A9136AAu);
    cr_expect_eq(io_crc32c(0, ones, 32), 0x62A8AB43u);
    for (size_t cut = 0; cut <= 9; cut++)
        cr_expect_eq(io_crc32c(io_crc32c(0, "123456789", cut), "123456789" + cut, 9 - cut),
                     0xE3069283u);
}

static io_journal_t *begin(int run, int writer)
{
    io_journal_t *j = NULL;
    gb10_error_t err = {0};
    cr_assert_eq(io_journal_create(&j, "out.h5.part", run, writer, identity, UNITS, &err), GB10_OK,
                 "%s", err.message);
    return j;
}

/* Units that the journals call done. */
static int count(io_unit_state_t *state, int *last_run)
{
    gb10_error_t err = {0};
    int done = 0;
    cr_assert_eq(io_journal_read("out.h5.part", identity, UNITS, state, last_run, &err), GB10_OK,
                 "%s", err.message);
    for (int i = 0; i < UNITS; i++)
        done += state[i].done;
    return done;
}

Test(journal, keeps_what_is_done)
{
    io_unit_state_t state[UNITS];
    char folder[256];
    int last_run = -1;
    enter_folder(folder);
    cr_expect(count(state, &last_run) == 0 && last_run == 0);
    io_journal_t *a = begin(1, 0), *b = begin(1, 1);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(
            io_journal_done(i % 2 ? a : b, &(io_journal_entry_t){i, 100u + (uint32_t)i}, 1, NULL),
            GB10_OK);
    cr_expect(count(state, &last_run) == 10 && last_run == 1);
    for (int i = 0; i < 10; i++)
        cr_expect(state[i].crc == 100u + (uint32_t)i && state[i].recent == (i >= 2));
    /* not done after all, whoever wrote that it was; and a crash does not change that */
    cr_assert_eq(io_journal_undone(a, 4, NULL), GB10_OK);
    io_journal_crashed(b, 3);
    cr_expect(count(state, &last_run) == 9 && !state[4].done);
    cr_expect(state[3].done && state[3].crashes == 1);
    io_journal_close(a);
    io_journal_close(b);
    /* a later run takes all over and does unit 4 again */
    a = begin(2, 0);
    cr_assert_eq(io_journal_compact(a, state, NULL), GB10_OK);
    cr_expect(access("out.h5.part.journal.1.0", F_OK) != 0 && count(state, &last_run) == 9);
    cr_assert_eq(io_journal_done(a, &(io_journal_entry_t){4, 7}, 1, NULL), GB10_OK);
    cr_expect(count(state, &last_run) == 10 && last_run == 2 && state[4].crc == 7);
    cr_expect_eq(state[3].crashes, 1);
    io_journal_close(a);
    cr_assert_eq(io_journal_remove("out.h5.part", INT_MAX, NULL), GB10_OK);
    cr_expect(count(state, &last_run) == 0 && last_run == 0);
    leave_folder(folder);
}

/* Whatever byte is wrong and wherever the file ends: nothing is done that was not recorded. */
Test(journal, damage_only_loses_records)
{
    static const char name[] = "out.h5.part.journal.1.0";
    io_unit_state_t state[UNITS];
    char folder[256];
    struct stat info;
    int last_run, fewer = 0;
    enter_folder(folder);
    io_journal_t *j = begin(1, 0);
    io_journal_entry_t entries[6];
    for (int i = 0; i < 6; i++)
        entries[i] = (io_journal_entry_t){3 * i, 50u + (uint32_t)i};
    cr_assert_eq(io_journal_done(j, entries, 1, NULL), GB10_OK);
    cr_assert_eq(io_journal_done(j, entries + 1, 5, NULL), GB10_OK);
    io_journal_close(j);
    cr_assert_eq(stat(name, &info), 0);
    int fd = open(name, O_RDWR);
    for (off_t at = 0; at < info.st_size; at++) {
        unsigned char byte, wrong;
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        wrong = byte ^ (unsigned char)(1 << at % 8);
        cr_assert_eq(pwrite(fd, &wrong, 1, at), 1);
        int done = count(state, &last_run);
        for (int i = 0; i < UNITS; i++)
            cr_assert(!state[i].done || (i % 3 == 0 && state[i].crc == 50u + (uint32_t)(i / 3)),
                      "byte %ld: unit %d", (long)at, i);
        fewer += done < 6;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    }
    cr_expect_eq(fewer, (int)info.st_size, "a flipped bit that nobody noticed");
    for (off_t size = info.st_size; size >= 0; size--) {
        cr_assert_eq(ftruncate(fd, size), 0);
        int done = count(state, &last_run);
        cr_assert(done <= 6 && (size == info.st_size) == (done == 6), "cut at %ld", (long)size);
    }
    close(fd);
    leave_folder(folder);
}

Test(journal, names_what_differs)
{
    io_unit_state_t state[UNITS];
    char folder[256];
    gb10_error_t err = {0};
    int last_run;
    enter_folder(folder);
    io_journal_close(begin(1, 0));
    cr_expect_eq(
        io_journal_read("out.h5.part", "input = a\noptions = c\n", UNITS, state, &last_run, &err),
        GB10_ERR_EXISTS);
    cr_expect_not_null(strstr(err.message, "begun with \"options = b\""), "%s", err.message);
    cr_expect_not_null(strstr(err.message, "now it is \"options = c\""), "%s", err.message);
    leave_folder(folder);
}
