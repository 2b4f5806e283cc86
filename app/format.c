#include "app/format.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BUFFERS = 16, LENGTH = 48 };

static char *next_buffer(void)
{
    static _Thread_local char buffer[BUFFERS][LENGTH];
    static _Thread_local int at;
    at = (at + 1) % BUFFERS;
    return buffer[at];
}

const char *format_count(int64_t n)
{
    char digits[LENGTH], *out = next_buffer(), *to = out;
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < length; i++) {
        *to++ = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - 1 - i) % 3 == 0)
            *to++ = ',';
    }
    *to = 0;
    return out;
}

const char *format_things(int64_t n, const char *thing)
{
    bool matrix = strcmp(thing, "matri") == 0;
    const char *one = matrix ? "x" : "", *many = matrix ? "ces" : "s", *count = format_count(n);
    char *out = next_buffer();
    snprintf(out, LENGTH, "%s %s%s", count, thing, n == 1 ? one : many);
    return out;
}

const char *format_bytes(double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    char *out = next_buffer();
    int u = 0;
    for (; u < 5 && bytes >= 999.5; u++)
        bytes /= 1000;
    snprintf(out, LENGTH,
             u == 0          ? "%.0f %s"
             : bytes < 9.995 ? "%.2f %s"
                             : "%.3g %s",
             bytes, unit[u]);
    return out;
}

const char *format_seconds(double s)
{
    char *out = next_buffer();
    long whole = lround(s);
    if (s < 100)
        snprintf(out, LENGTH, s < 9.95 ? "%.2f s" : "%.1f s", s);
    else
        snprintf(out, LENGTH, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    return out;
}

const char *format_shape(int64_t m, int64_t n)
{
    char *out = next_buffer();
    snprintf(out, LENGTH, "%lldx%lld", (long long)m, (long long)n);
    return out;
}

static void key_and_comma(json_t *j, const char *key)
{
    if (j->depth > 0)
        fprintf(j->file, "%s\n%*s", j->first ? "" : ",", 2 * j->depth, "");
    j->first = 0;
    if (key)
        fprintf(j->file, "\"%s\": ", key);
}

void json_open(json_t *j, const char *key, char bracket)
{
    key_and_comma(j, key);
    fputc(bracket, j->file);
    j->depth++;
    j->first = 1;
}

void json_close(json_t *j, char bracket)
{
    j->depth--;
    if (!j->first)
        fprintf(j->file, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->file);
    j->first = 0;
    if (j->depth == 0)
        fputc('\n', j->file);
}

void json_text(json_t *j, const char *key, const char *value)
{
    key_and_comma(j, key);
    if (!value) {
        fputs("null", j->file);
        return;
    }
    fputc('"', j->file);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(j->file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(j->file, "\\u%04x", *c);
        else
            fputc(*c, j->file);
    }
    fputc('"', j->file);
}

void json_int(json_t *j, const char *key, int64_t value)
{
    key_and_comma(j, key);
    fprintf(j->file, "%lld", (long long)value);
}

void json_bool(json_t *j, const char *key, int value)
{
    key_and_comma(j, key);
    fputs(value ? "true" : "false", j->file);
}

void json_real(json_t *j, const char *key, double value)
{
    key_and_comma(j, key);
    if (isfinite(value))
        fprintf(j->file, "%.17g", value);
    else
        fputs("null", j->file);
}
