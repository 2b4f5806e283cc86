#include "io/h5lib.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"
#include "kernels/core/alloc.h"

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

void io_h5_lock(void)
{
    static bool prepared;
    pthread_mutex_lock(&library);
    /* HDF5 1.10 crashes in its handler at exit after a file that could not be closed. */
    if (!prepared)
        H5dont_atexit();
    prepared = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

void io_h5_unlock(void)
{
    pthread_mutex_unlock(&library);
}

const char *io_library_version(void)
{
    static char text[32];
    unsigned major = 0, minor = 0, release = 0;
    io_h5_lock();
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    io_h5_unlock();
    return text;
}

static herr_t first_entry(unsigned n, const H5E_error2_t *entry, void *text)
{
    if (n == 0 && entry->desc)
        snprintf(text, IO_REASON_MAX, "%s", entry->desc);
    return 0;
}

const char *io_h5_reason(char text[IO_REASON_MAX])
{
    text[0] = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_entry, text);
    if (!text[0])
        snprintf(text, IO_REASON_MAX, "HDF5 gives no reason");
    return text;
}

void io_h5_close_keeping(hid_t id)
{
    hid_t errors = H5Eget_current_stack();
    io_h5_close(id);
    H5Eset_current_stack(errors);
}

hid_t io_h5_unlocked(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (H5Pset_fapl_sec2(access) >= 0 && H5Pset_file_locking(access, 0, 1) >= 0)
        return access;
    io_h5_close(access);
    return -1;
}

hid_t io_h5_open(const char *path, bool write)
{
    char reason[IO_REASON_MAX];
    hid_t file = write ? -1 : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file >= 0 || (!write && !strstr(io_h5_reason(reason), "lock")))
        return file;
    hid_t access = io_h5_unlocked();
    file = H5Fopen(path, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    io_h5_close_keeping(access);
    return file;
}

void io_h5_close(hid_t id)
{
    if (id < 0)
        return;
    switch (H5Iget_type(id)) {
    case H5I_FILE:
        H5Fclose(id);
        break;
    case H5I_GROUP:
        H5Gclose(id);
        break;
    case H5I_DATATYPE:
        H5Tclose(id);
        break;
    case H5I_DATASPACE:
        H5Sclose(id);
        break;
    case H5I_DATASET:
        H5Dclose(id);
        break;
    case H5I_ATTR:
        H5Aclose(id);
        break;
    case H5I_GENPROP_LST:
        H5Pclose(id);
        break;
    default:
        H5Idec_ref(id);
        break;
    }
}

hid_t io_h5_string_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 &&
        (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        type = -1;
    }
    return type;
}

/* Reads one string of either kind; *text stays NULL when the attribute holds anything else. */
static gb10_status_t read_text(hid_t attribute, hid_t type, hid_t space, char **text,
                               gb10_error_t *err)
{
    if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1)
        return GB10_OK;
    if (H5Tis_variable_str(type) > 0) {
        char *value = NULL;
        if (H5Aread(attribute, type, &value) < 0 || !value)
            return GB10_OK;
        gb10_status_t status = gb10_strdup(text, value, err);
        H5free_memory(value);
        return status;
    }
    gb10_status_t status = gb10_alloc(text, H5Tget_size(type) + 1, 1, "an attribute", err);
    if (status == GB10_OK && H5Aread(attribute, type, *text) < 0) {
        gb10_free(*text);
        *text = NULL;
    }
    return status;
}

gb10_status_t io_h5_get_text(hid_t object, const char *name, char **text, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    *text = NULL;
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0)
        return GB10_OK;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (type >= 0 && space >= 0)
        status = read_text(attribute, type, space, text, err);
    io_h5_close(space);
    io_h5_close(type);
    io_h5_close(attribute);
    return status;
}

bool io_h5_get_number(hid_t object, const char *name, long long *value)
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0)
        return false;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool good = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_INTEGER &&
                H5Sget_simple_extent_npoints(space) == 1 &&
                H5Aread(attribute, H5T_NATIVE_LLONG, value) >= 0;
    io_h5_close(space);
    io_h5_close(type);
    io_h5_close(attribute);
    return good;
}

/* The signature stands at byte 0, 512, 1024, 2048, ... (the user block's size). */
static bool has_signature(int fd, off_t size)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char bytes[8];
    for (off_t at = 0; at <= size - 8; at = at ? at * 2 : 512)
        if (pread(fd, bytes, 8, at) == 8 && memcmp(bytes, signature, 8) == 0)
            return true;
    return false;
}

gb10_status_t io_h5_probe(const char *path, gb10_error_t *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: there is no such file. Check the path.", path);
    if (fd < 0 && errno == EACCES)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s: no permission to read it. Check the rights of the file and of its "
                         "folders.",
                         path);
    if (fd < 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be opened: %s.", path, strerror(errno));
    gb10_status_t status = GB10_OK;
    if (fstat(fd, &info) != 0)
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s: stat failed: %s.", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s is a directory. Name an HDF5 file.", path);
    else if (!S_ISREG(info.st_mode))
        status =
            GB10_FAIL(err, GB10_ERR_FILE, "%s is not a regular file. Name an HDF5 file.", path);
    else if (info.st_size == 0)
        status = GB10_FAIL(err, GB10_ERR_FORMAT, "%s is empty (0 bytes), not an HDF5 file.", path);
    else if (!has_signature(fd, info.st_size))
        status = GB10_FAIL(err, GB10_ERR_FORMAT,
                           "%s is not an HDF5 file: it has no HDF5 signature.", path);
    close(fd);
    return status;
}

gb10_status_t io_h5_open_failed(const char *path, gb10_error_t *err)
{
    char reason[IO_REASON_MAX];
    io_h5_reason(reason);
    if (strstr(reason, "already open for write"))
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s is open for writing elsewhere, or its writer was killed. When nothing "
                         "writes to it: h5clear -s %s",
                         path, path);
    return GB10_FAIL(err, GB10_ERR_FORMAT,
                     "%s is truncated or damaged: it starts as an HDF5 file but cannot be opened "
                     "(%s). Copy or write it again.",
                     path, reason);
}
