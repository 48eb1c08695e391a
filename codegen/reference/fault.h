/* Why something is refused, as a text that travels up to whoever asked. */
#ifndef VISA_CODEGEN_REFERENCE_FAULT_H
#define VISA_CODEGEN_REFERENCE_FAULT_H

/* printf into a malloc'd text; never NULL (without memory, a constant that fault_free knows). */
char *fault_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fault_free(void *text);

#endif
