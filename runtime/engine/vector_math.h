/* Functions of the Vector Engine's float units that are no arithmetic.
 *
 * The one idea: each is a polynomial in f64 after an exact reduction of its argument, rounded once to f32 at the end. IEEE arithmetic says
 * every step, so every processor gives the same bits; docs/engine/vector.md has the steps and how far they are from the true value. A NaN
 * that comes out is NUMERIC_F32_NAN where it becomes a word. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_MATH_H
#define VISA_RUNTIME_ENGINE_VECTOR_MATH_H

float vector_exp(float x);
float vector_log(float x);
float vector_tanh(float x);
float vector_sigmoid(float x); /* 1 / (1 + exp(-x)), each step in f32 */
float vector_sin(float x);
float vector_cos(float x);

#endif
