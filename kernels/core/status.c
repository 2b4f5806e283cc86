#include "kernels/core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gb10_status_t gb10_error_set(gb10_error_t *err, gb10_status_t status, const char *file, int line,
                             const char *format, ...)
{
    if (!err || err->status != GB10_OK)
        return status;
    err->status = status;
    err->file = file;
    err->line = line;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

void gb10_error_context(gb10_error_t *err, const char *format, ...)
{
    if (!err || err->status == GB10_OK)
        return;
    char text[GB10_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used < 0 || (size_t)used + 3 > sizeof text)
        return;
    snprintf(text + used, sizeof text - (size_t)used, ": %.*s",
             (int)(sizeof text - (size_t)used - 3), err->message);
    memcpy(err->message, text, sizeof text);
}
