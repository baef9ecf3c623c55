// The networks that steps go through, over model states [h, z], where z is one-hot in
// each group.

#pragma once

#include "norm.hpp"
#include "products.hpp"

struct Sizes {
  int64_t steps, rows, groups, classes, h, units, actions, actor_layers, threads;
};

namespace {

struct Latents {
  int64_t groups, classes;
  int64_t units() const { return groups * classes; }

  // Where z is 1 in each group, -1 where nowhere.
  void find(const float* z, int64_t* ones) const {
    for (int64_t g = 0; g < groups; ++g) {
      const float* group = z + g * classes;
      const auto* one = std::find(group, group + classes, 1.0f);
      ones[g] = one == group + classes ? -1 : g * classes + (one - group);
    }
  }

  void look_up(const Rows& table, const int64_t* ones, float* sum,
               int64_t outputs) const {
    for (int64_t g = 0; g < groups; ++g)
      if (ones[g] >= 0) add(table[ones[g]], sum, outputs);
  }
};

constexpr float UNIMIX = 0.01f;

void softmax(float* numbers, int64_t count) {
  float most = numbers[0];
  if (count % LANES == 0) {
    Vec vec = load(numbers);
    by_register(count, [&](int64_t i, int64_t) {
      const Vec other = load(numbers + i);
      vec = other > vec ? other : vec;
    });
    most = largest(vec);
  } else {
    for (int64_t i = 1; i < count; ++i) most = std::max(most, numbers[i]);
  }
  Vec sum{};
  by_register(count, [&](int64_t i, int64_t left) {
    store_some(numbers + i, exponential(load_some(numbers + i, left) - most), left);
    sum += load_some(numbers + i, left);
  });
  const float share = 1.0f / total(sum);
  map([=](Vec vec) { return vec * share; }, numbers, numbers, count);
}

// Adds to each number of a register those before it.
inline Vec upto(Vec vec) {
#if defined(__AVX512F__)
  const __m512i none = _mm512_setzero_si512();
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 15);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 14);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 12);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 8);
#else
  for (int i = 1; i < LANES; ++i) vec[i] += vec[i - 1];
#endif
  return vec;
}

// How many numbers of a register are not above a limit.
inline int64_t count_upto(Vec vec, float limit) {
#if defined(__AVX512F__)
  return __builtin_popcount(
      _mm512_cmp_ps_mask((__m512)vec, _mm512_set1_ps(limit), _CMP_LE_OQ));
#else
  int64_t count = 0;
  for (int i = 0; i < LANES; ++i) count += vec[i] <= limit;
  return count;
#endif
}

// Draws a class from a softmax with 1 % of uniform mixed in, as `sample_index` does.
int64_t draw(const float* softmax, int64_t classes, float uniform) {
  const float floor = UNIMIX / classes;
  float before = 0.0f;
  int64_t below = 0;
  by_register(classes, [&](int64_t i, int64_t left) {
    const Vec probs = load_some(softmax + i, left) * (1.0f - UNIMIX) + floor;
    const Vec sums = upto(probs) + before;
    below += count_upto(sums, uniform);
    before = sums[LANES - 1];
  });
  return std::min(below, classes - 1);
}

// Draws z from logits, which become probabilities without the uniform part.
void sample(const Latents& latents, float* logits, const float* uniform, float* z,
            int64_t* ones) {
  const int64_t classes = latents.classes;
  std::fill(z, z + latents.units(), 0.0f);
  for (int64_t g = 0; g < latents.groups; ++g) {
    softmax(logits + g * classes, classes);
    ones[g] = g * classes + draw(logits + g * classes, classes, uniform[g]);
    z[ones[g]] = 1.0f;
  }
}

struct GRU {
  const Matrix &from_x, &from_h;
  const float *x_bias, *h_bias;
  int64_t units;

  // Gives both parts of the gates, before they meet: [reset, update, candidate].
  void parts(Rows& x, const float* h, int64_t h_stride, int64_t rows, Rows& by_x,
             Rows& by_h) const {
    for (int64_t r = 0; r < rows; ++r) {
      std::copy(x_bias, x_bias + 3 * units, by_x[r]);
      std::copy(h_bias, h_bias + 3 * units, by_h[r]);
    }
    add_product(x, rows, from_x, by_x);
    add_product(h, h_stride, rows, from_h, by_h);
  }

  // Turns a row's parts into gates and candidate (in `by_x`); writes the next h.
  void close(float* __restrict by_x, const float* __restrict by_h,
             const float* __restrict h, float* __restrict next) const {
    add(by_h, by_x, 2 * units);
    map([](Vec v) { return sigmoid(v); }, by_x, by_x, 2 * units);
    float* candidate = by_x + 2 * units;
    for (int64_t i = 0; i < units; ++i) candidate[i] += by_x[i] * by_h[2 * units + i];
    map([](Vec v) { return tanh(v); }, candidate, candidate, units);
    for (int64_t i = 0; i < units; ++i)
      next[i] = candidate[i] + by_x[units + i] * (h[i] - candidate[i]);
  }
};

// Hidden layers with norm and SiLU, then a linear one. Tensors: for each hidden layer
// its weights, its norm's and the norm's bias; the output's weights and bias.
struct Head {
  Latents latents;
  int64_t h, units, outputs;
  Rows by_latent;  // what each class of each group adds to the first layer
  std::vector<Matrix> layers;
  std::vector<Norm> norms;
  Matrix out;
  const float* bias;

  Head(const float* const* tensors, Latents latents, int64_t h, int64_t units,
       int64_t hidden, int64_t outputs)
      : latents(latents),
        h(h),
        units(units),
        outputs(outputs),
        by_latent(looked_up(*tensors, units, latents.units(), h + latents.units(), h)),
        out(forth(tensors[3 * hidden], outputs, units)),
        bias(tensors[3 * hidden + 1]) {
    for (int64_t i = 0; i < hidden; ++i, tensors += 3) {
      layers.push_back(i ? forth(*tensors, units, units)
                         : forth(*tensors, units, h, h + latents.units()));
      norms.push_back({tensors[1], tensors[2], units});
    }
  }

  // Writes outputs of states whose z is known by its `ones`; a and b are to work in.
  void operator()(const float* states, int64_t rows, const int64_t* ones, Rows& a,
                  Rows& b, Rows& outs) const {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        std::fill_n(a[r], units, 0.0f);
        if (!i) latents.look_up(by_latent, ones + r * latents.groups, a[r], units);
      }
      if (i)
        add_product(b, rows, layers[i], a);
      else
        add_product(states, h + latents.units(), rows, layers[i], a);
      for (int64_t r = 0; r < rows; ++r) norms[i](a[r], nullptr, a[r]);
      std::swap(a, b);
    }
    for (int64_t r = 0; r < rows; ++r) std::copy_n(bias, outputs, outs[r]);
    add_product(b, rows, out, outs);
  }
};

}  // namespace
