/* Startup of an ARM Cortex-M: vector table, memory, FPU, main. The names that are not defined here
 * are those of the linker script. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPACR (*(volatile uint32_t *)0xE000ED88u) /* access to coprocessors; 10 and 11 are the FPU */
enum { FAULT = 125 };                             /* exit status after a fault */

extern char data_in_flash[], data_start[], data_end[], bss_start[], bss_end[];
void stack_top(void); /* an address, and no function */
int main(void);

void reset(void) {
  int status;
#ifdef __ARM_FP
  CPACR |= 0xFu << 20; /* before the first instruction of the FPU, which would be a fault */
  __asm volatile("dsb\n isb");
#endif
  memcpy(data_start, data_in_flash, (size_t)(data_end - data_start));
  memset(bss_start, 0, (size_t)(bss_end - bss_start));
  status = main();
  fflush(stdout);
  _exit(status);
}

/* Of a robot this handler must disable the drives, and nothing else first. */
static void fault(void) { _exit(FAULT); }

static void ignored(void) {}

__attribute__((weak)) void tick(void) {} /* of SysTick; main.c has its own */

typedef void (*handler)(void);

__attribute__((section(".vectors"), used)) static const handler vectors[16] = {
    stack_top, reset, fault /* NMI */, fault /* hard */, fault /* memory */, fault /* bus */,
    fault /* usage */, 0, 0, 0, 0, ignored /* SVC */, ignored /* debugger */, 0, ignored /* PendSV */,
    tick,
};
