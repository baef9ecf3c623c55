// Registers full of numbers, and functions of them.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

// As many sums at a time as the registers hold.
#if defined(__AVX512F__)
constexpr int LANES = 16, TILE_ROWS = 12;
#else
constexpr int LANES = 8, TILE_ROWS = 6;
#endif
constexpr int PANEL = 2 * LANES;

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

inline Vec load(const float* from) {
  Vec vec;
  std::memcpy(&vec, from, sizeof vec);
  return vec;
}

inline void store(float* to, Vec vec) { std::memcpy(to, &vec, sizeof vec); }

inline Vec all(float number) { return Vec{} + number; }

// The sum of a register's numbers, and the largest of them.
#if defined(__AVX512F__)
inline float total(Vec vec) { return _mm512_reduce_add_ps((__m512)vec); }
inline float largest(Vec vec) { return _mm512_reduce_max_ps((__m512)vec); }
inline Vec root(Vec vec) { return (Vec)_mm512_sqrt_ps((__m512)vec); }
#else
inline float total(Vec vec) {
  float sum = vec[0];
  for (int i = 1; i < LANES; ++i) sum += vec[i];
  return sum;
}
inline float largest(Vec vec) {
  float most = vec[0];
  for (int i = 1; i < LANES; ++i) most = std::max(most, vec[i]);
  return most;
}
inline Vec root(Vec vec) {
  for (int i = 0; i < LANES; ++i) vec[i] = std::sqrt(vec[i]);
  return vec;
}
#endif

// Functions of single numbers, a register at a time

// e to the x, within two units in the last place (the polynomial is Cephes's).
inline Vec exponential(Vec x) {
  x = x < all(-87.0f) ? all(-87.0f) : x;
  x = x > all(88.0f) ? all(88.0f) : x;
  Vec twos = x * 1.44269504088896341f;
  Ints rounded =
      __builtin_convertvector(twos + (twos < 0.0f ? all(-0.5f) : all(0.5f)), Ints);
  Vec whole = __builtin_convertvector(rounded, Vec);
  Vec rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  Vec sum = all(1.9875691500e-4f);
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                  1.6666665459e-1f, 5.0000001201e-1f})
    sum = sum * rest + c;
  sum = sum * rest * rest + rest + 1.0f;
  Ints exponent = (rounded + 127) << 23;
  Vec power;
  std::memcpy(&power, &exponent, sizeof power);
  return sum * power;
}

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exponential(-x)); }

inline Vec tanh(Vec x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// `count` numbers from `i` on, fewer than a register's with zeros after them.
inline Vec load_some(const float* from, int64_t count) {
  if (count >= LANES) return load(from);
  float lanes[LANES] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}

inline void store_some(float* to, Vec vec, int64_t count) {
  if (count >= LANES) return store(to, vec);
  float lanes[LANES];
  store(lanes, vec);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// Has f work on `count` numbers, a register at a time: f(place, how many are left).
template <class Function>
inline void by_register(int64_t count, Function f) {
  for (int64_t i = 0; i < count; i += LANES) f(i, count - i);
}

template <class Function>
void map(Function f, const float* from, float* to, int64_t count) {
  by_register(count, [&](int64_t i, int64_t left) {
    store_some(to + i, f(load_some(from + i, left)), left);
  });
}

}  // namespace
