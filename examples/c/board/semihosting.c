/* Output and exit by semihosting: a breakpoint that QEMU or a debugger answers. Without either of them the
 * breakpoint is a fault. On a board, write to its UART instead. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum { SYS_WRITEC = 0x03, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

extern char heap_start[], heap_end[]; /* of the linker script */

static void ask(int operation, const void *argument) {
  register int r0 __asm("r0") = operation;
  register const void *r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

int _write(int file, const char *text, int size) {
  (void)file;
  for (int i = 0; i < size; i++) ask(SYS_WRITEC, &text[i]);
  return size;
}

void _exit(int status) {
  static uintptr_t block[2] = {APPLICATION_EXIT}; /* not on the stack: it may have overflowed */
  block[1] = (uintptr_t)status;
  ask(SYS_EXIT_EXTENDED, block);
  for (;;) {}
}

/* The C library's printf allocates; holoctl does not. */
void *_sbrk(ptrdiff_t size) {
  static char *next = heap_start;
  char *const start = next;
  if (size > heap_end - next) {
    errno = ENOMEM;
    return (void *)-1;
  }
  next += size;
  return start;
}
