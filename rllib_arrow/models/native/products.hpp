// Products of a few rows with matrices of some hundred rows. Weights are laid out once
// for many products with them, which libraries do anew with each.

#pragma once

#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "vectors.hpp"

namespace {

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
      : inputs(inputs),
        outputs(outputs),
        panels(round_up(outputs, PANEL) / PANEL),
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
Matrix forth(const float* weights, int64_t outputs, int64_t inputs,
             int64_t stride = 0) {
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
  struct {
    Tile of[sizeof...(N)];
  } table{{add_tile<int(N) + 1>...}};
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
