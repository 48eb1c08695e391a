/* What test/mutants_smoke.py plants changes in. */
#ifndef TOY_H
#define TOY_H

int toy_sum(int n);
int toy_larger(int a, int b);
unsigned toy_is_zero(unsigned n);
int toy_forgotten(int n);

#endif
