// Vectors, matrix products and norms: what `loops.cpp` and `pictures.cpp` are made of.
//
// The products are small: tens of rows with matrices of some hundred rows. Weights are
// laid out once for many products with them, which libraries do anew with each.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

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
  Ints rounded = __builtin_convertvector(twos + (twos < 0.0f ? all(-0.5f) : all(0.5f)), Ints);
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

// Matrices

int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

struct Free {
  void operator()(float* memory) const {
    ::operator delete[](memory, std::align_val_t(64));
  }
};

std::unique_ptr<float[], Free> zeros(int64_t count) {
  auto* memory = new (std::align_val_t(64)) float[count];
  std::fill(memory, memory + count, 0.0f);
  return std::unique_ptr<float[], Free>(memory);
}

// Rows whose memory is as long as products want it: a whole number of panels.
struct Rows {
  int64_t stride;
  std::unique_ptr<float[], Free> memory;

  Rows(int64_t count, int64_t units)
      : stride(round_up(units, PANEL)), memory(zeros(count * stride)) {}
  float* operator[](int64_t i) { return memory.get() + i * stride; }
  const float* operator[](int64_t i) const { return memory.get() + i * stride; }
};

// A matrix to multiply rows with, its columns in panels, zeros at their end.
struct Matrix {
  int64_t inputs, outputs, panels;
  std::unique_ptr<float[], Free> memory;

  Matrix(int64_t inputs, int64_t outputs)
      : inputs(inputs), outputs(outputs), panels(round_up(outputs, PANEL) / PANEL),
        memory(zeros(panels * inputs * PANEL)) {}

  float& at(int64_t input, int64_t output) {
    return memory[(output / PANEL * inputs + input) * PANEL + output % PANEL];
  }
};

// Writes a square of numbers with rows and columns exchanged.
inline void transpose(const float* from, int64_t from_stride, float* to,
                      int64_t to_stride) {
#if defined(__AVX512F__)
  Vec rows[LANES];
  Ints lane;
  for (int i = 0; i < LANES; ++i) {
    lane[i] = i;
    rows[i] = load(from + i * from_stride);
  }
#pragma GCC unroll 4
  for (int half = 1; half < LANES; half *= 2) {
    // Of two rows, blocks of `half` numbers change places.
    const Ints first = (lane & half) != 0 ? lane + LANES - half : lane;
    const Ints second = (lane & half) != 0 ? lane + LANES : lane + half;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) {
      if (i & half) continue;
      const __m512 a = (__m512)rows[i], b = (__m512)rows[i + half];
      rows[i] = (Vec)_mm512_permutex2var_ps(a, (__m512i)first, b);
      rows[i + half] = (Vec)_mm512_permutex2var_ps(a, (__m512i)second, b);
    }
  }
  for (int i = 0; i < LANES; ++i) store(to + i * to_stride, rows[i]);
#else
  for (int i = 0; i < LANES; ++i)
    for (int j = 0; j < LANES; ++j) to[j * to_stride + i] = from[i * from_stride + j];
#endif
}

// Gives place(o, i), where weight i of output o goes, and how far it is to the next i.
template <class Place>
void lay_out(const float* weights, int64_t stride, int64_t outputs, int64_t inputs,
             int64_t to_next, Place place) {
  const int64_t squares_o = outputs / LANES * LANES, squares_i = inputs / LANES * LANES;
  for (int64_t o = 0; o < squares_o; o += LANES)
    for (int64_t i = 0; i < squares_i; i += LANES)
      transpose(weights + o * stride + i, stride, place(o, i), to_next);
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = o < squares_o ? squares_i : 0; i < inputs; ++i)
      *place(o, i) = weights[o * stride + i];
}

// The layer y = W x, of weights [outputs, stride].
Matrix forth(const float* weights, int64_t outputs, int64_t inputs, int64_t stride = 0) {
  Matrix matrix(inputs, outputs);
  lay_out(weights, stride ? stride : inputs, outputs, inputs, PANEL,
          [&](int64_t o, int64_t i) { return &matrix.at(i, o); });
  return matrix;
}

// Its way back: y = x W.
Matrix back(const float* weights, int64_t outputs, int64_t inputs) {
  Matrix matrix(outputs, inputs);
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < inputs; i += PANEL)
      std::copy_n(weights + o * inputs + i, std::min<int64_t>(PANEL, inputs - i),
                  &matrix.at(o, i));
  return matrix;
}

// What each class of each group adds to a layer over one-hot z: [latents, outputs].
Rows looked_up(const float* weights, int64_t outputs, int64_t latents, int64_t stride,
               int64_t first) {
  Rows table(latents, outputs);
  lay_out(weights + first, stride, outputs, latents, table.stride,
          [&](int64_t o, int64_t i) { return table[i] + o; });
  return table;
}

// One side of a product: where row r's number i is.
struct Side {
  const float* numbers;
  int64_t by_row, by_number;
  const float* operator()(int64_t r, int64_t i) const {
    return numbers + r * by_row + i * by_number;
  }
};

// Adds products of ROWS rows with a panel to sums: sum[r] += a[r] panel.
template <int ROWS>
void add_tile(Side a, const float* panel, int64_t to_next, int64_t inputs, float* sum,
              int64_t stride) {
  Vec left[ROWS], right[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    left[r] = load(sum + r * stride);
    right[r] = load(sum + r * stride + LANES);
  }
  for (int64_t i = 0; i < inputs; ++i, panel += to_next) {
    const Vec w_left = load(panel), w_right = load(panel + LANES);
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; ++r) {
      const Vec x = all(*a(r, i));
      left[r] += x * w_left;
      right[r] += x * w_right;
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    store(sum + r * stride, left[r]);
    store(sum + r * stride + LANES, right[r]);
  }
}

using Tile = void (*)(Side, const float*, int64_t, int64_t, float*, int64_t);

template <std::size_t... N>
constexpr auto tiles(std::index_sequence<N...>) {
  struct { Tile of[sizeof...(N)]; } table{{add_tile<int(N) + 1>...}};
  return table;
}

constexpr auto TILES = tiles(std::make_index_sequence<TILE_ROWS>{});

// Adds a[:rows] times one panel after the other, each `to_panel` after the one before.
void add_panels(Side a, int64_t rows, const float* panel, int64_t panels,
                int64_t to_panel, int64_t to_next, int64_t inputs, Rows& sum) {
  const int64_t blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
  for (int64_t p = 0; p < panels; ++p, panel += to_panel)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t from = rows * b / blocks, to = rows * (b + 1) / blocks;
      TILES.of[to - from - 1]({a(from, 0), a.by_row, a.by_number}, panel, to_next,
                              inputs, sum[from] + p * PANEL, sum.stride);
    }
}

// sum[:rows] += a[:rows] matrix
void add_product(const float* a, int64_t stride, int64_t rows, const Matrix& matrix,
                 Rows& sum) {
  add_panels({a, stride, 1}, rows, matrix.memory.get(), matrix.panels,
             matrix.inputs * PANEL, PANEL, matrix.inputs, sum);
}

void add_product(Rows& a, int64_t rows, const Matrix& matrix, Rows& sum) {
  add_product(a[0], a.stride, rows, matrix, sum);
}

// sum += transposed a[:, :units] times b, over `rows` rows: a layer's gradient.
void add_outer(const float* a, int64_t stride, int64_t units, Rows& b, int64_t rows,
               Rows& sum) {
  add_panels({a, 1, stride}, units, b[0], b.stride / PANEL, PANEL, b.stride, rows, sum);
}

void add(const float* __restrict from, float* __restrict to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Layers

constexpr float NORM_EPS = 1e-3f;

// A layer norm and SiLU. Rows of few registers are worked on without leaving them.
struct Norm {
  const float *weight, *bias;
  int64_t units;

  // Writes the SiLU of the normed x, which may be where x is, and the normed x if a
  // place is given; tells mean and 1 / deviation.
  std::pair<float, float> operator()(const float* x, float* normed, float* out) const {
    if (units == LANES) return forth_in<1>(x, normed, out);
    if (units == 2 * LANES) return forth_in<2>(x, normed, out);
    if (units == 8 * LANES) return forth_in<8>(x, normed, out);
    return forth_in<0>(x, normed, out);
  }

  // Turns the gradient of the SiLU into that of the normed x, and writes that of x.
  void back(const float* x, float mean, float scale, float* grad, float* to_x) const {
    if (units == LANES) return back_in<1>(x, mean, scale, grad, to_x);
    if (units == 2 * LANES) return back_in<2>(x, mean, scale, grad, to_x);
    if (units == 8 * LANES) return back_in<8>(x, mean, scale, grad, to_x);
    return back_in<0>(x, mean, scale, grad, to_x);
  }

 private:
  // Has f(place, how many are left) work on a row, of that many registers if not 0.
  template <int REGISTERS, class Function>
  inline void each(Function f) const {
    if constexpr (REGISTERS == 0) {
      by_register(units, f);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < REGISTERS; ++i) f(int64_t(i) * LANES, int64_t(LANES));
    }
  }

  template <int REGISTERS>
  inline std::pair<float, float> forth_in(const float* x, float* normed,
                                          float* out) const {
    Vec sum{}, squares{};
    each<REGISTERS>([&](int64_t i, int64_t left) { sum += load_some(x + i, left); });
    const float mean = total(sum) / units;
    each<REGISTERS>([&](int64_t i, int64_t left) {
      const Vec off = load_some(x + i, left) - mean;
      squares += off * off;
    });
    // The register's unused numbers are as far off as zero is.
    const float unused = (LANES - units % LANES) % LANES;
    const float variance = (total(squares) - unused * mean * mean) / units;
    const float scale = 1.0f / std::sqrt(variance + NORM_EPS);
    each<REGISTERS>([&](int64_t i, int64_t left) {
      const Vec hat = (load_some(x + i, left) - mean) * scale;
      const Vec y = hat * load_some(weight + i, left) + load_some(bias + i, left);
      if (normed) store_some(normed + i, y, left);
      store_some(out + i, y * sigmoid(y), left);
    });
    return {mean, scale};
  }

  template <int REGISTERS>
  inline void back_in(const float* x, float mean, float scale, float* grad,
                      float* to_x) const {
    Vec sum{}, along{};
    each<REGISTERS>([&](int64_t i, int64_t left) {
      const Vec hat = (load_some(x + i, left) - mean) * scale;
      const Vec w = load_some(weight + i, left);
      const Vec y = hat * w + load_some(bias + i, left), open = sigmoid(y);
      const Vec to_y = load_some(grad + i, left) * open * (1.0f + y * (1.0f - open));
      sum += to_y * w;
      along += to_y * w * hat;
      store_some(grad + i, to_y, left);
    });
    const float mean_grad = total(sum) / units, slope = total(along) / units;
    each<REGISTERS>([&](int64_t i, int64_t left) {
      const Vec hat = (load_some(x + i, left) - mean) * scale;
      const Vec to_hat = load_some(grad + i, left) * load_some(weight + i, left);
      store_some(to_x + i, scale * (to_hat - mean_grad - hat * slope), left);
    });
  }
};

// Has shares of the rows worked on by threads.
template <class Work>
void in_parts(int64_t rows, int64_t threads, Work work) {
  threads = std::max<int64_t>(1, std::min(threads, rows));
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back(work, rows * t / threads, rows * (t + 1) / threads);
  work(0, rows / threads);
  for (auto& other : others) other.join();
}

}  // namespace
