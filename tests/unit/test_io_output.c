/* A file made by io/ read back by io/: layout, positioned writes, finish, results. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "io/h5lib.h"
#include "io/rawfile.h"
#include "tests/support/io_files.h"

/* The file's bytes from malloc. */
static unsigned char *slurp(const char *path, size_t *size)
{
    struct stat info;
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && fstat(fd, &info) == 0, "%s", path);
    unsigned char *bytes = malloc((size_t)info.st_size + 1);
    *size = (size_t)info.st_size;
    cr_assert_eq(read(fd, bytes, *size), info.st_size, "%s", path);
    bytes[*size] = 0;
    close(fd);
    return bytes;
}

static gb10_status_t make_output(const char *input, const char *path, bool finish,
                                 gb10_error_t *err)
{
    gb10_status_t status;
    io_catalog_t catalog = {0};
    io_output_t *output = NULL;
    io_spec_t spec = output_spec();
    GB10_TRY(io_catalog_open(&catalog, input, NULL, 0, 0, err));
    GB10_TRY(io_output_check(path, &catalog, IO_REFUSE, io_output_bytes(&catalog, &spec), err));
    GB10_TRY(io_output_create(&output, path, &catalog, &spec, err));
    if (finish) {
        GB10_TRY(write_all(output, &catalog, &spec, err));
        GB10_TRY(io_output_sync(output, err));
        GB10_TRY(io_output_finish(output, err));
    }
cleanup:
    io_output_close(output);
    io_catalog_free(&catalog);
    return status;
}

/* An input that is read from other.h5 (an external link), source.h5 (virtual) and raw.bin. */
static int make_linked_input(const char *path)
{
    static const char zeros[64];
    hsize_t dims[2] = {2, 4};
    int fd = open("raw.bin", O_CREAT | O_WRONLY, 0644);
    int bad = write(fd, zeros, sizeof zeros) != (ssize_t)sizeof zeros;
    close(fd);
    hid_t space = H5Screate_simple(2, dims, NULL), raw = H5Pcreate(H5P_DATASET_CREATE);
    hid_t source = H5Fcreate("source.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set =
        H5Dcreate2(source, "s", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bad |= H5Dclose(set) < 0 || H5Fclose(source) < 0;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    bad |= H5Pset_external(raw, "raw.bin", 0, 64) < 0;
    set = H5Dcreate2(file, "raw", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, raw, H5P_DEFAULT);
    bad |= H5Dclose(set) < 0;
    hid_t virtual = H5Pcreate(H5P_DATASET_CREATE);
    bad |= H5Pset_virtual(virtual, space, "source.h5", "s", space) < 0;
    set = H5Dcreate2(file, "v", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, virtual, H5P_DEFAULT);
    bad |= H5Dclose(set) < 0;
    bad |= H5Lcreate_external("other.h5", "/b", file, "x", H5P_DEFAULT, H5P_DEFAULT) < 0;
    bad |= H5Pclose(virtual) < 0 || H5Pclose(raw) < 0 || H5Sclose(space) < 0 || H5Fclose(file) < 0;
    return bad;
}

Test(io_output, input_round_trip)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_reader_t *reader = NULL;
    unsigned char block[4096], want[4096];
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_catalog_open(&c, "in.h5", NULL, 0, 0, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(c.ndatasets, BATCH_SPECS);
    cr_assert_eq(io_reader_open(&reader, &c, &err), GB10_OK, "%s", err.message);
    for (int64_t d = 0; d < c.ndatasets; d++) {
        const batch_spec_t *b = &batch_specs[d];
        const io_dataset_t *s = &c.datasets[d];
        int64_t one = b->m * b->n * (int64_t)gb10_dtype_size(b->dtype);
        cr_expect_str_eq(s->name, b->name, "%s is %s", b->name, s->name);
        cr_expect(s->dtype == b->dtype && s->m == b->m && s->n == b->n && s->count == b->count,
                  "%s", b->name);
        cr_expect_eq(s->offset >= 0, one * b->count > 0, "%s", b->name);
        fill_block(want, d, IO_A, one * b->count);
        for (int64_t first = 0; first <= b->count; first++) {
            gb10_status_t status = io_read(reader, d, first, b->count - first, block, &err);
            cr_expect_eq(status, GB10_OK, "%s: %s", b->name, err.message);
            size_t size = (size_t)(one * (b->count - first));
            cr_expect_eq(memcmp(block, want + one * first, size), 0, "%s from %d", b->name,
                         (int)first);
        }
        cr_expect_eq(io_read(reader, d, 0, b->count + 1, block, NULL), GB10_ERR_INTERNAL, "%s",
                     b->name);
        cr_expect_eq(io_read(reader, d, -1, 1, block, NULL), GB10_ERR_INTERNAL, "%s", b->name);
    }
    cr_expect_eq(io_reader_unchanged(reader, &err), GB10_OK, "%s", err.message);
    cr_expect_eq(truncate("in.h5", c.file_size + 1), 0);
    cr_expect_eq(io_reader_unchanged(reader, &err), GB10_ERR_FILE);
    cr_expect_not_null(strstr(err.message, "in.h5 has changed"), "%s", err.message);
    io_reader_close(reader);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* What io_result_open must say about one group, and every byte of it. */
static void check_group(io_result_t *r, int64_t d, uint32_t kinds)
{
    const batch_spec_t *b = &batch_specs[d];
    const io_group_t *g = &r->groups[d];
    unsigned char block[4096], want[4096];
    gb10_error_t err = {0};
    int64_t k = b->m < b->n ? b->m : b->n;
    cr_expect_str_eq(g->name, b->name, "%s is %s", b->name, g->name);
    cr_expect(g->dtype == b->dtype && g->m == b->m && g->n == b->n && g->k == k, "%s", b->name);
    cr_expect(g->nb == (k < 2 ? k : 2) && g->count == b->count && g->nmetrics == METRICS, "%s",
              b->name);
    cr_expect_eq(g->kinds, kinds, "%s: kinds %x", b->name, g->kinds);
    for (int kind = 0; kind < IO_KINDS; kind++) {
        int64_t one = io_kind_bytes((io_kind_t)kind, g->dtype, g->m, g->n, g->nb, g->nmetrics);
        fill_block(want, d, kind, one * b->count);
        gb10_status_t status = io_result_read(r, (io_kind_t)kind, d, 0, b->count, block, &err);
        cr_expect_eq(status, kinds >> kind & 1 ? GB10_OK : GB10_ERR_FORMAT, "%s %s: %s", b->name,
                     io_kind_name((io_kind_t)kind), err.message);
        if (status == GB10_OK)
            cr_expect_eq(memcmp(block, want, (size_t)(one * b->count)), 0, "%s %s", b->name,
                         io_kind_name((io_kind_t)kind));
    }
}

Test(io_output, results_round_trip)
{
    char folder[256];
    gb10_error_t err = {0};
    io_result_t r;
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(make_output("in.h5", "out.h5", true, &err), GB10_OK, "%s", err.message);
    cr_expect_eq(access("out.h5.part", F_OK), -1);
    cr_expect(io_is_result("out.h5"));
    cr_expect_not(io_is_result("in.h5"));
    cr_expect_not(io_is_result("nothing.h5"));
    cr_assert_eq(io_result_open(&r, "out.h5", &err), GB10_OK, "%s", err.message);
    cr_expect(r.complete);
    cr_expect_str_eq(r.creator_version, "0.0");
    cr_expect_str_eq(r.options, "{\"nb\": 2}");
    cr_expect_str_eq(r.backend, "cpu-ref");
    cr_expect_str_eq(r.isa, "none");
    cr_expect_eq(strlen(r.fingerprint), 16);
    cr_assert_eq(r.ngroups, BATCH_SPECS);
    for (int64_t d = 0; d < r.ngroups; d++)
        check_group(&r, d, output_spec().kinds);
    io_result_close(&r);
    leave_folder(folder);
}

Test(io_output, unfinished_opens_and_says_so)
{
    char folder[256];
    gb10_error_t err = {0};
    io_result_t r;
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(make_output("in.h5", "out.h5", false, &err), GB10_OK, "%s", err.message);
    cr_expect(io_is_result("out.h5.part"));
    cr_assert_eq(io_result_open(&r, "out.h5.part", &err), GB10_OK, "%s", err.message);
    cr_expect_not(r.complete);
    for (int64_t g = 0; g < r.ngroups; g++) {
        uint8_t info[16] = {9};
        cr_expect_eq(io_result_read(&r, IO_STATUS, g, 0, r.groups[g].count, info, &err), GB10_OK);
        for (int64_t i = 0; i < r.groups[g].count; i++)
            cr_expect_eq(info[i], GB10_INFO_NOT_COMPUTED, "%s", r.groups[g].name);
    }
    io_result_close(&r);
    cr_expect_eq(make_output("in.h5", "out.h5", true, &err), GB10_ERR_EXISTS);
    cr_expect_not_null(strstr(err.message, "out.h5.part was left by an unfinished run"), "%s",
                       err.message);
    leave_folder(folder);
}

Test(io_output, same_input_same_bytes)
{
    char folder[256];
    gb10_error_t err = {0};
    size_t size[2];
    unsigned char *bytes[2];
    enter_folder(folder);
    for (int i = 0; i < 2; i++) {
        if (i)
            usleep(1100000); /* times would differ */
        /* Memory that is not zero, so that bytes nobody set would show. */
        char *dirt = malloc(1 << 20);
        memset(dirt, i ? 0xa5 : 0x5a, 1 << 20);
        free(dirt);
        cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
        cr_assert_eq(make_output("in.h5", "out.h5", true, &err), GB10_OK, "%s", err.message);
        bytes[i] = slurp("out.h5", &size[i]);
        unlink("out.h5");
    }
    cr_expect_eq(size[0], size[1]);
    cr_expect_eq(memcmp(bytes[0], bytes[1], size[0]), 0);
    free(bytes[0]);
    free(bytes[1]);
    leave_folder(folder);
}

Test(io_output, attached_rank_writes)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_output_t *root = NULL, *other = NULL;
    io_spec_t spec = output_spec();
    void *bytes = NULL;
    size_t size = 0;
    unsigned char block[4096], want[4096];
    enter_folder(folder);
    cr_assert_eq(describe_batches(&c, &err), GB10_OK);
    cr_assert_eq(io_output_create(&root, "out.h5", &c, &spec, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_output_pack(root, &bytes, &size, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_output_attach(&other, &c, bytes, size, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(write_all(other, &c, &spec, &err), GB10_OK, "%s", err.message);
    for (int kind = 0; kind < IO_KINDS; kind++) {
        int64_t one = io_kind_bytes((io_kind_t)kind, GB10_S, 3, 2, 2, METRICS);
        gb10_status_t status = io_read_back(root, (io_kind_t)kind, 0, 1, 3, block, NULL);
        fill_block(want, 0, kind, one * 5);
        cr_expect_eq(status, kind == IO_A ? GB10_ERR_INTERNAL : GB10_OK, "kind %d", kind);
        if (status == GB10_OK)
            cr_expect_eq(memcmp(block, want + one, (size_t)one * 3), 0, "kind %d", kind);
    }
    for (size_t cut = 0; cut < size; cut += 7) {
        io_output_t *none = NULL;
        cr_expect_eq(io_output_attach(&none, &c, bytes, cut, NULL), GB10_ERR_INTERNAL, "%zu", cut);
        cr_expect_null(none);
    }
    cr_expect_eq(io_write(other, IO_V, 0, 4, 2, block, NULL), GB10_ERR_INTERNAL);
    cr_expect_eq(io_write(other, IO_V, BATCH_SPECS, 0, 1, block, NULL), GB10_ERR_INTERNAL);
    io_output_close(other);
    io_output_close(root);
    gb10_free(bytes);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* Changes the first place where `from` stands. */
static void patch(const char *path, const char *from, const char *to)
{
    size_t size, length = strlen(from);
    unsigned char *bytes = slurp(path, &size);
    unsigned char *at = memmem(bytes, size, from, length);
    cr_assert_not_null(at, "'%s' is not in %s", from, path);
    int fd = open(path, O_WRONLY);
    cr_assert_eq(pwrite(fd, to, length, at - bytes), (ssize_t)length);
    close(fd);
    free(bytes);
}

Test(io_output, damaged_results_are_refused)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"/a\", \"dtype\": \"s\", \"m\": 3", "\"/a\", \"dtype\": \"s\", \"m\": 4",
         "/a/V has another shape"},
        {"\"dtype\": \"s\"", "\"dtype\": \"d\"", "/a/V has another type"},
        {"\"dtype\": \"s\"", "\"dtype\": \"q\"", "attribute fugu of /a is damaged"},
        {"\"k\": 2, \"nb\": 2", "\"k\": 2, \"nb\": 1", "/a/T has another shape"},
        {"\"k\": 2, \"nb\": 2", "\"k\": 1, \"nb\": 1", "attribute fugu of /a is damaged"},
        {"fugu-1.0", "fogu-1.0", "is not an output of fugu qr"},
        {"a,b,c,d,e,f,g,h", "a,b,c,d,e,f,g;h", "/metrics has another shape"},
        {"a,b,c,d,e,f,g,h", "a,b,c,d,e,f,,,h", "/metrics has another shape"},
        {"columns", "Columns", "/metrics has another shape"},
        {"status", "statua", "/status is missing. The file is damaged or was changed"},
        {"metrics", "metricz", "/metrics is missing. The file is damaged or was changed"},
        {"fugu", "fagu", "out.h5 holds 7 of 8 groups; it was changed after it was written"},
        {"datasets", "datasetz", "has no root attribute datasets"},
    };
    char folder[256];
    gb10_error_t err = {0};
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        io_result_t r;
        memset(&err, 0, sizeof err);
        unlink("out.h5");
        cr_assert_eq(make_output("in.h5", "out.h5", true, &err), GB10_OK, "%s", err.message);
        patch("out.h5", cases[i].from, cases[i].to);
        cr_expect_eq(io_result_open(&r, "out.h5", &err), GB10_ERR_FORMAT, "case %zu", i);
        cr_expect_not_null(strstr(err.message, cases[i].message), "case %zu: %s", i, err.message);
    }
    io_result_t r;
    memset(&err, 0, sizeof err);
    cr_expect_eq(truncate("out.h5", 5000), 0);
    cr_expect_eq(io_result_open(&r, "out.h5", &err), GB10_ERR_FORMAT);
    cr_expect_not_null(strstr(err.message, "truncated"), "%s", err.message);
    memset(&err, 0, sizeof err);
    cr_expect_eq(io_result_open(&r, "in.h5", &err), GB10_ERR_FORMAT);
    cr_expect_not_null(strstr(err.message, "not an output of fugu qr"), "%s", err.message);
    leave_folder(folder);
}

Test(io_output, refusals_before_work)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_catalog_open(&c, "in.h5", NULL, 0, 0, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(mkdir("sub", 0755) + symlink("in.h5", "soft.h5") + link("in.h5", "hard.h5") +
                     link("in.h5", "tail.h5.part") + symlink("nowhere", "dangling.h5") +
                     mkfifo("pipe", 0644) + mkfifo("piped.h5.part", 0644) +
                     symlink("pipe", "to_pipe") + symlink("/dev/null", "to_null"),
                 0);
    close(open("there.h5", O_CREAT | O_WRONLY, 0644));
    close(open("left.h5.part", O_CREAT | O_WRONLY, 0644));
    const struct {
        const char *path;
        bool overwrite;
        int64_t bytes;
        gb10_status_t status;
        const char *message;
    } cases[] = {
        {"in.h5", true, 1, GB10_ERR_FILE, "in.h5 is the input in.h5 itself"},
        {"sub/../in.h5", true, 1, GB10_ERR_FILE, "is the input in.h5 itself"},
        {"soft.h5", true, 1, GB10_ERR_FILE, "soft.h5 is the input in.h5 itself"},
        {"hard.h5", true, 1, GB10_ERR_FILE, "hard.h5 is the input in.h5 itself"},
        {"tail.h5", true, 1, GB10_ERR_FILE, "tail.h5.part is the input in.h5 itself"},
        {"there.h5", false, 1, GB10_ERR_EXISTS, "there.h5 exists. Use --overwrite"},
        {"dangling.h5", false, 1, GB10_ERR_EXISTS, "dangling.h5 exists"},
        {"there.h5", true, 1, GB10_OK, ""},
        {"left.h5", false, 1, GB10_ERR_EXISTS, "left.h5.part was left by an unfinished run"},
        {"left.h5", true, 1, GB10_OK, ""},
        {"sub", true, 1, GB10_ERR_FILE, "sub is a directory"},
        {"", true, 1, GB10_ERR_USAGE, "the output's name is empty"},
        {"newdir/", true, 1, GB10_ERR_USAGE, "newdir/ ends with '/', as a folder does"},
        {"sub/", true, 1, GB10_ERR_FILE, "sub/ is a directory"},
        {"..", true, 1, GB10_ERR_FILE, ".. is a directory"},
        {"no/out.h5", true, 1, GB10_ERR_FILE, "there is no folder no"},
        {"pipe", false, 1, GB10_ERR_FILE, "pipe is not a regular file"},
        {"pipe", true, 1, GB10_ERR_FILE, "pipe is not a regular file"},
        {"to_pipe", true, 1, GB10_ERR_FILE, "to_pipe is not a regular file"},
        {"to_null", true, 1, GB10_ERR_FILE, "to_null is not a regular file"},
        {"/dev/null", true, 1, GB10_ERR_FILE, "/dev/null is not a regular file"},
        {"piped.h5", true, 1, GB10_ERR_FILE, "piped.h5.part is not a regular file"},
        {"no/out.h5", false, 1, GB10_ERR_FILE, "there is no folder no"},
        {"new.h5", false, INT64_MAX, GB10_ERR_SPACE, "no space left on the disk of new.h5: 9.2 EB"},
        {"new.h5", false, 1, GB10_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&err, 0, sizeof err);
        gb10_status_t status = io_output_check(
            cases[i].path, &c, cases[i].overwrite ? IO_REPLACE : IO_REFUSE, cases[i].bytes, &err);
        cr_expect_eq(status, cases[i].status, "%s: status %d %s", cases[i].path, status,
                     err.message);
        cr_expect_not_null(strstr(err.message, cases[i].message), "%s: %s", cases[i].path,
                           err.message);
        io_output_t *output = NULL; /* what is refused stays refused without the check */
        io_spec_t spec = {.overwrite = true};
        if (cases[i].overwrite && status != GB10_OK && !strstr(err.message, "the input")) {
            status = io_output_create(&output, cases[i].path, &c, &spec, NULL);
            cr_expect_eq(status, cases[i].status, "%s: status %d", cases[i].path, status);
        }
    }
    cr_expect_eq(access("new.h5.part", F_OK), -1, "a check must write nothing");
    io_output_t *output = NULL;
    io_spec_t spec = output_spec();
    memset(&err, 0, sizeof err);
    cr_expect_eq(chdir("sub") + rmdir("../sub"), 0);
    cr_expect_eq(io_output_check("out.h5", &c, IO_REFUSE, 1, &err), GB10_ERR_FILE);
    cr_expect_not_null(strstr(err.message, "the current folder was removed"), "%s", err.message);
    memset(&err, 0, sizeof err);
    cr_expect_eq(io_output_create(&output, "out.h5", &c, &spec, &err), GB10_ERR_FILE);
    cr_expect_not_null(strstr(err.message, "its folder is not there"), "%s", err.message);
    io_catalog_free(&c);
    leave_folder(folder);
}

static gb10_status_t start(io_output_t **o, io_catalog_t *c, bool overwrite, gb10_error_t *err)
{
    io_spec_t spec = output_spec();
    spec.overwrite = overwrite;
    memset(err, 0, sizeof *err);
    return io_output_create(o, "out.h5", c, &spec, err);
}

Test(io_output, one_writer_at_a_time)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_output_t *first = NULL, *second = NULL;
    io_spec_t spec = output_spec();
    io_result_t r;
    enter_folder(folder);
    cr_assert_eq(describe_batches(&c, &err), GB10_OK);
    cr_assert_eq(start(&first, &c, false, &err), GB10_OK, "%s", err.message);
    for (int overwrite = 0; overwrite < 2; overwrite++) {
        memset(&err, 0, sizeof err);
        cr_expect_eq(io_output_check("out.h5", NULL, overwrite ? IO_REPLACE : IO_REFUSE, 1, &err),
                     GB10_ERR_EXISTS);
        cr_expect_not_null(strstr(err.message, "out.h5.part is being written by another run"), "%s",
                           err.message);
        cr_expect_eq(start(&second, &c, overwrite, &err), GB10_ERR_EXISTS);
        cr_expect_not_null(strstr(err.message, "out.h5.part is being written by another run"), "%s",
                           err.message);
        cr_expect_null(second);
    }
    cr_expect(io_is_result("out.h5.part"), "it can be read meanwhile");
    cr_expect_eq(write_all(first, &c, &spec, &err), GB10_OK, "%s", err.message);
    cr_expect_eq(io_output_finish(first, &err), GB10_OK, "%s", err.message);
    io_output_close(first);
    cr_assert_eq(io_result_open(&r, "out.h5", &err), GB10_OK, "%s", err.message);
    cr_expect(r.complete);
    io_result_close(&r);
    cr_expect_eq(start(&first, &c, true, &err), GB10_OK, "%s", err.message);
    io_output_close(first); /* killed, as it were */
    cr_expect_eq(start(&second, &c, false, &err), GB10_ERR_EXISTS);
    cr_expect_not_null(strstr(err.message, "was left by an unfinished run"), "%s", err.message);
    cr_expect_eq(start(&second, &c, true, &err), GB10_OK, "%s", err.message);
    io_output_discard(second);
    io_output_close(second);
    cr_expect_eq(access("out.h5.part", F_OK), -1);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* As on a disk without locks: the name stands for somebody else's file, or for none. */
Test(io_output, replaced_while_it_was_written)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    enter_folder(folder);
    cr_assert_eq(describe_batches(&c, &err), GB10_OK);
    for (int there = 0; there < 2; there++) {
        io_output_t *o = NULL;
        cr_assert_eq(start(&o, &c, false, &err), GB10_OK, "%s", err.message);
        cr_assert_eq(unlink("out.h5.part"), 0);
        if (there) {
            int fd = open("out.h5.part", O_CREAT | O_WRONLY, 0644);
            cr_assert_eq(write(fd, "theirs", 6), 6);
            close(fd);
        }
        cr_expect_eq(io_output_finish(o, &err), GB10_ERR_FILE);
        cr_expect_not_null(strstr(err.message, "out.h5.part was removed or replaced"), "%s",
                           err.message);
        io_output_discard(o);
        io_output_close(o);
        cr_expect_eq(access("out.h5", F_OK), -1);
        cr_expect_eq(access("out.h5.part", F_OK), there - 1, "the other run keeps its file");
    }
    size_t size;
    unsigned char *bytes = slurp("out.h5.part", &size);
    cr_expect_str_eq((char *)bytes, "theirs");
    free(bytes);
    io_catalog_free(&c);
    leave_folder(folder);
}

Test(io_output, files_of_the_input)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    enter_folder(folder);
    cr_assert_eq(make_input("other.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(make_linked_input("in.h5"), 0);
    cr_assert_eq(io_catalog_open(&c, "in.h5", NULL, 0, 0, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(link("other.h5", "hard.h5"), 0);
    const char *const paths[] = {"other.h5", "hard.h5", "raw.bin", "source.h5"};
    cr_expect_eq(c.nfiles, 3);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        memset(&err, 0, sizeof err);
        cr_expect_eq(io_output_check(paths[i], &c, IO_REPLACE, 1, &err), GB10_ERR_FILE, "%s",
                     paths[i]);
        cr_expect_not_null(strstr(err.message, "is a file that the input in.h5 is read from"), "%s",
                           err.message);
    }
    cr_expect_eq(io_output_check("new.h5", &c, IO_REPLACE, 1, &err), GB10_OK, "%s", err.message);
    io_catalog_free(&c);
    leave_folder(folder);
}

Test(io_output, no_rights)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c;
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(chmod("in.h5", 0) + chmod(".", 0555), 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0)
        cr_skip_test("user 65534 cannot be taken");
    gb10_status_t status = io_catalog_open(&c, "in.h5", NULL, 0, 0, &err);
    cr_expect_eq(status, GB10_ERR_FILE, "status %d", status);
    cr_expect_not_null(strstr(err.message, "in.h5: no permission to read it"), "%s", err.message);
    memset(&err, 0, sizeof err);
    cr_expect_eq(io_output_check("out.h5", NULL, IO_REFUSE, 1, &err), GB10_ERR_FILE);
    cr_expect_not_null(strstr(err.message, "no permission to write in the folder"), "%s",
                       err.message);
    if (root)
        cr_expect_eq(seteuid(0), 0);
    cr_expect_eq(chmod(".", 0755), 0);
    leave_folder(folder);
}

Test(io_output, full_disk)
{
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_output_t *output = NULL;
    io_spec_t spec = output_spec();
    enter_folder(folder);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0) {
        int reason = errno;
        leave_folder(folder);
        cr_skip_test("a small tmpfs cannot be mounted: %s", strerror(reason));
    }
    /* The mount lives until this process leaves it. */
    cr_assert_eq(chdir("/") + chdir(folder) + umount2(folder, MNT_DETACH), 0);
    cr_assert_eq(io_catalog_add(&c, "/big", GB10_D, 100, 100, 100, &err), GB10_OK);
    gb10_status_t status =
        io_output_check("out.h5", &c, IO_REFUSE, io_output_bytes(&c, &spec), &err);
    cr_expect_eq(status, GB10_ERR_SPACE, "status %d", status);
    cr_expect_not_null(strstr(err.message, "no space left on the disk of out.h5"), "%s",
                       err.message);
    memset(&err, 0, sizeof err);
    status = io_output_create(&output, "out.h5", &c, &spec, &err);
    cr_expect_eq(status, GB10_ERR_SPACE, "status %d %s", status, err.message);
    cr_expect_not_null(strstr(err.message, "out.h5.part: no space left"), "%s", err.message);
    cr_expect_null(output);
    cr_expect_eq(access("out.h5.part", F_OK), -1, "a layout that failed must not stay");
    memset(&err, 0, sizeof err);
    static char block[2 << 20];
    int fd = open("raw", O_CREAT | O_RDWR, 0644);
    status = io_raw_write(fd, block, sizeof block, 0, "raw", "/big", &err);
    cr_expect_eq(status, GB10_ERR_SPACE, "status %d %s", status, err.message);
    cr_expect_not_null(strstr(err.message, "raw: /big: no space on the disk left"), "%s",
                       err.message);
    close(fd);
    io_catalog_free(&c);
    cr_expect_eq(chdir("/") + rmdir(folder), 0);
}

/* The whole way, failing at each allocation in turn; every failure must be reported as such. */
static gb10_status_t whole_way(gb10_error_t *err)
{
    gb10_status_t status;
    io_catalog_t c = {0}, copy = {0};
    io_reader_t *reader = NULL;
    io_result_t r = {.fd = -1};
    gb10_batch_t *batches = NULL;
    void *bytes = NULL;
    size_t size;
    unsigned char block[4096];
    static const char *const patterns[] = {"/a", "b/*"};
    unlink("in.h5");
    unlink("in.h5.part");
    unlink("out.h5");
    unlink("out.h5.part");
    GB10_TRY(make_input("in.h5", err));
    GB10_TRY(io_catalog_open(&c, "in.h5", patterns, 2, 0, err));
    GB10_TRY(io_catalog_pack(&c, &bytes, &size, err));
    GB10_TRY(io_catalog_unpack(&copy, bytes, size, err));
    GB10_TRY(io_catalog_batches(&copy, &batches, err));
    GB10_TRY(io_reader_open(&reader, &c, err));
    GB10_TRY(io_read(reader, 0, 0, 5, block, err));
    GB10_TRY(make_output("in.h5", "out.h5", true, err));
    GB10_TRY(io_result_open(&r, "out.h5", err));
    GB10_TRY(io_result_read(&r, IO_V, 0, 0, 5, block, err));
cleanup:
    io_result_close(&r);
    io_reader_close(reader);
    gb10_free(batches);
    gb10_free(bytes);
    io_catalog_free(&copy);
    io_catalog_free(&c);
    return status;
}

Test(io_output, every_allocation_may_fail)
{
    char folder[256];
    enter_folder(folder);
    gb10_error_t err = {0};
    gb10_alloc_fail_at(0);
    cr_assert_eq(whole_way(&err), GB10_OK, "%s", err.message);
    long calls = gb10_alloc_fail_at(0);
    cr_assert_gt(calls, 50, "%ld", calls);
    for (long n = 1; n <= calls; n++) {
        memset(&err, 0, sizeof err);
        gb10_alloc_fail_at(n);
        gb10_status_t status = whole_way(&err);
        gb10_alloc_fail_at(0);
        cr_expect_eq(status, GB10_ERR_MEMORY, "allocation %ld of %ld: status %d %s", n, calls,
                     status, err.message);
    }
    leave_folder(folder);
}
