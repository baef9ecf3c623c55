#pragma once

#include <utility>

#include "vectors.hpp"

namespace {

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

}  // namespace
