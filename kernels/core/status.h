/* Call status and the error record. A fallible function returns gb10_status_t; the first failure
 * fills the record, a caller may add one line of context. Nothing here prints or exits. */
#ifndef GB10_CORE_STATUS_H
#define GB10_CORE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Values are pinned, in groups of ten. */
typedef enum gb10_status {
    GB10_OK = 0,
    GB10_ERR_INVALID = 10,     /* an argument is wrong; the message names it      */
    GB10_ERR_USAGE = 11,       /* a command line is wrong                         */
    GB10_ERR_MEMORY = 20,      /* an allocation failed                            */
    GB10_ERR_FILE = 30,        /* a file or directory call failed                 */
    GB10_ERR_SPACE = 31,       /* no space or quota left                          */
    GB10_ERR_EXISTS = 32,      /* an output is there already                      */
    GB10_ERR_FORMAT = 40,      /* a file does not hold what it should             */
    GB10_ERR_UNSUPPORTED = 41, /* a valid request that cannot be served           */
    GB10_ERR_DEVICE = 50,      /* an accelerator failed                           */
    GB10_ERR_MPI = 60,         /* a message-passing call failed or a rank is lost */
    GB10_ERR_INTERNAL = 70,    /* a bug in this program                           */
    GB10_ERR_STOPPED = 75      /* stopped on request                              */
} gb10_status_t;

enum { GB10_MESSAGE_MAX = 1024 };

/* The first failure of a call. Owned by the caller; zero-initialise before use. */
typedef struct gb10_error {
    gb10_status_t status;
    int line;
    const char *file;
    char message[GB10_MESSAGE_MAX];
} gb10_error_t;

/* Records a failure (only the first one; err may be NULL) and returns status. */
gb10_status_t gb10_error_set(gb10_error_t *err, gb10_status_t status, const char *file, int line,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Puts "context: " before the recorded message. No effect when nothing is recorded. */
void gb10_error_context(gb10_error_t *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define GB10_FAIL(err, status, ...) gb10_error_set((err), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Leaves through the cleanup label of the function when the call failed; needs a local `status`. */
#define GB10_TRY(call)                                                                             \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != GB10_OK)                                                                     \
            goto cleanup;                                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
