// Networks over model states [h, z], where z is one-hot in each group.

#pragma once

#include "arithmetic.hpp"

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

  void look_up(const Rows& table, const int64_t* ones, float* sum, int64_t outputs) const {
    for (int64_t g = 0; g < groups; ++g)
      if (ones[g] >= 0) add(table[ones[g]], sum, outputs);
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
      : latents(latents), h(h), units(units), outputs(outputs),
        by_latent(looked_up(*tensors, units, latents.units(), h + latents.units(), h)),
        out(forth(tensors[3 * hidden], outputs, units)), bias(tensors[3 * hidden + 1]) {
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
      if (i) add_product(b, rows, layers[i], a);
      else add_product(states, h + latents.units(), rows, layers[i], a);
      for (int64_t r = 0; r < rows; ++r) norms[i](a[r], nullptr, a[r]);
      std::swap(a, b);
    }
    for (int64_t r = 0; r < rows; ++r) std::copy_n(bias, outputs, outs[r]);
    add_product(b, rows, out, outs);
  }
};

}  // namespace
