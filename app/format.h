/* Numbers for people: counts with separators, bytes and rates with units. Each call returns one of
 * a few rotating static buffers per thread, good for several uses in one printf. */
#ifndef APP_FORMAT_H
#define APP_FORMAT_H

#include <stdint.h>
#include <stdio.h>

const char *format_count(int64_t n); /* 61,440            */
/* "1 dataset", "2 datasets"; for "matri" "1 matrix", "2 matrices". */
const char *format_things(int64_t n, const char *thing);
const char *format_bytes(double bytes); /* 1.93 GB (10^9)    */
const char *format_seconds(double s);   /* 6.4 s, 0:03:12    */
const char *format_shape(int64_t m, int64_t n);

/* One JSON document written as it is produced. Keys are NULL inside arrays. */
typedef struct json {
    FILE *file;
    int depth;
    int first; /* nothing written yet at this depth */
} json_t;

void json_open(json_t *j, const char *key, char bracket);      /* '{' or '['           */
void json_close(json_t *j, char bracket);                      /* '}' or ']'           */
void json_text(json_t *j, const char *key, const char *value); /* NULL gives null */
void json_int(json_t *j, const char *key, int64_t value);
void json_bool(json_t *j, const char *key, int value);
void json_real(json_t *j, const char *key, double value); /* NaN and Inf give null */

#endif
