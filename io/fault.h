/* Faults on purpose, for tests: FUGU_FAULT=POINT:N:ACTION[:RANK] lets the N-th passage (from 1) of
 * a point fail. POINT is a name of the list below; ACTION is `kill` (SIGKILL), `abort`, or an error
 * that the call is told: ENOSPC, EDQUOT, EIO, ENOMEM. `slow`: every passage takes N milliseconds
 * more. RANK: only on that rank of a launched run. */
#ifndef IO_FAULT_H
#define IO_FAULT_H

/* In the order of a run. */
#define IO_FAULT_LAYOUT  "layout"  /* before each dataset of the output is made           */
#define IO_FAULT_RESERVE "reserve" /* before the output's space is reserved               */
#define IO_FAULT_READ    "read"    /* before each read of the input                       */
#define IO_FAULT_FACTOR  "factor"  /* before each run of a unit is factored                */
#define IO_FAULT_DATA    "data"    /* before each block of results is written             */
#define IO_FAULT_SYNC    "sync"    /* before each sync of the output                      */
#define IO_FAULT_BETWEEN "between" /* behind the sync of units' data, before their records */
#define IO_FAULT_APPEND  "append"  /* in the middle of a journal's record                 */
#define IO_FAULT_COMMIT  "commit"  /* before a journal's sync                             */
#define IO_FAULT_FINISH  "finish"  /* before the output is marked complete                */
#define IO_FAULT_RENAME  "rename"  /* before the rename                                   */
#define IO_FAULT_CLEAN   "clean"   /* behind the rename, before journals are removed      */

/* 0, or the error number that the call must behave as if it had met. */
int io_fault(const char *point);

#endif
