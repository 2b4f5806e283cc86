/* Stacks, the switch between them, and what sanitizers must be told about both. This file and its
 * siblings are compiled without ThreadSanitizer (with -DSIMT_TSAN when kernels are compiled with
 * it): what kernel code does is seen, what the machine does is declared. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simt/simt_machine.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMT_TSAN
/* Of gcc's libtsan; the header lacks some. */
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);
void __tsan_read_range(void *p, unsigned long bytes);
void __tsan_write_range(void *p, unsigned long bytes);
enum { NO_SYNC = 1 };
#endif

enum { GUARD = 4096 };
#if defined(__SANITIZE_ADDRESS__) || defined(SIMT_TSAN)
enum { STACK = 256 * 1024 };
#else
enum { STACK = 64 * 1024 };
#endif

void simt_switch_stacks(void **save, void *load);

#if defined(__x86_64__)
__asm__(".text\n"
        ".type simt_switch_stacks, @function\n"
        "simt_switch_stacks:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n"
        ".size simt_switch_stacks, . - simt_switch_stacks\n");
enum { FRAME = 8, ENTRY = 6 }; /* words; where the return address lies */
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type simt_switch_stacks, %function\n"
        "simt_switch_stacks:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size simt_switch_stacks, . - simt_switch_stacks\n");
enum { FRAME = 20, ENTRY = 11 };
#else
#error "no context switch for this processor"
#endif

/* Stacks (and ThreadSanitizer's threads) live until the process ends. */
static struct {
    void *stack, *tsan;
} * pool;
static int pooled;

static void grow_pool(int number)
{
    int more = number + 256;
    pool = realloc(pool, (size_t)more * sizeof *pool);
    if (!pool)
        abort();
    memset(pool + pooled, 0, (size_t)(more - pooled) * sizeof *pool);
    pooled = more;
}

void simt_fiber_make(fiber_t *f, int number, void (*entry)(void))
{
    if (number >= pooled)
        grow_pool(number);
    if (!pool[number].stack) {
        char *p = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect(p, GUARD, PROT_NONE) != 0)
            abort();
        pool[number].stack = p + GUARD;
#ifdef SIMT_TSAN
        pool[number].tsan = __tsan_create_fiber(0);
#endif
    }
    f->stack = pool[number].stack;
    f->tsan = pool[number].tsan;
    f->size = STACK;
    f->asan = NULL;
    simt_asan_unpoison(f->stack, STACK);
    /* As if the entry had called the switch: aligned for a call, return address 0 below it. */
    void **top = (void **)((char *)f->stack + STACK - 64);
    void **frame = top - FRAME;
    simt_fill(frame, 0, FRAME * sizeof *frame);
    frame[ENTRY] = (void *)(uintptr_t)entry;
    f->sp = frame;
}

#ifdef __SANITIZE_ADDRESS__
static fiber_t *came_from;
#endif

/* On the stack that runs now, after a switch. */
static void arrived(fiber_t *self)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(self ? self->asan : NULL, &bottom, &size);
    /* The host's stack is known from here only. */
    if (came_from == &simt_m.host && !simt_m.host.stack) {
        simt_m.host.stack = (void *)(uintptr_t)bottom;
        simt_m.host.size = size;
    }
#else
    (void)self;
#endif
}

void simt_fiber_entered(void)
{
    arrived(NULL);
}

void simt_fiber_switch(fiber_t *from, fiber_t *to, bool from_ends)
{
    simt_m.count.switches++;
#ifdef __SANITIZE_ADDRESS__
    came_from = from;
    __sanitizer_start_switch_fiber(from_ends ? NULL : &from->asan, to->stack, to->size);
#else
    (void)from_ends;
#endif
#ifdef SIMT_TSAN
    if (!simt_m.host.tsan)
        simt_m.host.tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->tsan, NO_SYNC);
#endif
    simt_switch_stacks(&from->sp, to->sp);
    arrived(from);
}

void simt_fibers_forget(int count)
{
    /* Frames that nobody returned from stay in ThreadSanitizer's call stacks: new threads. */
#ifdef SIMT_TSAN
    for (int i = 0; i < count; i++)
        if (pool[i].tsan) {
            simt_tsan_finish(pool[i].tsan, &simt_m.end_tag);
            __tsan_destroy_fiber(pool[i].tsan);
            pool[i].tsan = __tsan_create_fiber(0);
        }
#else
    (void)count;
#endif
}

/* A copy in flight is a thread of its own for ThreadSanitizer. */
void *simt_tsan_thread(void)
{
#ifdef SIMT_TSAN
    void *self = __tsan_get_current_fiber(), *thread = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(thread, 0);
    __tsan_switch_to_fiber(self, NO_SYNC);
    return thread;
#else
    return NULL;
#endif
}

void simt_tsan_enter(void *thread)
{
#ifdef SIMT_TSAN
    __tsan_switch_to_fiber(thread, NO_SYNC);
#else
    (void)thread;
#endif
}

void simt_tsan_end(void *thread)
{
#ifdef SIMT_TSAN
    __tsan_destroy_fiber(thread);
#else
    (void)thread;
#endif
}

void simt_tsan_finish(void *thread, void *object)
{
#ifdef SIMT_TSAN
    void *self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread, NO_SYNC);
    __tsan_release(object);
    __tsan_switch_to_fiber(self, NO_SYNC);
#else
    (void)thread, (void)object;
#endif
}

void simt_tsan_release(void *object)
{
#ifdef SIMT_TSAN
    __tsan_release(object);
#else
    (void)object;
#endif
}

void simt_tsan_acquire(void *object)
{
#ifdef SIMT_TSAN
    if (object)
        __tsan_acquire(object);
#else
    (void)object;
#endif
}

void simt_tsan_range(const void *p, size_t bytes, bool write)
{
#ifdef SIMT_TSAN
    if (write)
        __tsan_write_range((void *)(uintptr_t)p, bytes);
    else
        __tsan_read_range((void *)(uintptr_t)p, bytes);
#else
    (void)p, (void)bytes, (void)write;
#endif
}

void simt_asan_poison(void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(p, bytes);
#else
    (void)p, (void)bytes;
#endif
}

void simt_asan_unpoison(void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(p, bytes);
#else
    (void)p, (void)bytes;
#endif
}

/* The barrier keeps the compiler from making a call of libc out of the loop. */
void simt_fill(void *p, int byte, size_t bytes)
{
#ifdef SIMT_TSAN
    unsigned char *to = p;
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)byte;
        __asm__ volatile("");
    }
#else
    memset(p, byte, bytes);
#endif
}

void simt_move(void *dst, const void *src, size_t bytes)
{
#ifdef SIMT_TSAN
    unsigned char *to = dst;
    const unsigned char *from = src;
    for (size_t i = 0; i < bytes; i++) {
        to[i] = from[i];
        __asm__ volatile("");
    }
#else
    memcpy(dst, src, bytes);
#endif
}

bool simt_equal(const void *a, const void *b, size_t bytes)
{
#ifdef SIMT_TSAN
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != q[i])
            return false;
        __asm__ volatile("");
    }
    return true;
#else
    return memcmp(a, b, bytes) == 0;
#endif
}
